import { randomBytes } from "node:crypto";
import type { Claim, ReserveResult } from "../../../src/ports/store.js";
import { isFull, largestExact, type Slot, total, withEntry, withSlot } from "./counting.js";
import { type Collections, type Document, endsAt, grace, inserted, literal, stoppedAt } from "./driver.js";

/** "Large windows (limit above 1,000) may count in twelve sub-windows summed whole" (architecture.md, Store). */
const subWindows = 12;

/**
 * How often a charge is tried again that failed though its window has room: others were charged and undone meanwhile, or created the document at the same time.
 */
const maxRaces = 32;

/** The claims on one window for one member: charged in one step. */
interface Charge {
  readonly window: string;
  readonly member: string;
  readonly claims: readonly (Claim & { readonly index: number })[];
  readonly now: number;
  readonly keepUntil: number;
  /** The sub-window to count in, when a limit is above 1,000. */
  readonly slot: Slot | undefined;
  /** The end of the sub-window in which the member is counted already, when that is known. */
  counted?: number;
}

export interface Windows {
  reserve(claims: readonly Claim[]): Promise<ReserveResult>;
  count(windows: readonly { readonly window: string; readonly since: number }[]): Promise<number[]>;
}

/**
 * `reserve` and `count` without transactions.
 *
 * Charges go out as one ordered bulk. The server applies each document's on its own; a window that is full makes its update fail, on purpose, by changing
 * `_id`, and the bulk stops there. What was charged before is then undone. Every charge is conditional and atomic, and what was granted is never taken back: so
 * whatever races, no window admits more than its limit.
 */
export function createWindows({ windows, members }: Pick<Collections, "windows" | "members">): Windows {
  /** The index of the first claim that finds its window full, as things are now. Also learns where members are counted. */
  async function firstRefusal(charges: readonly Charge[]): Promise<number | undefined> {
    const large = charges.filter((charge) => charge.slot !== undefined);
    const places = large.length === 0 ? [] : ((await members.find({ _id: { $in: large.map(memberKey) } }, latest).toArray()) as (Slot & { _id: Document })[]);
    for (const charge of large) {
      const place = places.find(({ _id }) => _id.window === charge.window && _id.member === charge.member);
      if (place !== undefined) charge.counted = place.end;
    }
    const claims = charges.flatMap((charge) => charge.claims.map((claim) => ({ ...claim, counted: charge.counted })));
    const full = claims.map((claim) => ({ $and: [{ $eq: ["$_id", literal(claim.window)] }, isFull(claim, claim.counted)] }));
    const pipeline = [{ $match: { _id: { $in: charges.map(({ window }) => window) } } }, { $project: { full } }];
    const found = (await windows.aggregate(pipeline, latest).toArray()) as { full: boolean[] }[];
    const refused = claims.filter((_, at) => found.some((window) => window.full[at])).map(({ index }) => index);
    return refused.length === 0 ? undefined : Math.min(...refused);
  }

  /** Takes back what this reserve charged, and only that. */
  async function undo(charges: readonly Charge[], ticket: string): Promise<void> {
    if (charges.length === 0) return;
    const statements = charges.flatMap(({ window, slot }) => [
      { updateOne: { filter: { _id: window }, update: { $pull: { members: { ticket } } } } },
      ...(slot === undefined ? [] : [giveBack(window, slot)]),
    ]);
    await windows.bulkWrite(statements as never, { ordered: false });
  }

  /** The member of a granted charge stays counted in one sub-window: the latest. */
  async function settle(charge: Charge): Promise<void> {
    const { window, slot, keepUntil } = charge;
    if (slot === undefined) return;
    const _id = memberKey(charge);
    if (await inserted(members, { _id, ...slot, expireAt: endsAt(keepUntil) })) return;
    const moved = {
      end: { $max: ["$end", slot.end] },
      paired: { $cond: [{ $lt: ["$end", slot.end] }, slot.paired, "$paired"] },
      expireAt: { $max: ["$expireAt", endsAt(keepUntil)] },
    };
    const before = (await members.findOneAndUpdate({ _id }, [{ $set: moved }], { returnDocument: "before" })) as Slot | null;
    // None: it was cleared away in between, having been counted where nothing counts any more.
    if (before !== null) await windows.bulkWrite([giveBack(window, before.end < slot.end ? before : slot)] as never, {});
  }

  return {
    async reserve(claims) {
      const charges = group(claims);
      const ticket = randomBytes(9).toString("base64url");
      let done = 0;
      for (let race = 0; done < charges.length; race++) {
        try {
          await windows.bulkWrite(charges.slice(done).map((charge) => take(charge, ticket)) as never, { ordered: true });
          done = charges.length;
        } catch (error) {
          const stopped = stoppedAt(error);
          if (stopped === undefined || race === maxRaces) throw error;
          done += stopped;
          const refusedBy = await firstRefusal(charges.slice(done));
          if (refusedBy === undefined) continue;
          await undo(charges.slice(0, done), ticket);
          return { granted: false, refusedBy };
        }
      }
      for (const charge of charges) await settle(charge);
      return { granted: true };
    },

    async count(asked) {
      if (asked.length === 0) return [];
      const pipeline = [{ $match: { _id: { $in: asked.map(({ window }) => window) } } }, { $project: { totals: asked.map(({ since }) => total(since)) } }];
      const found = (await windows.aggregate(pipeline, {}).toArray()) as { _id: string; totals: number[] }[];
      const totals = new Map(found.map((window) => [window._id, window.totals]));
      return asked.map(({ window }, at) => totals.get(window)?.[at] ?? 0);
    },
  };
}

