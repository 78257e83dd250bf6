import { VerifierError } from "../errors.js";
import type { HttpBody, HttpRequest } from "./message.js";

/** "413 over 16 KiB" (contract.md, wire rule 6). Bytes. */
export const bodyLimit = 16 * 1024;

/** Levels of nesting; the known fields need one. */
const depthLimit = 32;

/** application/json, its relatives, and what clients send that do not say. */
const jsonType = /^application\/(?:[a-z0-9!#$&^_.+-]+\+)?json$/;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** The JSON value in the body of a request. Throws `bad_request` and `payload_too_large`. */
export async function readJson(request: HttpRequest): Promise<unknown> {
  const type = (request.header("content-type") ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (type !== "" && !jsonType.test(type)) throw new VerifierError("bad_request", "The content-type must be application/json.");
  return toValue(await request.body(bodyLimit), request);
}

function toValue(body: HttpBody, request: HttpRequest): unknown {
  switch (body.kind) {
    case "bytes":
      return sound(parseText(decode(body.bytes)));
    case "text":
      if (Buffer.byteLength(body.text) > bodyLimit) throw tooLarge();
      // A host's parser leaves the byte order mark that a decoder takes off.
      return sound(parseText(body.text.replace(/^\ufeff/, "")));
    case "parsed":
      sound(body.value);
      // Content-length told its size, or else its size as JSON does.
      if (request.header("content-length") === undefined && Buffer.byteLength(JSON.stringify(body.value) ?? "") > bodyLimit) throw tooLarge();
      return body.value;
    case "refused":
      throw body.reason === "too_large" ? tooLarge() : malformed();
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new VerifierError("bad_request", "The body is not valid UTF-8.");
  }
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw malformed();
  }
}

function sound(value: unknown): unknown {
  if (isSound(value, 0)) return value;
  throw new VerifierError("bad_request", `The body must not nest deeper than ${depthLimit} levels or hold a key named __proto__.`);
}

/** No `__proto__` key at any level, and no deep nesting: neither has a place in a request, and both are made to trip programs. */
function isSound(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (depth >= depthLimit || Object.hasOwn(value, "__proto__")) return false;
  return Object.values(value).every((inner) => isSound(inner, depth + 1));
}

function malformed(): VerifierError {
  return new VerifierError("bad_request", "The body is not valid JSON.");
}

function tooLarge(): VerifierError {
  return new VerifierError("payload_too_large", `The body is larger than ${bodyLimit} bytes.`);
}
