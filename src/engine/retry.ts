import type { RetryRequest, RetryResponse, RetryStatus } from "../contract/retry.js";
import { type Authentication, holdsCodes, withDecision, withoutCodes } from "../domain/authentication.js";
import type { Policy } from "../domain/policy.js";
import { refusalOf, sendCharges } from "../domain/quota.js";
import { decideRetry, retryResult } from "../domain/retry.js";
import { settleOverdue } from "../domain/send.js";
import { unknownAuthentication } from "./check.js";
import type { Account } from "./door/account.js";
import { newBudget, type Parts, timestamp } from "./parts.js";
import { handOver } from "./sending/hand-over.js";
import { nextSend, type Sending } from "./sending/next-send.js";
import { takingBack } from "./sending/take-back.js";
import { type Decided, transition } from "./transition.js";

/** What a retry is answered, and the send to make, when this very retry was granted it. */
interface Retried {
  readonly status: RetryStatus;
  readonly auth: Authentication;
  readonly sending?: Sending;
}

/** Retry: the rows of `decideRetry`, then the caps, then the carrier. */
export async function retryAuthentication(parts: Parts, account: Account, request: RetryRequest): Promise<RetryResponse> {
  const { records } = parts;
  const { policy, customer } = account;
  const budget = newBudget(parts);
  const retried = await takingBack(parts, (trying) =>
    transition(records, budget, customer, request.authentication_uuid, (auth, held) => trying(decide(parts, policy, auth), held)),
  );
  if (retried === undefined) throw unknownAuthentication();
  if (retried.sending === undefined) return toResponse(parts, retried.auth, retried.status, policy);
  const { result, auth } = await handOver(parts, budget, policy, retried.sending);
  return toResponse(parts, auth, result === "rejected" ? "denied" : "approved", policy);
}

function decide(parts: Parts, policy: Policy, auth: Authentication): Decided<Retried> {
  const { clock, codes, settings } = parts;
  const now = clock.now();
  const status = decideRetry(auth, now, policy);
  // "The record stays 24 h more (option), without its codes" (contract.md, lifetime).
  if (status === "expired_auth" && holdsCodes(auth)) return { result: { status, auth }, next: withoutCodes(auth) };
  if (status !== "approved") return { result: { status, auth } };

  const refuse = (decision: Parameters<typeof withDecision>[1]): Decided<Retried> => {
    const next = withDecision(auth, decision);
    return { result: { status: "rate_limited", auth: next }, next };
  };
  const sending = nextSend(parts, settleOverdue(auth, policy, now), policy, now);
  if (sending.unpriced !== undefined) return refuse(sending.unpriced);
  const { next } = sending;
  const charges = [...sendCharges({ ...next, attempt: next.attempts }, policy, { now, skew: settings.clockSkew }, codes.mask), ...sending.charges];
  return {
    result: { status, auth: next, sending },
    next,
    claims: charges.map(({ claim }) => claim),
    token: codes.newToken(),
    refused: (by, count) => refuse(refusalOf(charges[by] as (typeof charges)[number], count)),
  };
}

function toResponse({ clock }: Parts, auth: Authentication, status: RetryStatus, policy: Policy): RetryResponse {
  const { remaining, nextRetryAt } = retryResult(auth, status, policy);
  return {
    authentication_uuid: auth.id,
    created_at: timestamp(clock.now()),
    next_retry_at: timestamp(nextRetryAt),
    remaining_retry: remaining,
    status,
  };
}
