import type { SumClaim, SumParts } from "../../../src/ports/store.js";
import { type Document, literal, made, orElse, type Statement, upsert, where } from "./driver.js";
import { type Adding, type Giving, type Placed, reliedOn } from "./entry.js";

/*
 * A sum is one document: { _id: { sum }, head, s, p: { <part>: weight, … }, t, r, expireAt }.
 * - `head`: the newest part with an addition. `s`: the total of the parts that count as of `head`. If a claim's part is
 *   the head, one plain conditional update decides and adds; otherwise a pipeline counts part by part.
 * - `t`: tokens of the last commits that changed the sum since it reached its head. While not full, it has them all.
 *   When full, a commit cut short before its record may count twice or not be taken back, which rejects more.
 * - `r`: revoked tokens. A token is plain if a change known to `t` was taken back (no call then undoes its own), else
 *   it has `=`. Also tokens relied on.
 */
export interface Sum {
  readonly head: number;
  readonly p: Readonly<Record<string, number>>;
  readonly t?: readonly string[];
  readonly r?: readonly string[];
}

/** How many tokens `t` and `r` hold. */
const [keptTokens, keptRevoked] = [16, 256];

/** The numbers of the parts that count. */
function numbersOf({ part, parts, ahead }: SumParts): number[] {
  const newest = ahead ? part + 1 : part;
  return Array.from({ length: newest - part + parts }, (_, i) => newest - i).filter((number) => number >= 0);
}

/** The total of the parts that count. */
export function heldIn(found: Sum | undefined, asked: SumParts): number {
  return numbersOf(asked).reduce((held, number) => held + (found?.p[number] ?? 0), 0);
}

const hasAny = (list: string, ...tokens: string[]): Document => ({ $ne: [{ $setIntersection: [orElse(list, []), literal(tokens)] }, []] });

/** A list with one more token, shortened to the newest. */
const pushed = (list: unknown, token: string, kept: number): Document => ({ $slice: [{ $concatArrays: [list, [literal(token)]] }, -kept] });

