import { nextTurn } from "../../kit/clock.js";
import { errorOf, isBusy } from "./errors.js";

/** The part of a `node:sqlite`, `better-sqlite3`, `libsql` or `bun:sqlite` handle that the store uses. */
export interface SqliteHandle {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
}

/** A prepared statement of such a handle. */
export interface SqliteStatement {
  all(...values: SqliteValue[]): unknown[];
  get(...values: SqliteValue[]): unknown;
  run(...values: SqliteValue[]): unknown;
  /** Of `node:sqlite`, whose handles may have an option that turns rows into arrays. */
  setReturnArrays?(enabled: boolean): void;
}

/** The part of a Cloudflare Durable Object's storage, `ctx.storage`, that the store uses. */
export interface DurableObjectStorage {
  readonly sql: { exec(sql: string, ...values: SqliteValue[]): { toArray(): unknown[] } };
  transactionSync<T>(work: () => T): T;
}

export type SqliteDatabase = SqliteHandle | DurableObjectStorage;

export type SqliteValue = string | number | null;
export type SqliteRow = Readonly<Record<string, SqliteValue>>;

/** A database, whatever its library. All its methods are synchronous. */
export interface Connection {
  all(sql: string, ...values: SqliteValue[]): SqliteRow[];
  get(sql: string, ...values: SqliteValue[]): SqliteRow | undefined;
  run(sql: string, ...values: SqliteValue[]): void;
  /** Runs several statements without values. */
  exec(sql: string): void;
  /** Runs one transaction: everything that `work` writes is stored, or nothing. */
  atomically<T>(work: () => T): T;
}

export const isDurableObject = (database: SqliteDatabase | undefined): database is DurableObjectStorage =>
  database !== undefined && "transactionSync" in database;

// Some libraries read a text only up to its first NUL.
const [nul, mark] = ["\0", "\x01"];
const escaped = (value: SqliteValue) =>
  typeof value === "string" && (value.includes(nul) || value.includes(mark)) ? value.replaceAll(mark, `${mark}b`).replaceAll(nul, `${mark}a`) : value;
const unescaped = (value: SqliteValue) =>
  typeof value === "string" && value.includes(mark) ? value.replaceAll(`${mark}a`, nul).replaceAll(`${mark}b`, mark) : value;

function readable(row: unknown): SqliteRow {
  for (const [name, value] of Object.entries(row as SqliteRow)) if (unescaped(value) !== value) (row as Record<string, SqliteValue>)[name] = unescaped(value);
  return row as SqliteRow;
}

/** Prepares each statement once. */
export function connectionOf(database: SqliteDatabase): Connection {
  if (isDurableObject(database)) {
    const all: Connection["all"] = (sql, ...values) => database.sql.exec(sql, ...values).toArray() as SqliteRow[];
    return { all, get: (sql, ...values) => all(sql, ...values)[0], run: all, exec: all, atomically: (work) => database.transactionSync(work) };
  }
  const prepared = new Map<string, SqliteStatement>();
  const handle: SqliteHandle = database;
  function statement(sql: string): SqliteStatement {
    const known = prepared.get(sql);
    if (known !== undefined) return known;
    const made = handle.prepare(sql);
    made.setReturnArrays?.(false);
    prepared.set(sql, made);
    return made;
  }
  return {
    all: (sql, ...values) =>
      statement(sql)
        .all(...values.map(escaped))
        .map(readable),
    get(sql, ...values) {
      const row = statement(sql).get(...values.map(escaped));
      return row ? readable(row) : undefined;
    },
    run: (sql, ...values) => void statement(sql).run(...values.map(escaped)),
    exec: (sql) => void handle.exec(sql),
    atomically(work) {
      handle.exec("BEGIN IMMEDIATE");
      try {
        const result = work();
        handle.exec("COMMIT");
        return result;
      } catch (error) {
        try {
          handle.exec("ROLLBACK");
        } catch {
          // SQLite has already rolled back, as it does when the disk is full.
        }
        throw error;
      }
    },
  };
}

/** Maximum number of writes per transaction, which blocks the event loop. */
const mostTogether = 64;

/** Minimum and maximum milliseconds until a database that another process is writing to is tried again. */
const pause = [0.5, 4] as const;
const sleep = (run: () => void) => void setTimeout(run, pause[0] + Math.random() * (pause[1] - pause[0]));

/** Runs `read`, and retries while another process has the database, for up to `patience` milliseconds. */
export async function retried<T>(patience: number, read: () => T): Promise<T> {
  for (const until = performance.now() + patience; ; ) {
    try {
      return read();
    } catch (error) {
      if (!isBusy(error) || performance.now() > until) throw errorOf(error);
    }
    await new Promise<void>(sleep);
  }
}

/** How long a deferrable write waits for another to join, in milliseconds. */
const longestWait = 20;

/**
 * Runs a write. One that `canWait` joins the next that cannot: statistics are a third of all writes, and a separate
 * transaction would cost an extra disk sync.
 */
export type Write = <T>(work: () => T, canWait?: boolean) => Promise<T>;

interface Job {
  readonly work: () => unknown;
  readonly until: number;
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Runs writes; those from one turn of the event loop share a transaction, because a disk sync costs more than all else.
 * None is acknowledged before it is stored. If one fails, each is run by itself. `after` runs in each transaction, with
 * its number of writes.
 */
export function writerOf({ atomically }: Connection, patience: number, after: (writes: number) => void): Write {
  const jobs: Job[] = [];
  let alone = 0;
  let isComing = false;

  function begin(): void {
    if (!isComing) nextTurn(flush);
    isComing = true;
  }

  function flush(): void {
    isComing = false;
    if (jobs.length === 0) return;
    const batch = jobs.slice(0, alone > 0 ? 1 : mostTogether);
    try {
      const results = atomically(() => {
        const results = batch.map(({ work }) => work());
        after(batch.length);
        return results;
      });
      jobs.splice(0, batch.length);
      for (const [at, { resolve }] of batch.entries()) resolve(results[at] as never);
      alone = Math.max(0, alone - 1);
    } catch (error) {
      if (isBusy(error)) {
        const now = performance.now();
        for (const { reject } of jobs.splice(0, jobs.filter(({ until }) => until < now).length)) reject(errorOf(error));
        isComing = jobs.length > 0;
        return void (isComing && sleep(flush));
      }
      if (batch.length === 1) jobs.shift()?.reject(errorOf(error));
      alone = batch.length === 1 ? Math.max(0, alone - 1) : batch.length;
    }
    if (jobs.length > 0) begin();
  }

  return (work, canWait = false) =>
    new Promise((resolve, reject) => {
      jobs.push({ work, until: performance.now() + patience, resolve, reject });
      if (canWait) setTimeout(flush, longestWait);
      else begin();
    });
}
