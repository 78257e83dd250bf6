import { randomBytes } from "node:crypto";
import type { Store, StoredRecord } from "../../../src/ports/store.js";
import { onlyOptions } from "../../kit/option-error.js";
import { CorruptRecord, has, parseEach, refuseLarge } from "../../kit/store.js";
import { commit } from "./commit.js";
import { collectionNames, type Document, look, type MongoDb, made, OldServer, type Opened, open, reconnect, sendAll, upsert, withoutValues } from "./driver.js";
import { inspect, planIndexes } from "./inspect.js";
import { type Member, newerThan, type Window } from "./members.js";
import { parseRecord, recordKey } from "./record.js";

export type { MongoCollection, MongoDb } from "./driver.js";

/** Options of `mongoStore`. */
export interface MongoStoreOptions {
  /**
   * The database of your own `MongoClient` (`mongodb` driver 6 or 7): `client.db()`. The client connects at the first
   * use; the store does not close it.
   */
  readonly db: MongoDb;
  /**
   * Prefix of the three collection names: 1 to 64 letters, digits, `_`, `-` and `.`, not with `.` first. Default:
   * `"phoneproof_"`.
   */
  readonly prefix?: string;
}

/** A store in MongoDB. */
export interface MongoStore extends Store {
  /**
   * Creates missing indexes: for the worker (`lease`), for windows without limits, and for deletion of expired data by
   * MongoDB. Call it at setup or start; it can be called repeatedly. Without them the store is correct, but `lease`
   * scans all authentications, an unlimited window scans its whole collection, and expired data is never deleted.
   *
   * @throws Error if an index cannot be created, after it made the others; the message names the collection, and the
   * index to drop if one is in the way.
   */
  ensureIndexes(): Promise<void>;
}

/**
 * Stores authentications and counters in MongoDB 4.4.2 or newer: a replica set (one member for a single server), a
 * sharded cluster (shard key of each collection: `{ _id: "hashed" }`) or a standalone server. It uses no transactions
 * and sets no timer; the verifier's own deadline limits every request.
 *
 * Round trips: a granted commit takes 1, plus 1 if it reads counts and sums, plus 1 if it takes back another commit. A
 * commit that is not granted at once takes 1 more to read, and 1 to undo or resend: for example when a sum reaches a
 * new part, or a member exists already. `find`, `get`, `put` and `members` take 1, `tally` 2, `lease` 3 (1 if nothing
 * is due).
 *
 * Whatever the defaults of `db`, decisions are read from the primary, and writes are acknowledged once a majority (on a
 * standalone server: the server) has journaled them, or fail after the `wtimeoutMS` of the write concern, default
 * 1,500. For some seconds, a deposed primary may return stale results of `find`, `get` and `members`.
 *
 * Count a window either with limits or without: a claim with a limit does not see members claimed without one.
 *
 * @throws TypeError if an option is invalid; the message names it and the fix.
 */
export function mongoStore(options: MongoStoreOptions): MongoStore {
  const { db, prefix = "phoneproof_" } = options ?? {};
  if (!has<MongoDb>(db, "collection", "command") || typeof db.databaseName !== "string") {
    const what =
      db === undefined
        ? "is missing: pass `client.db()`, as in mongoStore({ db: client.db() })"
        : has(db, "then")
          ? "is a promise: await it first"
          : "is not a Db of the mongodb driver; pass `client.db()`, not the client, a connection or a collection";
    throw new TypeError(`mongoStore: option \`db\` ${what}`);
  }
  onlyOptions("mongoStore", options, { db: true, prefix: true });
  if (typeof prefix !== "string" || !/^(?!\.|system\.|.*\.system\.)[\w.-]{1,64}$/.test(prefix)) {
    throw new TypeError(
      "mongoStore: option `prefix` must be 1 to 64 letters, digits, `_`, `-` and `.`, must not start with `.` or `system.`, and must not contain `.system.`: collections are named with it",
    );
  }
  let opening: Promise<Opened> | undefined;

  /** All calls share one attempt. A second one would wait for the first, which fails without a reason, and for its own. */
  function opened(): Promise<Opened> {
    opening ??= open(db, prefix)
      .catch(async (error) => {
        await reconnect(db, error);
        return open(db, prefix);
      })
      .catch((error) => {
        opening = undefined;
        throw error;
      });
    return opening;
  }

  /** Works with the server, once it is known; keeps stored data out of errors. */
  async function reach<T>(work: (opened: Opened) => Promise<T>): Promise<T> {
    try {
      return await work(await opened());
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
      refuseLarge("mongoStore", "a record's data", change.record?.data);
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
        // The `_id` and `wakeAt` of each record: its update filters by both, so it skips a record that was moved since.
        const due = (await state.find({ wakeAt: { $lte: until } }, options).toArray()) as Document[];
        const moves = due.map((filter) => ({ updateOne: { filter, update: { $set: { wakeAt: leaseUntil, lease: ticket } } } }));
        await sendAll(state, moves);
        const ids = due.map(({ _id }) => _id);
        const found = await look(state, ids);
        return ids.map(found).filter((document) => document?.["lease"] === ticket);
      });
      return parseEach(leased, parseRecord);
    },

    async get(key): Promise<string | undefined> {
      const found = await reach(({ values }) => values.findOne({ _id: key }, {}) as Promise<{ value: string } | null>);
      return found?.value;
    },

    async put(key, value, expiry): Promise<void> {
      refuseLarge("mongoStore", "a value", value);
      await reach(({ values, endOf }) => sendAll(values, [upsert(made(key), { $set: { value }, $max: { expireAt: endOf(expiry) } })]));
    },

    // One statement per name: on a sharded cluster, a statement for many documents can miss one that is being migrated.
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
      const opened = await reach(async (opened) => opened);
      const problems: string[] = [];
      for (const name of collectionNames) {
        const { wanted, inTheWay } = await reach(() => planIndexes(db, prefix, name));
        problems.push(...inTheWay.map((problem) => `mongoStore: ${problem}`));
        if (wanted.length === 0) continue;
        await opened[name].createIndexes(wanted as never).catch((error) => {
          problems.push(`${withoutValues(error).message} (creating the indexes of ${prefix}${name})`);
        });
      }
      if (problems.length > 0) throw new Error(problems.join("; "));
    },
  };
}
