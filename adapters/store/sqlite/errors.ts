import { CorruptRecord } from "../../kit/store.js";

const readOnly = /readonly|query_only/i;

/**
 * SQLite errors: the pattern, what it means, and the fix. Their texts are the same in all libraries and contain no
 * values.
 */
const meanings: readonly (readonly [pattern: RegExp, what: string, fix: string])[] = [
  [
    /is locked|SQLITE_(BUSY|LOCKED)/i,
    "is locked by another connection, in this process or another",
    "end the transaction that is kept open, or raise option `busyTimeout`",
  ],
  [/cannot start a transaction within|busy executing a query/i, "has a transaction or a query open", "give the store its own handle"],
  [/not open|been finalized|closed database/i, "is closed", "your application closed the handle: close it after `verifier.close()`"],
  [readOnly, "is read-only", "open it for writing, and let the process write to its folder too"],
  [/database or disk is full/i, "is full", "make room on the disk, or raise max_page_count; nothing was written"],
  [
    /malformed|not a database|file is encrypted/i,
    "is corrupt, or is not an SQLite database",
    "restore it from a backup, without its old -wal and -shm files, or name another file",
  ],
  [/unable to open/i, "cannot be opened", "name a file, create its folder, and let the process write to it"],
  [/no such (table|column)|already exists/i, "has other tables than the store made", "restore it from a backup, or name another file"],
  [/disk I\/O error/i, "cannot be read or written", "check the disk; keep the file off network file systems"],
];

const wordsOf = (error: unknown): string => {
  const { code, errstr, message } = (error ?? {}) as { readonly code?: unknown; readonly errstr?: unknown; readonly message?: unknown };
  return [message ?? String(error), errstr, code].filter((word) => typeof word === "string" && word !== "").join(", ");
};

/** Whether another process or handle is writing, or has locked the file. */
export function isBusy(error: unknown): boolean {
  return meanings[0]?.[0].test(wordsOf(error)) === true || meanings[1]?.[0].test(wordsOf(error)) === true;
}

/** Whether the process may only read the database. */
export const isReadOnly = (error: unknown): boolean => readOnly.test(wordsOf(error));

/** The database in its current state does not allow the operation. */
export class SqliteError extends Error {}

/** The error that the store throws for an error of the library. */
export function errorOf(error: unknown): Error {
  if (error instanceof SqliteError || error instanceof CorruptRecord) return error;
  const words = wordsOf(error);
  const [, what, fix] = meanings.find(([pattern]) => pattern.test(words)) ?? [];
  return new SqliteError(what === undefined ? `sqliteStore: ${words}` : `sqliteStore: the database ${what} (${words}): ${fix}`);
}
