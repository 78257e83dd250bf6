import { type Claim, type Moment, sinceOf, sumClaim } from "./claim.js";
import type { Decision } from "./decision.js";
import { addressKey } from "./ip.js";
import { type Cap, type GrowingCap, type Limits, milliseconds, type Policy } from "./policy.js";
import { hour } from "./time.js";

/** One rule's claim, with what people are told of it. */
export interface Charge {
  /** The rule that refuses, for example `perNumber 5/600s`. */
  readonly rule: string;
  readonly claim: Claim;
  /** What the rule allows. */
  readonly threshold: number;
  /** The threshold grows by so much for each verified, so that it is judged when that is known; the claim has no limit. */
  readonly perVerified?: number;
  /** What people are told of the store's count. Default: the count. */
  readonly value?: (count: number) => number;
}

/** Who a send is charged to. */
export interface SendSubject {
  readonly customer: string;
  readonly id: string;
  readonly number: string;
  readonly createdAt: number;
  readonly attempt: number;
}

/** Who a create is charged to besides. "missing `ip` or `device_id` skips that rule" (contract.md, Limits). */
export interface CreateSubject extends SendSubject {
  readonly deviceId?: string | undefined;
  readonly ip?: string | undefined;
}

/** "Window names hold no number, address or device in clear: a keyed hash" (contract.md, Limits). */
export type Mask = (text: string) => string;

/** Caps that count sends, "retries included": per number and per customer (contract.md, Limits). */
export function sendCharges(subject: SendSubject, { limits }: Policy, moment: Moment, mask: Mask): Charge[] {
  return chargesOfSend(subject, mask(subject.number), memberOf(subject), limits, moment);
}

function chargesOfSend({ customer }: SendSubject, number: string, member: string, limits: Limits, moment: Moment): Charge[] {
  const charges: Charge[] = [];
  perNumber(charges, `${customer}:n:${number}`, member, limits.perNumber, moment);
  perCustomer(charges, `${customer}:c`, member, limits.perCustomer, moment);
  return charges;
}

/** Caps of a create: those of its send, those "per device_id" (contract.md, Limits), and those per ip that the operator has set. */
export function createCharges(subject: CreateSubject, { limits }: Policy, moment: Moment, mask: Mask): Charge[] {
  const { customer, deviceId, ip } = subject;
  const number = mask(subject.number);
  const member = memberOf(subject);
  const charges = chargesOfSend(subject, number, member, limits, moment);
  if (deviceId !== undefined && limits.perDevice.length + limits.numbersPerDevice.length > 0) {
    const device = mask(deviceId);
    perDevice(charges, `${customer}:d:${device}`, member, limits.perDevice, moment);
    numbersPerDevice(charges, `${customer}:dn:${device}`, number, limits.numbersPerDevice, moment);
  }
  if (ip !== undefined && limits.perIp.length + limits.numbersPerIp.length > 0) {
    const address = mask(addressKey(ip));
    perIp(charges, `${customer}:i:${address}`, member, limits.perIp, moment);
    numbersPerIp(charges, `${customer}:in:${address}`, number, limits.numbersPerIp, moment);
  }
  return charges;
}

/** "lookups have a ceiling" (contract.md, Fields). */
export function lookupCharges(customer: string, member: string, policy: Policy, moment: Moment): Charge[] {
  const charges: Charge[] = [];
  lookups(charges, `${customer}:l`, member, policy.limits.lookups, moment);
  return charges;
}

/** Refused creates that are kept: of one number, and of one customer, per hour. */
const keptRefusals = { ofNumber: 20, ofCustomer: 500 };

/** What a refused create claims for its record, so that refusals cannot fill a store and lock out others. One under an idempotency key (`request`) is kept beyond its number's twenty: its repeats must be answered alike. */
export function refusedClaims(
  { customer, id, number, createdAt, request }: Omit<SendSubject, "attempt"> & { readonly request?: string },
  moment: Moment,
  mask: Mask,
): Claim[] {
  const ofCustomer = sumClaim(`${customer}:r`, 1, hour, moment, keptRefusals.ofCustomer);
  if (request !== undefined) return [ofCustomer];
  const { now, since, keepUntil } = ofCustomer;
  const member = `${id}/${createdAt.toString(36)}`;
  return [{ window: `${customer}:r:${mask(number)}`, member, limit: keptRefusals.ofNumber, now, since, keepUntil }, ofCustomer];
}

