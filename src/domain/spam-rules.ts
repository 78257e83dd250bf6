import type { Authentication, Origin } from "./authentication.js";
import {
  balanceLimit,
  type Claim,
  type MemberClaim,
  type Moment,
  messagesWeight,
  type Period,
  partsAt,
  readBalance,
  type SumClaim,
  type SumParts,
  sinceOf,
  sumClaim,
  verifiedWeight,
} from "./claim.js";
import type { Decision, RuleMode } from "./decision.js";
import { addressKey, networkOf } from "./ip.js";
import type { Policy } from "./policy.js";
import { type Charge, growthClaims, largestLimit, type Pseudonym, readMember } from "./quota.js";
import { type CreditRule, growth, type SpamPolicy } from "./spam-policy.js";
import { base36, day } from "./time.js";

/** The stored origin of a create: what the rules read of it. `own`: the cells of the caller's rules, by rule. */
export function originOf(
  ip: string | undefined,
  own: Readonly<Record<string, string>>,
  flags: { readonly pot: boolean; readonly safe: boolean; readonly grows: boolean; readonly strange: boolean },
  { address: addresses, strangeNetwork }: SpamPolicy,
  pseudonym: Pseudonym,
): Origin | undefined {
  const rules = Object.keys(own);
  const isRead = ip !== undefined && (addresses.mode !== "off" || strangeNetwork.mode !== "off");
  if (!isRead && rules.length === 0 && !flags.pot && !flags.safe && !flags.grows) return undefined;
  const origin: { -readonly [K in keyof Origin]: Origin[K] } = {};
  if (isRead) {
    const address = addressKey(ip);
    if (addresses.mode !== "off") origin.a = pseudonym(address).slice(0, 11);
    if (strangeNetwork.mode !== "off") origin.w = pseudonym(`network ${networkOf(address)}`).slice(0, 11);
  }
  if (rules.length > 0) origin.u = Object.fromEntries(rules.map((rule) => [rule, pseudonym(`cell ${own[rule]}`)]));
  if (flags.pot) origin.p = 1;
  if (flags.strange) origin.t = 1;
  if (flags.safe) origin.s = 1;
  if (flags.grows) origin.g = 1;
  return origin;
}

/** The recipient of a message, as needed by the cells. */
export type CellSubject = Pick<Authentication, "customer" | "number" | "country" | "origin"> & {
  /** When its calls were counted; for a message that is sent now, any list if it is a call. Absent: it has no calls. */
  readonly calls?: readonly number[] | undefined;
};

/** A caller's own rule that is a cell like the built-in ones. */
export interface OwnCell extends CreditRule {
  readonly name: string;
}

/** One sum that a message is counted in. */
interface Cell {
  readonly rule: string;
  readonly sum: string;
  readonly mode: RuleMode;
  /** The balance at which the rule blocks; for `crowd`, the count. */
  readonly seed: number;
  /** `undefined`: a plain count of messages, which verifications do not reduce. */
  readonly perVerified: number | undefined;
  /** The rule does not block once this many have verified. */
  readonly provenAt?: number;
  /** The minimum that the sum counts as. */
  readonly floor?: number;
  /** A number counts as verified once a day; in other cells, each verification counts. */
  readonly oncePerNumber?: true;
  /** The limit grows with the cell's own past: by so many of its usual days. */
  readonly grows?: number;
  /** It counts calls only. */
  readonly ofCalls?: true;
}

/** A cell counts over 24 hours, and for up to 12 hours longer: three parts, summed whole. */
const period: Period = { length: day, parts: 3 };

/** How long a verified number is trusted, in milliseconds. */
const trustedFor = 90 * day;

const once = { oncePerNumber: true } as const;
const ofCalls = { ofCalls: true } as const;

/**
 * The cells of a message, in the order of docs/contract.md#spam-rules. Only what a rule reads is counted. Those of a
 * delivery whose conversion is unknown are plain counts, which confirmations do not reduce
 * (docs/contract.md#growth-rules).
 */
