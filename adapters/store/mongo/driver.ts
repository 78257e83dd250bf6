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
  insertOne(document: never, options: object): Promise<unknown>;
  findOneAndUpdate(filter: object, update: object, options: object): Promise<unknown>;
  updateOne(filter: object, update: object, options: object): Promise<unknown>;
  bulkWrite(statements: never, options: object): Promise<unknown>;
  find(filter: object, options: object): { toArray(): Promise<unknown[]> };
  aggregate(pipeline: object[], options: object): { toArray(): Promise<unknown[]> };
  createIndexes(indexes: never): Promise<unknown>;
}

export type Document = Record<string, unknown>;

/** The store's four collections. */
export interface Collections {
  /** Authentications, one document each. */
  readonly authentications: MongoCollection;
  /** Windows, one document each. */
  readonly windows: MongoCollection;
  /** Where each member of a window above 1,000 was counted last. */
  readonly members: MongoCollection;
  /** Small values. */
  readonly values: MongoCollection;
}

/**
 * How long MongoDB keeps what has ended, in milliseconds. Its expiry is housekeeping: nothing is decided by it, so it must never come early,
 * however far the clocks of the processes and the server are apart.
 */
export const grace = 10 * 60 * 1000;

/** The latest time a BSON date may hold that JavaScript can still read. */
const latestDate = 8.64e15;

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
  return { authentications: open("authentications"), windows: open("windows"), members: open("members"), values: open("values") };
}

/** The field by which MongoDB clears away what has ended. */
export function endsAt(keepUntil: number): Date {
  return new Date(Math.min(keepUntil, latestDate));
}

/** `expireAfterSeconds` of every index on `expireAt`. */
export const expiry = { key: { expireAt: 1 }, name: "expireAt", expireAfterSeconds: grace / 1000 };

/**
 * Adds a document; false when its `_id` was there already. (An upsert would not always say who was first: some servers answer two racers that each made the
 * document.)
 */
export async function inserted(collection: MongoCollection, document: Document): Promise<boolean> {
  try {
    await collection.insertOne(document as never, {});
    return true;
  } catch (error) {
    if (!isDuplicate(error)) throw error;
    return false;
  }
}

/** A key was there already: the code is all that servers agree on. */
export function isDuplicate(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 11000;
}

/** A text in an expression, where one that begins with `$` would mean something else. */
export function literal(text: string): Document {
  return { $literal: text };
}

/** The index of the statement at which an ordered `bulkWrite` stopped, or `undefined` when the error is of another kind. */
export function stoppedAt(error: unknown): number | undefined {
  const { writeErrors, result } = error as {
    writeErrors?: { index?: unknown } | { index?: unknown }[];
    result?: { getWriteConcernError?(): unknown };
  };
  if (result?.getWriteConcernError?.()) return undefined;
  const first = Array.isArray(writeErrors) ? writeErrors[0] : writeErrors;
  return typeof first?.index === "number" ? first.index : undefined;
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
