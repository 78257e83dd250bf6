import { constants, createHmac, type KeyObject, sign } from "node:crypto";
import type { Authentication, OutboxEvent } from "../domain/authentication.js";
import { maskNumber } from "../domain/phone-number.js";
import { base36 } from "../domain/time.js";
import { isWebhookSecret, webhookSecretForm } from "../options/webhook-secret.js";
import { bodies } from "./forms.js";

/** A signed delivery, ready to post. */
export interface Webhook {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * "Callbacks are signed according to Standard Webhooks (… several secrets while rotating); the id is constant over redeliveries"
 * (docs/contract.md#callback-signature). `secrets`: `whsec_<base64>`. `now`: milliseconds since the epoch. Throws if
 * there is no secret, or if one is too weak: nothing is sent that anyone could have signed. `rsaKey`: signs the form of
 * Prelude v2 too, as that API does.
 */
export function toWebhook(auth: Authentication, event: OutboxEvent, secrets: readonly string[], fullNumber: boolean, now: number, rsaKey?: KeyObject): Webhook {
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

function rsaSignature(key: KeyObject, body: string): string {
  const padding = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  return sign("sha256", Buffer.from(body), { key, ...padding }).toString("base64url");
}

/**
 * The default secret for a customer's callbacks, derived from the verifier's own so that every process gets the same.
 */
export function derivedWebhookSecret(secret: string, customer: string): string {
  return `whsec_${createHmac("sha256", secret).update(`webhook\0${customer}`).digest("base64")}`;
}
