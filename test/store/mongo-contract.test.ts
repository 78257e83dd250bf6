import { afterAll, beforeAll, describe, it } from "vitest";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { storeContract } from "../../src/testing/store-contract.js";
import { type Connected, drivers, dropDatabase, mongoServer, newDatabase } from "../support/mongo.js";
import { ofClient } from "./of-client.js";

const server = await mongoServer("the store contract on MongoDB");
afterAll(() => server?.stop());

describe.runIf(server)("the store contract on MongoDB", () => {
  const url = server?.url ?? "";

  describe.each(Object.entries(drivers))("through %s", (driver, connect) => {
    const name = newDatabase();
    let first: Connected;
    let second: Connected;

    beforeAll(async () => {
      first = await connect(url, name);
      // The application's own settings do not reach the store.
      second = await connect(url, name, { promoteValues: false, readPreference: "secondaryPreferred", readConcernLevel: "local", writeConcern: { w: 1 } });
      await mongoStore({ db: first.db }).ensureIndexes();
    });

    afterAll(async () => {
      await first?.close();
      await second?.close();
      await dropDatabase(url, name);
    });

    for (const { name: sentence, run } of driver === "mongodb 7" ? storeContract() : ofClient) {
      it(sentence, () => run({ store: mongoStore({ db: first.db }), peer: mongoStore({ db: second.db }) }));
    }
  });

  it("races give correct results without indexes too", async () => {
    const name = newDatabase();
    const { db, close } = await drivers["mongodb 7"](url, name);
    try {
      for (const { name: sentence, run } of storeContract()) if (/racers|racing|workers/.test(sentence)) await run({ store: mongoStore({ db }) });
    } finally {
      await close();
      await dropDatabase(url, name);
    }
  });
});
