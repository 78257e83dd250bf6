import { createHmac, timingSafeEqual } from "node:crypto";
import type { DeliveryStatusEvent } from "../../src/contract/callback.js";

export type { DeliveryStatusEvent };

/** Seconds that a webhook's timestamp may be off (Standard Webhooks). */
const tolerance = 5 * 60;

/** Why a webhook was refused. */
export class WebhookError extends Error {
  override readonly name = "WebhookError";
}

export interface VerifyWebhookOptions {
  /** `whsec_<base64>`, or several while one is being rotated: what `verifier.webhookSecrets(customerUuid)` answers. */
  readonly secret: string | readonly string[];
  /** The request's headers: a `Headers`, or node's object of them. */
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The request's body to the letter, before any JSON parser. */
  readonly body: string | Uint8Array;
  /** Milliseconds since the epoch. Default: now. */
  readonly now?: number;
}

/**
 * Reads a delivery-status callback, for receivers. Throws `WebhookError` unless a signature under one of the secrets holds and the timestamp is at most 5 minutes off.
 *
 * A callback may come more than once: `webhook-id` stays the same, so keep the ids you have handled.
 */
export function verifyWebhook({ secret, headers, body, now = Date.now() }: VerifyWebhookOptions): DeliveryStatusEvent {
  const header = (name: string): string => {
    const value = headers instanceof Headers ? headers.get(name) : headers[name];
    if (typeof value !== "string" || value === "") throw new WebhookError(`the header ${name} is missing`);
    return value;
  };
  const id = header("webhook-id");
  const timestamp = header("webhook-timestamp");
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now / 1000 - Number(timestamp)) > tolerance)
    throw new WebhookError("webhook-timestamp is more than 5 minutes off");

  const bytes = Buffer.from(body as Uint8Array);
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), bytes]);
  const made = [secret].flat().map((each) =>
    createHmac("sha256", Buffer.from(each.replace(/^whsec_/, ""), "base64"))
      .update(signed)
      .digest(),
  );
  const given = header("webhook-signature")
    .split(" ")
    .filter((part) => part.startsWith("v1,"))
    .map((part) => Buffer.from(part.slice(3), "base64"));
  // Every pair is compared; a prefix of a signature has another length and is none.
  const matches = made.flatMap((mine) => given.map((theirs) => theirs.length === mine.length && timingSafeEqual(theirs, mine)));
  if (!matches.includes(true)) throw new WebhookError("no signature in webhook-signature holds; is the secret right, and is body the raw body?");
  try {
    return JSON.parse(bytes.toString()) as DeliveryStatusEvent;
  } catch {
    throw new WebhookError("the body is not JSON");
  }
}
