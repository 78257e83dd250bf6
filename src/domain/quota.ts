import type { Authentication } from "./authentication.js";
import {
  balanceLimit,
  type Claim,
  givenBack,
  type Moment,
  messagesWeight,
  type Period,
  partLength,
  partsAt,
  readBalance,
  type SumClaim,
  sinceOf,
  sumClaim,
  verifiedWeight,
} from "./claim.js";
import type { Decision } from "./decision.js";
import { addressKey } from "./ip.js";
import { type DestinationError, destinationErrors } from "./phone-number.js";
import { type Cap, type GrowingCap, milliseconds, type Policy, sendsPerDay } from "./policy.js";
import { base36, day, hour } from "./time.js";

/** One rule's claim, and what is reported about it. */
export interface Charge {
  /** The rule's name in decisions, for example `perNumber 5/600s`. */
  readonly rule: string;
  readonly claim: Claim;
  /** The rule's limit when no one has verified. */
  readonly threshold: number;
  /** What the claim's window or sum holds: a count, a balance (domain/claim.ts), or money in millionths. */
  readonly counts: "plain" | "balance" | "money";
  /** What each verification adds to the threshold of a balance. */
  readonly perVerified?: number | undefined;
  /** Set for a sum that reports when there is room again. */
  readonly period?: Period;
}

/** Money is counted in millionths. */
export const moneyUnit = 1e6;

/** In the terms of docs/contract.md. `held`: what the store holds without the message. */
export function measured({ counts, threshold, perVerified = 0, claim }: Charge, held: number): { readonly value: number; readonly threshold: number } {
  if (counts === "plain") return { value: held, threshold };
  if (counts === "money") return { value: (held + ("weight" in claim ? claim.weight : 0)) / moneyUnit, threshold };
  const { balance, verified } = readBalance(held);
  return { value: balance + perVerified * verified, threshold: threshold + perVerified * verified };
}

/** Identifies a send for its charges. "A missing `ip` or `device_id` skips that rule" (docs/contract.md#missing-fields). */
type SendSubject = Pick<Authentication, "customer" | "id" | "number" | "createdAt"> & {
  readonly attempt: number;
  readonly deviceId?: string | undefined;
  readonly ip?: string | undefined;
  readonly isCall?: boolean | undefined;
};

/** "Window names hold no number, address or device in clear: a keyed hash" (docs/contract.md#hashed-names). */
export type Pseudonym = (text: string) => string;

/** The windows and sums named after a number. `number`: its keyed hash. */
const namesOf = (customer: string, number: string) => ({
  /** Members are sends: `id/createdAt/attempt`, the time in base 36. */
  sends: `${customer}:n:${number}`,
  calls: `${customer}:k:${number}`,
  /** Wrong codes. */
  guesses: `${customer}:g:${number}`,
  /** Members are authentications, `id/createdAt`, that the window of sends does not name for their whole retention. */
  listed: `${customer}:h:${number}`,
  /** Members are rejected creates, `id/createdAt`, and requests without an authentication, `code/createdAt/token`. */
  refused: `${customer}:r:${number}`,
  /** When the number's caps were lifted. */
  lifted: `${customer}:u:${number}`,
});

export type NumberNames = ReturnType<typeof namesOfNumber>;

/** The same, with the parts of the sums that count at this moment. */
export function namesOfNumber(customer: string, number: string, { limits }: Policy, moment: Moment) {
  const { calls, guesses, ...windows } = namesOf(customer, number);
  return {
    ...windows,
    /** Sums of sends, for caps too large to be counted member by member. */
    sendSums: limits.perNumber.filter(({ limit }) => limit > largestExact).map((cap) => partsAt(sumOfCap(windows.sends, cap), periodOf(cap), moment)),
    callSums: limits.callsPerNumber.map((cap) => partsAt(sumOfCap(calls, cap), periodOf(cap), moment)),
    guesses: partsAt(guesses, guessPeriod, moment),
  };
}

