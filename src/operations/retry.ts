import type { RetryAnswer } from "../contract/direct.js";
import type { RetryRequest } from "../contract/retry.js";
import { requireNumber } from "../core/records/records.js";
import type { Account } from "../domain/account.js";
import { type Authentication, isErased } from "../domain/authentication.js";
import { isEnforced } from "../domain/decision.js";
import { decideRetry, retryStatus } from "../domain/retry.js";
import { unknownAuthentication } from "../errors.js";
import { handOver } from "../messages/hand-over.js";
import { reserve } from "../messages/reserve.js";
import { toRetryAnswer } from "./answers.js";
import type { Context } from "./context.js";
import { askAboutRetry, asksAboutRetries, nothingAsked } from "./outside.js";
import { refuseRetry } from "./refusals.js";

/** A retry that is a start by number. */
export interface StartAgain {
  /** The attempt of an earlier call that this one repeats. */
  answered(auth: Authentication, now: number): number | undefined;
  /** The authentication with what this call asks of its next message. */
  amended(auth: Authentication): Authentication;
  /** Called once its message was or may have been handed over. `after`: the authentication then. */
  handedOver(attempt: number, after: Authentication): void;
}

/**
 * Retry: the rows of `retryStatus`, then the caller's spam rules, caps, built-in spam rules, then the carrier
 * (docs/contract.md#retry-order).
 */
export async function retry(context: Context, account: Account, { authentication_uuid: id }: RetryRequest, again?: StartAgain): Promise<RetryAnswer> {
  const { clock, records, settings } = context;
  const { customer, policy } = account;
  const deadline = context.newDeadline();
  // The cached record is good enough for the country's state; everything else depends on the stored one.
  const remembered = asksAboutRetries(settings) ? undefined : records.recall(customer, id);
  const { auth } = remembered ?? (await records.find(deadline, customer, id)) ?? {};
  const mayBeSent = auth !== undefined && retryStatus(auth, clock.now(), policy) === "approved";
  const outside = mayBeSent ? await askAboutRetry(context, account, deadline, auth) : nothingAsked;

  const reserved = await reserve(context, account, deadline, {
    id,
    isNew: false,
    outside,
    decide(stored, now) {
      if (stored === undefined || isErased(stored)) throw unknownAuthentication();
      if (again?.answered(stored, now) !== undefined) return { status: "approved", auth: stored };
      if (retryStatus(stored, now, policy) === "approved") requireNumber(stored);
      const decision = decideRetry(stored, outside.fired, now, policy);
      return again !== undefined && "send" in decision ? { send: again.amended(decision.send) } : decision;
    },
  });
  if ("commit" in reserved) {
    const { result, auth: after } = await handOver(context, account, deadline, reserved.commit);
    if (result === "rejected") return { ...toRetryAnswer(after, "denied", [], policy, clock.now()), carrier_refused: true };
    again?.handedOver(reserved.commit.message.next.attempts, after);
    return toRetryAnswer(after, "approved", [], policy, clock.now());
  }
  const isRefused = "refusal" in reserved;
  if (!isRefused && !(reserved.status === "rate_limited" && outside.fired.some(isEnforced)))
    return toRetryAnswer(reserved.auth, reserved.status, [], policy, clock.now());
  const before = isRefused ? reserved.refusal.auth : reserved.auth;
  const fired = isRefused ? [...outside.fired, reserved.refusal.decision] : outside.fired;
  refuseRetry(context, before, fired);
  return toRetryAnswer(before, "rate_limited", fired, policy, clock.now());
}
