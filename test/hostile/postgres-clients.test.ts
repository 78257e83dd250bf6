import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import { type OwnPostgresServer, pgbouncerIsInstalled, postgresIsInstalled, postgresJsSettings, sql, startPostgres } from "../support/postgres.js";
import { ending, eventually, service, tallied, wide } from "./kit.js";
import { bounced, database, nameOf, pool, settings } from "./postgres-kit.js";

const installed = postgresIsInstalled("the hostile tests of PostgreSQL's clients");
const hasPgbouncer = installed && pgbouncerIsInstalled("the hostile tests of PgBouncer");

describe.runIf(installed)("the settings of docs/stores.md on PostgreSQL", () => {
  let server: OwnPostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.stop());

  it.runIf(hasPgbouncer)("behind PgBouncer, a pool without statement_timeout works, and the database's own statement_timeout applies", async () => {
    const url = await database(server);
    await sql(url, `alter database ${nameOf(url)} set statement_timeout = 1500`);
    const { statement_timeout: _, ...others } = settings;
    const made = pool(await bounced(server, url), others);
    expect(await made.query("show statement_timeout").then(({ rows }) => rows)).toEqual([{ statement_timeout: "1500ms" }]);
    const one = service({ store: postgresStore({ pool: made }), policy: { limits: wide }, storeTimeout: 20 });
    expect([await ending(one.create(1)), one.log]).toEqual(["pending", []]);
  });

  it("a server too slow for the first query of postgres.js, with the options of docs/stores.md, gives 503 and ends no process", async () => {
    // An unhandled rejection would fail the test here, as it would end a process: it is recorded instead.
    const listeners = process.listeners("unhandledRejection");
    const unhandled: string[] = [];
    process.removeAllListeners("unhandledRejection").on("unhandledRejection", (reason) => unhandled.push(String(reason)));
    onTestFinished(() => {
      process.removeAllListeners("unhandledRejection");
      for (const one of listeners) process.on("unhandledRejection", one);
    });
    const url = await database(server);
    const other = await pool(url, { max: 1 }).connect();
    onTestFinished(() => other.release(true));
    await other.query("begin; lock table pg_catalog.pg_type in access exclusive mode");
    const made = postgres(url, postgresJsSettings);
    onTestFinished(() => made.end({ timeout: 1 }));
    const one = service({ store: postgresStore({ pool: made }), clock: undefined as never, policy: { limits: wide } });
    const ends = await Promise.all([0, 1, 2].map((n) => ending(one.create(n))));
    await other.query("rollback");
    await eventually("it serves", async () => (await ending(one.create(10))) === "pending");
    expect([tallied(ends), unhandled]).toEqual([{ unavailable: 3 }, []]);
  });
});
