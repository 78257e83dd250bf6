import type { Channel } from "../contract/channel.js";
import type { RetryStatus } from "../contract/retry.js";
import { type Authentication, hasNumber, holdsCodes, isExpired, isVoid, nothingSent, type SendDecision, withDecision, withoutCodes } from "./authentication.js";
import { checksLeft, checksUsedUp } from "./check.js";
import { type Decision, isEnforced } from "./decision.js";
import { fallbackTime } from "./delivery.js";
import { milliseconds, type Policy } from "./policy.js";
import { settleOverdue } from "./send.js";

/**
 * "0 whenever the status is `expired_auth`, `already_validated`, `rate_limited` or `no_attempt`"
 * (docs/contract.md#next-retry).
 */
const spent: ReadonlySet<RetryStatus> = new Set(["expired_auth", "already_validated", "rate_limited", "no_attempt"]);

/**
 * "`remaining_retry` = 4 − retries used, and 0 whenever the status is … `next_retry_at` = min(end of the cool-down,
 * `expires_at`), and `expires_at` whenever `remaining_retry` is 0" (docs/contract.md#next-retry), in milliseconds.
 */
export function retryStanding(auth: Authentication, status: RetryStatus, policy: Policy, channel?: Channel) {
  const remaining = spent.has(status) ? 0 : remainingRetries(auth, policy);
  return { remaining, nextRetryAt: remaining === 0 ? auth.expiresAt : Math.min(cooldownEnd(auth, policy, channel), auth.expiresAt) };
}

/**
 * "The first row that holds: unknown → 400 · expired → `expired_auth` · validated → `already_validated` · created
 * `rate_limited`, checks or retries used up → `rate_limited` · nothing sent → `no_attempt` · cool-down not over →
 * `denied` · a cap or a spam rule blocks it → `rate_limited` · no route takes the message → `denied` · else `approved`"
 * (docs/contract.md#retry-order). This function decides what depends on the record alone. `approved`: next, the caps
 * and then the carrier are asked.
 */
export function retryStatus(auth: Authentication, now: number, policy: Policy, channel?: Channel): RetryStatus {
  if (isExpired(auth, now)) return "expired_auth";
  if (auth.validated) return "already_validated";
  if (auth.status === "rate_limited" || checksUsedUp(auth, policy)) return "rate_limited";
  if (remainingRetries(auth, policy) === 0) return "rate_limited";
  // A create that was taken back: a repeat of it may have returned `pending` (docs/contract.md#retry-after-503).
  if (isVoid(auth) && hasNumber(auth)) return "approved";
  if (nothingSent(auth)) return "no_attempt";
  if (now < cooldownEnd(auth, policy, channel)) return "denied";
  return "approved";
}

/** Decides a retry on the stored record. `fired`: the caller's own rules and the lists that block the message. */
export function decideRetry(auth: Authentication, fired: readonly Decision[], now: number, policy: Policy, channel?: Channel): SendDecision<RetryStatus> {
  const status = retryStatus(auth, now, policy, channel);
  // "The record stays 24 h more, without its codes" (docs/contract.md#tombstone).
  if (status === "expired_auth" && holdsCodes(auth)) return { status, auth, next: withoutCodes(auth) };
  if (status !== "approved") return { status, auth };
  if (fired.some(isEnforced)) return { status: "rate_limited", auth };
  return { send: settleOverdue(fired.reduce(withDecision, auth), policy, now) };
}

function remainingRetries(auth: Authentication, policy: Policy): number {
  return Math.max(0, policy.retryCooldowns.length - auth.retries);
}

/**
 * "cool-down 30, 60, 90, 120 s after each send" (docs/contract.md#retries), and a call's own (docs/contract.md#calls);
 * after a rejected send the same cool-down starts again. `channel`: the one that the retry wishes for.
 */
function cooldownEnd(auth: Authentication, policy: Policy, channel: Channel | undefined): number {
  // A retry requests a call if it wishes for one, or if it wishes for nothing else and the create was a call.
  const isCall = auth.byCall === "fixed line" || (channel ?? (auth.byCall && "voice")) === "voice";
  const seconds = isCall ? policy.callCooldown : (policy.retryCooldowns[auth.retries] ?? 0);
  return auth.lastSendAt + milliseconds(seconds);
}

/** What remains of an authentication. */
export interface Left {
  /** Wrong codes that can still be entered; 0 once no code can be right. */
  readonly checks: number;
  /** Messages that can still be requested, as in `remaining_retry`. */
  readonly retries: number;
  /** Whole seconds until `expires_at`; 0 afterwards. */
  readonly seconds: number;
}

/** What remains of the checks (docs/contract.md#checks) and retries (docs/contract.md#retries), for `explain`. */
export function leftOf(auth: Authentication, now: number, policy: Policy): Left {
  const isDelivery = auth.purpose !== undefined;
  return {
    checks: checksLeft(auth, now, policy),
    retries: isDelivery ? 0 : retryStanding(auth, retryStatus(auth, now, policy), policy).remaining,
    seconds: isExpired(auth, now) ? 0 : Math.ceil((auth.expiresAt - now) / 1000),
  };
}

/**
 * Decides whether another message replaces the newest one, which did not arrive (docs/contract.md#fallback). `fired`: the
 * caller's own rules and the lists that block it.
 */
export function decideFallback(auth: Authentication, fired: readonly Decision[], now: number, policy: Policy): SendDecision<"none"> {
  const due = fallbackTime(auth);
  if (due === undefined || due > now) return { status: "none", auth };
  const isOver =
    isExpired(auth, now) ||
    auth.status !== "pending" ||
    checksUsedUp(auth, policy) ||
    nothingSent(auth) ||
    !hasNumber(auth) ||
    (auth.purpose !== undefined && auth.kept === undefined);
  if (isOver) return { status: "none", auth, next: withoutFallback(auth, []) };
  if (fired.some(isEnforced)) return { status: "none", auth, next: withoutFallback(auth, fired) };
  return { send: [...fired, reasonOf(auth, now)].reduce(withDecision, auth) };
}

/** The record once its fallback will not be sent, with the decisions that blocked it. */
export function withoutFallback(auth: Authentication, decisions: readonly Decision[]): Authentication {
  return { ...decisions.reduce(withDecision, auth), fallbackAt: undefined, kept: undefined };
}

/** Why the newest message is replaced, for `explain`. */
function reasonOf({ attempts, lastSendAt, sends }: Authentication, now: number): Decision {
  const { attempt, delivery, route = "the route" } = sends.at(-1) ?? { attempt: attempts };
  const reason = delivery === "undeliverable" ? `undeliverable by ${route}` : `${route} silent for ${Math.round((now - lastSendAt) / 1000)} s`;
  return { at: now, rule: "fallback", mode: "route", reason, attempt };
}