/** What a claim does to its sum: a weight of 0 or more is added, a negative one is given back. */
export function sumEntry(claim: Placed<SumClaim>, token: string, end: Date): Adding & Giving {
  const { sum, part, parts, weight, limit, floor = Number.NEGATIVE_INFINITY, place } = claim;
  const _id = { sum };
  const own = `p.${part}`;
  const taken = `${token}=`;
  /** The range of totals for which the claim is granted and adds exactly its weight. */
  const [least, most] = [floor - Math.min(weight, 0), limit === undefined || weight < 0 ? Number.POSITIVE_INFINITY : limit - weight];
  const fits = (held: number) => held >= least && held <= most;
  const range = { ...(least > Number.NEGATIVE_INFINITY && { $gte: least }), ...(most < Number.POSITIVE_INFINITY && { $lte: most }) };
  const isOpen = Object.keys(range).length === 0;
  const unmarked = { t: { $ne: token }, r: { $nin: [token, taken, reliedOn(token)] } };
  const isComplete = (found: Sum) => found.head === part && (found.t?.length ?? 0) < keptTokens;

  function plain(): Statement {
    // A weight of 0 adds nothing and needs no document; this fails if it may have to be rejected.
    if (weight === 0) return { updateOne: { filter: { _id, $or: [{ head: { $ne: part } }, { s: { $not: range } }] }, update: { $set: { _id: null } } } };
    const added = { $inc: { s: weight, [own]: weight }, $push: { t: { $each: [token], $slice: -keptTokens } }, $max: { expireAt: end } };
    if (weight > 0 || !isOpen) return upsert({ _id, head: part, ...(!isOpen && { s: range }), ...unmarked }, added);
    return upsert({ _id, head: { $gte: part, $lt: part + parts }, ...unmarked }, { ...added, $setOnInsert: { head: part } });
  }
  const blind = fits(0) ? plain() : undefined;

  /**
   * Adds to the part, whatever the head is, moves the head, and drops the parts created first: not the oldest ones,
   * because callers' clocks may differ.
   */
  function moved(by: unknown, fields: Document): Document[] {
    const first = { ...fields, [own]: { $add: [orElse(`$${own}`, 0), by] }, head: { $max: ["$head", part] }, expireAt: { $max: ["$expireAt", end] } };
    const newest = where({ $objectToArray: "$p" }, { $lt: [{ $subtract: ["$head", { $toLong: "$$this.k" }] }, parts] });
    const p = { $arrayToObject: { $slice: [{ $objectToArray: "$p" }, -(2 * parts + 4)] } };
    return [{ $set: first }, { $set: { s: { $sum: { $map: { input: newest, as: "this", in: "$$this.v" } } }, p } }];
  }

  /**
   * Counts part by part. A refund that was made before does nothing. A rejected addition fails, because MongoDB does
   * not allow changing `_id`.
   */
  function partByPart(filter: Document): Statement {
    const held = { $add: [0, ...numbersOf(claim).map((number) => orElse(`$p.${number}`, 0))] };
    const counted = claim.floor === undefined ? held : { $max: [floor, held] };
    const added = claim.floor === undefined ? weight : { $subtract: [{ $max: [floor, { $add: [counted, weight] }] }, held] };
    const t = pushed({ $cond: [{ $lt: ["$head", part] }, [], orElse("$t", [])] }, token, keptTokens);
    const refused = most < Number.POSITIVE_INFINITY && { _id: { $cond: [{ $gt: [counted, most] }, null, "$_id"] } };
    const isDone = weight < 0 && { $or: [hasAny("$t", token), hasAny("$r", token, taken)] };
    return upsert({ ...made(_id), ...filter }, moved({ $cond: [isDone, 0, added] }, { ...refused, t: { $cond: [isDone, "$t", t] } }));
  }

  const without = { $map: { input: orElse("$t", []), as: "this", in: { $cond: [{ $eq: ["$$this", literal(token)] }, "", "$$this"] } } };

  return {
    _id,
    key: `sum ${sum}`,
    blind,
    sure: () => partByPart({}),
    isMissing: (found?: Sum) => found === undefined || (isComplete(found) && !found.t?.includes(token) && !found.r?.includes(token)),

    judge(found?: Sum) {
      const { t, r } = { t: found?.t ?? [], r: found?.r ?? [] };
      if (r.includes(token) || r.includes(taken)) return { isRevoked: true };
      if (r.includes(reliedOn(token))) return {};
      const isMarked = t.includes(token);
      if (isMarked && isComplete(found as Sum)) {
        const $push = { r: { $each: [reliedOn(token)], $slice: -keptRevoked } };
        return { send: upsert({ _id, t: token, [`t.${keptTokens - 1}`]: { $exists: false } }, { $push, $setOnInsert: { _id: null } }) };
      }
      const count = heldIn(found, claim);
      if (Math.max(floor, count) > most) {
        const room = numbersOf({ sum, part: part + parts, parts }).findLast((part) => Math.max(floor, heldIn(found, { sum, part, parts })) <= most);
        return { done: false, refusedBy: place, count, ...(room !== undefined && { roomPart: room }) };
      }
      const isPlain = blind !== undefined && !isMarked && (found === undefined || (found.head === part && fits(count)));
      return { send: isPlain ? blind : partByPart(isMarked ? { r: unmarked.r } : unmarked), adds: true };
    },

    undo: () => ({ updateOne: { filter: { _id }, update: moved({ $cond: [hasAny("$r", token, reliedOn(token)), 0, 0 - weight] }, { t: without }) } }),

    revoke(landed) {
      const isRevoked = hasAny("$r", token, taken);
      const knows = { $and: [{ $eq: [orElse("$head", part), part] }, { $lt: [{ $size: orElse("$t", []) }, keptTokens] }] };
      const isThere = { $and: [{ $not: [isRevoked] }, { $cond: [knows, hasAny("$t", token), landed === true] }] };
      const blocked = landed === undefined ? orElse("$r", []) : pushed(orElse("$r", []), taken, keptRevoked);
      const r = { $cond: [isRevoked, "$r", { $cond: [knows, pushed(orElse("$r", []), token, keptRevoked), blocked] }] };
      return upsert(made(_id), moved({ $cond: [isThere, 0 - weight, 0] }, { r, t: without }));
    },
  };
}
