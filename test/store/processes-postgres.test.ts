import { afterAll, describe } from "vitest";
import { newStore, postgresServer } from "../support/postgres.js";
import { processCases } from "./processes-cases.js";

const server = await postgresServer("several processes on PostgreSQL");
afterAll(() => server?.stop());

describe.runIf(server)("several processes on PostgreSQL", () => {
  const made = newStore(server);
  afterAll(async () => (await made).close());

  processCases(new URL("../support/postgres-process.ts", import.meta.url), async () => (await made).url, 2, 60);
});
