import { randomBytes } from "node:crypto";
import type { Store, StoredRecord } from "../../../src/ports/store.js";
import { onlyOptions } from "../../kit/option-fault.js";
import { createCommit } from "./commit.js";
import {
  type Document,
  expireAt,
  expiry,
  literal,
  type MongoCollection,
  type MongoDb,
  made,
  making,
  makingAll,
  openCollections,
  withoutValues,
} from "./driver.js";
import { inspect } from "./inspect.js";
import { listed } from "./lists.js";
import { CorruptRecord, parseRecord, recordKey } from "./record.js";

export type { MongoCollection, MongoDb } from "./driver.js";

/** Options of `mongoStore`. */
export interface MongoStoreOptions {
  /** The database, from your own `MongoClient` of the `mongodb` driver 6 or 7: `client.db()`. The store neither opens nor closes the client. */
  readonly db: MongoDb;
  /** What the names of the five collections start with: letters, digits, `_`, `-` and `.`, 1 to 64 of them. Default `"phoneproof_"`. */
  readonly prefix?: string;
}

/** A store in MongoDB. */
export interface MongoStore extends Store {
  /**
   * Creates the indexes that are missing: for the worker (`lease`), for windows without limits, and for MongoDB's clearing away of what has ended. Call it once when the service is set up or starts; it
   * may be called again. The store is as correct without them: then `lease` reads every authentication, a window without a limit is looked for in all of them, and nothing that has ended is cleared away.
   *
   * @throws Error when an index cannot be created; the message names the collection.
   */
  ensureIndexes(): Promise<void>;
}

/** "A small value (at most 64 KiB)", and the same for a record's data; in bytes. */
const maxBytes = 64 * 1024;

/** The index that `lease` reads along: it holds the records that need work, and no others. */
const wake = { key: { wakeAt: 1 }, name: "wakeAt", partialFilterExpression: { wakeAt: { $exists: true } } };

/** The indexes of a collection. */
function indexesOf(collection: string): readonly { readonly name: string }[] {
  return [...(collection === "authentications" ? [wake] : collection === "lists" ? [listed] : []), expiry];
}

/** `maxWireVersion` of MongoDB 4.4. */
const oldestWire = 9;

/**
 * Keeps authentications and what is counted in MongoDB 4.4 or newer: a standalone server, a replica set or a sharded cluster. No transaction is used.
 *
 * `find`, `get`, `put` and `members` are one round trip each, `tally` two, `lease` three, and one where nothing is due. A commit is up to three: one for the claims that add and the asks (a command for
 * each window and sum, all at once), one for the record, one for what is taken out and given back. A lost race is one more, which reads what is stored; one more undoes what was added.
 *
 * A window is counted either with limits or without: a claim with a limit does not see members that were claimed without one.
 *
 * Writes are acknowledged by the majority and decisions read from the primary, whatever the defaults of `db` are; `journal` and `wtimeoutMS` of its write concern are kept. A standalone server
 * acknowledges before it writes its journal: set `journal: true` there, or lose up to the last 100 ms when it is killed.
 *
 * The store sets no timer; the verifier's own deadline bounds every request.
 *
 * @throws TypeError when an option is wrong; the message names it and the mend.
 */
