import { afterAll, describe } from "vitest";
import { dropDatabase, mongoServer, newDatabase } from "../support/mongo.js";
import { processCases } from "./processes-cases.js";

const server = await mongoServer("several processes on MongoDB");
afterAll(() => server?.stop());

// Without ensureIndexes: the cases use times in the past, and a TTL index would delete their documents.
describe.runIf(server)("several processes on MongoDB", () => {
  const name = newDatabase();
  const url = new URL(server?.url ?? "mongodb://unused");
  url.pathname = name;

  afterAll(() => dropDatabase(url.href, name));

  processCases(new URL("../support/mongo-process.ts", import.meta.url), async () => url.href, 2, 60, true);
});
