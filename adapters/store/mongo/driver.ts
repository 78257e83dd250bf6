import type { Expiry } from "../../../src/ports/store.js";

/** The part of the `mongodb` driver's `Db` (6 and 7) that the store uses. */
export interface MongoDb {
  readonly databaseName: string;
  collection(name: string, options: Readonly<Record<string, unknown>>): MongoCollection;
  command(command: Document): Promise<unknown>;
}

/** The part of the driver's `Collection` that the store uses. */
export interface MongoCollection {
  findOne(filter: object, options: object): Promise<unknown>;
  // `never`: the driver types its arguments by document types that the store does not know.
  bulkWrite(statements: never, options: object): Promise<unknown>;
  find(filter: object, options: object): { toArray(): Promise<unknown[]> };
  aggregate(pipeline: object[], options: object): { toArray(): Promise<unknown[]> };
  createIndexes(indexes: never): Promise<unknown>;
}

export type Document = Record<string, unknown>;

/** One statement of a bulk write. */
export type Statement = { readonly updateOne: Document } | { readonly deleteOne: Document };

/** The collections of a known server, without their prefix: commits, statistics, and small values. */
export const collectionNames = ["state", "counters", "values"] as const;

export interface Opened extends Record<(typeof collectionNames)[number], MongoCollection> {
  /** When MongoDB may delete an entry with this life, on the server's clock. */
  endOf(expiry: Expiry): Date;
}

/**
 * In milliseconds: the longest life, so that dates stay valid in JavaScript; and the unit that ends are rounded up to,
 * so that indexes are rarely written.
 */
const [longestLife, minute] = [100 * 365 * 86_400_000, 60_000];

/** Maximum number of tries of a write whose documents others create or change at the same time. */
export const maxTries = 16;

export class OldServer extends Error {}

/**
 * Connects a client whose first connection failed: the driver then keeps a closed topology, and does not connect by
 * itself again. A client that its owner closed has no topology, and stays closed.
 *
 * @throws the error if it has another cause; what kept the client from connecting.
 */
export async function reconnect(db: MongoDb, error: unknown): Promise<void> {
  const { client } = db as { readonly client?: { readonly topology?: unknown; connect(): Promise<unknown> } };
  if ((error as Error).name !== "MongoTopologyClosedError" || client?.topology === undefined) throw error;
  await client.connect();
}

/** What the server reports about itself. */
export async function sayHello(db: MongoDb) {
  const notFound = (error: { code?: unknown }) => (error.code === 59 ? { maxWireVersion: 0 } : Promise.reject(error));
  const { maxWireVersion, localTime, msg, setName, isWritablePrimary } = (await db.command({ hello: 1 }).catch(notFound)) as Document;
  // The wire version of MongoDB 4.4, whose first two releases lack the command.
  if ((maxWireVersion as number) < 9) throw new OldServer("mongoStore: the server behind option `db` is too old: use MongoDB 4.4.2 or newer");
  const deployment = msg === "isdbgrid" ? "sharded" : typeof setName === "string" ? "replica set" : "standalone";
  const isSecondary = typeof setName === "string" && isWritablePrimary === false;
  return { deployment, isSecondary, time: localTime instanceof Date ? localTime.getTime() : undefined };
}

/**
 * Opens the collections with plain JavaScript values, reads from the primary, and writes acknowledged once a majority
 * has them in its journal, whatever the defaults of `db` and its client.
 * A standalone server waits for its journal only with `w: 1`; elsewhere `wtimeoutMS` keeps writes from waiting forever.
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
  // If one clock stops or is set back, the other goes on.
  const [here, began] = [Date.now(), performance.now()];
  const passed = () => Math.max(Date.now() - here, performance.now() - began);
  const endOf = ({ now, keepUntil }: Expiry) => time + passed() + Math.min(Math.max(0, keepUntil - now), longestLife);
  return { ...(collections as Omit<Opened, "endOf">), endOf: (expiry) => new Date(Math.ceil(endOf(expiry) / minute) * minute) };
}

/**
 * The filter of a write that creates its document if missing. With `_id` alone, some servers report to both of two
 * racing writers that each created it.
 */
export const made = (_id: unknown): Document => ({ _id, expireAt: { $exists: true } });

/** An update that creates its document if missing, and fails if the document exists but does not match the filter. */
export const upsert = (filter: Document, update: Document | Document[]): Statement => ({ updateOne: { filter, update, upsert: true } });

/**
 * Sends statements and returns those that failed. In an ordered bulk write that is at most one: later statements are
 * not tried.
 */
