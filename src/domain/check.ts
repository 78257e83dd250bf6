import type { CheckStatus } from "../contract/check.js";
import type { VerificationResult } from "../contract/verification.js";
import { type Authentication, holdsCodes, isCarrierRefused, isExpired, isVoid, nothingSent, type Send, withoutCodes } from "./authentication.js";
import { checksFor, type Policy } from "./policy.js";

/** A result, and the record to write if anything changes. */
export interface CheckDecision {
  readonly status: CheckStatus;
  readonly next?: Authentication;
  /** The send whose code was entered. */
  readonly proved?: Send;
}

/** "created `rate_limited`, or 5 wrong → `rate_limited`" (docs/contract.md#check-order). */
export function checksUsedUp(auth: Authentication, policy: Policy): boolean {
  return auth.spent === true || auth.wrongChecks >= checksFor(policy, auth.codeLength);
}

/** Wrong codes that can still be entered; 0 once no code can be right. */
export function checksLeft(auth: Authentication, now: number, policy: Policy): number {
  const isOver = isExpired(auth, now) || auth.validated || auth.status !== "pending" || nothingSent(auth) || checksUsedUp(auth, policy);
  return isOver || auth.purpose !== undefined ? 0 : checksFor(policy, auth.codeLength) - auth.wrongChecks;
}

/**
 * "the newest two codes whose send was not rejected are live … With `acceptPreviousCode: false`, only the newest code
 * known to be accepted is live, and any newer one whose outcome is still open" (docs/contract.md#live-codes).
 */
export function liveSends(auth: Authentication, policy: Policy): readonly Send[] {
  if (policy.acceptPreviousCode) return auth.sends.length <= 2 ? auth.sends : auth.sends.slice(-2);
  const accepted = auth.sends.findLastIndex((send) => send.state === "accepted");
  return auth.sends.slice(Math.max(accepted, 0));
}

/**
 * "The first row that holds: unknown → `invalid_auth_uuid` (400) · now ≥ `expires_at` → `expired_auth` · validated →
 * `already_validated` · created `rate_limited`, or 5 wrong → `rate_limited` ·
 * nothing sent → `without_attempt` · a live code matches → `valid` · else `invalid`" (docs/contract.md#check-order).
 * `match`: the live send whose code was entered.
 */
export function decideCheck(auth: Authentication, match: Send | undefined, now: number, policy: Policy): CheckDecision {
  const refused = refusal(auth, policy, now);
  if (refused === "expired_auth" && holdsCodes(auth)) return { status: refused, next: withoutCodes(auth) };
  if (refused !== undefined) return { status: refused };
  if (match !== undefined) return { status: "valid", next: withoutCodes({ ...auth, validated: true }), proved: match };
  const counted = { ...auth, wrongChecks: auth.wrongChecks + 1 };
  return { status: "invalid", next: checksUsedUp(counted, policy) ? withoutCodes({ ...counted, spent: true }) : counted };
}

/**
 * Another code under the key of a `valid` check is a guess of the right one: it "also counts as a wrong code, and once
 * those are used up, the key returns `already_validated`" (docs/contract.md#idempotency).
 */
export function withOtherCode(auth: Authentication, policy: Policy): Authentication {
  const counted = { ...auth, wrongChecks: auth.wrongChecks + 1 };
  return checksUsedUp(counted, policy) ? { ...counted, checks: auth.checks.filter(({ status }) => status !== "valid") } : counted;
}

function refusal(auth: Authentication, policy: Policy, now: number): CheckStatus | undefined {
  if (isExpired(auth, now)) return "expired_auth";
  if (auth.validated) return "already_validated";
  if (auth.status === "rate_limited" || checksUsedUp(auth, policy)) return "rate_limited";
  if (nothingSent(auth)) return "without_attempt";
  // By another process's clock it has expired, and its codes are gone.
  if (auth.sends.length > 0 && !holdsCodes(auth)) return "expired_auth";
  return undefined;
}

/** What a verification by number is now. */
export function stateOf(auth: Authentication, now: number, policy: Policy): VerificationResult["status"] {
  if (auth.validated) return "verified";
  if (auth.canceled === true) return "canceled";
  // Without a message that was sent, there is nothing to wait for.
  if (isExpired(auth, now) || auth.status !== "pending" || isVoid(auth) || isCarrierRefused(auth)) return "expired";
  return checksUsedUp(auth, policy) ? "used_up" : "open";
}
