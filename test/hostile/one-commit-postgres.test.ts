import { randomUUID } from "node:crypto";
import type { Pool } from "pg";
import { afterAll, afterEach, describe } from "vitest";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { newStore, poolOf, postgresServer } from "../support/postgres.js";
import { start } from "../support/verifier.js";
import { type Service, sender, service } from "./kit.js";
import { oneCommitCases } from "./one-commit-stores.js";

const server = await postgresServer("the hostile tests of the anti-spam rules on PostgreSQL");

describe.runIf(server)("on PostgreSQL", () => {
  const pools: Pool[] = [];
  // A pool keeps its connections for ten seconds, and all tests together need more than the server allows.
  afterEach(async () => {
    await Promise.all(pools.splice(0).map((one) => one.end()));
  });
  afterAll(() => server?.stop());

  oneCommitCases(async (count, options) => {
    const shared = { clock: fixedClock(start), sender: sender(options?.price), customer: randomUUID(), storeTimeout: 60, ...options };
    const { url, close } = await newStore(server);
    await close();
    const set: Service[] = [];
    for (let i = 0; i < count; i++) {
      const pool = poolOf(url);
      pools.push(pool);
      const store = postgresStore({ pool });
      set.push(service({ ...shared, store }));
    }
    return set;
  });
});
