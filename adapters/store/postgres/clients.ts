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

/** Where a `postgres(…)` (postgres.js) connects to. */
export interface PostgresJsConnection {
  readonly host: readonly string[];
  readonly port: readonly number[];
  /** Of a Unix socket, which replaces host and port. */
  readonly path?: string | false;
}

/** Milliseconds between checks of a connection. */
const checkEvery = 50;

/**
 * Settings for `postgres(…)` (postgres.js), to spread into your own: `postgres(url, { ...closeWhenSilent(), … })`. They
 * close a connection on which something was sent and no byte came back within `patience`; the next statement opens
 * another. Without them, postgres.js waits for a response without limit, so that a connection lost without notice would
 * fail every request from then on. Several hosts are tried in turn.
 *
 * A statement, `copy … from stdin` or subscription of your application that is silent for that long loses its
 * connection too: allow it more milliseconds, or give the store a separate `postgres(…)`. Connections that are idle or
 * wait in `listen` stay open.
 *
 * @param patience Milliseconds. Default 2000: longer than the `statement_timeout` of docs/stores.md.
 */
export function closeWhenSilent(patience = 2000): { socket(connection: PostgresJsConnection): Promise<object> } {
  let opened = 0;
  return {
    async socket({ host, port, path }) {
      // What follows an `await` emits no event before postgres.js, which gets the socket at once, listens for it.
      const { Socket } = await import("node:net");
      const turn = opened++ % host.length;
      const address = { host: host[turn] as string, port: port[turn] as number };
      const socket = new Socket().connect(path ? { path } : address);
      let [read, sent, silentFor] = [0, 0, 0];
      const heard = () => {
        [read, sent, silentFor] = [socket.bytesRead, socket.bytesWritten, 0];
      };
      // TLS reads past this listener. The check then takes what was sent since the last one as answered too.
      socket.on("data", heard);
      const timer = setInterval(() => {
        if (socket.destroyed) clearInterval(timer);
        // Before the first byte, `connect_timeout` applies.
        else if (read === 0 || socket.bytesRead !== read || socket.bytesWritten === sent) heard();
        // Adds up checks, since a process that was delayed has yet to read what arrived. The socket closes without an
        // error: after one, postgres.js would never settle a statement that is sent before the end.
        else if ((silentFor += checkEvery) >= patience) socket.destroy();
      }, checkEvery);
      timer.unref?.();
      // postgres.js reads the address for TLS and for its errors.
      return Object.assign(socket, address);
    },
  };
}
