import { describe, it } from "vitest";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { dumpOfMongo } from "../support/dump.js";
import { drivers, dropDatabase, mongoServer, newDatabase } from "../support/mongo.js";
import { privacyCases } from "./cases.js";

const server = await mongoServer("privacy on MongoDB");

describe.skipIf(server === undefined)("MongoDB", () => {
  it("is available", () => {});
  privacyCases("MongoDB", async () => {
    const name = newDatabase();
    const { db, client, close } = await drivers["mongodb 7"](server?.url as string, name);
    const store = mongoStore({ db });
    await store.ensureIndexes();
    return {
      store,
      dump: () => dumpOfMongo(client, name),
      async close() {
        await close();
        await dropDatabase(server?.url as string, name);
        await server?.stop();
      },
    };
  });
});
