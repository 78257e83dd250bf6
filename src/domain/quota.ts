import { addressKey } from "./ip.js";
import type { Cap, Policy } from "./policy.js";

/** One cap's claim on one window, with the rule it stands for. Times are milliseconds since the epoch. */
export interface Charge {
  /** For people: the cap that refuses, for example `perNumber 5/600s`. */
  readonly rule: string;
  readonly window: string;
  readonly member: string;
  readonly limit: number;
  readonly since: number;
  readonly now: number;
  readonly keepUntil: number;
}

/** Who a send is charged to. */
export interface SendSubject {
  readonly customer: string;
  readonly id: string;
  readonly number: string;
  readonly attempt: number;
}

/** Who a create is charged to besides. "missing `ip` or `device_id` skips that rule" (contract.md, Limits). */
export interface CreateSubject extends SendSubject {
  readonly deviceId?: string | undefined;
  readonly ip?: string | undefined;
}

/** Caps that count sends, "retries included": per number and per customer (contract.md, Limits). */
export function sendCharges(subject: SendSubject, policy: Policy, now: number, skew: number): Charge[] {
  const member = `${subject.id}/${subject.attempt}`;
  return [
    ...charges("perNumber", `${subject.customer}:n:${subject.number}`, member, policy.limits.perNumber, now, skew),
    ...charges("perCustomer", `${subject.customer}:c`, member, policy.limits.perCustomer, now, skew),
  ];
}

/** Caps of a create: those of its send, and those "per device_id" and "per ip (IPv6 by /64)" (contract.md, Limits). */
export function createCharges(subject: CreateSubject, policy: Policy, now: number, skew: number): Charge[] {
  const { customer, id, number, deviceId, ip } = subject;
  const limits = policy.limits;
  const list = sendCharges(subject, policy, now, skew);
  if (deviceId !== undefined) {
    list.push(...charges("perDevice", `${customer}:d:${deviceId}`, id, limits.perDevice, now, skew));
    list.push(...charges("numbersPerDevice", `${customer}:dn:${deviceId}`, number, limits.numbersPerDevice, now, skew));
  }
  if (ip !== undefined) {
    const address = addressKey(ip);
    list.push(...charges("perIp", `${customer}:i:${address}`, id, limits.perIp, now, skew));
    list.push(...charges("numbersPerIp", `${customer}:in:${address}`, number, limits.numbersPerIp, now, skew));
  }
  return list;
}

/** "lookups have a ceiling" (contract.md, Fields). */
export function lookupCharges(customer: string, member: string, policy: Policy, now: number, skew: number): Charge[] {
  return charges("lookups", `${customer}:l`, member, policy.limits.lookups, now, skew);
}

/**
 * "a limit holds in every window of its length" (contract.md, Limits), also where the clocks of several processes differ: each may be `skew` milliseconds off, so a window reaches back twice that further.
 */
function charges(rule: string, window: string, member: string, caps: readonly Cap[], now: number, skew: number): Charge[] {
  const longest = Math.max(...caps.map((cap) => cap.window)) * 1000 + 2 * skew;
  return caps.map((cap) => ({
    rule: `${rule} ${cap.limit}/${cap.window}s`,
    window,
    member,
    limit: cap.limit,
    since: now - cap.window * 1000 - 2 * skew,
    now,
    keepUntil: now + longest,
  }));
}
