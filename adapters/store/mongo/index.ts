import type { Store, StoredRecord, SwapResult } from "../../../src/ports/store.js";
import { endsAt, expiry, inserted, isDuplicate, type MongoDb, openCollections, withoutValues } from "./driver.js";
import { CorruptRecord, parseRecord, recordFields, recordKey } from "./record.js";
import { createWindows } from "./windows.js";

export type { MongoCollection, MongoDb } from "./driver.js";

/** Options of `mongoStore`. */
export interface MongoStoreOptions {
  /** The database, from your own `MongoClient` of the `mongodb` driver 6 or 7: `client.db()`. The store neither opens nor closes the client. */
  readonly db: MongoDb;
  /** What the names of the four collections start with: letters, digits, `_`, `-` and `.`, 1 to 64 of them. Default `"phoneproof_"`. */
  readonly prefix?: string;
}

/** A store in MongoDB. */
export interface MongoStore extends Store {
  /**
   * Creates the indexes that are missing: for the worker (`due`), and for MongoDB's clearing away of what has ended. Call it once when the service is set up or
   * starts; it may be called again. The store is as correct without them: then `due` reads every authentication, and nothing that has ended is cleared away.
   *
   * @throws Error when an index cannot be created; the message names the collection.
   */
  ensureIndexes(): Promise<void>;
}

/** "A small value (at most 64 KiB)", and the same for a record's data; in bytes. */
const maxBytes = 64 * 1024;

/** The index that `due` reads along: it holds the records that need work, and no others. */
const wake = { key: { wakeAt: 1 }, name: "wakeAt", partialFilterExpression: { wakeAt: { $exists: true } } };

/** `maxWireVersion` of MongoDB 4.4. */
const oldestWire = 9;

/**
 * Keeps authentications and windows in MongoDB 4.4 or newer: a standalone server, a replica set or a sharded cluster. No transaction is used.
 *
 * `find`, `get`, `put`, `count` and `due` are one round trip each. A swap is one `findOneAndUpdate` (an insert, where there must be no record), and one read
 * more when it is lost. `reserve` is one ordered bulk for all windows; one insert more for each with a limit above 1,000 (a member that comes again takes two
 * updates instead), and one to three round trips more when it is refused.
 *
 * Writes are acknowledged by the majority and decisions read from the primary, whatever the defaults of `db` are; `journal` and `wtimeoutMS` of its write
 * concern are kept. A standalone server acknowledges before it writes its journal: set `journal: true` there, or lose up to the last 100 ms when it is killed.
 *
 * The store retries nothing and sets no timer; the verifier's own deadline bounds every request.
 *
 * @throws TypeError when an option is wrong; the message names it and the mend.
 */
export function mongoStore(options: MongoStoreOptions): MongoStore {
  const { db, prefix = "phoneproof_" } = options;
  if (typeof db?.collection !== "function" || typeof db.command !== "function" || typeof db.databaseName !== "string") {
    throw new TypeError("mongoStore: option `db` is not a Db of the mongodb driver; pass `client.db()`, not the client, a connection or a collection");
  }
  if (typeof prefix !== "string" || !/^(?!system\.)[\w.-]{1,64}$/.test(prefix)) {
    throw new TypeError(
      "mongoStore: option `prefix` must be 1 to 64 letters, digits, `_`, `-` and `.`, and must not start with `system.`: collections are named with it",
    );
  }
  const collections = openCollections(db, prefix);
  const { authentications, values } = collections;
  const windows = createWindows(collections);
  let known = false;

  /** Sees to it, once, that the server is new enough; keeps what is stored out of errors. */
  async function ask<T>(work: () => Promise<T>): Promise<T> {
    try {
      if (!known) await refuseOldServer(db);
      known = true;
      return await work();
    } catch (error) {
      throw error instanceof CorruptRecord || error instanceof OldServer ? error : withoutValues(error);
    }
  }

  async function read(customer: string, id: string): Promise<StoredRecord | undefined> {
    const document = await authentications.findOne({ _id: recordKey(customer, id) }, {});
    return document === null ? undefined : parseRecord(document);
  }

  /** Tries the swap: `null` when it was done, else the record that stands there. */
  async function write(next: StoredRecord, expected: string | null): Promise<StoredRecord | null | undefined> {
    const _id = recordKey(next.customer, next.id);
    const fields = recordFields(next);
    if (expected === null) return (await inserted(authentications, { _id, ...fields })) ? null : read(next.customer, next.id);
    const update = { $set: fields, ...(next.wakeAt === undefined ? { $unset: { wakeAt: "" } } : {}) };
    const before = await authentications.findOneAndUpdate({ _id, "tokens.0": expected, tokens: { $ne: next.tokens[0] } }, update, { projection: { _id: 1 } });
    return before === null ? read(next.customer, next.id) : null;
  }

  return {
    find: (customer, id) => ask(() => read(customer, id)),

    async compareAndSwap(next, expected): Promise<SwapResult> {
      refuseLarge("data", next.data);
      const current = await ask(() => write(next, expected));
      if (current === null || current?.tokens.includes(next.tokens[0] as string)) return { swapped: true };
      return current === undefined ? { swapped: false } : { swapped: false, current };
    },

    reserve: (claims) => ask(() => windows.reserve(claims)),

    count: (asked) => ask(() => windows.count(asked)),

    async due(now, limit): Promise<StoredRecord[]> {
      const documents = await ask(() => authentications.find({ wakeAt: { $lte: now } }, { sort: { wakeAt: 1 }, limit }).toArray());
      const records: StoredRecord[] = [];
      let fault: unknown;
      for (const document of documents) {
        try {
          records.push(parseRecord(document));
        } catch (error) {
          fault ??= error;
        }
      }
      // One corrupt record must not hold up the work on the others: it is told when nothing else is left to do.
      if (records.length === 0 && fault !== undefined) throw fault;
      return records;
    },

    async get(key): Promise<string | undefined> {
      const document = await ask(() => values.findOne({ _id: key }, {}));
      return document === null ? undefined : (document as { value: string }).value;
    },

    async put(key, value, keepUntil): Promise<void> {
      refuseLarge("value", value);
      const update = { $set: { value, keepUntil, expireAt: endsAt(keepUntil) } };
      const write = () => values.updateOne({ _id: key }, update, { upsert: true });
      // Two first puts at the same time: the one that lost finds the other's document now.
      await ask(() => write().catch((error) => (isDuplicate(error) ? write() : Promise.reject(error))));
    },

    async ensureIndexes(): Promise<void> {
      for (const [name, collection] of Object.entries(collections)) {
        try {
          await ask(() => collection.createIndexes((name === "authentications" ? [wake, expiry] : [expiry]) as never));
        } catch (error) {
          throw new Error(`${(error as Error).message} (creating the indexes of ${prefix}${name})`);
        }
      }
    },
  };
}

/** The server cannot do what the store asks of it. */
class OldServer extends Error {}

async function refuseOldServer(db: MongoDb): Promise<void> {
  const notFound = (error: unknown) => {
    if ((error as { code?: unknown }).code === 59) return { maxWireVersion: 0 };
    throw error;
  };
  const { maxWireVersion } = (await db.command({ hello: 1 }).catch(notFound)) as { maxWireVersion: number };
  if (maxWireVersion < oldestWire) throw new OldServer("mongoStore: the server behind option `db` is too old: use MongoDB 4.4 or newer");
}

function refuseLarge(what: string, text: string): void {
  if (Buffer.byteLength(text) > maxBytes) throw new RangeError(`mongoStore: ${what} is larger than ${maxBytes} bytes`);
}