export function mongoStore(options: MongoStoreOptions): MongoStore {
  const { db, prefix = "phoneproof_" } = options ?? {};
  if (typeof db?.collection !== "function" || typeof db.command !== "function" || typeof db.databaseName !== "string") {
    const what =
      db === undefined
        ? "is missing: pass `client.db()`, as in mongoStore({ db: client.db() })"
        : typeof (db as { then?: unknown } | null)?.then === "function"
          ? "is a promise: await it first"
          : "is not a Db of the mongodb driver; pass `client.db()`, not the client, a connection or a collection";
    throw new TypeError(`mongoStore: option \`db\` ${what}`);
  }
  onlyOptions("mongoStore", options, { db: true, prefix: true });
  if (typeof prefix !== "string" || !/^(?!system\.)[\w.-]{1,64}$/.test(prefix)) {
    throw new TypeError(
      "mongoStore: option `prefix` must be 1 to 64 letters, digits, `_`, `-` and `.`, and must not start with `system.`: collections are named with it",
    );
  }
  const collections = openCollections(db, prefix);
  const { authentications, windows, lists, counters, values } = collections;
  const commit = createCommit(collections);
  let known = false;

  /** Sees to it, once, that the server is new enough; keeps what is stored out of errors. */
  async function reach<T>(work: () => Promise<T>): Promise<T> {
    try {
      if (!known) await refuseOldServer(db);
      known = true;
      return await work();
    } catch (error) {
      throw error instanceof CorruptRecord || error instanceof OldServer ? error : withoutValues(error);
    }
  }

  /** Moves the records that are due where they have not been moved since they were read, and reads those that bear this call's ticket. */
  async function lease(until: number, limit: number, leaseUntil: number): Promise<unknown[]> {
    const options = { sort: { wakeAt: 1 }, limit, projection: { wakeAt: 1 } };
    // The `_id` and the `wakeAt` of each: the filter of its update.
    const due = (await authentications.find({ wakeAt: { $lte: until } }, options).toArray()) as Document[];
    if (due.length === 0) return [];
    const ticket = randomBytes(9).toString("base64url");
    const moved = { $set: { wakeAt: leaseUntil, lease: ticket } };
    await authentications.bulkWrite(due.map((filter) => ({ updateOne: { filter, update: moved } })) as never, { ordered: false });
    const leased = { _id: { $in: due.map(({ _id }) => _id) }, lease: ticket };
    const found = (await authentications.find(leased, {}).toArray()) as Document[];
    const byId = new Map(found.map((document) => [JSON.stringify(document["_id"]), document]));
    return due.flatMap(({ _id }) => byId.get(JSON.stringify(_id)) ?? []);
  }

  return {
    async find(customer, id): Promise<StoredRecord | undefined> {
      const document = await reach(() => authentications.findOne({ _id: recordKey(customer, id) }, {}));
      return document === null ? undefined : parseRecord(document);
    },

    async commit(change) {
      if (change.record !== undefined) refuseLarge("data", change.record.data);
      return reach(() => commit(change));
    },

    async members(window, limit): Promise<string[]> {
      if (limit < 1) return [];
      const projection = { "members.member": 1, "members.at": 1 };
      const [kept, listed] = await reach(() =>
        Promise.all([
          windows.findOne({ _id: window }, { projection }) as Promise<{ members?: Member[] } | null>,
          lists.find({ "_id.window": window }, { sort: { at: -1 }, limit, projection: { _id: 0, member: "$_id.member", at: 1 } }).toArray() as Promise<
            Member[]
          >,
        ]),
      );
      const all = [...(kept?.members ?? []), ...listed].sort((a, b) => b.at - a.at);
      return [...new Set(all.map(({ member }) => member))].slice(0, limit);
    },

    async tally(adds, reads): Promise<number[]> {
      const statements = adds.map(({ counter, by, ...life }) => {
        const update = [{ $set: { count: { $add: [{ $ifNull: ["$count", 0] }, by] }, expireAt: expireAt(life) } }];
        return { updateOne: { filter: made(counter), update, upsert: true } };
      });
      return reach(async () => {
        await makingAll(counters, statements);
        const found = reads.length === 0 ? [] : ((await counters.find({ _id: { $in: reads } }, {}).toArray()) as { _id: string; count: number }[]);
        const counts = new Map(found.map(({ _id, count }) => [_id, count]));
        return reads.map((counter) => counts.get(counter) ?? 0);
      });
    },

    async lease(until, limit, leaseUntil): Promise<StoredRecord[]> {
      const records: StoredRecord[] = [];
      let fault: unknown;
      for (const document of limit < 1 ? [] : await reach(() => lease(until, limit, leaseUntil))) {
        try {
          records.push(parseRecord(document));
        } catch (error) {
          fault ??= error;
        }
      }
      // A corrupt record has been moved like the others, and must not hold up the work on them: it is told when nothing else came with it.
      if (records.length === 0 && fault !== undefined) throw fault;
      return records;
    },

    async get(key): Promise<string | undefined> {
      const document = await reach(() => values.findOne({ _id: key }, {}));
      return document === null ? undefined : (document as { value: string }).value;
    },

    async put(key, value, life): Promise<void> {
      refuseLarge("value", value);
      const update = [{ $set: { value: literal(value), expireAt: expireAt(life) } }];
      await reach(() => making(() => values.updateOne(made(key), update, { upsert: true })));
    },

    async forget({ records = [], windows: windowNames = [], sums = [], values: keys = [] }): Promise<void> {
      const named = (_id: readonly unknown[]) => ({ _id: { $in: _id } });
      const run = (collection: MongoCollection, ...statements: Document[]) => collection.bulkWrite(statements as never, {});
      // A window and a sum of one name are one document.
      const without = (names: readonly string[], field: string) => ({ updateMany: { filter: named(names), update: { $unset: { [field]: "" } } } });
      const empty = { ...named([...windowNames, ...sums]), members: { $exists: false }, slots: { $exists: false } };
      const some = (list: readonly unknown[], work: () => Promise<unknown>) => (list.length === 0 ? [] : [work()]);
      await reach(() =>
        Promise.all([
          ...some(records, () => run(authentications, { deleteMany: { filter: named(records.map(({ customer, id }) => recordKey(customer, id))) } })),
          ...some([...windowNames, ...sums], () => run(windows, without(windowNames, "members"), without(sums, "slots"), { deleteMany: { filter: empty } })),
          ...some(windowNames, () => run(lists, { deleteMany: { filter: { "_id.window": { $in: windowNames } } } })),
          ...some(keys, () => run(values, { deleteMany: { filter: named(keys) } })),
        ]),
      );
    },
    inspect: (until) => reach(() => inspect(db, prefix, authentications, indexesOf, until)),

    async ensureIndexes(): Promise<void> {
      for (const [name, collection] of Object.entries(collections)) {
        try {
          await reach(() => collection.createIndexes(indexesOf(name) as never));
        } catch (error) {
          throw new Error(`${(error as Error).message} (creating the indexes of ${prefix}${name})`);
        }
      }
    },
  };
}

interface Member {
  readonly member: string;
  readonly at: number;
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
