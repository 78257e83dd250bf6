import { randomBytes } from "node:crypto";
import type { Store, StoredRecord } from "../../../src/ports/store.js";
import { onlyOptions } from "../../kit/option-fault.js";
import { commit } from "./commit.js";
import { collectionNames, type Document, look, type MongoDb, made, OldServer, type Opened, open, sendAll, upsert, withoutValues } from "./driver.js";
import { indexesOf, inspect } from "./inspect.js";
import { type Member, newerThan, type Window } from "./members.js";
import { CorruptRecord, parseRecord, recordKey } from "./record.js";

export type { MongoCollection, MongoDb } from "./driver.js";

/** Options of `mongoStore`. */
export interface MongoStoreOptions {
  /** The database, from your own `MongoClient` of the `mongodb` driver 6 or 7: `client.db()`. The store neither opens nor closes the client. */
  readonly db: MongoDb;
  /** What the names of the three collections start with: letters, digits, `_`, `-` and `.`, 1 to 64 of them. Default `"phoneproof_"`. */
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

/**
 * Keeps authentications and what is counted in MongoDB 4.4.2 or newer: a replica set (of one member, where there is one server), a sharded cluster (the shard key of each collection is
 * `{ _id: "hashed" }`), or a standalone server. No transaction is used. It sets no timer; the verifier's own deadline bounds every request.
 *
 * A commit that is granted is one round trip: one command of plain conditional statements makes its claims, writes the record and gives back. One more reads counts and sums that are asked for, one more takes
 * back another commit. What is not granted at once is looked at (one), and undone or sent again (one): so it is when a sum reaches a new part, and with a member that is there already. `find`, `get`, `put` and
 * `members` are one, `tally` two, `lease` three, and one where nothing is due.
 *
 * Whatever the defaults of `db` are, decisions are read from the primary, and writes are acknowledged once a majority has them in its journal (a standalone server: its own), or fail after the `wtimeoutMS` of
 * its write concern, default 1,500. A primary that was deposed and does not know it yet may answer `find`, `get` and `members` for some seconds with what stood before.
 *
 * A window is counted either with limits or without: a claim with a limit does not see members that were claimed without one.
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
  let opening: Promise<Opened> | undefined;

  /** Works with the server, once it is known; keeps what is stored out of errors. */
  async function reach<T>(work: (opened: Opened) => Promise<T>): Promise<T> {
    opening ??= open(db, prefix).catch((error) => {
      opening = undefined;
      throw error;
    });
    try {
      return await work(await opening);
    } catch (error) {
      throw error instanceof CorruptRecord || error instanceof OldServer ? error : withoutValues(error);
    }
  }

  return {
    async find(customer, id): Promise<StoredRecord | undefined> {
      const document = await reach(({ state }) => state.findOne({ _id: recordKey({ customer, id }) }, {}));
      return document === null ? undefined : parseRecord(document);
    },

    async commit(change) {
      if (change.record !== undefined) refuseLarge("data", change.record.data);
      return reach((opened) => commit(opened, change));
    },

    async members(window, limit): Promise<string[]> {
      if (limit < 1) return [];
      const options = { sort: { at: -1 }, limit, batchSize: limit, projection: { _id: 0, member: "$_id.member", at: 1 } };
      const [kept, members] = await reach(({ state }) =>
        Promise.all([state.findOne({ _id: { window } }, {}) as Promise<Window | null>, state.find(newerThan(window), options).toArray() as Promise<Member[]>]),
      );
      const all = [...(kept?.m ?? []), ...members].sort((a, b) => b.at - a.at);
      return [...new Set(all.map(({ member }) => member))].slice(0, limit);
    },

    async tally(adds, reads): Promise<number[]> {
      return reach(async ({ counters, endOf }) => {
        const added = adds.map((add) => upsert(made(add.counter), { $inc: { count: add.by }, $max: { expireAt: endOf(add) } }));
        await sendAll(counters, added);
        const found = await look(counters, reads);
        return reads.map((counter) => (found(counter)?.["count"] as number | undefined) ?? 0);
      });
    },

    async lease(until, limit, leaseUntil): Promise<StoredRecord[]> {
      if (limit < 1) return [];
      const ticket = randomBytes(9).toString("base64url");
      const leased = await reach(async ({ state }) => {
        const options = { sort: { wakeAt: 1 }, limit, batchSize: limit, projection: { wakeAt: 1 } };
        // The `_id` and the `wakeAt` of each: the filter of its update, which finds it where it has not been moved since.
        const due = (await state.find({ wakeAt: { $lte: until } }, options).toArray()) as Document[];
        const update = { $set: { wakeAt: leaseUntil, lease: ticket } };
        await sendAll(
          state,
          due.map((filter) => ({ updateOne: { filter, update } })),
        );
        const ids = due.map(({ _id }) => _id);
        const found = await look(state, ids);
        return ids.map(found).filter((document) => document?.["lease"] === ticket);
      });
      let fault: unknown;
      const records = leased.flatMap((document) => {
        try {
          return parseRecord(document);
        } catch (error) {
          fault ??= error;
          return [];
        }
      });
      // A corrupt record has been moved like the others, and must not hold up the work on them: it is told when nothing else came with it.
      if (records.length === 0 && fault !== undefined) throw fault;
      return records;
    },

    async get(key): Promise<string | undefined> {
      const document = await reach(({ values }) => values.findOne({ _id: key }, {}));
      return document === null ? undefined : (document as { value: string }).value;
    },

    async put(key, value, expiry): Promise<void> {
      refuseLarge("value", value);
      await reach(({ values, endOf }) => sendAll(values, [upsert(made(key), { $set: { value }, $max: { expireAt: endOf(expiry) } })]));
    },

    // One statement for each name: on a sharded cluster one for many documents can miss one that is moving just then.
    async delete({ records = [], windows = [], sums = [], values: keys = [] }): Promise<void> {
      const gone = (ids: readonly unknown[]) => ids.map((_id) => ({ deleteOne: { filter: { _id } } }));
      await reach(async ({ state, values }) => {
        const named = [...records.map(recordKey), ...windows.map((window) => ({ window })), ...sums.map(({ sum }) => ({ sum }))];
        await Promise.all([sendAll(state, gone(named)), sendAll(values, gone(keys))]);
        const members = { "_id.window": { $in: windows }, at: { $gte: 0 } };
        const found = windows.length === 0 ? [] : await state.find(members, { batchSize: 10_000, projection: { _id: 1 } }).toArray();
        await sendAll(state, gone((found as Document[]).map(({ _id }) => _id)));
      });
    },

    inspect: (until) => reach(({ state }) => inspect(db, prefix, state, until)),

    async ensureIndexes(): Promise<void> {
      for (const name of collectionNames) {
        try {
          await reach((opened) => opened[name].createIndexes(indexesOf(name) as never));
        } catch (error) {
          throw new Error(`${(error as Error).message} (creating the indexes of ${prefix}${name})`);
        }
      }
    },
  };
}

function refuseLarge(what: string, text: string): void {
  if (Buffer.byteLength(text) > maxBytes) throw new RangeError(`mongoStore: ${what} is larger than ${maxBytes} bytes`);
}
