import { PGlite } from "@electric-sql/pglite";
import postgres from "postgres";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type PostgresStoreOptions, postgresStore } from "../../adapters/store/postgres/index.js";
import { storeContract } from "../../src/testing/store-contract.js";
import { newDatabase, type PostgresServer, pgbouncerIsInstalled, poolOf, postgresServer, startPgbouncer } from "../support/postgres.js";
import { ofClient } from "./of-client.js";

const server = await postgresServer("the store contract on PostgreSQL");
const hasPgbouncer = server !== undefined && pgbouncerIsInstalled("the store contract through PgBouncer");
afterAll(() => server?.stop());

interface Connected extends Pick<PostgresStoreOptions, "pool" | "query" | "prepare"> {
  close(): Promise<unknown>;
}

const clients: Readonly<Record<string, (url: string) => Connected>> = {
  "pg 8": (url) => {
    const pool = poolOf(url, { max: 20 });
    return { pool, close: () => pool.end() };
  },
  "pg 8, prepared": (url) => {
    const pool = poolOf(url, { max: 20 });
    return { pool, prepare: true, close: () => pool.end() };
  },
  "postgres.js 3": (url) => {
    const pool = postgres(url, { max: 20, onnotice: () => {} });
    return { pool, close: () => pool.end() };
  },
};

describe.runIf(server)("the store contract on PostgreSQL", () => {
  describe.each(Object.entries(clients))("through %s", (name, connect) => {
    let first: Connected;
    let second: Connected;
    beforeAll(async () => {
      const url = await newDatabase(server);
      [first, second] = [connect(url), connect(url)];
      await storeOf(first).ensureSchema();
    });
    afterAll(() => Promise.all([first?.close(), second?.close()]));

    for (const { name: sentence, run } of name === "pg 8" ? storeContract() : ofClient)
      it(sentence, () => run({ store: storeOf(first), peer: storeOf(second) }));
  });

  describe.runIf(hasPgbouncer)("through PgBouncer in transaction mode", () => {
    let bouncer: PostgresServer;
    let first: Connected;
    let second: Connected;
    beforeAll(async () => {
      bouncer = await startPgbouncer(server as PostgresServer, 5);
      const url = new URL(bouncer.url);
      url.pathname = new URL(await newDatabase(server)).pathname;
      const pool = postgres(url.href, { max: 20, prepare: false, onnotice: () => {} });
      [first, second] = [(clients["pg 8"] as (url: string) => Connected)(url.href), { pool, close: () => pool.end() }];
      await storeOf(first).ensureSchema();
    });
    afterAll(async () => {
      await Promise.all([first?.close(), second?.close()]);
      await bouncer?.stop();
    });

    for (const { name: sentence, run } of ofClient) it(sentence, () => run({ store: storeOf(first), peer: storeOf(second) }));
  });
});

describe("the store contract on PGlite", () => {
  let database: PGlite;
  beforeAll(async () => {
    database = await PGlite.create();
    await postgresStore({ pool: database }).ensureSchema();
  });
  afterAll(() => database?.close());

  for (const { name: sentence, run } of ofClient) it(sentence, () => run({ store: postgresStore({ pool: database }) }));
});

function storeOf({ close: _, ...options }: Connected) {
  return postgresStore(options);
}