function cellsOf({ customer, number, country, origin = {}, calls }: CellSubject, policy: SpamPolicy, own: readonly OwnCell[], pseudonym: Pseudonym): Cell[] {
  if (origin.s === 1) return [];
  const isGrowing = origin.g === 1;
  const { range, crowd, newCountries, address, strangeNetwork } = policy;
  const cells: Cell[] = [];
  /** `more`: what only a cell with credits has. `usualDays`: by how many of them a plain count grows. */
  const add = (name: string, rule: string, { mode, seed, perVerified }: CreditRule, more: Partial<Cell> = {}, usualDays: number = growth.factor) => {
    if (!isGrowing) cells.push({ sum: `${customer}:b:${name}`, rule, mode, seed, perVerified, ...more });
    else cells.push({ sum: `${customer}:x:${name}`, rule, mode, seed, perVerified: undefined, ...(more.ofCalls ? ofCalls : { grows: usualDays }) });
  };
  if (range.mode !== "off" || crowd.mode !== "off") {
    const [ten, hundred, million] = rangesOf(number, pseudonym);
    const { mode, perVerified, provenAt, seeds } = range;
    if (mode !== "off") {
      add(ten, "range 4", { mode, seed: seeds[0], perVerified }, once);
      add(hundred, "range 5", { mode, seed: seeds[1], perVerified }, once);
    }
    // The crowd rule reads the number of verifications in the million.
    if (mode !== "off" || !isGrowing) add(million, "range 6", { mode, seed: seeds[2], perVerified }, { provenAt, ...once });
    if (crowd.mode !== "off") cells.push({ sum: `${customer}:m:${ten}`, rule: "crowd", mode: crowd.mode, seed: crowd.messages, perVerified: undefined });
  }
  if (country !== undefined && policy.country.mode !== "off") add(`c:${country}`, "country", policy.country, { provenAt: policy.country.provenAt, ...once });
  if (calls !== undefined && country !== undefined && policy.calls.mode !== "off") add(`k:${country}`, "calls", policy.calls, { ...once, ...ofCalls });
  if (origin.p === 1 && newCountries.mode !== "off")
    add("p", "newCountries", newCountries, { floor: messagesWeight(Math.floor(-newCountries.seed)), ...once }, growth.newCountriesFactor);
  if (origin.t === 1 && strangeNetwork.mode !== "off") {
    add(`t:${country}`, "strangeNetwork", { mode: strangeNetwork.mode, seed: strangeNetwork.base / 2, perVerified: 2 }, once);
  }
  if (origin.a !== undefined && address.mode !== "off")
    add(`a:${origin.a}`, "address", isGrowing ? { ...address, seed: growth.addressSeed * address.seed } : address);
  for (const cell of own) {
    const value = origin.u?.[cell.name];
    if (cell.mode !== "off" && value !== undefined) add(`u:${cell.name}:${value}`, cell.name, cell);
  }
  return cells;
}

/**
 * The cells whose past is counted for a delivery, named as the sums that grow. They are counted while conversion
 * is known too, so that there is a past once it is not.
 */
export function pastOf({ customer, number, country, origin = {} }: CellSubject, pseudonym: Pseudonym): string[] {
  const names = [...rangesOf(number, pseudonym), ...(country === undefined ? [] : [`c:${country}`]), ...(origin.p === 1 ? ["p"] : [])];
  if (origin.a !== undefined) names.push(`a:${origin.a}`);
  for (const [name, value] of Object.entries(origin.u ?? {})) names.push(`u:${name}:${value}`);
  return names.map((name) => `${customer}:x:${name}`);
}

/** The past of a country, as in `pastOf`. */
export const pastOfCountry = (customer: string, country: string): string => `${customer}:x:c:${country}`;

/** The past of the million numbers around a number, as in `pastOf`. */
export const pastOfMillion = (customer: string, number: string, pseudonym: Pseudonym): string => `${customer}:x:${rangesOf(number, pseudonym)[2]}`;

/** The limit of a growing cell, given the messages of a usual day. */
export function grownLimit({ seed, grows = 0 }: SpamCharge, usual: number): number {
  return Math.ceil(seed + grows * usual);
}

/** The ranges of 10,000, 100,000 and a million numbers that contain a number: their first digits as a keyed hash. */
function rangesOf(number: string, pseudonym: Pseudonym): readonly [string, string, string] {
  const wide = `r:${pseudonym(`range ${number.slice(0, -6)}`).slice(0, 11)}`;
  return [`${wide}${number.slice(-6, -4)}`, `${wide}${number.slice(-6, -5)}`, wide];
}