/** How much longer a delivery may be retained: its code may be valid for an hour. */
const keptForDeliveries = hour;

/** How many members a window keeps beyond its largest limit (domain/claim.ts). */
const keptBeyond = 8;

/** Up to five and a half days of attempts, and "7 days after the last delivery step" (docs/contract.md#tombstone). */
const keptForCallbacks = 13 * day;

/**
 * How the authentications of a number are found. `keptFor`: how long records are retained, in milliseconds. `whole`: the
 * window of the number's sends names them all for as long, so no other list is needed.
 */
function indexOf({ lifetime, tombstone, limits }: Policy): { readonly whole: boolean; readonly keptFor: number } {
  const keptFor = milliseconds(lifetime) + milliseconds(tombstone);
  const largest = Math.max(...limits.perNumber.map(({ limit }) => (limit > largestExact ? 0 : limit)));
  return { whole: largest > 0 && mostSends(limits.perNumber, keptFor) <= largest + keptBeyond, keptFor };
}

/** The most sends that the caps allow in any `length` milliseconds. */
function mostSends(caps: readonly Cap[], length: number): number {
  const most = caps.map(({ limit, window }) => {
    const times = Math.floor(length / milliseconds(window));
    const rest = length % milliseconds(window);
    return times === 0 ? limit : times * limit + (rest === 0 ? 0 : mostSends(caps, rest));
  });
  return Math.min(...most);
}

/**
 * What a create claims so that its number's history and erasure find it, if the window of sends does not name it for
 * its whole retention. `capped`: its sends are counted.
 */
export function listedClaims(
  { customer, id, number, createdAt, callbackUrl, purpose }: Authentication,
  policy: Policy,
  { now, skew }: Moment,
  pseudonym: Pseudonym,
  capped: boolean,
): Claim[] {
  const { whole, keptFor } = indexOf(policy);
  if (capped && whole && callbackUrl === undefined && purpose === undefined) return [];
  const longer = (callbackUrl === undefined ? 0 : keptForCallbacks) + (purpose === undefined ? 0 : keptForDeliveries);
  const until = now + keptFor + longer + 2 * skew;
  return [{ window: namesOf(customer, pseudonym(number)).listed, member: `${id}/${base36(createdAt)}`, now, since: now, keepUntil: until }];
}

/**
 * Lists an ended verification under its number, so that its history and erasure find it. `number`: its keyed hash. The
 * member has another time than the one before: an erasure in progress, which removes that one, does not remove this one.
 */
export function keptApartClaim({ customer, id, keepUntil }: Authentication, number: string, now: number): Claim {
  return { window: namesOf(customer, number).listed, member: `${id}/${base36(now)}`, now, since: now, keepUntil };
}

/** The largest limit that a window can have; it never rejects anything here. */
export const largestLimit = 1_000;

/** Claims members of a window of sends again at `now`, to remove them at a known time. This makes no cap laxer. */
export function movedClaims(window: string, members: readonly string[], now: number, keptFor: number): Claim[] {
  return members.map((member) => ({ window, member, limit: largestLimit, now, since: now, keepUntil: now + keptFor }));
}

/** Removes sends that were moved to `now` from their window, and lists their authentications, to be found. */
export function liftedClaims({ sends, listed }: NumberNames, members: readonly string[], policy: Policy, { now, skew }: Moment): Claim[] {
  const { keptFor } = indexOf(policy);
  const authentications = new Map(members.map(readMember).map(({ id, at }) => [id, at]));
  authentications.delete(nobody);
  return [
    ...members.map((member) => takenOut(sends, member, now, largestLimit)),
    ...[...authentications].map(([id, at]) => ({ window: listed, member: `${id}/${base36(at)}`, now: at, since: at, keepUntil: at + keptFor + 2 * skew })),
  ];
}

