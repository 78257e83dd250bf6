import type { RetryRequest, RetryResponse, RetryStatus } from "../contract/retry.js";
import { type Authentication, holdsCodes, withDecision, withoutCodes } from "../domain/authentication.js";
import type { Decision } from "../domain/decision.js";
import type { Policy } from "../domain/policy.js";
import { sendCharges } from "../domain/quota.js";
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
    const { code, next, cost } = nextSend(parts, settleOverdue(before.auth, policy, now), country, policy, now);
    const admitted = await parts.spending.hold(budget, account, cost);
    if ("refusal" in admitted) return toResponse(parts, await note(parts, budget, before, admitted.refusal), "rate_limited", policy);
    const { hold } = admitted;
    const charges = sendCharges({ ...next, attempt: next.attempts }, policy, now, parts.settings.clockSkew);
    const { swap, refusal } = await chargeAndSwap(parts, budget, charges, hold, next, before, () => withdraw(parts, budget, next, before));
    if (!swap.swapped) {
      held = swap.held;
      continue;
    }
    if (refusal !== undefined) {
      const withdrawn = await withdraw(parts, budget, next, before, capDecision(refusal));
      return toResponse(parts, withdrawn, "rate_limited", policy);
    }
    const { result, auth } = await handOver(parts, budget, swap.held.auth, code, country, policy, hold);
    return toResponse(parts, auth, result === "rejected" ? "denied" : "approved", policy);
  }
  throw unavailable(new Error(`lost ${maxRaces} races for authentication ${request.authentication_uuid}`));
}

/** Takes back the send that `sending` added to `before`, and records the cap that refused it. */
async function withdraw(parts: Parts, budget: StoreBudget, sending: Authentication, before: Held, refusal?: Decision): Promise<Authentication> {
  const withdrawn = await transition(parts.records, budget, sending.customer, sending.id, (auth) => {
    const taken = withdrawSend(auth, sending.attempts, before.auth);
    const next = refusal === undefined ? taken : withDecision(taken, refusal);
    return { result: next, next };
  });
  return withdrawn ?? before.auth;
}

/** Records what refused a retry that nothing was written of yet. */
async function note(parts: Parts, budget: StoreBudget, { auth }: Held, refusal: Decision): Promise<Authentication> {
  const noted = await transition(parts.records, budget, auth.customer, auth.id, (current) => {
    const next = withDecision(current, refusal);
    return { result: next, next };
  });
  return noted ?? auth;
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
