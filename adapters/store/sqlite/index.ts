import type { Store, StoredRecord } from "../../../src/ports/store.js";
import { onlyOptions } from "../../kit/option-error.js";
import { has, parseEach, refuseLarge } from "../../kit/store.js";
import { addTo, commit, endOf, parseRecord, rowOf } from "./commit.js";
import { type Connection, connectionOf, type DurableObjectStorage, isDurableObject, retried, type SqliteDatabase, writerOf } from "./connection.js";
import { guardOf, openFile } from "./file.js";
import { missingIn, prepare, type Synchronous, sweepersOf, synchronousNames } from "./schema.js";

export type { DurableObjectStorage, SqliteDatabase, SqliteHandle, SqliteStatement, SqliteValue } from "./connection.js";

/** Options of `sqliteStore`: `database` or `file`. */
export interface SqliteStoreOptions {
  /**
   * An open database, which you close: a `DatabaseSync` of `node:sqlite`, a `Database` of `better-sqlite3`, `libsql` or
   * `bun:sqlite`, or `ctx.storage` of a Durable Object. Give the store a separate handle: it sets `busy_timeout`,
   * `synchronous` and `secure_delete`, and the file's `journal_mode` to WAL. The file may hold other tables; the
   * store's begin with `phoneproof_`.
   */
  readonly database?: SqliteDatabase;
  /**
   * Path of a file that the store opens at first use with `node:sqlite` (Node.js 22.13 or newer), `bun:sqlite` or the
   * package `libsql`, and creates if missing. `close` closes it.
   */
  readonly file?: string;
  /**
   * Durability of acknowledged writes, as in `PRAGMA synchronous`. Default: `"FULL"`, which survives a power cut. With
   * `"NORMAL"` they survive the end of the process, but a power cut may lose the last moments, including counts. Not
   * used for a Durable Object, whose storage decides this.
   */
  readonly synchronous?: Synchronous;
  /**
   * How long a call waits while another process writes, in milliseconds, before it is rejected. An integer from 0 to
   * 60,000. Default: 1,500.
   */
  readonly busyTimeout?: number;
}

/** Maximum number of rows that one transaction deletes. */
const mostDeleted = 500;

/**
 * Rows of a table checked for their end: in each transaction, additionally for each write in it, and in each lease of a
 * worker, so that it gets through half a million rows of each within twenty minutes.
 */
const looks = { perTransaction: 64, perWrite: 16, perLease: 2_048 };

/** How often the log file is truncated again while another process reads it, in milliseconds. */
const truncateEvery = 100;

/**
 * Stores authentications and counters in an SQLite database (3.37 or newer), on one machine. Processes on it may share
 * a file, but not a file on a network file system.
 *
 * A commit is one transaction (`BEGIN IMMEDIATE`); commits in one turn of the event loop share a transaction and its
 * disk sync. While another process writes, the store waits without blocking the event loop. Each write deletes some
 * ended data. The tables are created and upgraded at first use.
 *
 * @throws TypeError if an option is invalid; the message names it and the fix.
 */