/** Those of its send, those "per device_id" (docs/contract.md#caps), and those per ip that the operator has set. */
export function capCharges(subject: SendSubject, policy: Policy, moment: Moment, pseudonym: Pseudonym): Charge[] {
  const { customer, id, createdAt, attempt, deviceId, ip, isCall } = subject;
  const { limits } = policy;
  const number = pseudonym(subject.number);
  const { sends, calls } = namesOf(customer, number);
  // "Members come from what is stored (`id/createdAt/attempt`)" (docs/contract.md#members). So two creates never share a
  // member, even if an idempotency key gives both the same id, and a send that is tried again counts once.
  const member = `${id}/${base36(createdAt)}/${attempt}`;
  const { whole, keptFor } = indexOf(policy);
  const charges = [
    ...chargesOf("perNumber", limits.perNumber, sends, member, moment, { atLeast: whole ? keptFor : 0 }),
    ...chargesOf("perCustomer", limits.perCustomer, `${customer}:c`, member, moment),
  ];
  if (isCall) {
    // Calls are few, and the others of the number's caps count them exactly: a sum is enough.
    charges.push(...chargesOf("callsPerNumber", limits.callsPerNumber, calls, member, moment, { summed: true }));
  }
  if (deviceId !== undefined && limits.perDevice.length + limits.numbersPerDevice.length > 0) {
    const device = pseudonym(deviceId);
    charges.push(...chargesOf("perDevice", limits.perDevice, `${customer}:d:${device}`, member, moment));
    charges.push(...chargesOf("numbersPerDevice", limits.numbersPerDevice, `${customer}:dn:${device}`, number, moment, { distinct: true }));
  }
  if (ip !== undefined && limits.perIp.length + limits.numbersPerIp.length > 0) {
    const address = pseudonym(addressKey(ip));
    charges.push(...chargesOf("perIp", limits.perIp, `${customer}:i:${address}`, member, moment));
    charges.push(...chargesOf("numbersPerIp", limits.numbersPerIp, `${customer}:in:${address}`, number, moment, { distinct: true }));
  }
  return charges;
}

/** The longest first: of several that are full, it is usually the last to have room (docs/contract.md#facts). */
export function longestFirst(charges: readonly Charge[]): Charge[] {
  const lengthOf = ({ claim, period }: Charge) => ("member" in claim ? claim.now - claim.since : (period?.length ?? 0));
  return charges.toSorted((a, b) => lengthOf(b) - lengthOf(a));
}

/** How many wrong codes of a number are evaluated within a day, over all its authentications. */
export function mostWrongCodes(policy: Policy): number {
  return sendsPerDay(policy) * policy.checks;
}

/**
 * What a check claims for its number (docs/contract.md#guesses-claimed): 1 for a wrong code, 0 for a right one. A day
 * has room for as many wrong codes as the caps allow: sends per day × checks. Beyond that, right codes are rejected
 * too, so creating more authentications gives no more guesses.
 */
export function guessClaim(customer: string, number: string, wrong: 0 | 1, policy: Policy, moment: Moment, pseudonym: Pseudonym): SumClaim {
  return sumClaim(namesOf(customer, pseudonym(number)).guesses, wrong, guessPeriod, moment, { limit: mostWrongCodes(policy) - 1 + wrong });
}

/** "Lookups have a ceiling" (docs/contract.md#lookup-ceiling). */
export function lookupCharges(customer: string, member: string, policy: Policy, moment: Moment): Charge[] {
  return chargesOf("lookups", policy.limits.lookups, `${customer}:l`, member, moment);
}

/** Takes the counts of `lookupCharges` back, for a lookup that cost nothing (docs/lookup.md#price). */
export function returnedLookup(charges: readonly Charge[]): Claim[] {
  const claims = charges.map(({ claim }) => claim);
  // All members are one, in one window.
  const counted = claims.find((claim) => "member" in claim);
  const members = counted === undefined ? [] : [takenOut(counted.window, counted.member, counted.now, counted.limit)];
  return [...members, ...claims.filter((claim) => "sum" in claim).map(givenBack)];
}

