import { randomUUID } from "node:crypto";
import { afterAll, describe, expect, it } from "vitest";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import { storeContract } from "../../src/testing/index.js";
import { newDatabase, poolOf, postgresServer, sql } from "../support/postgres.js";

const server = await postgresServer("the hostile tests of PostgreSQL's settings");
afterAll(() => server?.stop());

/** Races, and values that the server might read differently from how they were written. */
const contract = storeContract({ racers: 4 }).filter(({ name }) => /byte for byte|apart|racers|at once|lease|undo|revo|floor|part/.test(name));

/** Settings that a database may have for its sessions, none with its default value. */
const settings: Readonly<Record<string, string>> = {
  datestyle: "'SQL, DMY'",
  timezone: "'Asia/Kathmandu'",
  intervalstyle: "sql_standard",
  client_encoding: "LATIN1",
  standard_conforming_strings: "off",
  backslash_quote: "off",
  bytea_output: "escape",
  extra_float_digits: "-15",
  array_nulls: "off",
  transform_null_equals: "on",
  quote_all_identifiers: "on",
  check_function_bodies: "off",
  row_security: "off",
  '"plpgsql.extra_errors"': "'all'",
  '"plpgsql.variable_conflict"': "use_column",
  enable_indexscan: "off",
  enable_hashjoin: "off",
  enable_hashagg: "off",
  enable_nestloop: "off",
  plan_cache_mode: "force_generic_plan",
  work_mem: "'64kB'",
  default_transaction_isolation: "serializable",
  default_transaction_deferrable: "on",
  idle_in_transaction_session_timeout: "50",
  lock_timeout: "'60s'",
};

const shadows = [
  "create schema other",
  ...["record", "member", "total", "value", "customer", "step"].map((table) => `create table other.${table} (other integer)`),
  ...["commit", "tally", "find"].map((name) => `create function other.${name}(text) returns text language sql as 'select null::text'`),
];

describe.runIf(server)("a PostgreSQL database with non-default settings", () => {
  it.each<[string, Readonly<Record<string, string>>, readonly string[]]>([
    ["sessions that read and write texts, times and plans in another way, serializable", settings, []],
    [
      "a search path of tables and functions with the names of its own, without triggers",
      { search_path: "other", session_replication_role: "replica" },
      shadows,
    ],
    ["a search path that names the store's schema before pg_catalog", { search_path: "phoneproof, pg_catalog" }, []],
  ])("%s: the store passes its contract tests (docs/contract.md#dumb-store)", async (_, set, statements) => {
    const url = await newDatabase(server);
    const name = new URL(url).pathname.slice(1);
    await sql(url, ...statements, ...Object.entries(set).map(([setting, value]) => `alter database ${name} set ${setting} = ${value}`));
    const [one, two] = [poolOf(url, { max: 8 }), poolOf(url, { max: 8 })];
    const [store, peer] = [postgresStore({ pool: one }), postgresStore({ pool: two })];
    await store.ensureSchema();
    const failed: string[] = [];
    for (const { name: sentence, run } of contract) await run({ store, peer }).catch((error: Error) => failed.push(`${sentence}: ${error.message}`));
    expect(failed).toEqual([]);
    await Promise.all([one.end(), two.end()]);
  });

  it("a database not encoded in UTF-8 is reported, and only a text that it cannot encode fails (docs/contract.md#one-commit)", async () => {
    const name = `phoneproof_${randomUUID().replaceAll("-", "")}`;
    const url = new URL(server?.url ?? "");
    await sql(url.href, `create database ${name} encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0`);
    url.pathname = name;
    const pool = poolOf(url.href, { max: 4 });
    const store = postgresStore({ pool });
    await store.ensureSchema();
    expect((await store.inspect?.(0))?.missing).toEqual([expect.stringMatching(/LATIN1.*create database/)]);
    const [customer, now] = [randomUUID(), Date.now()];
    const commit = (data: string) => store.commit({ record: { customer, id: randomUUID(), tokens: [randomUUID()], data, now, keepUntil: now + 60_000 } });
    const results = await Promise.allSettled(["a", "é", "😀", "\0", "z"].map(commit));
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", expect.any(String), "fulfilled"]);
    await pool.end();
  });
});
