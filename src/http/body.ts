import { TimedOut, withTimeout } from "../core/deadline.js";
import { VerifierError } from "../errors.js";
import type { Clock } from "../ports/clock.js";
import type { HttpBody, HttpRequest } from "./message.js";

/** "the body is over 16 KiB" (docs/contract.md#other-faults). Bytes. */
export const bodyLimit = 16 * 1024;

/** Milliseconds from the request for a body to its last byte, on every route. */
const bodyTime = 10_000;

/** Levels of nesting; the known fields need one. */
const depthLimit = 32;

/** application/json, its variants, and what clients send by default. */
const jsonType = /^application\/(?:[a-z0-9!#$&^_.+-]+\+)?json$/;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads a body and passes it to `read`. Without a body after 10 s the response is 408: hosts may set no limit, and
 * twenty slow uploads would otherwise hold twenty connections forever.
 */
export async function bodyOf<T>(clock: Clock, request: HttpRequest, limit: number, read: (body: HttpBody, request: HttpRequest) => T): Promise<T> {
  try {
    return read(await withTimeout(clock, bodyTime, () => request.body(limit)), request);
  } catch (error) {
    throw error instanceof TimedOut ? new VerifierError("request_timeout", `The body did not arrive within ${bodyTime / 1000} seconds.`) : error;
  }
}

/** The JSON value of a request body. Throws `bad_request` and `payload_too_large`. */
export function readJson(clock: Clock, request: HttpRequest): Promise<unknown> {
  if (!isJson(request.header("content-type"))) throw new VerifierError("bad_request", "The content-type must be application/json.");
  return bodyOf(clock, request, bodyLimit, toValue);
}

function isJson(given = ""): boolean {
  if (given === "application/json") return true;
  const type = given.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  return type === "" || jsonType.test(type);
}

function toValue(body: HttpBody, request: HttpRequest): unknown {
  const encoding = encodingOf(request);
  switch (body.kind) {
    case "bytes":
      return sound(parseText(decode(body.bytes, encoding), encoding));
    case "text":
      if (Buffer.byteLength(body.text) > bodyLimit) throw tooLarge();
      // A host's parser keeps the byte order mark, which a decoder removes.
      return sound(parseText(body.text.replace(/^\ufeff/, ""), encoding));
    case "parsed":
      sound(body.value);
      // Content-length gives the received size. For compressed or chunked bodies, the size is measured on the JSON.
      if ((encoding !== undefined || request.header("content-length") === undefined) && Buffer.byteLength(JSON.stringify(body.value) ?? "") > bodyLimit)
        throw tooLarge();
      return body.value;
    case "refused":
      if (body.reason === "cut_off") throw new VerifierError("bad_request", "The request body was cut off.");
      throw body.reason === "too_large" ? tooLarge() : malformed(body.reason === "encoded" ? encoding : undefined);
  }
}

/** The content encoding, if any: only the host's parser may decompress the body. */
function encodingOf(request: HttpRequest): string | undefined {
  const encoding = (request.header("content-encoding") ?? "").trim().toLowerCase();
  return encoding === "" || encoding === "identity" ? undefined : encoding;
}

function decode(bytes: Uint8Array, encoding: string | undefined): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw encoding === undefined ? new VerifierError("bad_request", "The body is not valid UTF-8.") : malformed(encoding);
  }
}

function parseText(text: string, encoding: string | undefined): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw malformed(encoding);
  }
}

function sound(value: unknown): unknown {
  if (isSound(value, 0)) return value;
  throw new VerifierError("bad_request", `The body must not nest deeper than ${depthLimit} levels or hold a key named __proto__.`);
}

/**
 * No `__proto__` key at any level, and no deep nesting (docs/contract.md#sound-bodies): no request needs them, and both
 * are used to attack parsers.
 */
function isSound(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (depth >= depthLimit || Object.hasOwn(value, "__proto__")) return false;
  for (const inner of Object.values(value)) if (!isSound(inner, depth + 1)) return false;
  return true;
}

/** `encoding`: the content encoding that may have prevented reading. */
function malformed(encoding: string | undefined): VerifierError {
  if (encoding === undefined) return new VerifierError("bad_request", "The body is not valid JSON.");
  return new VerifierError(
    "bad_request",
    `The body is not plain JSON, and its content-encoding, ${encoding.slice(0, 32)}, is not supported: send it without one.`,
  );
}

function tooLarge(): VerifierError {
  return new VerifierError("payload_too_large", `The body is larger than ${bodyLimit} bytes.`);
}
