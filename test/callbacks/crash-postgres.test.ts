import { afterAll, describe } from "vitest";
import { newStore, postgresServer } from "../support/postgres.js";
import { crashCases } from "./crash-cases.js";

const server = await postgresServer("killed processes on PostgreSQL");
afterAll(() => server?.stop());

describe.runIf(server)("killed processes on PostgreSQL", () => {
  // A quarter of the numbers for Redis, to take about the same time.
  crashCases("PostgreSQL", 200, 10, new URL("crash-postgres-process.ts", import.meta.url), async () => {
    const { url, close } = await newStore(server);
    await close();
    return url;
  });
});
