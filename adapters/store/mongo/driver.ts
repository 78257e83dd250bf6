import type { Life } from "../../../src/ports/store.js";

/** The least of the `mongodb` driver's `Db` (6 and 7) that the store asks for. */
export interface MongoDb {
  readonly databaseName: string;
  collection(name: string, options: Readonly<Record<string, unknown>>): MongoCollection;
  command(command: Document): Promise<unknown>;
}

/** The least of the driver's `Collection` that the store asks for. */
export interface MongoCollection {
  findOne(filter: object, options: object): Promise<unknown>;
  findOneAndUpdate(filter: object, update: object, options: object): Promise<unknown>;
  updateOne(filter: object, update: object, options: object): Promise<unknown>;
  // `never`: the driver types what it is given by a type of documents, for which the store has no word.
  bulkWrite(statements: never, options: object): Promise<unknown>;
  find(filter: object, options: object): { toArray(): Promise<unknown[]> };
  aggregate(pipeline: object[], options: object): { toArray(): Promise<unknown[]> };
  createIndexes(indexes: never): Promise<unknown>;
}

export type Document = Record<string, unknown>;

/** The store's five collections. */
export interface Collections {
  /** Authentications, one document each. */
  readonly authentications: MongoCollection;
  /** Windows with limits, and sums, one document each. */
  readonly windows: MongoCollection;
  /** Windows without limits, one document for each member. */
  readonly lists: MongoCollection;
  /** Counters of statistics, one document each. */
  readonly counters: MongoCollection;
  /** Small values. */
  readonly values: MongoCollection;
}

/** How much longer than asked MongoDB keeps what has ended, in milliseconds: nothing is decided by it. */
const grace = 10 * 60 * 1000;

/** The longest life in milliseconds, a hundred years: a BSON date that is added to stays one that JavaScript can read. */
const longestLife = 100 * 365 * 24 * 60 * 60 * 1000;

/** How often a write is tried that makes its document, while another makes it at the same time: the second try finds it. */
const maxTries = 8;

/** The collections, with majority writes, majority reads from the primary, and plain JavaScript values, whatever the defaults of `db` and its client are. */
export function openCollections(db: MongoDb, prefix: string): Collections {
  const own = (db as { writeConcern?: { journal?: boolean; wtimeoutMS?: number } }).writeConcern;
  const options = {
    writeConcern: { w: "majority", ...kept("journal", own?.journal), ...kept("wtimeoutMS", own?.wtimeoutMS) },
    readConcern: { level: "majority" },
    readPreference: "primary",
    promoteValues: true,
    promoteLongs: true,
    useBigInt64: false,
    raw: false,
    ignoreUndefined: true,
  };
  const open = (name: string) => db.collection(prefix + name, options);
  return { authentications: open("authentications"), windows: open("windows"), lists: open("lists"), counters: open("counters"), values: open("values") };
}

/** The field by which MongoDB clears away what has ended, as an expression: by the server's clock, and never sooner than it said before. */
export function expireAt({ now, keepUntil }: Life): Document {
  return { $max: ["$expireAt", { $add: ["$$NOW", Math.min(Math.max(0, keepUntil - now), longestLife)] }] };
}

/** The index on `expireAt`. */
export const expiry = { key: { expireAt: 1 }, name: "expireAt", expireAfterSeconds: grace / 1000 };

/**
 * The filter of a write that makes its document where there is none. Beside `_id` it names what every document has: with `_id` alone some servers tell two racers that each made it, or fail the second.
 */
export function made(_id: unknown): Document {
  return { _id, expireAt: { $exists: true } };
}

/** Runs a write that makes its document, again where another made it meanwhile. */
export async function making<T>(write: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await write();
    } catch (error) {
      if (!isDuplicate(error) || tries === maxTries) throw error;
    }
  }
}

/** Runs an unordered bulk of such writes, again those whose documents others made meanwhile. */
export async function makingAll(collection: MongoCollection, statements: readonly Document[]): Promise<void> {
  let left = statements;
  for (let tries = 1; left.length > 0; tries++) {
    try {
      await collection.bulkWrite(left as never, { ordered: false });
      return;
    } catch (error) {
      const { writeErrors, result } = error as { writeErrors?: Fault | Fault[]; result?: { getWriteConcernError?(): unknown } };
      const faults = [writeErrors ?? []].flat();
      if (faults.length === 0 || !faults.every(isDuplicate) || result?.getWriteConcernError?.() || tries === maxTries) throw error;
      left = faults.map(({ index }) => left[index] as Document);
    }
  }
}

interface Fault {
  readonly index: number;
  readonly code: number;
}

/** A key was there already: the code is all that servers agree on. */
export function isDuplicate(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 11000;
}

/** A text in an expression, where one that begins with `$` would mean something else. */
export function literal(value: unknown): Document {
  return { $literal: value };
}

/** A field that holds a list, or may not be there yet. */
export function list(field: string): Document {
  return { $ifNull: [`$${field}`, []] };
}

/** The entries of a list for which `cond` holds, which calls each of them `$$this`. */
export function where(input: unknown, cond: Document): Document {
  return { $filter: { input, as: "this", cond } };
}

/** An error of the driver without the documents in it: phone numbers and digests do not belong in a log. */
export function withoutValues(error: unknown): Error {
  const { name, message, code } = error as { name?: unknown; message?: unknown; code?: unknown };
  const text = String(message ?? error)
    .split("{")[0]
    ?.trim();
  return new Error(`mongoStore: ${name ?? "Error"}${code === undefined ? "" : ` ${code}`}: ${text}`);
}

function kept<T>(name: string, value: T | undefined): Record<string, T> {
  return value === undefined ? {} : { [name]: value };
}
