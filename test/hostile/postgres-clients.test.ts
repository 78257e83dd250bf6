import type { PoolConfig } from "pg";
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import {
  newStore,
  type OwnPostgresServer,
  pgbouncerIsInstalled,
  poolOf,
  postgresIsInstalled,
  sql,
  startPgbouncer,
  startPostgres,
} from "../support/postgres.js";
import { ending, eventually, type Service, service, tallied, wide } from "./kit.js";

const installed = postgresIsInstalled("the hostile tests of PostgreSQL's clients");
const hasPgbouncer = installed && pgbouncerIsInstalled("the hostile tests of PgBouncer");

/** What docs/stores.md names for `pg`. */
const limits = { connectionTimeoutMillis: 1_500, query_timeout: 1_500, statement_timeout: 1_500, max: 16 };

describe.runIf(installed)("the settings of docs/stores.md on PostgreSQL", () => {
  let server: OwnPostgresServer;
  const ended: (() => unknown)[] = [];
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterEach(async () => {
    for (const end of ended.splice(0).reverse()) await end();
  });
  afterAll(() => server?.stop());

  async function database(): Promise<string> {
    const { url, close } = await newStore(server);
    await close();
    return url;
  }
  async function bouncedDatabase(direct: string): Promise<string> {
    const bouncer = await startPgbouncer(server, 3);
    ended.push(() => bouncer.stop());
    const through = new URL(bouncer.url);
    through.pathname = new URL(direct).pathname;
    return through.href;
  }
  const pool = (url: string, options: PoolConfig) => {
    const made = poolOf(url, options);
    ended.push(() => made.end());
    return made;
  };

  it.runIf(hasPgbouncer)("behind PgBouncer a pool without statement_timeout is served, and the role's ends what takes too long", async () => {
    const url = await database();
    await sql(url, `alter database ${new URL(url).pathname.slice(1)} set statement_timeout = 1500`);
    const { statement_timeout: _, ...others } = limits;
    const made = pool(await bouncedDatabase(url), others);
    expect(await made.query("show statement_timeout").then(({ rows }) => rows)).toEqual([{ statement_timeout: "1500ms" }]);
    const one = service({ store: postgresStore({ pool: made }), policy: { limits: wide }, storeTimeout: 20 });
    expect([await ending(one.create(1)), one.log]).toEqual(["pending", []]);
  });

  it("a server too slow for the first query of postgres.js, with the options of docs/stores.md, ends no process: requests return 503", async () => {
    // Whoever listens now would end the test as Node.js ends a process.
    const listeners = process.listeners("unhandledRejection");
    const unhandled: string[] = [];
    process.removeAllListeners("unhandledRejection").on("unhandledRejection", (reason) => unhandled.push(String(reason)));
    ended.push(() => {
      process.removeAllListeners("unhandledRejection");
      for (const one of listeners) process.on("unhandledRejection", one);
    });
    const url = await database();
    const other = await poolOf(url, { max: 1 }).connect();
    ended.push(() => other.release(true));
    await other.query("begin; lock table pg_catalog.pg_type in access exclusive mode");
    const made = postgres(url, {
      connect_timeout: 2,
      backoff: () => 0.2,
      fetch_types: false,
      connection: { statement_timeout: 1_500 },
    });
    ended.push(() => made.end({ timeout: 1 }));
    const one = service({ store: postgresStore({ pool: made }), clock: undefined as never, policy: { limits: wide } });
    const ends = await Promise.all([0, 1, 2].map((n) => ending(one.create(n))));
    await other.query("rollback");
    await eventually("it serves", async () => (await ending(one.create(10))) === "pending");
    expect([tallied(ends), unhandled]).toEqual([{ unavailable: 3 }, []]);
  });

  it("a customer whose rows another session holds leaves a connection of a pool of four for another customer", async () => {
    const url = await database();
    const own = poolOf(url, { ...limits, max: 4 });
    ended.push(() => own.end());
    const store = postgresStore({ pool: own });
    const [held, quiet] = [0, 1].map(() => service({ store, clock: undefined as never, policy: { limits: wide } })) as [Service, Service];
    expect([await ending(held.create(0)), await ending(quiet.create(0))]).toEqual(["pending", "pending"]);
    const other = await poolOf(url, { max: 1 }).connect();
    ended.push(() => other.release(true));
    await other.query("begin");
    const rows = await other.query("select from phoneproof.customer c where c::text like $1 for update", [`%${held.customer}%`]);
    expect(rows.rowCount).toBe(1);
    let [going, number] = [true, 1];
    const flood = Array.from({ length: 60 }, async () => {
      while (going) await ending(held.create(number++));
    });
    const began = performance.now();
    await eventually("no connection is left", () => own.waitingCount > 0 || performance.now() - began > 6_000);
    const ends: string[] = [];
    for (let n = 1; n <= 5; n++) ends.push(await ending(quiet.create(n)));
    going = false;
    await Promise.all(flood);
    expect(tallied(ends)).toEqual({ pending: 5 });
  });
});
