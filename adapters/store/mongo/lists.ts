import type { MemberClaim } from "../../../src/ports/store.js";
import type { Counter } from "./counter.js";
import { type Document, expireAt, list, type MongoCollection, made, making } from "./driver.js";
import { withHold, withoutHold } from "./windows.js";

/*
 * A window that has no limit is one document for each member: { _id: { window, member }, at, holds: [{ at, ticket }], expireAt }, with holds as in a window that has limits.
 */

/** How many members a list keeps, the newest. */
const maxMembers = 10_000;

/** How many more there may be before the oldest are cleared away. */
const slack = 500;

/** The index that lists are read along. */
export const listed = { key: { "_id.window": 1, at: -1, "_id.member": 1 }, name: "listed" };

/** Windows without limits. */
export function createLists(lists: MongoCollection): Counter<MemberClaim, MemberClaim> {
  /** How many members are newer than each `since`, those left out that `except` describes. Clears the oldest away where there are too many. */
  async function count(window: string, sinces: readonly number[], except: Document): Promise<readonly number[]> {
    const newer = sinces.map((since, at) => [`newer${at}`, { $sum: { $cond: [{ $gt: ["$at", since] }, 1, 0] } }]);
    const pipeline = [{ $match: { "_id.window": window, $nor: [except] } }, { $group: { _id: null, all: { $sum: 1 }, ...Object.fromEntries(newer) } }];
    const [found] = (await lists.aggregate(pipeline, {}).toArray()) as Record<string, number>[];
    if (found !== undefined && (found["all"] as number) >= maxMembers + slack) await clearOldest(window);
    return sinces.map((_, at) => found?.[`newer${at}`] ?? 0);
  }

  async function clearOldest(window: string): Promise<void> {
    const options = { sort: { at: -1 }, skip: maxMembers, limit: 2 * slack, projection: { at: 1 } };
    const oldest = (await lists.find({ "_id.window": window }, options).toArray()) as Document[];
    // With its time: one that was claimed again meanwhile is not old.
    if (oldest.length > 0) await lists.bulkWrite(oldest.map((filter) => ({ deleteOne: { filter } })) as never, { ordered: false });
  }

  return {
    async take(claims, ticket) {
      const [{ window, member, now }] = claims;
      const added = { holds: withHold(list("holds"), now, ticket), expireAt: expireAt(claims[0]) };
      const update = [{ $set: added }, { $set: { at: { $max: "$holds.at" } } }];
      const sinces = claims.map(({ since }) => since);
      const [others] = await Promise.all([
        count(window, sinces, { "_id.member": member }),
        making(() => lists.updateOne(made({ window, member }), update, { upsert: true })),
      ]);
      return others.map((other) => ({ others: other, count: other + 1 }));
    },

    undo([{ window, member }], ticket) {
      const _id = { window, member };
      const update = [{ $set: { holds: withoutHold(list("holds"), ticket) } }, { $set: { at: { $max: "$holds.at" } } }];
      return lists.bulkWrite([{ updateOne: { filter: { _id }, update } }, { deleteOne: { filter: { _id, holds: [] } } }] as never, {});
    },

    async release(claims) {
      const [{ window, member, now }] = claims;
      const sinces = claims.map(({ since }) => since);
      const [held] = await Promise.all([
        count(window, sinces, { "_id.member": member, at: now }),
        lists.bulkWrite([{ deleteOne: { filter: { _id: { window, member }, at: now } } }] as never, {}),
      ]);
      return held;
    },

    async read(asked) {
      const held = await Promise.all(asked.map(({ window, since }) => count(window, [since], { _id: null })));
      return held.flat();
    },
  };
}
