import { type Claim, type Moment, sinceOf, sumClaim } from "./claim.js";
import type { Decision } from "./decision.js";
import { addressKey } from "./ip.js";
import { type Cap, type GrowingCap, milliseconds, type Policy } from "./policy.js";
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
  const { customer, number } = subject;
  return [
    ...caps("perNumber", `${customer}:n:${mask(number)}`, memberOf(subject), limits.perNumber, moment),
    ...caps("perCustomer", `${customer}:c`, memberOf(subject), limits.perCustomer, moment),
  ];
}

/** Caps of a create: those of its send, those "per device_id" (contract.md, Limits), and those per ip that the operator has set. */
export function createCharges(subject: CreateSubject, policy: Policy, moment: Moment, mask: Mask): Charge[] {
  const { customer, number, deviceId, ip } = subject;
  const { limits } = policy;
  const list = sendCharges(subject, policy, moment, mask);
  if (deviceId !== undefined) {
    const device = mask(deviceId);
    list.push(...caps("perDevice", `${customer}:d:${device}`, memberOf(subject), limits.perDevice, moment));
    list.push(...caps("numbersPerDevice", `${customer}:dn:${device}`, mask(number), limits.numbersPerDevice, moment, true));
  }
  if (ip !== undefined && limits.perIp.length + limits.numbersPerIp.length > 0) {
    const address = mask(addressKey(ip));
    list.push(...caps("perIp", `${customer}:i:${address}`, memberOf(subject), limits.perIp, moment));
    list.push(...caps("numbersPerIp", `${customer}:in:${address}`, mask(number), limits.numbersPerIp, moment, true));
  }
  return list;
}

/** "lookups have a ceiling" (contract.md, Fields). */
export function lookupCharges(customer: string, member: string, policy: Policy, moment: Moment): Charge[] {
  return caps("lookups", `${customer}:l`, member, policy.limits.lookups, moment);
}

/** Refused creates that are kept: of one number, and of one customer, per hour. */
const keptRefusals = { ofNumber: 20, ofCustomer: 500 };

/** What a refused create claims for its record, so that refusals cannot fill a store and lock out others. One under an idempotency key (`request`) is kept beyond its number's twenty: its repeats must be answered alike. */
export function refusedClaims(
  { customer, id, number, createdAt, request }: Omit<SendSubject, "attempt"> & { readonly request?: string },
  moment: Moment,
  mask: Mask,
): Claim[] {
  const ofCustomer = { ...sumClaim(`${customer}:r`, 1, hour, moment), limit: keptRefusals.ofCustomer };
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

/** `distinct`: the same member is to count once. */
function caps(rule: string, window: string, member: string, list: readonly GrowingCap[], moment: Moment, distinct = false): Charge[] {
  const { now } = moment;
  const sinceFor = (cap: Cap) => sinceOf(moment, milliseconds(cap.window));
  const isExact = ({ limit, perVerified = 0 }: GrowingCap) => distinct || (limit <= largestExact && perVerified === 0);
  const longest = now - Math.min(now, ...list.filter(isExact).map(sinceFor));
  return list.map((cap): Charge => {
    const { limit, perVerified = 0, window: seconds } = cap;
    const told = { rule: `${rule} ${limit}/${seconds}s`, threshold: limit };
    if (isExact(cap)) return { ...told, claim: { window, member, limit, now, since: sinceFor(cap), keepUntil: now + longest } };
    const claim = sumClaim(`${window}:${seconds}`, 1, milliseconds(seconds), moment);
    return perVerified > 0 ? { ...told, perVerified, claim } : { ...told, claim: { ...claim, limit } };
  });
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
