import type { Expiry } from "../../../src/ports/store.js";

/** The least of the `mongodb` driver's `Db` (6 and 7) that the store asks for. */
export interface MongoDb {
  readonly databaseName: string;
  collection(name: string, options: Readonly<Record<string, unknown>>): MongoCollection;
  command(command: Document): Promise<unknown>;
}

/** The least of the driver's `Collection` that the store asks for. */
export interface MongoCollection {
  findOne(filter: object, options: object): Promise<unknown>;
  // `never`: the driver types what it is given by a type of documents, for which the store has no word.
  bulkWrite(statements: never, options: object): Promise<unknown>;
  find(filter: object, options: object): { toArray(): Promise<unknown[]> };
  aggregate(pipeline: object[], options: object): { toArray(): Promise<unknown[]> };
  createIndexes(indexes: never): Promise<unknown>;
}

export type Document = Record<string, unknown>;

/** One statement of a bulk write. */
export type Statement = { readonly updateOne: Document } | { readonly deleteOne: Document };

/** The collections of a server that is known, without their prefix: what commits write, statistics, and small values. */
export const collectionNames = ["state", "counters", "values"] as const;

export interface Opened extends Record<(typeof collectionNames)[number], MongoCollection> {
  /** When MongoDB may clear away what has this life, by the server's clock. */
  endOf(expiry: Expiry): Date;
}

/** In milliseconds: how much longer than asked MongoDB keeps what has ended; the longest life, so that dates stay those of JavaScript; and what ends are rounded up to, so that indexes are seldom written. */
const [grace, longestLife, minute] = [10 * 60_000, 100 * 365 * 86_400_000, 60_000];

/** How often a write is tried whose documents others make or change at the same time. */
export const maxTries = 16;

/** The server cannot do what the store asks of it. */
export class OldServer extends Error {}

/** What the server says of itself. */
export async function sayHello(db: MongoDb): Promise<{ readonly deployment: "sharded" | "replica set" | "standalone"; readonly time: number | undefined }> {
  const notFound = (error: { code?: unknown }) => (error.code === 59 ? { maxWireVersion: 0 } : Promise.reject(error));
  const { maxWireVersion, localTime, msg, setName } = (await db.command({ hello: 1 }).catch(notFound)) as Document;
  // Of MongoDB 4.4, of which the first two releases do not know the command.
  if ((maxWireVersion as number) < 9) throw new OldServer("mongoStore: the server behind option `db` is too old: use MongoDB 4.4.2 or newer");
  const deployment = msg === "isdbgrid" ? "sharded" : typeof setName === "string" ? "replica set" : "standalone";
  return { deployment, time: localTime instanceof Date ? localTime.getTime() : undefined };
}

/**
 * The collections, with plain JavaScript values, reads from the primary, and writes that are acknowledged once a majority has them in its journal, whatever the defaults of `db` and its client are.
 * A standalone server waits for its journal only under `w: 1`; elsewhere `wtimeoutMS` keeps writes from waiting on the server for ever.
 */
export async function open(db: MongoDb, prefix: string): Promise<Opened> {
  const { deployment, time = Date.now() } = await sayHello(db);
  const { journal, wtimeoutMS = 1_500 } = (db as { writeConcern?: { journal?: boolean; wtimeoutMS?: number } }).writeConcern ?? {};
  const options = {
    writeConcern: deployment === "standalone" ? { w: 1, journal: true } : { w: "majority", wtimeoutMS, ...(journal !== undefined && { journal }) },
    readConcern: { level: "majority" },
    readPreference: "primary",
    promoteValues: true,
    promoteLongs: true,
    useBigInt64: false,
    raw: false,
    ignoreUndefined: true,
  };
  const collections = Object.fromEntries(collectionNames.map((name) => [name, db.collection(prefix + name, options)]));
  // Where one clock stands still or is set back, the other goes on.
  const [here, began] = [Date.now(), performance.now()];
  const passed = () => Math.max(Date.now() - here, performance.now() - began);
  const endOf = ({ now, keepUntil }: Expiry) => time + passed() + Math.min(Math.max(0, keepUntil - now), longestLife);
  return { ...(collections as Omit<Opened, "endOf">), endOf: (expiry) => new Date(Math.ceil(endOf(expiry) / minute) * minute) };
}

/** The index on `expireAt`. */
export const expiry = { key: { expireAt: 1 }, name: "expireAt", expireAfterSeconds: grace / 1000 };

/** The filter of a write that makes its document if it is missing. With `_id` alone some servers report to two racers that each made it. */
export function made(_id: unknown): Document {
  return { _id, expireAt: { $exists: true } };
}

/** An update that makes its document if it is missing, and fails if the document exists and the filter does not match it. */
export function upsert(filter: Document, update: Document | Document[]): Statement {
  return { updateOne: { filter, update, upsert: true } };
}

/** Sends statements; returns with those that failed. Of an ordered bulk write that is one at most: those after it were not tried. */
export async function send(collection: MongoCollection, statements: readonly Statement[], ordered: boolean): Promise<{ index: number; error: unknown }[]> {
  if (statements.length === 0) return [];
  try {
    await collection.bulkWrite(statements as never, { ordered });
    return [];
  } catch (error) {
    const { writeErrors, result } = error as { writeErrors?: unknown; result?: { getWriteConcernError?(): unknown } };
    const faults = [writeErrors ?? []].flat() as { readonly index: number }[];
    if (faults.length === 0 || result?.getWriteConcernError?.()) throw error;
    return faults.map(({ index }) => ({ index, error }));
  }
}

/** Sends statements that only fail where others make their documents at the same time, and those that did again. */
export async function sendAll(collection: MongoCollection, statements: readonly Statement[]): Promise<void> {
  let left = statements;
  for (let tries = 1; left.length > 0; tries++) {
    const faults = await send(collection, left, false);
    if (faults.length > 0 && tries === maxTries) throw faults[0]?.error;
    left = faults.map(({ index }) => left[index] as Statement);
  }
}

/** Reads documents by their `_id`, in one round trip; returns what finds each of them. */
export async function look(collection: MongoCollection, ids: readonly unknown[], options: Document = {}): Promise<(_id: unknown) => Document | undefined> {
  const found = ids.length === 0 ? [] : await collection.find({ _id: { $in: ids } }, { ...options, batchSize: ids.length }).toArray();
  const byId = new Map((found as Document[]).map((document) => [JSON.stringify(document["_id"]), document]));
  return (_id) => byId.get(JSON.stringify(_id));
}

/** A text in an expression, where one that begins with `$` would mean something else. */
export const literal = (value: unknown): Document => ({ $literal: value });

/** What an expression comes to, or `otherwise` where there is nothing. */
export const orElse = (expression: unknown, otherwise: unknown): Document => ({ $ifNull: [expression, otherwise] });

/** The entries of a list for which `cond` holds, which calls each of them `$$this`. */
export const where = (input: unknown, cond: Document): Document => ({ $filter: { input, as: "this", cond } });

/** An error of the driver without the documents in it: phone numbers and digests do not belong in a log. */
export function withoutValues(error: unknown): Error {
  const { name = "Error", message, code } = error as { name?: unknown; message?: unknown; code?: unknown };
  const text = String(message ?? error).replace(/\s*\{.*/s, "");
  return new Error(`mongoStore: ${name}${code === undefined ? "" : ` ${code}`}: ${text.trim()}`);
}
