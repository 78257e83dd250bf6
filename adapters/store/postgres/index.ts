import type { Store, StoredRecord } from "../../../src/ports/store.js";
import { onlyOptions } from "../../kit/option-error.js";
import { customerOf, firstName, refuseLarge } from "../../kit/store.js";
import { batched } from "./batch.js";
import { type PostgresJs, type PostgresPool, type RunQuery, recognise, rowsOf } from "./clients.js";
import { type Argument, argumentOf, minutes, type Outcome, parseRecord, resultOf } from "./commit.js";
import { errorOf, isOfValue, isRolledBack, toRepair } from "./errors.js";
import { inspect } from "./inspect.js";
import { earliestEnd, recordJson, schemaSql as sqlOf } from "./schema.js";
import { clean, original } from "./texts.js";

export { closeWhenSilent, type PostgresJs, type PostgresJsConnection, type PostgresPool, type RunQuery } from "./clients.js";

/** Options of `postgresStore`. Either `pool` or `query` must be given. */
export interface PostgresStoreOptions {
  /**
   * Your pool: `pg` 8, `postgres` (postgres.js) 3, `@neondatabase/serverless`, `@vercel/postgres`, `Bun.sql` or PGlite.
   * The store neither opens nor closes it.
   */
  readonly pool?: PostgresPool | PostgresJs;
  /** For any other client: runs one statement with its values and returns the rows as objects. */
  readonly query?: RunQuery;
  /**
   * Schema of the store's tables and functions: a lower-case letter or `_`, then lower-case letters, digits and `_`, up
   * to 63. Default: `"phoneproof"`.
   */
  readonly schema?: string;
  /**
   * Whether a commit uses a named prepared statement, prepared once per connection. This saves the server a fifth of
   * its work while requests come one by one, but fails behind PgBouncer before 1.21 in transaction mode.
   * Default: `false`; with postgres.js, its own `prepare` option. `Bun.sql` follows only its own.
   */
  readonly prepare?: boolean;
}

/** A store in PostgreSQL. */
export interface PostgresStore extends Store {
  /**
   * Creates what is missing of the schema, tables, keys, indexes and functions, replaces functions of an earlier release
   * or of another schema, and upgrades in numbered steps. It is one statement, safe when many processes start at once.
   * If something is missing or differs, the role must own the schema, or have the right to create it.
   *
   * @throws Error if the role lacks that right; the owner of the database can run `schemaSql()` instead.
   */
  ensureSchema(): Promise<void>;
  /** The same statement as text, for your own migrations. */
  schemaSql(): string;
}

/**
 * How often, and for how many milliseconds, a statement that the server rolled back is retried. The server finds a
 * deadlock after one second (`deadlock_timeout`).
 */
const [maxTries, patience] = [5, 1_500];

/**
 * `lease` deletes ended rows: up to `sweepRows` per table at a time, again for `sweepFor` milliseconds while so many are
 * found, and every `sweepEvery` milliseconds once few remain.
 */
const [sweepRows, sweepFor, sweepEvery] = [1_000, 200, 10_000];

/**
 * Returns the statement that creates the store's schema with this name, for your own migrations. It can be run
 * repeatedly.
 */
export function schemaSql(schema = "phoneproof"): string {
  return sqlOf(quoted(schema));
}

/**
 * Stores authentications and counters in PostgreSQL 14 or newer. Each method is one statement and one round trip; a
 * commit is one function call, all or nothing. Commits of one customer that come during a call share the next one. No
 * session is needed, so PgBouncer in transaction mode works.
 *
 * Acknowledged writes are as durable as `synchronous_commit` makes them: with `on` (the default) they survive a crash,
 * and a promoted standby has them if it is listed in `synchronous_standby_names`.
 *
 * The store opens nothing. Rollbacks caused by other transactions (`40001`, `40P01`) are retried; other errors are
 * rejected. The verifier's own deadline limits every request.
 *
 * @throws TypeError if an option is invalid; the message names it and the fix.
 */
