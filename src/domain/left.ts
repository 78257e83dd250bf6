import { type Authentication, isExpired, nothingSent } from "./authentication.js";
import type { Policy } from "./policy.js";
import { retryResult, retryStatus } from "./retry.js";

/** What an authentication still has. */
export interface Left {
  /** Wrong codes that may still be typed; 0 where no code can be right any more. */
  readonly checks: number;
  /** Messages that may still be asked for, as `remaining_retry` tells. */
  readonly retries: number;
  /** Whole seconds until `expires_at`; 0 from then on. */
  readonly seconds: number;
}

/** "5 wrong codes per authentication" (docs/contract.md#checks) and "4 (5 sends)" (docs/contract.md#retries) less what is used up, for `explain`. */
export function leftOf(auth: Authentication, now: number, policy: Policy): Left {
  return {
    checks: checksLeft(auth, now, policy),
    retries: retryResult(auth, retryStatus(auth, now, policy), policy).remaining,
    seconds: Math.max(0, Math.ceil((auth.expiresAt - now) / 1000)),
  };
}

/** Wrong codes that may still be typed; 0 where no code can be right any more. */
export function checksLeft(auth: Authentication, now: number, policy: Policy): number {
  const over = isExpired(auth, now) || auth.validated || auth.status !== "pending" || nothingSent(auth);
  return over ? 0 : Math.max(0, policy.checks - auth.wrongChecks);
}
