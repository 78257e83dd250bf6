import { describe, it } from "vitest";
import { dumpOfPostgres } from "../support/dump.js";
import { newStore, postgresServer } from "../support/postgres.js";
import { privacyCases } from "./cases.js";

const server = await postgresServer("privacy on PostgreSQL");

describe.skipIf(server === undefined)("PostgreSQL", () => {
  it("is available", () => {});
  privacyCases("PostgreSQL", async () => {
    const { store, pool, close } = await newStore(server);
    return {
      store,
      dump: () => dumpOfPostgres(pool),
      async close() {
        await close();
        await server?.stop();
      },
    };
  });
});