/** "Members come from what is stored (`id/createdAt/attempt`)" (architecture.md, rule 5): one create is never another's, also where an idempotency key gives both the same id. */
function memberOf({ id, createdAt, attempt }: SendSubject): string {
  return `${id}/${createdAt.toString(36)}/${attempt}`;
}

function isOneMessages(member: string): boolean {
  return member.includes("/");
}

/** The largest cap that is counted member by member, and so to the millisecond; a larger one is a sum, and may refuse up to a twelfth of its length longer than it must. */
const largestExact = 100;

/** What of a cap does not change with the request. */
interface PlannedCap {
  readonly rule: string;
  readonly cap: GrowingCap;
  /** Milliseconds. */
  readonly length: number;
  /** Of a cap that is counted member by member: how long the window must be kept for the longest such cap on it, in milliseconds. */
  readonly keptFor?: number;
}

/** Adds the charges of one rule's caps. */
type CapRule = (charges: Charge[], window: string, member: string, caps: readonly GrowingCap[], moment: Moment) => void;

/** `distinct`: the same member is to count once. */
function capRule(rule: string, distinct = false): CapRule {
  const plans = new WeakMap<readonly GrowingCap[], readonly PlannedCap[]>();
  return (charges, window, member, caps, moment) => {
    let plan = plans.get(caps);
    if (plan === undefined) plans.set(caps, (plan = plannedCaps(rule, caps, distinct)));
    for (const planned of plan) charges.push(chargeOf(planned, window, member, moment));
  };
}

const perNumber = capRule("perNumber");
const perCustomer = capRule("perCustomer");
const perDevice = capRule("perDevice");
const numbersPerDevice = capRule("numbersPerDevice", true);
const perIp = capRule("perIp");
const numbersPerIp = capRule("numbersPerIp", true);
const lookups = capRule("lookups");

function plannedCaps(rule: string, caps: readonly GrowingCap[], distinct: boolean): PlannedCap[] {
  const isExact = ({ limit, perVerified = 0 }: GrowingCap) => distinct || (limit <= largestExact && perVerified === 0);
  const lengthOf = (cap: Cap) => milliseconds(cap.window);
  const keptFor = Math.max(0, ...caps.filter(isExact).map(lengthOf));
  return caps.map((cap) => ({ rule: `${rule} ${cap.limit}/${cap.window}s`, cap, length: lengthOf(cap), ...(isExact(cap) && { keptFor }) }));
}

function chargeOf({ rule, cap, length, keptFor }: PlannedCap, window: string, member: string, moment: Moment): Charge {
  const { limit, perVerified = 0 } = cap;
  if (keptFor !== undefined) {
    const { now, skew } = moment;
    return { rule, threshold: limit, claim: { window, member, limit, now, since: sinceOf(moment, length), keepUntil: now + keptFor + 2 * skew } };
  }
  const sum = `${window}:${cap.window}`;
  if (perVerified > 0) return { rule, threshold: limit, perVerified, claim: sumClaim(sum, 1, length, moment) };
  return { rule, threshold: limit, claim: sumClaim(sum, 1, length, moment, limit) };
}

/** Judges a cap that grows, once it is known how many verified: the refusal, or `undefined`. `count`: with what is judged. */
export function growthRefusal(charge: Charge, count: number, verified: number): Decision | undefined {
  const threshold = charge.threshold + (charge.perVerified ?? 0) * verified;
  return count > threshold ? refusalOf({ ...charge, threshold }, count - 1) : undefined;
}

/**
 * What takes back claims that were granted. Sums only where it is `sure` that they were: where they were not, too much would be given back.
 * `keepShared`: what others may have claimed too, a number of a device, stays, so that whoever gets himself refused has no more numbers than without.
 */
export function takenBack(claims: readonly Claim[], sure: boolean, keepShared = false): Claim[] {
  return claims.flatMap((claim): Claim[] => {
    if ("member" in claim) return keepShared && !isOneMessages(claim.member) ? [] : [{ ...claim, out: true }];
    const { limit, ...rest } = claim;
    return sure ? [{ ...rest, weight: -claim.weight }] : [];
  });
}

/** "Every decision is recorded with rule, the value counted and the threshold" (contract.md, Limits). `count`: what was there without what was refused. */
export function refusalOf({ rule, threshold, claim, value = (counted) => counted }: Charge, count: number): Decision {
  return { at: claim.now, rule, mode: "enforce", value: value(count), threshold };
}
