import type { MemberClaim } from "../../../src/ports/store.js";
import { type Document, literal, made, orElse, type Statement, upsert, where } from "./driver.js";
import { type Adding, type Giving, type Placed, reliedOn } from "./entry.js";

/*
 * A window with limits is one document, newest member first: { _id: { window }, m: [{ member, at, t, moved }], r,
 * expireAt }.
 * - Fewer than `limit` members are newer than `since` if member number `limit` is not.
 * - `t`: the token of the last commit that claimed the member. `moved`: the member was in the window before that.
 * - `r`: revoked tokens.
 *
 * A window without a limit is a list, one document per member: { _id: { window, member }, at, t, n, expireAt }.
 * - `n`: the number of claims. A revoked member stays, with `at: 0`.
 */
export interface Window {
  readonly m?: readonly Member[];
  readonly r?: readonly string[];
}

export interface Member {
  readonly member: string;
  readonly at: number;
  readonly t?: string;
}

/** How many members a window keeps beyond its largest limit, and how many revoked tokens. */
const [slack, keptRevoked] = [16, 16];

/** The filter of a list's members that are newer than `since`. */
export const newerThan = (window: string, since = 0): Document => ({ "_id.window": window, at: { $gt: Math.max(0, since) } });

/** Claims of one member in a window, for one or more lengths. */
export function windowEntry(claims: readonly [Placed<MemberClaim>, ...Placed<MemberClaim>[]], token: string, end: Date): Adding {
  const [{ window, member, now }] = claims;
  const _id = { window };
  const most = Math.max(...claims.map(({ limit = 0 }) => limit)) + slack;
  const tokens = { $in: [token, reliedOn(token)] };
  const limits = claims.toSorted((a, b) => b.since - a.since).map(({ since, limit = 0 }) => [`m.${limit - 1}.at`, { $not: { $gt: since } }]);
  const m = { $each: [{ member, at: now, t: token }], $sort: { at: -1 }, $slice: most };
  const blind = upsert({ _id, ...Object.fromEntries(limits), "m.member": { $ne: member }, r: { $ne: token } }, { $push: { m }, $max: { expireAt: end } });

  /** For an existing member. It fails if the claim is rejected, because MongoDB does not allow changing `_id`. */
  function moving(): Statement {
    const isOther = { $ne: ["$$this.member", literal(member)] };
    const others = where("$m", isOther);
    const refused = { $or: claims.map(({ since, limit }) => ({ $gte: [{ $size: where(others, { $gt: ["$$this.at", since] }) }, limit] })) };
    const own = where("$m", { $not: [isOther] });
    const entry = { member: literal(member), at: { $max: [now, { $max: "$$own.at" }] }, t: literal(token), moved: { $gt: [{ $size: "$$own" }, 0] } };
    const sorted = { $concatArrays: [where(others, { $gt: ["$$this.at", "$$entry.at"] }), ["$$entry"], where(others, { $lte: ["$$this.at", "$$entry.at"] })] };
    const next = { $let: { vars: { own }, in: { $let: { vars: { entry }, in: { $slice: [sorted, most] } } } } };
    const fields = { _id: { $cond: [refused, null, "$_id"] }, m: next, expireAt: { $max: ["$expireAt", end] } };
    return upsert({ ...made(_id), m: { $exists: true, $not: { $elemMatch: { member, t: tokens } } }, r: { $ne: token } }, [{ $set: fields }]);
  }

  return {
    _id,
    key: `window ${window} ${member}`,
    blind,

    judge({ m = [], r = [] }: Window = {}) {
      if (r.includes(token)) return { isRevoked: true };
      const own = m.find((one) => one.member === member);
      if (own?.t === reliedOn(token)) return {};
      if (own?.t === token) return { send: upsert({ _id, m: { $elemMatch: { member, t: token } } }, { $set: { "m.$.t": reliedOn(token) } }) };
      for (const { since, limit = 0, place } of claims) {
        const newer = m.filter((one) => one !== own && one.at > since);
        const last = newer[limit - 1];
        if (last !== undefined) return { done: false, refusedBy: place, count: newer.length, roomSince: last.at };
      }
      return { send: own === undefined ? blind : moving(), adds: true };
    },

    undo: () => ({ updateOne: { filter: { _id, r: { $ne: token } }, update: { $pull: { m: { member, t: token, moved: { $ne: true } } } } } }),

    revoke() {
      const $push = { r: { $each: [token], $slice: -keptRevoked } };
      return upsert(made(_id), { $pull: { m: { member, t: tokens, moved: { $ne: true } } }, $push, $max: { expireAt: end } });
    },
  };
}

/** A claim of a member in a list. */
export function listEntry({ window, member, now }: MemberClaim, token: string, end: Date): Adding {
  const _id = { window, member };
  const $max = { at: now, expireAt: end };
  const [known, revoked] = [[token, reliedOn(token)], `${token}-`];
  const blind = upsert({ _id, t: { $nin: [...known, revoked] } }, { $max, $set: { t: token }, $inc: { n: 1 } });
  return {
    _id,
    // Sorts after everything that can be rejected.
    key: `~ ${window} ${member}`,
    blind,

    judge({ t }: { readonly t?: string } = {}) {
      if (t === revoked) return { isRevoked: true };
      if (t === reliedOn(token)) return {};
      if (t !== token) return { send: blind, adds: true };
      return { send: upsert({ _id, t: { $ne: revoked } }, { $max, $set: { t: reliedOn(token) }, $setOnInsert: { n: 1 } }) };
    },

    undo: () => ({ deleteOne: { filter: { _id, t: token, n: 1 } } }),

    revoke() {
      const isOwn = { $in: [orElse("$t", ""), literal(known)] };
      const isGone = { $or: [{ $eq: [orElse("$n", 0), 0] }, { $and: [isOwn, { $eq: ["$n", 1] }] }] };
      const t = { $cond: [{ $or: [isGone, isOwn] }, literal(revoked), "$t"] };
      const gone = { at: { $cond: [isGone, 0, "$at"] }, n: { $cond: [isGone, 0, "$n"] } };
      return upsert(made(_id), [{ $set: { t, ...gone, expireAt: { $max: ["$expireAt", end] } } }]);
    },
  };
}

export function outEntry({ window, member, now, limit }: MemberClaim): Giving {
  const _id = limit === undefined ? { window, member } : { window };
  const out =
    limit === undefined ? { deleteOne: { filter: { _id, at: now } } } : { updateOne: { filter: { _id }, update: { $pull: { m: { member, at: now } } } } };
  return { _id, key: `out ${window} ${member}`, blind: out, sure: () => out, isMissing: () => true };
}
