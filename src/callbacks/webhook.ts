import { createHmac } from "node:crypto";
import type { DeliveryStatusEvent } from "../contract/callback.js";
import type { Authentication, OutboxEvent } from "../domain/authentication.js";
import { maskNumber } from "../domain/phone-number.js";
import { base36, timestamp } from "../domain/time.js";
import { isWebhookSecret, webhookSecretForm } from "../options/webhook-secret.js";

/** A signed delivery, ready to post. */
export interface Webhook {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * "signed after Standard Webhooks (… several secrets while rotating), the id constant over redeliveries"
 * (docs/contract.md#callback-signature). `secrets`: `whsec_<base64>`. `now`: milliseconds since the epoch. Throws if
 * there is no secret, or if one is too weak: nothing is sent that anyone could have signed.
 */
export function toWebhook(auth: Authentication, event: OutboxEvent, secrets: readonly string[], fullNumber: boolean, now: number): Webhook {
  if (secrets.length === 0 || !secrets.every(isWebhookSecret))
    throw new Error(`every secret that signs a callback must be ${webhookSecretForm}, and there must be one`);
  const body = JSON.stringify(toPayload(auth, event, fullNumber));
  // With an idempotency key, an id can be reused after its record ends: the creation time makes it unique.
  const id = `msg_${auth.id}_${base36(auth.createdAt)}_${event.sequence}`;
  const seconds = String(Math.floor(now / 1000));
  const signatures = secrets.map(
    (secret) =>
      `v1,${createHmac("sha256", Buffer.from(secret.replace(/^whsec_/, ""), "base64"))
        .update(`${id}.${seconds}.${body}`)
        .digest("base64")}`,
  );
  return {
    headers: {
      "content-type": "application/json",
      "user-agent": "phoneproof",
      "webhook-id": id,
      "webhook-timestamp": seconds,
      "webhook-signature": signatures.join(" "),
    },
    body,
  };
}

function toPayload(auth: Authentication, event: OutboxEvent, fullNumber: boolean): DeliveryStatusEvent {
  return {
    type: "delivery_status",
    timestamp: timestamp(event.at),
    data: {
      authentication_uuid: auth.id,
      sequence: event.sequence,
      attempt: event.attempt,
      phone_number: fullNumber ? auth.number : maskNumber(auth.number),
      status: event.status,
      ...(event.route !== undefined && { route: event.route }),
      ...(event.error !== undefined && { error: event.error }),
    },
  };
}

/**
 * The default secret for a customer's callbacks, derived from the verifier's own so that every process gets the same.
 */
export function derivedWebhookSecret(secret: string, customer: string): string {
  return `whsec_${createHmac("sha256", secret).update(`webhook\0${customer}`).digest("base64")}`;
}
