import type { Ask, SumClaim } from "../../../src/ports/store.js";
import { adding, type Counter, heldIn, heldOf } from "./counter.js";
import { type Document, list, type MongoCollection, made, making, where } from "./driver.js";

/*
 * A sum is one document: { _id: sum, slots: [{ end, weight }], expireAt }, the newest slot first.
 *
 * A slot is a part of a twelfth of the sum's length, named by its end, which is later than all that it holds.
 */

/** "A sum may be kept in twelve parts of its length that are summed whole" (src/ports/store.ts). */
const parts = 12;

/** How many slots a sum keeps, the newest. */
const maxSlots = 32;

/** Sums. The first claim of a call is the addition, or what is given back; further ones only count. */
export function createSums(windows: MongoCollection): Counter<SumClaim, Ask> {
  function giveBack(claim: SumClaim, weight: number, options: Document): Promise<unknown> {
    const lowered = { end: "$$this.end", weight: { $max: [0, { $subtract: ["$$this.weight", weight] }] } };
    const slots = { $map: { input: list("slots"), as: "this", in: { $cond: [{ $eq: ["$$this.end", endOf(claim)] }, lowered, "$$this"] } } };
    return windows.findOneAndUpdate({ _id: claim.sum }, [{ $set: { slots } }], options);
  }

  return {
    async take(claims) {
      const [claim] = claims;
      const { sum, weight, since, limit } = claim;
      const end = endOf(claim);
      const [later, earlier] = [where(list("slots"), { $gt: ["$$this.end", end] }), where(list("slots"), { $lt: ["$$this.end", end] })];
      const slots = { $slice: [{ $concatArrays: [later, [{ end, weight: { $add: [weightOf({ $eq: ["$$this.end", end] }), weight] } }], earlier] }, maxSlots] };
      const full = limit === undefined ? false : { $gt: [{ $add: [total(since), weight] }, limit] };
      // A sum that is refused what does not fit into an empty one is not made.
      const upsert = limit === undefined || weight <= limit;
      // The slots are wanted where there is no room among them.
      const projection = { _id: 0, held: claims.map((one) => total(one.since)), slots: { $cond: [full, list("slots"), []] } };
      const before = await making(() => windows.findOneAndUpdate(made(sum), adding(full, { slots }, claim), { upsert, returnDocument: "before", projection }));
      const oldestFirst = ((before as { slots?: Slot[] } | null)?.slots ?? []).filter((slot) => slot.end > since).reverse();
      const roomSince = limit === undefined ? undefined : roomSinceOf(oldestFirst, limit - weight);
      return heldOf(before, claims).map((others, at) => ({ others, count: others + (end > (claims[at] as SumClaim).since ? weight : 0), roomSince }));
    },

    undo: ([claim]) => giveBack(claim, claim.weight, { projection: { _id: 1 } }),

    async release(claims) {
      const projection = { _id: 0, held: claims.map(({ since }) => total(since)) };
      return heldOf(await giveBack(claims[0], -claims[0].weight, { returnDocument: "after", projection }), claims);
    },

    async read(asked) {
      const names = asked.map(({ sum }) => sum);
      return heldIn(await windows.find({ _id: { $in: names } }, { projection: { held: asked.map(({ since }) => total(since)) } }).toArray(), names);
    },
  };
}

interface Slot {
  readonly end: number;
  readonly weight: number;
}

/** The end of the first slot after which no more than `room` is left. */
function roomSinceOf(oldestFirst: readonly Slot[], room: number): number | undefined {
  let left = oldestFirst.reduce((sum, slot) => sum + slot.weight, 0);
  return oldestFirst.find((slot) => (left -= slot.weight) <= room)?.end;
}

/** The end of the slot that a claim counts in. */
function endOf({ now, since }: SumClaim): number {
  const width = Math.max(1, Math.floor((now - since) / parts));
  return (Math.floor(now / width) + 1) * width;
}

/** What the slots hold that end after `since`. */
function total(since: number): Document {
  return weightOf({ $gt: ["$$this.end", since] });
}

function weightOf(cond: Document): Document {
  return { $sum: { $map: { input: where(list("slots"), cond), as: "this", in: "$$this.weight" } } };
}
