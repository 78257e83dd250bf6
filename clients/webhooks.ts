import { createHmac, timingSafeEqual } from "node:crypto";
import { types } from "node:util";
import type { DeliveryStatusData, DeliveryStatusEvent } from "../src/contract/callback.js";

export type { DeliveryStatusData, DeliveryStatusEvent };

/** Maximum deviation of a webhook's timestamp, in seconds (Standard Webhooks). */
const tolerance = 5 * 60;

/**
 * "Random. At least 24 bytes (192 bits, 512 maximum)" (Standard Webhooks, Signature scheme). Longer keys are as strong,
 * so they are accepted.
 */
const shortestKey = 24;

/** Base64 in either alphabet, with or without padding. */
const base64 = /^(?:[\w+/-]{4})*(?:[\w+/-]{2}(?:==)?|[\w+/-]{3}=?)?$/;

/** Why a webhook was rejected. */
export class WebhookError extends Error {
  override readonly name = "WebhookError";
}

export interface VerifyWebhookOptions {
  /**
   * `whsec_<base64>`, or several during a rotation: the result of `verifier.webhookSecrets(customerUuid)`. White space
   * around it is removed.
   */
  readonly secret: string | readonly string[];
  /** The request's headers: a `Headers`, or an object as in node, Express, Fastify and Lambda. */
  readonly headers: Pick<Headers, "get"> | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The exact body of the request, before any JSON parser. */
  readonly body: string | Uint8Array | ArrayBuffer;
  /** Milliseconds since the epoch. Default: now. */
  readonly now?: number;
}

/**
 * Verifies and reads a delivery-status callback, for receivers. Throws `WebhookError` unless a signature under one of
 * the secrets is valid and the timestamp is at most 5 minutes off. An invalid secret (below 24 bytes, empty, not
 * base64) rejects every webhook. A callback may come more than once with the same `webhook-id`, so store the ids you
 * have handled.
 *
 * Of the body it checks only that it is an object with a `type`. A verification of the Prelude v2 API reports in that
 * API's form: cast those events to the type in docs/migrate/prelude-v2.md#webhooks.
 */
export function verifyWebhook(options: VerifyWebhookOptions): DeliveryStatusEvent {
  const { secret, headers, body, now = Date.now() } = options ?? {};
  const keys = keysOf(secret);
  const id = onlyHeader(headers, "webhook-id");
  const timestamp = onlyHeader(headers, "webhook-timestamp");
  // Written so that a clock that returns NaN accepts nothing.
  if (!/^\d{1,12}$/.test(timestamp) || !(Math.abs(now / 1000 - Number(timestamp)) <= tolerance))
    throw new WebhookError("webhook-timestamp is more than 5 minutes off");

  const bytes = bytesOf(body);
  const made = keys.map((key) => Buffer.from(createHmac("sha256", key).update(`${id}.${timestamp}.`).update(bytes).digest("base64")));
  // "v1,<signature>", several separated by spaces; if the header is repeated, by commas.
  const given = headerValues(headers, "webhook-signature")
    .flatMap((value) => value.split(/[\s,]+/))
    .flatMap((part, at, parts) => (parts[at - 1] === "v1" ? [Buffer.from(part)] : []));
  // Every pair is compared. A prefix of a signature has another length and never matches.
  const matches = made.flatMap((mine) => given.map((theirs) => theirs.length === mine.length && timingSafeEqual(theirs, mine)));
  if (!matches.includes(true)) throw new WebhookError("no signature in webhook-signature is valid; is the secret right, and is body the raw body?");
  const event = parsed(bytes);
  if (typeof event?.type !== "string") throw new WebhookError("the signed body is not an event: an object with a `type`");
  return event;
}

function parsed(bytes: Uint8Array): DeliveryStatusEvent | null {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new WebhookError("the body is not JSON");
  }
}

/** The keys of all secrets. A single invalid one is an error: anyone could sign with it. */
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

function secretError(path: string, problem: string): WebhookError {
  return new WebhookError(
    `${path} ${problem}: pass what verifier.webhookSecrets(customer_uuid) returns, whsec_ and at least ${shortestKey} bytes in base64; is the environment variable set?`,
  );
}

/** The value of a header that may occur only once. */
function onlyHeader(headers: VerifyWebhookOptions["headers"], name: string): string {
  const [value, ...more] = headerValues(headers, name);
  if (more.length > 0) throw new WebhookError(`the header ${name} occurs more than once`);
  return value;
}

/** All values of a header, at least one. Names are case-insensitive. */
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
