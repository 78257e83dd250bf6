import { afterAll, describe } from "vitest";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { drivers, dropDatabase, mongoServer, newDatabase } from "../support/mongo.js";
import { crashCases } from "./crash-cases.js";

const server = await mongoServer("killed processes on MongoDB");
afterAll(() => server?.stop());

describe.runIf(server)("killed processes on MongoDB", () => {
  const names: string[] = [];

  // A quarter of the numbers for Redis, to take about the same time.
  crashCases("MongoDB", 200, 10, new URL("crash-mongo-process.ts", import.meta.url), async () => {
    const name = newDatabase();
    names.push(name);
    const url = new URL(server?.url as string);
    url.pathname = name;
    const { db, close } = await drivers["mongodb 7"](url.href, name);
    await mongoStore({ db }).ensureIndexes();
    await close();
    return url.href;
  });

  afterAll(() => Promise.all(names.map((name) => dropDatabase(server?.url as string, name))));
});
