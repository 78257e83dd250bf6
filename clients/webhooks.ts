import { createHmac, timingSafeEqual } from "node:crypto";
import { types } from "node:util";
import type { DeliveryStatusEvent } from "../src/contract/callback.js";

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
  /** The request's headers: a `Headers`, or an object of them as node, Express, Fastify and Lambda have it. */
  readonly headers: Pick<Headers, "get"> | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The request's body to the letter, before any JSON parser. */
  readonly body: string | Uint8Array | ArrayBuffer;
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
  const id = onlyHeader(headers, "webhook-id");
  const timestamp = onlyHeader(headers, "webhook-timestamp");
  // Told so that a clock that answers NaN accepts nothing.
  if (!/^\d{1,12}$/.test(timestamp) || !(Math.abs(now / 1000 - Number(timestamp)) <= tolerance))
    throw new WebhookError("webhook-timestamp is more than 5 minutes off");

  const bytes = bytesOf(body);
  const made = keys.map((key) => Buffer.from(createHmac("sha256", key).update(`${id}.${timestamp}.`).update(bytes).digest("base64")));
  // "v1,<signature>", several behind spaces; where the header came twice, behind a comma.
  const given = headerValues(headers, "webhook-signature")
    .flatMap((value) => value.split(/[\s,]+/))
    .flatMap((part, at, parts) => (parts[at - 1] === "v1" ? [Buffer.from(part)] : []));
  // Every pair is compared; a prefix of a signature has another length and is none.
  const matches = made.flatMap((mine) => given.map((theirs) => theirs.length === mine.length && timingSafeEqual(theirs, mine)));
  if (!matches.includes(true)) throw new WebhookError("no signature in webhook-signature holds; is the secret right, and is body the raw body?");
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as DeliveryStatusEvent;
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

/** The value of a header that may stand there once. */
function onlyHeader(headers: VerifyWebhookOptions["headers"], name: string): string {
  const [value, ...more] = headerValues(headers, name);
  if (more.length > 0) throw new WebhookError(`the header ${name} stands there more than once`);
  return value;
}

/** All values of a header, of which there is one at least; names are of any case. */
function headerValues(headers: VerifyWebhookOptions["headers"], name: string): [string, ...string[]] {
  const values = typeof headers?.get === "function" ? [headers.get(name)] : valuesIn(headers, name);
  const [first, ...more] = values.filter((value) => typeof value === "string" && value !== "") as string[];
  if (first === undefined) throw new WebhookError(`the header ${name} is missing; is headers the headers of the request?`);
  return [first, ...more];
}

function valuesIn(headers: unknown, name: string): unknown[] {
  return Object.entries(headers ?? {}).flatMap(([key, value]) => (key.toLowerCase() === name ? value : []));
}

function bytesOf(body: unknown): Uint8Array {
  if (typeof body === "string") return Buffer.from(body);
  if (types.isUint8Array(body)) return body;
  if (types.isAnyArrayBuffer(body)) return new Uint8Array(body);
  throw new WebhookError(`body is ${body === null ? "null" : typeof body}, not the raw body as a string or bytes; does a JSON parser come before?`);
}