/** What is known of a message in addition to the store's counts. */
export interface Exemptions {
  /**
   * A challenge was passed, or the number is trusted: all rules but `crowd` are waived (docs/contract.md#challenge,
   * docs/contract.md#trust).
   */
  readonly all: boolean;
  /** Waived rules, named as in `Charge.rule`. */
  readonly rules: ReadonlySet<string>;
  /** Higher limits of rules that a second look found, by rule. */
  readonly limits: ReadonlyMap<string, number>;
  /** Bounds the window of a trusted number's sends: concurrent requests cannot exceed `trust.open` either. */
  readonly trusted?: Trusted;
  /** The number passes the crowd rule, in the same way. */
  readonly trustedByCrowd?: Trusted;
}

/** Limits a trusted number's sends of a day. `decision`: what the rule decides if there are more. */
interface Trusted {
  readonly sends: number;
  readonly decision: Decision;
}

export const noExemptions: Exemptions = { all: false, rules: new Set(), limits: new Map() };

/** A spam rule as a claim: with a limit if it blocks, without if it only observes or is waived. */
export interface SpamCharge extends Charge {
  readonly mode: RuleMode;
  /** The rule does not block once this many have verified. */
  readonly provenAt?: number | undefined;
  /** The cell's own limit, before any growth. */
  readonly seed: number;
  /** The limit grows with the cell's own past: by so many of its usual days. */
  readonly grows?: number | undefined;
  /** The decision, if it was made before the commit: the claim is then never granted. */
  readonly decided?: Decision;
}

/** Whether a charge belongs to a spam rule, not to a cap or ceiling. */
export function isSpamCharge(charge: Charge | SpamCharge): charge is SpamCharge {
  return "mode" in charge;
}

/**
 * What a message claims for the built-in rules and the caller's cells. `decided`: decisions of rules that need no
 * count. `isKnown`: the user is vouched for, so the message weighs nothing in cells but the crowd's. `learned`: a sum's
 * limit if it is known to be higher; infinite if the rule does not block.
 */
export function spamCharges(
  subject: CellSubject,
  policy: SpamPolicy,
  own: readonly OwnCell[],
  exempt: Exemptions,
  decided: readonly Decision[],
  moment: Moment,
  pseudonym: Pseudonym,
  isKnown = false,
  learned: (sum: string) => number | undefined = () => undefined,
): SpamCharge[] {
  const charges = cellsOf(subject, policy, own, pseudonym).map((cell): SpamCharge => {
    const { rule, sum, perVerified, provenAt, floor, grows, seed } = cell;
    const isCount = perVerified === undefined;
    const isCrowd = rule === "crowd";
    const higher = exempt.limits.get(rule) ?? learned(sum);
    const isTrusted = isCrowd ? exempt.trustedByCrowd !== undefined : exempt.all;
    const isWaived = exempt.rules.has(rule) || isTrusted || higher === Number.POSITIVE_INFINITY;
    const mode = isWaived ? "off" : cell.mode;
    const threshold = Math.ceil(isWaived || higher === undefined ? seed : higher);
    const messages = isKnown && !isCrowd ? 0 : 1;
    // A message without weight is blocked like any other.
    const most = threshold - 1 + messages;
    const limit = mode === "enforce" ? (isCount ? most : balanceLimit(most)) : undefined;
    const claim = sumClaim(sum, isCount ? messages : messagesWeight(messages), period, moment, { limit, floor });
    return { rule, mode, claim, threshold, counts: isCount ? "plain" : "balance", perVerified, provenAt, seed, grows };
  });
  if (exempt.all) return charges;
  const refusing = decided.filter(({ mode, rule }) => mode === "enforce" && !exempt.rules.has(rule));
  // Claims that are always rejected, so that the caps before them are checked and nothing is written.
  const never = (decided: Decision): SpamCharge => {
    const claim = sumClaim(`${subject.customer}:no`, 0, period, moment, { limit: -1 });
    return { rule: decided.rule, mode: "enforce", decided, claim, threshold: 0, counts: "plain", seed: 0 };
  };
  return [...charges, ...refusing.map(never)];
}

/** Limits the messages of a trusted number. `send`: its claim in the window of sends. */
export function trustCharge(send: MemberClaim, { sends, decision }: Trusted, moment: Moment): SpamCharge {
  const claim = { ...send, limit: sends, since: sinceOf(moment, day) };
  return { rule: decision.rule, mode: "enforce", decided: decision, claim, threshold: sends, counts: "plain", seed: sends };
}

/** Whether the rule blocks a message, given what its sum holds without it. */
export function isAgainst(charge: SpamCharge, held: number): boolean {
  if (charge.counts === "plain") return held >= charge.threshold;
  return readBalance(held).balance >= charge.threshold && !provesItself(charge, held);
}

