import type { Channel } from "../contract/channel.js";
import type { CheckStatus } from "../contract/check.js";
import type { AuthenticationResult, CheckResult, Correlated, MessageFate, RetryResult, Standing } from "../contract/direct.js";
import type { RetryStatus } from "../contract/retry.js";
import { type Authentication, channelOfAttempt, hasNumber, isCarrierRefused } from "../domain/authentication.js";
import { checksLeft } from "../domain/check.js";
import type { Decision } from "../domain/decision.js";
import type { Policy } from "../domain/policy.js";
import { isLimitOfCalls, retryAfter } from "../domain/quota.js";
import { retryStanding, retryStatus } from "../domain/retry.js";
import { timestamp } from "../domain/time.js";

/** The result of create. `number`: from the request, as the record of an ended authentication no longer holds it. */
export function toAuthenticationResult(auth: Authentication, number: string, policy: Policy, now: number): AuthenticationResult {
  return {
    authentication_uuid: auth.id,
    created_at: timestamp(auth.createdAt),
    expires_at: timestamp(auth.expiresAt),
    status: auth.status,
    phone_number: number,
    ...standingOf(auth, policy, now),
    ...channelOf(auth),
    ...fateOf(auth, now),
  };
}

/** What became of the message of a create. */
export function fateOf(auth: Authentication, now: number): MessageFate {
  if (auth.status === "rate_limited") return limitedBy(auth.decisions, now);
  return isCarrierRefused(auth) ? { carrier_refused: true } : {};
}

/** What became of a message that these decisions blocked. */
export function limitedBy(decisions: readonly Decision[], now: number): MessageFate {
  const retry_after = retryAfter(decisions, now);
  return { ...(retry_after !== undefined && { retry_after }), ...(isLimitOfCalls(decisions) && { calls_limited: true }) };
}

/** The channel of the newest message, if it is not SMS. */
export function channelOf(auth: Authentication): Pick<MessageFate, "channel"> {
  const channel = channelOfAttempt(auth, auth.attempts);
  return channel === "sms" ? {} : { channel };
}

/** The result of retry. `asked`: the channel that it wishes for; if it is denied, the next such retry is meant. */
export function toRetryResult(auth: Authentication, status: RetryStatus, fate: MessageFate, policy: Policy, now: number, asked?: Channel): RetryResult {
  const { remaining, nextRetryAt } = retryStanding(auth, status, policy, status === "denied" ? asked : undefined);
  const phone_number = disclosedNumber(auth, status);
  return {
    authentication_uuid: auth.id,
    created_at: timestamp(now),
    next_retry_at: timestamp(nextRetryAt),
    remaining_retry: remaining,
    status,
    ...(phone_number !== undefined && { phone_number }),
    remaining_checks: checksLeft(auth, now, policy),
    ...fate,
  };
}

/** The result of check. `auth`: the authentication after it. */
export function toCheckResult(auth: Authentication, status: CheckStatus, policy: Policy, now: number): CheckResult {
  // The record does not show that the number's guesses are used up.
  const standing = { ...standingOf(auth, policy, now), ...(status === "rate_limited" && { remaining_checks: 0 }), ...correlated(auth) };
  if (status === "valid") return { authentication_uuid: auth.id, status, phone_number: auth.number, ...standing };
  const phone_number = disclosedNumber(auth, status);
  return { authentication_uuid: auth.id, status, ...(phone_number !== undefined && { phone_number }), ...standing };
}

export function correlated({ correlationId }: Authentication): Correlated {
  return correlationId === undefined ? {} : { correlation_id: correlationId };
}

/** What an authentication has left, as returned by direct calls. */
export function standingOf(auth: Authentication, policy: Policy, now: number): Standing {
  const { remaining, nextRetryAt } = retryStanding(auth, retryStatus(auth, now, policy), policy);
  return {
    remaining_retry: remaining,
    remaining_checks: checksLeft(auth, now, policy),
    ...(remaining > 0 && { next_retry_at: timestamp(nextRetryAt) }),
  };
}

/**
 * The number in the result of a retry or check: none once the authentication is over, even if the record still holds
 * it.
 */
function disclosedNumber(auth: Authentication, status: string): string | undefined {
  return hasNumber(auth) && status !== "already_validated" && status !== "expired_auth" ? auth.number : undefined;
}