export function postgresStore(options: PostgresStoreOptions): PostgresStore {
  onlyOptions("postgresStore", options, { pool: true, query: true, schema: true, prepare: true });
  const { schema, prepare } = options;
  if (prepare !== undefined && typeof prepare !== "boolean") throw new TypeError("postgresStore: option `prepare` must be true or false");
  const run = recognise(options, prepare);
  const s = quoted(schema);
  let sweptAt = Number.NEGATIVE_INFINITY;

  async function ask<Row>(text: string, values: (string | null)[] = [], ofSchema?: string): Promise<readonly Row[]> {
    const began = performance.now();
    for (let tries = 1; ; tries++) {
      try {
        return rowsOf<Row>(await run(text, values));
      } catch (error) {
        if (!isRolledBack(error) || tries === maxTries || performance.now() - began > patience) throw errorOf(error, ofSchema);
      }
    }
  }

  /** Returns column `it` of the only row. */
  async function askOne(text: string, values: (string | null)[]): Promise<string | undefined> {
    const [row] = await ask<{ it: string | null }>(text, values);
    return row?.it ?? undefined;
  }

  async function sweep(): Promise<void> {
    const now = performance.now();
    if (now - sweptAt < sweepEvery) return;
    sweptAt = now;
    let most: number;
    do most = Number(await askOne(`select ${s}.sweep($1) as it`, [String(sweepRows)]));
    while (most >= sweepRows && performance.now() - now < sweepFor);
    if (most >= sweepRows) sweptAt = Number.NEGATIVE_INFINITY;
  }

  const commit = batched<Argument, Outcome>(async (owner, changes) => {
    const locked = changes.some(({ writes }) => writes) ? clean(owner) : null;
    return JSON.parse((await askOne(`select ${s}.commit($1, $2) as it`, [locked, JSON.stringify(changes)])) as string);
  }, isOfValue);

  return {
    async find(customer, id): Promise<StoredRecord | undefined> {
      const text = `select ${recordJson}::text as it from ${s}.record r where r.customer = $1::text and r.id = $2::text`;
      const found = await askOne(text, [clean(customer), clean(id)]);
      return found === undefined ? undefined : parseRecord(JSON.parse(found));
    },

    async commit(change) {
      refuseLarge("postgresStore", "a record's data", change.record?.data);
      const owner = change.record?.customer ?? customerOf(firstName(change));
      return resultOf(change, await commit(owner, argumentOf(change)));
    },

    async members(window, limit): Promise<string[]> {
      const text = `select member as it from ${s}.member where name = $1::text order by at desc limit $2::text::integer`;
      const rows = await ask<{ it: string }>(text, [clean(window), String(Math.max(0, limit))]);
      return rows.map(({ it }) => original(it));
    },

    async tally(adds, reads): Promise<number[]> {
      if (adds.length + reads.length === 0) return [];
      const added = new Map<string, { name: string; by: number; life: number }>();
      for (const { counter, by, ...expiry } of adds) {
        const name = clean(counter);
        const before = added.get(name);
        added.set(name, { name, by: by + (before?.by ?? 0), life: Math.max(minutes(expiry), before?.life ?? 0) });
      }
      // All processes lock counters in the same order.
      const sorted = [...added.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
      return JSON.parse((await askOne(`select ${s}.tally($1, $2) as it`, [JSON.stringify(sorted), JSON.stringify(reads.map(clean))])) ?? "[]");
    },

    async lease(until, limit, leaseUntil): Promise<StoredRecord[]> {
      if (limit < 1) return [];
      // A failed sweep is retried next time and must not hold up the lease.
      const [leased] = await Promise.all([
        askOne(`select ${s}.lease($1, $2, $3) as it`, [until, limit, leaseUntil].map(String)),
        sweep().catch(() => undefined),
      ]);
      return leased === undefined ? [] : (JSON.parse(leased) as StoredRecord[]).map(parseRecord);
    },

    async get(key): Promise<string | undefined> {
      const value = await askOne(`select value as it from ${s}.value where key = $1::text`, [clean(key)]);
      return value === undefined ? undefined : original(value);
    },

    async put(key, value, expiry): Promise<void> {
      refuseLarge("postgresStore", "a value", value);
      const text = `insert into ${s}.value (key, value, ends) values ($1::text, $2::text, ${earliestEnd} + $3::text::integer) on conflict (key) do update set value = excluded.value, ends = excluded.ends`;
      await ask(text, [clean(key), clean(value), String(minutes(expiry))]);
    },

    async delete({ records = [], windows = [], sums = [], values = [] }): Promise<void> {
      const names = sums.map(({ sum }) => sum);
      const customers = [...new Set([...records.map(({ customer }) => customer), ...[...windows, ...names].map(customerOf)])].sort();
      const what = {
        customers: customers.map(clean),
        records: records.map(({ customer, id }) => ({ customer: clean(customer), id: clean(id) })),
        windows: windows.map(clean),
        sums: names.map(clean),
        values: values.map(clean),
      };
      await ask(`select ${s}.forget($1) as it`, [JSON.stringify(what)]);
    },

    inspect: (until) => inspect(ask, s, until),

    async ensureSchema(): Promise<void> {
      await ask(schemaSql(schema), [], toRepair);
    },

    schemaSql: () => schemaSql(schema),
  };
}

function quoted(schema = "phoneproof"): string {
  if (typeof schema === "string" && /^[a-z_][a-z0-9_]{0,62}$/.test(schema) && !schema.startsWith("pg_")) return `"${schema}"`;
  throw new TypeError(
    "postgresStore: option `schema` must be a lower-case letter or `_`, then lower-case letters, digits and `_`, 63 at most, and must not start with `pg_`",
  );
}
