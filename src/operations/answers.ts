import type { Standing } from "../contract/direct.js";
import { unavailable } from "../core/deadline.js";
import { type Authentication, hasNumber } from "../domain/authentication.js";
import { checksLeft } from "../domain/left.js";
import type { Policy } from "../domain/policy.js";
import { decideRetry, retryResult } from "../domain/retry.js";
import { timestamp } from "../domain/time.js";

/** An answer with what its authentication has left, as direct calls return it. */
export function withStanding<A extends object>(answer: A, auth: Authentication, policy: Policy, now: number): A & Standing {
  const { remaining, nextRetryAt } = retryResult(auth, decideRetry(auth, now, policy), policy);
  return {
    ...answer,
    remaining_retry: remaining,
    remaining_checks: checksLeft(auth, now, policy),
    ...(remaining > 0 && { next_retry_at: timestamp(nextRetryAt) }),
  };
}

/** The number that a retry or a check tells: none once the authentication is over, whether its record still holds it or not. */
export function toldNumber(auth: Authentication, status: string): string | undefined {
  return hasNumber(auth) && status !== "already_validated" && status !== "expired_auth" ? auth.number : undefined;
}

/** The number, where nothing can be done without it. Throws `unavailable`. */
export function neededNumber(auth: Authentication): string {
  if (hasNumber(auth)) return auth.number;
  throw unavailable(new Error(`the number of authentication ${auth.id} is sealed under a secret that is no longer among the options`));
}
