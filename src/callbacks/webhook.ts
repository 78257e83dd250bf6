import { constants, createHmac, type KeyObject, sign } from "node:crypto";
import type { CallbackForm, DeliveryStatusEvent } from "../contract/callback.js";
import { sha256 } from "../core/hash.js";
import type { Authentication, OutboxEvent } from "../domain/authentication.js";
import { typeId } from "../domain/ids.js";
import { maskNumber } from "../domain/phone-number.js";
import { base36, timestamp } from "../domain/time.js";
import { isWebhookSecret, webhookSecretForm } from "../options/secret.js";

/**
 * Signs a delivery.
 * "Callbacks are signed according to Standard Webhooks (… several secrets while rotating); the id is constant over redeliveries"
 * (docs/contract.md#callback-signature). `secrets`: `whsec_<base64>`. `now`: milliseconds since the epoch. Throws if
 * there is no secret, or if one is too weak: nothing is sent that anyone could have signed. `rsaKey`: signs the form of
 * Prelude v2 too, as that API does.
 */
export function toWebhook(auth: Authentication, event: OutboxEvent, secrets: readonly string[], fullNumber: boolean, now: number, rsaKey?: KeyObject) {
  if (secrets.length === 0 || !secrets.every(isWebhookSecret))
    throw new Error(`every secret that signs a callback must be ${webhookSecretForm}, and there must be one`);
  const { callbackForm: form = "phoneproof" } = auth;
  const body = JSON.stringify(bodies[form](auth, event, fullNumber ? auth.number : maskNumber(auth.number)));
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
      ...(form === "prelude-v2" && rsaKey !== undefined && { "x-webhook-signature": `rsassa-pss-sha256=${rsaSignature(rsaKey, body)}` }),
    },
    body,
  };
}

/** The body of an event in each form (docs/contract.md#callback-forms). `number`: as it may be shown. */
const bodies: Readonly<Record<CallbackForm, (auth: Authentication, event: OutboxEvent, number: string) => object>> = {
  phoneproof: (auth, event, number): DeliveryStatusEvent => ({
    type: "delivery_status",
    timestamp: timestamp(event.at),
    data: {
      authentication_uuid: auth.id,
      sequence: event.sequence,
      attempt: event.attempt,
      phone_number: number,
      status: event.status,
      ...(event.route !== undefined && { route: event.route }),
      ...(event.channel !== undefined && { channel: event.channel }),
      ...(event.error !== undefined && { error: event.error }),
    },
  }),
  "prelude-v2": (auth, event, number) => {
    const time = timestamp(event.at);
    // The creation time distinguishes records that had the same idempotency key.
    const idOf = (prefix: string, part: number) => typeId(prefix, sha256(`${prefix}\0${auth.id}\0${auth.createdAt}\0${part}`).slice(0, 32));
    return {
      id: idOf("evt", event.sequence),
      type: "verify.delivery_status",
      created_at: time,
      payload: {
        id: idOf("dls", event.sequence),
        verification_id: typeId("vrf", auth.id),
        attempt_id: idOf("att", event.attempt),
        status: event.status,
        target: { type: "phone_number", value: number },
        metadata: auth.correlationId === undefined ? {} : { correlation_id: auth.correlationId },
        time,
      },
    };
  },
};

function rsaSignature(key: KeyObject, body: string): string {
  const padding = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  return sign("sha256", Buffer.from(body), { key, ...padding }).toString("base64url");
}

/** The default secret for a customer's callbacks, derived from the verifier's own: the same in every process. */
export function derivedWebhookSecret(secret: string, customer: string): string {
  return `whsec_${createHmac("sha256", secret).update(`webhook\0${customer}`).digest("base64")}`;
}