/** "does not block if ≥ 100 verified" (docs/contract.md#spam-country): its sum holds enough verifications. */
export function provesItself({ provenAt, counts }: SpamCharge, held: number): boolean {
  return counts === "balance" && provenAt !== undefined && readBalance(held).verified >= provenAt;
}

/** The window of a number's verification times. Members are authentications: `id/createdAt`. */
export function verifiedWindow(customer: string, number: string, pseudonym: Pseudonym): string {
  return `${customer}:v:${pseudonym(number)}`;
}

/** The sum that holds how many have verified in a number's million. */
export function millionOf(customer: string, number: string, moment: Moment, pseudonym: Pseudonym): SumParts {
  return partsAt(`${customer}:b:${rangesOf(number, pseudonym)[2]}`, period, moment);
}

/** What a second look finds about a number whose message was blocked by a rule. */
export interface SecondLook {
  /** Members of the number's window of sends. */
  readonly sends: readonly string[];
  /** Members of its window of verifications. */
  readonly verified: readonly string[];
  /** How many verified in its million, or with an unknown conversion its messages of a usual day, if `crowd` blocked. */
  readonly million?: number | undefined;
  /** The caller vouches that the user had confirmed the number. */
  readonly known?: boolean | undefined;
}

/** `undefined`: the rule applies (docs/contract.md#trust, docs/contract.md#spam-crowd). */
export function exemptedBy(look: SecondLook, decision: Decision, held: number, exempt: Exemptions, policy: SpamPolicy): Exemptions | undefined {
  if (decision.rule !== "crowd") {
    const sends = sendsOfTrusted(look, policy, decision.at);
    return sends === undefined || sends === exempt.trusted?.sends ? undefined : { ...exempt, all: true, trusted: { sends, decision } };
  }
  if (exempt.trustedByCrowd !== undefined) return undefined;
  const allowed = policy.crowd.share * (look.million ?? 0);
  if (allowed > held && allowed > (exempt.limits.get("crowd") ?? policy.crowd.messages)) return withLimit(exempt, "crowd", allowed);
  return policy.trust.open > 0 && passesCrowd(look, decision.at) ? { ...exempt, trustedByCrowd: { sends: mostPastCrowd, decision } } : undefined;
}

/** Raises the limit of a rule. */
export function withLimit(exempt: Exemptions, rule: string, limit: number): Exemptions {
  return { ...exempt, limits: new Map([...exempt.limits, [rule, limit]]) };
}

/**
 * How many of a day's sends a trusted number may have, including those of its verified authentications. "A number that
 * this customer's users verified before (90 days) passes … while it has fewer than 3 open" (docs/contract.md#trust).
 */
function sendsOfTrusted({ sends, verified, known = false }: SecondLook, { trust }: SpamPolicy, now: number): number | undefined {
  const proven = new Set(verified.map(readMember).flatMap(({ id, at }) => (at > now - trustedFor ? [id] : [])));
  if (proven.size === 0 && !known) return undefined;
  const lately = sends.map(readMember).filter(({ at }) => at > now - day);
  const open = lately.filter(({ id }) => !proven.has(id)).length;
  return open < trust.open ? lately.length - open + trust.open : undefined;
}

/** How many of a day's sends may pass the crowd rule because the number is trusted. */
const mostPastCrowd = 2;

/**
 * "passes the crowd rule too if it verified more than a day ago, while it had fewer than 2 messages within 24 hours"
 * (docs/contract.md#trust): an attacker who enters the codes trusts himself, but only from the next day on.
 */
function passesCrowd({ sends, verified }: SecondLook, now: number): boolean {
  const isReturning = verified.map(readMember).some(({ at }) => at > now - trustedFor && at <= now - day);
  return isReturning && sends.map(readMember).filter(({ at }) => at > now - day).length < mostPastCrowd;
}

/** Whether no rule counts messages. Nothing is then counted for rules, and no number is trusted. */
export function weighsNothing({ trust, ...rules }: SpamPolicy, own: readonly OwnCell[]): boolean {
  return [...Object.values(rules), ...own].every(({ mode }) => mode === "off");
}

/** The authentication that a right code proves. */
export type Proof = CellSubject & Pick<Authentication, "id" | "createdAt">;

/**
 * What a right code claims, in the commit that validates (docs/contract.md#credits): each cell gets its messages back,
 * in the part in which they were counted, plus what the verification earns. A number counts as verified in its ranges,
 * its country and the pot once a day; if it has been counted, the first claim is rejected and `earns` is false.
 * `sentAt`: when the messages were counted.
 */
