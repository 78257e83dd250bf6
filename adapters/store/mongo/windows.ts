import type { MemberClaim } from "../../../src/ports/store.js";
import { adding, type Counter, heldIn, heldOf } from "./counter.js";
import { type Document, list, literal, type MongoCollection, made, making, where } from "./driver.js";

/*
 * A window that has limits is one document: { _id: window, members: [{ member, at, holds: [{ at, ticket }] }], expireAt }, the member claimed last first.
 *
 * A hold is what one commit added, told apart by its random ticket: undoing one of two twins takes back that one's hold and never the other's, nor the one from before. A member counts once, at the
 * latest time of its holds.
 */

/** How many members a window keeps beyond its largest limit: so many may be undone at once without those that they pushed out being missed. */
const slack = 16;

/** Holds this much older than a new one of the same member become a single one that nobody undoes any more. In milliseconds. */
const settledAfter = 60 * 1000;

/** Windows that have limits. */
export function createWindows(windows: MongoCollection): Counter<MemberClaim, MemberClaim> {
  return {
    async take(claims, ticket) {
      const [{ window, member, now }] = claims;
      const held = claims.map(({ since }) => newer(since, isOther(member)));
      const full = { $or: claims.flatMap(({ limit }, at) => (limit === undefined ? [] : [{ $gte: [held[at], limit] }])) };
      const most = Math.max(...claims.map(({ limit = 0 }) => limit)) + slack;
      const entry = { member: literal(member), at: { $max: "$$holds.at" }, holds: "$$holds" };
      const first = { $let: { vars: { holds: withHold(holdsOf(member), now, ticket) }, in: entry } };
      const members = { $slice: [{ $concatArrays: [[first], where(list("members"), isOther(member))] }, most] };
      // The times of the others are wanted where there is no room among them.
      const times = { $cond: [full, { $map: { input: where(list("members"), isOther(member)), as: "this", in: "$$this.at" } }, []] };
      const options = { upsert: true, returnDocument: "before", projection: { _id: 0, held, times } };
      const before = await making(() => windows.findOneAndUpdate(made(window), adding(full, { members }, claims[0]), options));
      const newestFirst = ((before as { times?: number[] } | null)?.times ?? []).sort((a, b) => b - a);
      return heldOf(before, claims).map((others, at) => ({ others, count: others + 1, roomSince: newestFirst[(claims[at]?.limit ?? 0) - 1] }));
    },

    undo([{ window, member }], ticket) {
      const left = { member: "$$this.member", at: { $max: "$$holds.at" }, holds: "$$holds" };
      const undone = { $let: { vars: { holds: withoutHold("$$this.holds", ticket) }, in: left } };
      const members = { $map: { input: list("members"), as: "this", in: { $cond: [isOther(member), "$$this", undone] } } };
      return windows.updateOne({ _id: window }, [{ $set: { members: where(members, { $ne: ["$$this.holds", []] }) } }], {});
    },

    async release(claims) {
      const [{ window, member, now }] = claims;
      const members = where(list("members"), { $or: [isOther(member), { $ne: ["$$this.at", now] }] });
      const options = { returnDocument: "after", projection: { _id: 0, held: claims.map(({ since }) => newer(since)) } };
      return heldOf(await windows.findOneAndUpdate({ _id: window }, [{ $set: { members } }], options), claims);
    },

    async read(asked) {
      const names = asked.map(({ window }) => window);
      return heldIn(await windows.find({ _id: { $in: names } }, { projection: { held: asked.map(({ since }) => newer(since)) } }).toArray(), names);
    },
  };
}

/** A member's holds with one more, and with the settled ones made one. */
export function withHold(holds: Document, at: number, ticket: string): Document {
  const isSettled = { $lte: ["$$this.at", at - settledAfter] };
  const split = { settled: where("$$holds", isSettled), rest: where("$$holds", { $not: [isSettled] }) };
  const merged = { $cond: [{ $eq: ["$$settled", []] }, [], [{ at: { $max: "$$settled.at" }, ticket: "" }]] };
  return { $let: { vars: { holds }, in: { $let: { vars: split, in: { $concatArrays: [[{ at, ticket }], "$$rest", merged] } } } } };
}

/** A member's holds without the one of a ticket. */
export function withoutHold(holds: unknown, ticket: string): Document {
  return where(holds, { $ne: ["$$this.ticket", ticket] });
}

function holdsOf(member: string): Document {
  return { $reduce: { input: where(list("members"), { $not: [isOther(member)] }), initialValue: [], in: "$$this.holds" } };
}

function isOther(member: string): Document {
  return { $ne: ["$$this.member", literal(member)] };
}

/** How many members are newer than `since`. */
function newer(since: number, ...conditions: Document[]): Document {
  return { $size: where(list("members"), { $and: [{ $gt: ["$$this.at", since] }, ...conditions] }) };
}
