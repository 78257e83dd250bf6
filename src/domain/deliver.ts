import type { ConfirmResult } from "../contract/delivery.js";
import { type Authentication, isVoid, nothingSent, type Send } from "./authentication.js";
import { type GrowingCap, milliseconds, type Policy } from "./policy.js";
import { retryStatus } from "./retry.js";
import { growth } from "./spam-policy.js";
import { day, second } from "./time.js";

/** Without an idempotency key, the same code to the same number within this time is a repeat. Milliseconds. */
export const repeatedWithin = 30 * second;

/** "up to 24 hours after its last message" (docs/contract.md#confirm). Milliseconds. */
const confirmedWithin = day;

/** How the spam rules treat deliveries. */
export interface Weighing {
  /** By growth instead of credit (docs/contract.md#growth-rules). */
  readonly grows: boolean;
  /** Rules that need a past only observe, because there is none yet (docs/contract.md#unknown-conversion). */
  readonly observes: boolean;
  /** The customer's messages of a usual day. */
  readonly usualDay: number;
}

/** The policy of deliveries: "without a cool-down, which is the other server's" (docs/contract.md#deliver). */
export function deliveryPolicy(policy: Policy, weighing: Weighing): Policy {
  // A confirmation may come a day later.
  const tombstone = Math.max(policy.tombstone, confirmedWithin / 1000);
  const usualDay = Math.ceil(weighing.usualDay);
  const limits = weighing.grows ? { ...policy.limits, perCustomer: policy.limits.perCustomer.map((cap) => grownCap(cap, usualDay)) } : policy.limits;
  return { ...policy, tombstone, limits, retryCooldowns: policy.retryCooldowns.map(() => 0), callCooldown: 0, spam: spamOf(policy, weighing) };
}

/** "the customer's cap grows with its usual day" (docs/contract.md#growth-rules). */
function grownCap(cap: GrowingCap, usualDay: number): GrowingCap {
  return cap.perVerified ? { ...cap, limit: cap.limit + Math.ceil((growth.factor * usualDay * milliseconds(cap.window)) / day) } : cap;
}

function spamOf({ spam }: Policy, { grows, observes }: Weighing): Policy["spam"] {
  if (!grows && !observes) return spam;
  const watch = <Rule extends { readonly mode: Policy["spam"]["range"]["mode"] }>(rule: Rule): Rule =>
    observes && rule.mode === "enforce" ? { ...rule, mode: "shadow" } : rule;
  const { range, country, newCountries, address, strangeNetwork } = spam;
  return {
    ...spam,
    range: watch(range),
    country: watch(country),
    newCountries: watch(newCountries),
    address: watch(address),
    // Without confirmations, the alarm of a country would always be on.
    strangeNetwork: grows ? { ...strangeNetwork, mode: "off" } : watch(strangeNetwork),
  };
}

/**
 * Whether the next message to the number starts another delivery: all are sent within the policy's lifetime, and before
 * the newest code expires. `policy`: of deliveries.
 */
export function isDeliveryOver(auth: Authentication, now: number, policy: Policy): boolean {
  return isVoid(auth) || now >= auth.createdAt + milliseconds(policy.lifetime) || retryStatus(auth, now, policy) !== "approved";
}

/** A delivery whose next message is valid for `lifetime` milliseconds. */
export function prolonged(auth: Authentication, now: number, lifetime: number, policy: Policy): Authentication {
  const expiresAt = Math.max(auth.expiresAt, now + lifetime);
  return { ...auth, expiresAt, keepUntil: Math.max(auth.keepUntil, expiresAt + milliseconds(policy.tombstone)) };
}

/** What a confirmation changes. */
export interface Confirming {
  readonly status: ConfirmResult["status"];
  readonly next?: Authentication;
  /** The message that the confirmation counts for: the newest one sent by then. */
  readonly proved?: Send;
}

/**
 * "One confirmation of a delivery counts, up to 24 hours after its last message" (docs/contract.md#confirm). `at`: when
 * the code was entered.
 */
export function decideConfirm(auth: Authentication, at: number, skew: number, now: number): Confirming {
  if (auth.purpose === undefined || auth.status !== "pending" || nothingSent(auth)) return { status: "not_found" };
  if (auth.validated) return { status: "already_confirmed" };
  const proved = auth.sends.findLast((send) => send.at <= at + 2 * skew);
  if (proved === undefined || now >= auth.lastSendAt + confirmedWithin) return { status: "not_found" };
  return { status: "confirmed", next: { ...auth, validated: true, kept: undefined }, proved };
}