export function creditClaims(
  proof: Proof,
  policy: Pick<Policy, "limits" | "spam">,
  own: readonly OwnCell[],
  sentAt: readonly number[],
  earns: boolean,
  moment: Moment,
  pseudonym: Pseudonym,
): Claim[] {
  if (weighsNothing(policy.spam, own) && growthClaims(proof.customer, policy, moment).length === 0) return [];
  const claims: Claim[] = [verifiedClaim(proof, earns, moment, pseudonym)];
  const { part } = partsAt("", period, moment);
  const allSent = messagesByPart(sentAt, moment);
  const calls = messagesByPart(proof.calls ?? [], moment);
  for (const { sum, perVerified, floor, oncePerNumber, ofCalls } of cellsOf(proof, policy.spam, own, pseudonym)) {
    if (perVerified === undefined) continue;
    const sent = ofCalls ? calls : allSent;
    const messages = sent.get(part)?.messages ?? 0;
    const isVerified = earns || oncePerNumber === undefined;
    for (const [at, before] of sent) if (at !== part) claims.push(sumClaim(sum, -messagesWeight(before.messages), period, before.moment));
    claims.push(sumClaim(sum, isVerified ? verifiedWeight(messages, perVerified) : -messagesWeight(messages), period, moment, { floor }));
  }
  return claims;
}

/** The number of messages in each part of a cell, by part number. `moment`: a time at which that part was current. */
function messagesByPart(sentAt: readonly number[], { skew }: Moment): Map<number, { readonly messages: number; readonly moment: Moment }> {
  const parts = new Map<number, { readonly messages: number; readonly moment: Moment }>();
  for (const now of sentAt) {
    const moment = { now, skew };
    const { part } = partsAt("", period, moment);
    parts.set(part, { messages: (parts.get(part)?.messages ?? 0) + 1, moment });
  }
  return parts;
}

function verifiedClaim({ customer, number, id, createdAt }: Proof, once: boolean, moment: Moment, pseudonym: Pseudonym): MemberClaim {
  const { now, skew } = moment;
  const window = verifiedWindow(customer, number, pseudonym);
  return {
    window,
    member: `${id}/${base36(createdAt)}`,
    limit: once ? 1 : largestLimit,
    now,
    since: sinceOf(moment, day),
    keepUntil: now + trustedFor + 2 * skew,
  };
}

/** Removes the messages of an unlocked number from their cells. `sentAt`: when they were counted. */
export function uncountClaims(
  subject: CellSubject,
  policy: SpamPolicy,
  own: readonly OwnCell[],
  sentAt: readonly number[],
  moment: Moment,
  pseudonym: Pseudonym,
): SumClaim[] {
  if (weighsNothing(policy, own)) return [];
  const sent = [...messagesByPart(sentAt, moment).values()];
  const calls = [...messagesByPart(subject.calls ?? [], moment).values()];
  return cellsOf(subject, policy, own, pseudonym).flatMap(({ sum, perVerified, ofCalls }) =>
    (ofCalls ? calls : sent).map(({ messages, moment }) => sumClaim(sum, perVerified === undefined ? -messages : -messagesWeight(messages), period, moment)),
  );
}

/** A country's counts: open messages, verified authentications, and blocked messages. */
type CountryCount = Readonly<Record<"open" | "verified" | "refused", number>>;

/** A country's counts within the hour and within the week. */
export interface CountryCounts {
  readonly hour: CountryCount;
  readonly week: CountryCount;
  /** Messages in an hour of the busiest day of the week. */
  readonly usual: number;
}

/** Rejections of so many usual hours may be of honest users, who cannot verify while an alarm is on. */
const mayBeHonest = 4;

/**
 * "only while a country's alarm is on (open + blocked within the hour > 20 + 2 × the week's usual open share ×
 * verified)" (docs/contract.md#spam-strange-network).
 */
export function raisedAlarm(
  { hour, week, usual }: CountryCounts,
  { base, factor }: SpamPolicy["strangeNetwork"],
): { value: number; threshold: number } | undefined {
  const share = week.verified === 0 ? 0 : Math.max(0, week.open) / week.verified;
  const value = Math.max(0, hour.open) + Math.max(0, hour.refused - mayBeHonest * usual);
  const threshold = base + factor * share * hour.verified;
  return value > threshold ? { value, threshold } : undefined;
}
