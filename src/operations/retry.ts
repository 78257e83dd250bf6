import { requireChannel } from "../access/destination.js";
import type { Channel } from "../contract/channel.js";
import type { MessageFate, RetryResult } from "../contract/direct.js";
import type { RetryRequest, RetryStatus } from "../contract/retry.js";
import { requireNumber } from "../core/records/records.js";
import { type Authentication, isErased } from "../domain/authentication.js";
import { isEnforced } from "../domain/decision.js";
import type { Account } from "../domain/policy.js";
import { decideRetry, retryStatus } from "../domain/retry.js";
import type { SendResult } from "../domain/send.js";
import { unknownAuthentication } from "../errors.js";
import { handOverInTime } from "../messages/hand-over.js";
import { reserve } from "../messages/reserve.js";
import { channelOf, limitedBy, toRetryResult } from "./answers.js";
import type { Context } from "./context.js";
import type { Delivered } from "./create.js";
import { askAboutRetry, asksAboutRetries, nothingAsked } from "./outside.js";
import { refuseRetry } from "./refusals.js";

/** A retry that is a start by number, or another message of a delivery. */
export interface StartAgain {
  /** The attempt of an earlier call that this one repeats. */
  answered(auth: Authentication, now: number): number | undefined;
  /** The authentication with what this call asks of its next message. */
  amended(auth: Authentication, now: number): Authentication;
  readonly delivery?: Delivered | undefined;
}

/** The result of a retry. */
export interface Resent {
  readonly status: RetryStatus;
  /** The record afterwards; before the message, if it was blocked. */
  readonly auth: Authentication;
  /** The message that was or may have been handed over. */
  readonly attempt?: number;
  /** The outcome of this call's message, if it sent one. */
  readonly result?: SendResult;
  /** Whether a spam rule blocked it, not a cap. */
  readonly isSpam?: boolean;
  readonly fate: MessageFate;
}

export async function retry(context: Context, account: Account, { authentication_uuid: id, channel }: RetryRequest): Promise<RetryResult> {
  requireChannel(context, channel);
  const { status, auth, fate } = await resend(context, account, id, channel);
  return toRetryResult(auth, status, { ...fate, ...channelOf(auth) }, account.policy, context.clock.now(), channel);
}

/**
 * Retry: the rows of `retryStatus`, then the caller's spam rules, caps, built-in spam rules, then the carrier
 * (docs/contract.md#retry-order).
 */
export async function resend(context: Context, account: Account, id: string, channel: Channel | undefined, again?: StartAgain): Promise<Resent> {
  const { clock, records, settings } = context;
  const { customer, policy } = account;
  const deadline = context.newDeadline();
  // The cached record is good enough for the country's state; everything else depends on the stored one.
  const remembered = asksAboutRetries(settings) ? undefined : records.recall(customer, id);
  const { auth } = remembered ?? (await records.find(deadline, customer, id)) ?? {};
  const mayBeSent = auth !== undefined && retryStatus(auth, clock.now(), policy, channel) === "approved";
  const asked = mayBeSent ? await askAboutRetry(context, account, deadline, auth, again !== undefined) : nothingAsked;
  const outside = again?.delivery === undefined ? asked : { ...asked, known: again.delivery.known };

  const reserved = await reserve(context, account, {
    id,
    deadline,
    isNew: false,
    outside,
    given: again?.delivery?.given,
    channel,
    decide(stored, now) {
      if (stored === undefined || isErased(stored) || (stored.purpose !== undefined) !== (again?.delivery !== undefined)) throw unknownAuthentication();
      if (again?.answered(stored, now) !== undefined) return { status: "approved", auth: stored };
      if (retryStatus(stored, now, policy, channel) === "approved") requireNumber(stored);
      const decision = decideRetry(stored, outside.fired, now, policy, channel);
      return again !== undefined && "send" in decision ? { send: again.amended(decision.send, now) } : decision;
    },
  });
  if ("commit" in reserved) {
    const { result, auth: after } = await handOverInTime(context, deadline, reserved.commit);
    if (result === "rejected") return { status: "denied", auth: after, result, fate: { carrier_refused: true } };
    return { status: "approved", auth: after, attempt: reserved.commit.message.next.attempts, result, fate: {} };
  }
  const isRefused = "refusal" in reserved;
  if (!isRefused && !(reserved.status === "rate_limited" && outside.fired.some(isEnforced))) return { status: reserved.status, auth: reserved.auth, fate: {} };
  const before = isRefused ? reserved.refusal.auth : reserved.auth;
  const fired = isRefused ? [...outside.fired, reserved.refusal.decision] : outside.fired;
  refuseRetry(context, before, fired);
  const isSpam = !isRefused || reserved.refusal.status === "spam_detected";
  return { status: "rate_limited", auth: before, isSpam, fate: limitedBy(fired, clock.now()) };
}
