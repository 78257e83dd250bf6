import { createHmac, timingSafeEqual } from "node:crypto";
import type { DeliveryStatusEvent } from "../../src/contract/callback.js";

export type { DeliveryStatusEvent };

/** Seconds that a webhook's timestamp may be off (Standard Webhooks). */
const tolerance = 5 * 60;

/** "Random. At least 24 bytes (192 bits, 512 maximum)" (Standard Webhooks, Signature scheme). A longer key than that is no weaker, so none is refused here. */
const shortestKey = 24;

/** Base64 in either alphabet, with its padding or without. */
const base64 = /^(?:[\w+/-]{4})*(?:[\w+/-]{2}(?:==)?|[\w+/-]{3}=?)?$/;

/** Why a webhook was refused. */
export class WebhookError extends Error {
  override readonly name = "WebhookError";
}

export interface VerifyWebhookOptions {
  /** `whsec_<base64>`, or several while one is being rotated: what `verifier.webhookSecrets(customerUuid)` answers. White space around it is dropped. */
  readonly secret: string | readonly string[];
  /** The request's headers: a `Headers`, or node's object of them. */
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The request's body to the letter, before any JSON parser. */
  readonly body: string | Uint8Array;
  /** Milliseconds since the epoch. Default: now. */
  readonly now?: number;
}

/**
 * Reads a delivery-status callback, for receivers. Throws `WebhookError` unless a signature under one of the secrets holds and the timestamp is at most 5 minutes off;
 * and for every webhook where one of the secrets is none that could be kept: below 24 bytes, an empty variable, no base64.
 *
 * A callback may come more than once: `webhook-id` stays the same, so keep the ids you have handled.
 */
export function verifyWebhook({ secret, headers, body, now = Date.now() }: VerifyWebhookOptions): DeliveryStatusEvent {
  const keys = keysOf(secret);
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
  const made = keys.map((key) => createHmac("sha256", key).update(signed).digest());
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

/** The keys of all secrets. One that is none makes the others worth nothing: whoever knows it could sign. */
function keysOf(secret: unknown): Buffer[] {
  if (!Array.isArray(secret)) return [keyOf("secret", secret)];
  if (secret.length === 0) throw secretError("secret", "is an empty list");
  return Array.from(secret, (one, index) => keyOf(`secret.${index}`, one));
}

function keyOf(path: string, secret: unknown): Buffer {
  if (typeof secret !== "string") throw secretError(path, `is ${secret === null ? "null" : typeof secret}, not a string`);
  const text = secret.trim();
  if (/^wh[ps]k_/.test(text)) throw secretError(path, "is a key of asymmetric signatures (v1a), and these are v1");
  const encoded = text.replace(/^whsec_/, "");
  if (!base64.test(encoded)) throw secretError(path, "is not base64");
  const key = Buffer.from(encoded, "base64");
  if (key.length < shortestKey) throw secretError(path, `has ${key.length} bytes, and below ${shortestKey} it can be guessed`);
  return key;
}

function secretError(path: string, fault: string): WebhookError {
  return new WebhookError(
    `${path} ${fault}: give what verifier.webhookSecrets(customer_uuid) answers, whsec_ and at least ${shortestKey} bytes in base64; is the environment variable set?`,
  );
}
