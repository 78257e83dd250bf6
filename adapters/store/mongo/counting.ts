import type { Claim } from "../../../src/ports/store.js";
import { type Document, literal } from "./driver.js";

/*
 * What a window holds, and the expressions that count it and add to it. A window is one document:
 *
 *   { _id: window, members: [{ member, at, until, ticket, paired }], slots: [{ end, paired, count, until }], keepUntil, expireAt }
 *
 * `members` counts for claims with a limit up to 1,000, exactly: one entry for each reserve that took the member, told apart by its random ticket, so that
 * undoing one of two twins takes back that one's entry and never the other's, nor the one from before. A member counts once, with its latest time.
 *
 * `slots` counts for claims with larger limits, in sub-windows of a twelfth of the length: `count` members not later than `end`. There each reserve counts
 * until it is granted; then the collection `members` ({ _id: { window, member }, end, paired }) tells where the member was counted before, and that count is
 * given back.
 *
 * Where one reserve holds a window under both kinds of limit it adds to both, and both are marked `paired`, so that neither kind counts it twice.
 */

/** The largest limit that is counted member by member. */
export const largestExact = 1000;

/** Entries of one member this much older than a new one become a single one that nobody undoes any more. In milliseconds. */
const settledAfter = 60 * 1000;

/** A sub-window. */
export interface Slot {
  /** Milliseconds since the epoch. Its members' times are before it. */
  readonly end: number;
  /** Its members stand in `members` too. */
  readonly paired: boolean;
}

/** One entry of `members`, its member as an expression. */
export interface Entry {
  readonly member: Document;
  readonly at: number;
  readonly until: number;
  readonly ticket: string;
  readonly paired: boolean;
}

/** Whether `limit` other members are newer than `since`. `counted` is the end of the sub-window in which the member itself is counted already. */
export function isFull({ limit, since, member }: Claim, counted = Number.NEGATIVE_INFINITY): Document {
  const other = { $ne: ["$$entry.member", literal(member)] };
  if (limit <= largestExact) return { $gte: [{ $add: [distinct(since, other), summed(since, unpaired("slot"))] }, limit] };
  return { $gte: [{ $add: [distinct(since, other, unpaired("entry")), summed(since)] }, counted > since ? limit + 1 : limit] };
}

/** How many members are newer than `since`. */
export function total(since: number): Document {
  return { $add: [distinct(since, unpaired("entry")), summed(since)] };
}

/** `members` with one entry more, without those that ended by `forgotten`, and with the member's settled ones made one. */
export function withEntry(entry: Entry, forgotten: number): Document {
  const live = { $filter: { input: list("members"), as: "entry", cond: { $gt: ["$$entry.until", forgotten] } } };
  const settled = { $and: [{ $eq: ["$$entry.member", entry.member] }, { $lte: ["$$entry.at", entry.at - settledAfter] }] };
  const split = {
    old: { $filter: { input: "$$live", as: "entry", cond: settled } },
    rest: { $filter: { input: "$$live", as: "entry", cond: { $not: [settled] } } },
  };
  const merged = { member: entry.member, at: { $max: "$$old.at" }, until: { $max: "$$old.until" }, ticket: "", paired: { $allElementsTrue: ["$$old.paired"] } };
  const kept = { $cond: [{ $eq: ["$$old", []] }, [], [merged]] };
  return { $let: { vars: { live }, in: { $let: { vars: split, in: { $concatArrays: ["$$rest", kept, [entry]] } } } } };
}

/** `slots` with one member more in `slot`, without those that ended by `forgotten`. */
export function withSlot({ end, paired }: Slot, until: number, forgotten: number): Document {
  const same = { $and: [{ $eq: ["$$slot.end", end] }, { $eq: ["$$slot.paired", paired] }] };
  const vars = {
    same: { $filter: { input: list("slots"), as: "slot", cond: same } },
    others: { $filter: { input: list("slots"), as: "slot", cond: { $and: [{ $gt: ["$$slot.until", forgotten] }, { $not: [same] }] } } },
  };
  const grown = { end, paired, count: { $add: [{ $sum: "$$same.count" }, 1] }, until: { $max: [{ $max: "$$same.until" }, until] } };
  return { $let: { vars, in: { $concatArrays: ["$$others", [grown]] } } };
}

/** How many different members of `members` are newer than `since`. */
function distinct(since: number, ...conditions: Document[]): Document {
  const newer = { $filter: { input: list("members"), as: "entry", cond: { $and: [{ $gt: ["$$entry.at", since] }, ...conditions] } } };
  return { $size: { $setUnion: [{ $map: { input: newer, as: "entry", in: "$$entry.member" } }, []] } };
}

/** How many members the sub-windows hold that end after `since`. */
function summed(since: number, ...conditions: Document[]): Document {
  const newer = { $filter: { input: list("slots"), as: "slot", cond: { $and: [{ $gt: ["$$slot.end", since] }, ...conditions] } } };
  return { $sum: { $map: { input: newer, as: "slot", in: "$$slot.count" } } };
}

function unpaired(of: "entry" | "slot"): Document {
  return { $eq: [`$$${of}.paired`, false] };
}

function list(field: string): Document {
  return { $ifNull: [`$${field}`, []] };
}