export async function send(collection: MongoCollection, statements: readonly Statement[], ordered: boolean): Promise<{ index: number; error: unknown }[]> {
  if (statements.length === 0) return [];
  try {
    await collection.bulkWrite(statements as never, { ordered });
    return [];
  } catch (error) {
    const { writeErrors, result } = error as { writeErrors?: unknown; result?: { getWriteConcernError?(): unknown } };
    const errors = [writeErrors ?? []].flat() as { readonly index: number }[];
    if (errors.length === 0 || result?.getWriteConcernError?.()) throw error;
    return errors.map(({ index }) => ({ index, error }));
  }
}

/** Sends statements that fail only if others create their documents at the same time, and resends those that did. */
export async function sendAll(collection: MongoCollection, statements: readonly Statement[]): Promise<void> {
  let left = statements;
  for (let tries = 1; left.length > 0; tries++) {
    const errors = await send(collection, left, false);
    if (errors.length > 0 && tries === maxTries) throw errors[0]?.error;
    left = errors.map(({ index }) => left[index] as Statement);
  }
}

/** Reads documents by `_id` in one round trip; returns a function that finds each one. */
export async function look(collection: MongoCollection, ids: readonly unknown[], options: Document = {}): Promise<(_id: unknown) => Document | undefined> {
  const found = ids.length === 0 ? [] : await collection.find({ _id: { $in: ids } }, { ...options, batchSize: ids.length }).toArray();
  const byId = new Map((found as Document[]).map((document) => [JSON.stringify(document["_id"]), document]));
  return (_id) => byId.get(JSON.stringify(_id));
}

/** A text in an expression, where a leading `$` would otherwise have a meaning. */
export const literal = (value: unknown): Document => ({ $literal: value });

/** The value of an expression, or `otherwise` if there is none. */
export const orElse = (expression: unknown, otherwise: unknown): Document => ({ $ifNull: [expression, otherwise] });

/** The entries of a list for which `cond` holds; it refers to each as `$$this`. */
export const where = (input: unknown, cond: Document): Document => ({ $filter: { input, as: "this", cond } });

export const toPrimary = "leave out directConnection from the client's URL and name the replica set, so that the driver finds the primary";

/** Driver errors: the pattern, what it means, and the fix. The last one is any other reply of the server. */
const meanings: readonly (readonly [pattern: RegExp, what: string, fix: string])[] = [
  [
    /^Mongo(NotConnected|ClientClosed)Error/,
    "cannot be reached through a closed client",
    "your application closed the client: close it after `verifier.close()`, or create a new one",
  ],
  [
    /^\w+ 73:/,
    "rejects the name of the database or of a collection",
    "shorten the database's name to 63 bytes, and leave out spaces and the characters / \\ . \" $",
  ],
  [/^\w+ (18:|8000:.*\bauth(entication)?\b)/i, "rejects the credentials", "correct the user, the password and authSource in the client's URL"],
  [/^\w+ (13:|8000:.*not allowed to do action)/, "denies its user a right", "grant the role readWrite on the database"],
  [/^\w+ 8000:.*quota/, "has no room left", "remove other data, or use a larger cluster"],
  [/^\w+ (10107|13435|13436):/, "is a secondary, which cannot be written", toPrimary],
  [/^\w+ 94:|\(servers: .*RSGhost/, "was started with --replSet and not initiated", "call rs.initiate() once in mongosh"],
  [/\(servers: none\)/, "does not belong to the replica set of the client's URL", "correct replicaSet in the URL, or start mongod with --replSet"],
  [/\(servers: .*RS/, "has no primary within reach", "start the other members of its replica set, and make their addresses reachable"],
  [/^Mongo(Server|BulkWrite)Error \d/, "rejected a command", "look for the reason in its log"],
];

/** Of the driver's errors, if it found no server to send a command to: the servers as it knows them. */
interface Topology {
  readonly servers?: ReadonlyMap<string, { readonly type: string }>;
}

/** A driver error without its documents: phone numbers and digests do not belong in a log. */
export function withoutValues(error: unknown): Error {
  const { name = "Error", message, code, reason } = error as { name?: unknown; message?: unknown; code?: unknown; reason?: Topology };
  const servers = reason?.servers && [...reason.servers.values()].map(({ type }) => type).join(", ");
  const text = `${name}${code === undefined ? "" : ` ${code}`}: ${String(message ?? error)
    .replace(/\s*\{.*/s, "")
    .trim()}${servers === undefined ? "" : ` (servers: ${servers || "none"})`}`;
  const [, what, fix] = meanings.find(([pattern]) => pattern.test(text)) ?? [];
  return new Error(what === undefined ? `mongoStore: ${text}` : `mongoStore: the server behind option \`db\` ${what} (${text}): ${fix}`);
}
