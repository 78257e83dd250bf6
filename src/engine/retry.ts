import type { RetryRequest, RetryResponse, RetryStatus } from "../contract/retry.js";
import { type Authentication, holdsCodes, withDecision, withoutCodes } from "../domain/authentication.js";
import type { Policy } from "../domain/policy.js";
import { type Charge, sendCharges } from "../domain/quota.js";
import { decideRetry, retryResult } from "../domain/retry.js";
import { settleOverdue, withdrawSend } from "../domain/send.js";
import type { Account } from "./account.js";
import { type StoreBudget, unavailable } from "./budget.js";
import { capDecision, chargeAndSwap } from "./charge.js";
import { unknownAuthentication } from "./check.js";
import { countryOf } from "./destination.js";
import { handOver } from "./hand-over.js";
import { nextSend } from "./message.js";
import { newBudget, type Parts, timestamp } from "./parts.js";
import type { Held } from "./records.js";
import { maxRaces, transition } from "./transition.js";

/** Retry: the rows of `decideRetry`, then the caps, then the carrier. */
export async function retryAuthentication(parts: Parts, account: Account, request: RetryRequest): Promise<RetryResponse> {
  const budget = newBudget(parts);
  const { policy, customer } = account;
  let held = await parts.records.find(budget, customer, request.authentication_uuid);
  for (let race = 0; race < maxRaces; race++) {
    if (held === undefined) throw unknownAuthentication();
    const now = parts.clock.now();
    const status = decideRetry(held.auth, now, policy);
    // "The record stays 24 h more (option), without its codes" (contract.md, lifetime).
    if (status === "expired_auth" && holdsCodes(held.auth)) await parts.records.swap(budget, withoutCodes(held.auth), held);
    if (status !== "approved") return toResponse(parts, held.auth, status, policy);

    const before = held;
    const country = countryOf(parts, before.auth.number);
    const { code, next } = nextSend(parts, settleOverdue(before.auth, policy, now), country, policy, now);
    const charges = sendCharges({ ...next, attempt: next.attempts }, policy, now, parts.settings.clockSkew);
    const { swap, refusal } = await chargeAndSwap(parts, budget, charges, next, before, () => withdraw(parts, budget, next, before));
    if (!swap.swapped) {
      held = swap.held;
      continue;
    }
    if (refusal !== undefined) {
      const withdrawn = await withdraw(parts, budget, next, before, refusal);
      return toResponse(parts, withdrawn, "rate_limited", policy);
    }
    const { result, auth } = await handOver(parts, budget, swap.held.auth, code, country, policy);
    return toResponse(parts, auth, result === "rejected" ? "denied" : "approved", policy);
  }
  throw unavailable(new Error(`lost ${maxRaces} races for authentication ${request.authentication_uuid}`));
}

/** Takes back the send that `sending` added to `before`, and records the cap that refused it. */
async function withdraw(parts: Parts, budget: StoreBudget, sending: Authentication, before: Held, refusal?: Charge): Promise<Authentication> {
  const withdrawn = await transition(parts.records, budget, sending.customer, sending.id, (auth) => {
    const taken = withdrawSend(auth, sending.attempts, before.auth);
    const next = refusal === undefined ? taken : withDecision(taken, capDecision(refusal));
    return { result: next, next };
  });
  return withdrawn ?? before.auth;
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