/** For reads that can only lead to a refusal: what the primary holds, acknowledged by the majority or not. */
const latest = { readConcern: { level: "local" } };

/**
 * One charge for each window and member, in one order for all callers, since a server may lock what a bulk has changed: by name, the last first, which leaves
 * the window that all share, the customer's, to the end.
 */
function group(claims: readonly Claim[]): Charge[] {
  const grouped = new Map<string, (Claim & { index: number })[]>();
  claims.forEach((claim, index) => {
    const key = JSON.stringify([claim.window, claim.member]);
    grouped.set(key, [...(grouped.get(key) ?? []), { ...claim, index }]);
  });
  const charges = [...grouped.values()].map((list) => {
    const { window, member, now } = list[0] as Claim;
    return { window, member, claims: list, now, keepUntil: Math.max(...list.map((claim) => claim.keepUntil)), slot: slotFor(list, now) };
  });
  return charges.sort((a, b) => (a.window < b.window ? 1 : -1));
}

function slotFor(claims: readonly Claim[], now: number): Slot | undefined {
  const lengths = claims.filter(({ limit }) => limit > largestExact).map(({ since }) => now - since);
  if (lengths.length === 0) return undefined;
  const width = Math.max(1, Math.floor(Math.min(...lengths) / subWindows));
  return { end: (Math.floor(now / width) + 1) * width, paired: lengths.length < claims.length };
}

/** The update that charges a window, or fails and stops the bulk where the window is full. */
function take({ window, member, claims, now, keepUntil, slot, counted }: Charge, ticket: string): Document {
  const forgotten = now - grace;
  const exact = claims.filter(({ limit }) => limit <= largestExact);
  // Beside a sub-window the entry serves the smaller limits alone, and is kept for those only.
  const until = slot === undefined ? keepUntil : Math.max(...exact.map(({ since }) => now + (now - since)));
  const entry = { member: literal(member), at: now, until, ticket, paired: slot !== undefined };
  const fields = {
    ...(exact.length === 0 ? {} : { members: withEntry(entry, forgotten) }),
    ...(slot === undefined ? {} : { slots: withSlot(slot, keepUntil, forgotten) }),
    keepUntil: { $max: ["$keepUntil", keepUntil] },
    expireAt: { $max: ["$expireAt", endsAt(keepUntil)] },
  };
  const full = { $or: claims.map((claim) => isFull(claim, counted)) };
  const update = [{ $set: { _id: { $cond: [full, { full: "$_id" }, "$_id"] } } }, { $set: fields }];
  return { updateOne: { filter: { _id: window }, update, upsert: true } };
}

/** One member less in a sub-window. */
function giveBack(window: string, { end, paired }: Slot): Document {
  return { updateOne: { filter: { _id: window, slots: { $elemMatch: { end, paired } } }, update: { $inc: { "slots.$.count": -1 } } } };
}

function memberKey({ window, member }: Charge): Document {
  return { window, member };
}