/** Rejected creates that are stored per hour: per number and per customer. The same for requests without an authentication. */
const keptRefusals = { ofNumber: 20, ofCustomer: 500 };

/**
 * What a rejected create claims for its record, so that rejected creates cannot fill a store and lock out other users.
 * With an idempotency key (`request`) it is stored beyond its number's twenty, because a repeat must get the same
 * result.
 */
export function refusedClaims({ customer, id, number, createdAt, expiresAt, request }: Authentication, moment: Moment, pseudonym: Pseudonym): Claim[] {
  const { now } = moment;
  const since = sinceOf(moment, hour);
  const ofCustomer = sumClaim(`${customer}:r`, 1, { length: hour, parts: partsOfCap }, moment, { limit: keptRefusals.ofCustomer });
  const member = `${id}/${base36(createdAt)}`;
  const keepUntil = Math.max(now + hour, expiresAt) + 2 * moment.skew;
  const { refused, listed } = namesOf(customer, pseudonym(number));
  const claims: Claim[] = [ofCustomer];
  if (request === undefined) claims.unshift({ window: refused, member, limit: keptRefusals.ofNumber, now, since, keepUntil });
  // The window of rejected creates names those of one hour.
  if (request !== undefined || expiresAt - now > hour) claims.push({ window: listed, member, now, since: now, keepUntil });
  return claims;
}

/**
 * What a request to a number that gets no message in any case claims in the background (docs/contract.md#uncreated): a
 * member in the window of the number's rejected creates. `token`: tells requests of one millisecond apart.
 */
export function uncreatedClaims(customer: string, number: string, code: DestinationError, token: string, moment: Moment, pseudonym: Pseudonym): Claim[] {
  const { now, skew } = moment;
  const { refused: window } = namesOf(customer, pseudonym(number));
  const member = `${code}/${base36(now)}/${token.slice(0, 8)}`;
  return [
    { window, member, limit: keptRefusals.ofNumber, now, since: sinceOf(moment, hour), keepUntil: now + day + 2 * skew },
    sumClaim(`${customer}:rd`, 1, { length: hour, parts: partsOfCap }, moment, { limit: keptRefusals.ofCustomer }),
  ];
}

/** Reads such a member; `undefined`: it names an authentication. */
export function readUncreated(member: string): { readonly code: DestinationError; readonly at: number } | undefined {
  const { id, at } = readMember(member);
  const code = destinationErrors.find((one) => one === id);
  return code === undefined ? undefined : { code, at };
}

/** Reads the authentication's id and creation time, and the attempt, from a member of a number's windows. */
export function readMember(member: string): { readonly id: string; readonly at: number; readonly attempt: number } {
  const [id = "", at = "", attempt = "1"] = member.split("/");
  return { id, at: Number.parseInt(at, 36), attempt: Number(attempt) };
}

/** Replaces the id of an erased authentication. */
export const nobody = "-";

/** Removes a member from a number's window, where it has the time `at`. `limit`: any limit, if the window has one. */
export function takenOut(window: string, member: string, at: number, limit?: number): Claim {
  return { window, member, out: true, now: at, since: at, keepUntil: at, ...(limit !== undefined && { limit }) };
}

/** A larger cap is a sum of twelfths, and may block up to a twelfth of its length longer than necessary. */
const largestExact = 100;
const partsOfCap = 13;

/** Wrong codes count for 24 hours, and for up to twelve hours longer. */
const guessPeriod: Period = { length: day, parts: 3 };

function periodOf({ window }: Cap): Period {
  return { length: milliseconds(window), parts: partsOfCap };
}

/** A cap that grows counts in another unit (domain/claim.ts), so its sum has a separate name. */
function sumOfCap(window: string, { window: seconds, perVerified = 0 }: GrowingCap): string {
  return `${window}:${seconds}${perVerified > 0 ? "+" : ""}`;
}

