import { has } from "../../kit/store.js";

/**
 * Runs one statement with its values (texts or `null`) and returns the rows as objects keyed by column name. It must
 * not retry a statement by itself, nor run it inside a transaction of the application.
 */
export type RunQuery = (text: string, values: (string | null)[]) => Promise<readonly unknown[]>;

/** `new Pool(…)` of `pg` 8, of `@neondatabase/serverless` and of `@vercel/postgres`; `new PGlite(…)`. */
export interface PostgresPool {
  query(text: string, values: (string | null)[]): Promise<{ readonly rows: readonly unknown[] }>;
}

/** `postgres(…)` of `postgres` (postgres.js) 3; `new SQL(…)` of Bun. */
export interface PostgresJs {
  // `never`, because each client has its own type for values.
  unsafe(text: string, values: never, options?: never): PromiseLike<readonly unknown[]>;
}

/**
 * Recognises the client by its methods. `prepare`: the commit statement is prepared by name. Throws a `TypeError` that
 * names the option and the fix for an unknown client.
 */
export function recognise(options: { readonly pool?: unknown; readonly query?: unknown }, prepare: boolean | undefined): RunQuery {
  const { pool, query } = options;
  if ((pool === undefined) === (query === undefined))
    throw new TypeError("postgresStore: pass either `pool` or `query`, as in postgresStore({ pool: new Pool() })");
  if (query !== undefined) {
    if (typeof query === "function") return query as RunQuery;
    throw new TypeError("postgresStore: option `query` must be a function (text, values) => Promise of rows");
  }
  if (has(pool, "unsafe")) {
    const sql = pool as { unsafe(text: string, values: unknown[], options: object): PromiseLike<readonly unknown[]>; options?: { prepare?: boolean } };
    const named = { prepare: prepare ?? sql.options?.prepare ?? false };
    return async (text, values) => sql.unsafe(text, values, named);
  }
  if (typeof pool === "object" && pool !== null && "connectionParameters" in pool) {
    throw new TypeError("postgresStore: option `pool` is one connection, whose transactions would include commits; pass a Pool, as in { pool: new Pool() }");
  }
  if (has(pool, "query")) {
    const { query } = pool as { query(text: unknown, values: unknown[]): Promise<{ rows: readonly unknown[] }> };
    const run = query.bind(pool);
    return async (text, values) => {
      const [, schema] = (prepare && /^select "(\w+)"\.commit\(/.exec(text)) || [];
      return (await run(schema === undefined ? text : { name: `${schema} commit`, text }, values)).rows;
    };
  }
  const fix = has(pool, "then") ? "it is a promise: await it first" : "for another client pass `query`, a function (text, values) => Promise of rows";
  throw new TypeError(`postgresStore: option \`pool\` is not a pool of pg, postgres.js, PGlite, Neon or Vercel; ${fix}`);
}

/** Returns what a client returned, if it is rows as objects; else throws an error with the fix. */
export function rowsOf<Row>(result: unknown): readonly Row[] {
  if (Array.isArray(result) && !Array.isArray(result[0])) return result;
  throw new TypeError("option `query` must return the rows as objects, as in async (text, values) => (await client.query(text, values)).rows");
}