export function sqliteStore(options: SqliteStoreOptions): Store {
  const { database, file, synchronous = "FULL", busyTimeout = 1_500 } = readOptions(options);
  const isDurable = isDurableObject(database);
  let opening: ReturnType<typeof open> | undefined;
  let truncateAt = Number.POSITIVE_INFINITY;

  async function open() {
    const own = database === undefined ? await openFile(file as string) : undefined;
    const used = (database ?? own) as SqliteDatabase;
    try {
      const connection = connectionOf(used);
      await retried(busyTimeout, () => prepare(connection, used, synchronous));
      const [sweepers, requireFile] = [sweepersOf(connection), isDurable ? () => {} : guardOf(connection)];
      let turn = 0;
      const write = writerOf(connection, busyTimeout, (writes) => {
        requireFile();
        sweepers[turn++ % sweepers.length]?.(looks.perTransaction + looks.perWrite * writes);
      });
      return { own, connection, requireFile, write, sweepers };
    } catch (error) {
      own?.close();
      throw error;
    }
  }

  /** The open database. If it cannot be opened, the next call tries again. */
  function opened() {
    opening ??= open().catch((error) => {
      opening = undefined;
      throw error;
    });
    return opening;
  }

  async function read<T>(work: (connection: Connection) => T): Promise<T> {
    const { connection, requireFile } = await opened();
    return retried(busyTimeout, () => {
      requireFile();
      return work(connection);
    });
  }

  async function write<T>(work: (connection: Connection) => T, canWait?: boolean): Promise<T> {
    const { connection, write } = await opened();
    const result = await write(() => work(connection), canWait);
    if (performance.now() >= truncateAt) void truncate().catch(() => undefined);
    return result;
  }

  /** The write-ahead log still holds erased data. While another process reads it, this is tried again after a later write. */
  async function truncate(): Promise<void> {
    truncateAt = performance.now() + truncateEvery;
    const ended = await read(({ get }) => get("PRAGMA wal_checkpoint(TRUNCATE)"));
    if (ended?.["busy"] !== 1) truncateAt = Number.POSITIVE_INFINITY;
  }

  return {
    async find(customer, id): Promise<StoredRecord | undefined> {
      const row = await read((connection) => rowOf(connection, { customer, id }));
      return row && parseRecord(row);
    },

    async commit(change) {
      refuseLarge("sqliteStore", "a record's data", change.record?.data);
      return write((connection) => commit(connection, change));
    },

    async members(window, limit): Promise<string[]> {
      const newest = "SELECT member FROM phoneproof_members WHERE window = ? ORDER BY at DESC LIMIT ?";
      return (await read(({ all }) => all(newest, window, Math.max(0, limit)))).map(({ member }) => member as string);
    },

    async tally(adds, reads): Promise<number[]> {
      const held = "SELECT held FROM phoneproof_sums WHERE sum = ? AND part = -1";
      const readAll = ({ get }: Connection) => reads.map((counter) => Number(get(held, counter)?.["held"] ?? 0));
      if (adds.length === 0) return read(readAll);
      return write((connection) => {
        for (const add of adds) addTo(connection, add.counter, -1, add.by, add);
        return readAll(connection);
      }, true);
    },

    async lease(until, limit, leaseUntil): Promise<StoredRecord[]> {
      if (limit < 1) return [];
      const due = "SELECT * FROM phoneproof_records WHERE wake_at <= ? ORDER BY wake_at LIMIT ?";
      const { sweepers } = await opened();
      const rows = await write(({ all, run }) => {
        for (const sweep of sweepers) sweep(looks.perLease);
        const rows = all(due, until, limit);
        for (const { customer = null, id = null } of rows)
          run("UPDATE phoneproof_records SET wake_at = ? WHERE customer = ? AND id = ?", leaseUntil, customer, id);
        return rows;
      });
      return parseEach(rows, parseRecord);
    },

    async get(key): Promise<string | undefined> {
      return (await read(({ get }) => get("SELECT value FROM phoneproof_values WHERE name = ?", key)))?.["value"] as string | undefined;
    },

    async put(key, value, expiry): Promise<void> {
      refuseLarge("sqliteStore", "a value", value);
      await write(({ run }) => run("REPLACE INTO phoneproof_values VALUES (?, ?, ?)", key, value, endOf(expiry)));
    },

    async delete({ records = [], windows = [], sums = [], values = [] }): Promise<void> {
      const rows = [
        ...records.map(({ customer, id }) => ["records WHERE customer = ? AND id = ?", customer, id]),
        ...windows.map((window) => ["members WHERE window = ?", window]),
        ...sums.map(({ sum }) => ["sums WHERE sum = ? AND part >= 0", sum]),
        ...values.map((key) => ["values WHERE name = ?", key]),
      ];
      for (let from = 0; from < rows.length; from += mostDeleted)
        await write(({ run }) => {
          for (const [where, ...names] of rows.slice(from, from + mostDeleted)) run(`DELETE FROM phoneproof_${where}`, ...names);
        });
      if (records.length + windows.length > 0 && !isDurable) await truncate();
    },

    inspect: (until) =>
      read((connection) => {
        const due = Number(connection.get("SELECT count(*) AS due FROM (SELECT 1 FROM phoneproof_records WHERE wake_at <= ? LIMIT 10000)", until)?.["due"]);
        const pragma = (name: string) => String(connection.get(`PRAGMA ${name}`)?.[name]);
        const level = () => synchronousNames[Number(pragma("synchronous"))] as Synchronous;
        const settings = !isDurable && { settings: { journal_mode: pragma("journal_mode"), synchronous: level() } };
        const missing = missingIn(connection);
        return { kind: "sqlite", time: Date.now(), due, ...settings, ...(missing.length > 0 && { missing }) };
      }),

    /** Runs after earlier calls. A later call reopens the file, because another verifier may share the store. */
    async close(): Promise<void> {
      const opened = opening;
      opening = undefined;
      const last = await opened?.catch(() => undefined);
      await last?.write(() => undefined).catch(() => undefined);
      last?.own?.close();
    },
  };
}

function readOptions(options: SqliteStoreOptions): SqliteStoreOptions {
  onlyOptions("sqliteStore", options, { database: true, file: true, synchronous: true, busyTimeout: true });
  const { database, file, synchronous, busyTimeout } = options;
  const wrong = (option: string, problem: string) => new TypeError(`sqliteStore: option \`${option}\` ${problem}`);
  if (file === undefined) {
    const problem = errorOfDatabase(database);
    if (problem !== undefined) throw wrong("database", problem);
  } else {
    if (database !== undefined) throw wrong("file", "must be left out where `database` is given");
    if (typeof file !== "string" || file === "" || file.includes("\0"))
      throw wrong("file", 'must be the path of a file, as in sqliteStore({ file: "phoneproof.db" })');
  }
  if (synchronous !== undefined && !synchronousNames.includes(synchronous)) throw wrong("synchronous", `must be one of ${synchronousNames.join(", ")}`);
  if (synchronous !== undefined && isDurableObject(database)) throw wrong("synchronous", "must be left out for a Durable Object");
  if (busyTimeout !== undefined && !(Number.isInteger(busyTimeout) && busyTimeout >= 0 && busyTimeout <= 60_000))
    throw wrong("busyTimeout", "must be an integer from 0 to 60,000: milliseconds");
  return options;
}

function errorOfDatabase(database: unknown): string | undefined {
  if (database === undefined) return 'is missing: pass an open database, or option `file`, as in sqliteStore({ file: "phoneproof.db" })';
  if (typeof database === "string") return "must be an open database; for a path use option `file`";
  if (has(database, "then")) return "is a promise: await it first";
  if (has(database, "batch")) return "is a D1 database, which cannot look and write in one step; use a Durable Object's `ctx.storage`";
  if (has(database, "parallelize")) return "is of the package sqlite3, which is asynchronous; use node:sqlite, better-sqlite3 or libsql";
  if (has(database, "exec", "prepare") || (has<DurableObjectStorage>(database, "transactionSync") && database.sql !== undefined)) return undefined;
  return "must be an open database of node:sqlite, better-sqlite3, libsql or bun:sqlite, or `ctx.storage` of a Durable Object";
}