/**
 * The charges of one rule's caps on a window. `distinct`: the same member counts once. `summed`: no cap counts member by
 * member. `atLeast`: minimum retention of members in milliseconds, regardless of the caps.
 */
function chargesOf(
  rule: string,
  caps: readonly GrowingCap[],
  window: string,
  member: string,
  moment: Moment,
  { distinct = false, summed = false, atLeast = 0 } = {},
): Charge[] {
  const { now, skew } = moment;
  const isExact = ({ limit, perVerified = 0 }: GrowingCap) => distinct || (!summed && limit <= largestExact && perVerified === 0);
  const keepUntil = now + Math.max(atLeast, ...caps.filter(isExact).map((cap) => milliseconds(cap.window))) + 2 * skew;
  return caps.map((cap): Charge => {
    const { limit: threshold, perVerified = 0, window: seconds } = cap;
    const named = `${rule} ${threshold}/${seconds}s`;
    if (isExact(cap)) {
      const claim = { window, member, limit: threshold, now, since: sinceOf(moment, milliseconds(seconds)), keepUntil };
      return { rule: named, threshold, counts: "plain", claim };
    }
    const [sum, period] = [sumOfCap(window, cap), periodOf(cap)];
    if (perVerified === 0) return { rule: named, threshold, counts: "plain", period, claim: sumClaim(sum, 1, period, moment, { limit: threshold }) };
    const claim = sumClaim(sum, messagesWeight(1), period, moment, { limit: balanceLimit(threshold) });
    return { rule: named, threshold, counts: "balance", perVerified, period, claim };
  });
}

/** "The customer's cap grows by 3 for each of its users verified" (docs/contract.md#growing-cap). */
export function growthClaims(customer: string, { limits }: Pick<Policy, "limits">, moment: Moment): SumClaim[] {
  const growing = limits.perCustomer.filter(({ perVerified = 0 }) => perVerified > 0);
  return growing.map((cap) => sumClaim(sumOfCap(`${customer}:c`, cap), verifiedWeight(0, cap.perVerified ?? 0), periodOf(cap), moment));
}

/** A rejected claim, as the store reports it. */
interface Refused {
  /** The count without the claim. */
  readonly count: number;
  readonly roomSince?: number;
  readonly roomPart?: number;
}

/** "Every decision is recorded with rule, the value counted and the threshold" (docs/contract.md#explain). */
export function refusalOf(charge: Charge, refused: Refused, skew: number): Decision {
  const { rule, claim } = charge;
  const until = roomAt(charge, refused, skew);
  return { at: claim.now, rule, mode: "enforce", ...measured(charge, refused.count), ...(until !== undefined && { until }) };
}

/** When there is room for the claim again, if the store reports it. */
function roomAt({ claim, period }: Charge, { roomSince, roomPart }: Refused, skew: number): number | undefined {
  if ("member" in claim) return roomSince === undefined ? undefined : claim.now + roomSince - claim.since;
  return period === undefined || roomPart === undefined ? undefined : roomPart * partLength(period, skew);
}

/** Whether a cap or ceiling of calls blocks, which messages do not count towards. */
export function isLimitOfCalls(decisions: readonly Decision[]): boolean {
  return decisions.some(({ mode, rule }) => mode === "enforce" && /^(callsPerNumber|callSpend) /.test(rule));
}

/** Whether the caps of the number block, which an unlock lifts. */
export function isLimitOfNumber({ mode, rule }: Decision): boolean {
  return mode === "enforce" && /^(perNumber|callsPerNumber) /.test(rule);
}

/** Whole seconds until the blocking cap or ceiling has room; `undefined` if none blocked, it has, or it is unknown. */
export function retryAfter(decisions: readonly Decision[], now: number): number | undefined {
  const until = decisions.find((decision) => decision.until !== undefined)?.until ?? now;
  return until > now ? Math.ceil((until - now) / 1000) : undefined;
}
