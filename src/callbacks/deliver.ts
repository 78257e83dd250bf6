import { propertiesOf } from "../core/collections.js";
import { withTimeout } from "../core/deadline.js";
import { withoutNumbers } from "../core/loggers.js";
import { type Decided, update } from "../core/records/transact.js";
import type { Authentication, OutboxEvent } from "../domain/authentication.js";
import { type DeliveryResult, deadEvent, deliveryTimeout, settleDelivery } from "../domain/delivery.js";
import { VerifierError } from "../errors.js";
import type { Observed } from "../observability/observed.js";
import type { CallbackSender } from "../ports/callback-sender.js";
import { listing } from "./dead-letters.js";
import { toWebhook } from "./webhook.js";

export interface DeliveryParts extends Observed {
  readonly callbackSender: CallbackSender;
  /** Sends a message in place of one that did not arrive; returns the record, `undefined` if it is gone. */
  readonly fallBack: (auth: Authentication) => Promise<Authentication | undefined>;
  /** Secrets that sign a customer's callbacks, current first. */
  readonly webhookSecrets: (customer: string) => Promise<readonly string[]>;
}

/** Characters stored of a failure reason: a receiver's certificate alone can add many thousands to an error. */
const longestReason = 500;

/** The outcome of a delivery. `failed`: it will be retried; `dead`: it was given up. */
export interface Delivery {
  readonly outcome: "delivered" | "failed" | "dead";
  /** Whether the receiver responded, with whatever status. */
  readonly responded: boolean;
  /** The record after the delivery. */
  readonly auth: Authentication;
}

/**
 * Delivers one event and stores the outcome; `undefined` if this worker no longer owned it, or if `unlessInterrupted`
 * returned `undefined`. Rejects with `unavailable`.
 */
export async function deliver(
  parts: DeliveryParts,
  auth: Authentication,
  event: OutboxEvent,
  unlessInterrupted: (post: Promise<DeliveryResult>) => Promise<DeliveryResult | undefined>,
): Promise<Delivery | undefined> {
  const { clock, records, monitor, newDeadline } = parts;
  const answer = await unlessInterrupted(post(parts, auth, event));
  if (answer === undefined) return undefined;
  const now = clock.now();
  const jitter = Math.random();
  const settled = await update(records, newDeadline(), auth.customer, auth.id, (current): Decided<Authentication | undefined> => {
    const next = settleDelivery(current, event.sequence, event.tries, answer, now, jitter);
    if (next === undefined) return { result: undefined };
    const given = deadEvent(next, event.sequence);
    return { result: next, next, ...(given !== undefined && { claims: [listing(next, given)] }) };
  });
  if (settled === undefined) return undefined;
  const responded = "status" in answer;
  const left = settled.outbox.find(({ sequence }) => sequence === event.sequence);
  if (left === undefined) {
    monitor.callback(settled, event, "delivered", undefined);
    return { outcome: "delivered", responded, auth: settled };
  }
  const fields = { authentication_uuid: auth.id, sequence: event.sequence, reason: responded ? `answered ${answer.status}` : answer.failed };
  monitor.callback(settled, event, left.dead === undefined ? "failed" : "dead", left.dead ?? fields.reason);
  if (left.dead === undefined) monitor.throttledLog.warn(fields, "a callback could not be delivered; it will be retried");
  else monitor.throttledLog.error({ ...fields, reason: left.dead }, "a callback was given up");
  return { outcome: left.dead === undefined ? "failed" : "dead", responded, auth: settled };
}

async function post({ clock, settings, callbackSender, webhookSecrets }: DeliveryParts, auth: Authentication, event: OutboxEvent): Promise<DeliveryResult> {
  try {
    const answer: unknown = await withTimeout(clock, deliveryTimeout, async () =>
      callbackSender.post({
        ...toWebhook(auth, event, await webhookSecrets(auth.customer), settings.fullNumber, clock.now(), settings.rsaPrivateKey),
        url: auth.callbackUrl as string,
        customer: auth.customer,
        timeout: deliveryTimeout,
        allowOrigins: settings.allowOrigins,
      }),
    );
    return soundAnswer(answer);
  } catch (error) {
    return { failed: reasonOf(error) };
  }
}

/** Why a delivery failed, for the operator: for one of our own errors, its cause. */
function reasonOf(error: unknown): string {
  const thrown = (error instanceof VerifierError ? error.cause : undefined) ?? error;
  const { message } = propertiesOf(typeof thrown === "string" ? { message: thrown } : thrown);
  return typeof message === "string" ? withoutNumbers(message, longestReason) : "no error was thrown, but something else";
}

/** The response of a callback sender, as a failure if it is invalid. */
function soundAnswer(answer: unknown): DeliveryResult {
  const { status, retryAfter, failed } = propertiesOf(answer);
  if (typeof failed === "string") return { failed: withoutNumbers(failed, longestReason) };
  if (!Number.isInteger(status)) return { failed: "the callback sender returned neither a status nor an error" };
  return { status: status as number, ...(Number.isFinite(retryAfter) && { retryAfter: retryAfter as number }) };
}
