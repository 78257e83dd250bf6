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

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads a body. Without a body after 10 s the response is 408: hosts may set no limit, and twenty slow uploads would
 * otherwise hold twenty connections forever.
 */
export async function bodyOf(clock: Clock, request: HttpRequest, limit: number): Promise<HttpBody> {
  try {
    return await withTimeout(clock, bodyTime, () => request.body(limit));
  } catch (error) {
    throw error instanceof TimedOut ? new VerifierError("request_timeout", `The body did not arrive within ${bodyTime / 1000} seconds.`) : error;
  }
}

/** How bodies of one media type are read. */
interface Form<T> {
  readonly type: string;
  readonly title: string;
  isTypeOf(contentType: string | undefined): boolean;
  parse(text: string): T;
  /** Takes the value that a host's parser made of the text. */
  take(value: unknown): T;
  /** Writes a value that a host's parser made, to measure it. */
  write(value: unknown): string;
}

const jsonForm: Form<unknown> = {
  type: "application/json",
  title: "JSON",
  // Its variants, and what clients send by default.
  isTypeOf: (contentType = "") => /^\s*(application\/([a-z0-9!#$&^_.+-]+\+)?json\s*)?(;|$)/i.test(contentType),
  parse: (text) => sound(JSON.parse(text)),
  take: (value) => sound(value),
  write: (value) => JSON.stringify(value) ?? "",
};

const urlEncodedForm: Form<URLSearchParams> = {
  type: "application/x-www-form-urlencoded",
  title: "form data",
  isTypeOf: (contentType = "") => /^\s*(application\/x-www-form-urlencoded\s*)?(;|$)/i.test(contentType),
  parse: (text) => new URLSearchParams(text),
  take: toParameters,
  write: (value) => toParameters(value).toString(),
};

/** Returns the JSON value of a request body. `limit`: bytes. Throws `bad_request` and `payload_too_large`. */
export function readJson(clock: Clock, request: HttpRequest, limit = bodyLimit): Promise<unknown> {
  return readForm(clock, request, jsonForm, limit);
}

/**
 * Returns the fields of an URL-encoded body. A raw `+` reads as a space. `limit`: bytes. Throws `bad_request` and
 * `payload_too_large`.
 */
export function readUrlEncoded(clock: Clock, request: HttpRequest, limit = bodyLimit): Promise<URLSearchParams> {
  return readForm(clock, request, urlEncodedForm, limit);
}

async function readForm<T>(clock: Clock, request: HttpRequest, form: Form<T>, limit: number): Promise<T> {
  if (!form.isTypeOf(request.header("content-type"))) throw new VerifierError("bad_request", `The content-type must be ${form.type}.`);
  const body = await bodyOf(clock, request, limit);
  const encoding = encodingOf(request);
  const parse = (text: string): T => {
    try {
      return form.parse(text);
    } catch (error) {
      throw error instanceof VerifierError ? error : malformed(form, encoding);
    }
  };
  switch (body.kind) {
    case "bytes":
      return parse(decode(body.bytes, form, encoding));
    case "text":
      if (Buffer.byteLength(body.text) > limit) throw tooLarge(limit);
      // A host's parser keeps the byte order mark, which a decoder removes.
      return parse(body.text.replace(/^\ufeff/, ""));
    case "parsed": {
      const value = form.take(body.value);
      // Content-length gives the received size. For compressed or chunked bodies, the size is measured on the text.
      if ((encoding !== undefined || request.header("content-length") === undefined) && Buffer.byteLength(form.write(body.value)) > limit)
        throw tooLarge(limit);
      return value;
    }
    case "refused":
      if (body.reason === "cut_off") throw new VerifierError("bad_request", "The request body was cut off.");
      throw body.reason === "too_large" ? tooLarge(limit) : malformed(form, body.reason === "encoded" ? encoding : undefined);
  }
}

/**
 * Returns the exact bytes of a body, to verify a signature. `handler` and `signers` name in the error who needs them.
 * Throws `bad_request` and `payload_too_large`, and an `Error` if a parser of the host left only values.
 */
export function exactBytes(body: HttpBody, limit: number, handler: string, signers: string): Uint8Array {
  if (body.kind === "bytes") return body.bytes;
  if (body.kind === "text") return new TextEncoder().encode(body.text);
  if (body.kind === "refused") throw body.reason === "too_large" ? tooLarge(limit) : new VerifierError("bad_request", "The body was rejected.");
  throw new Error(
    `a body parser of the host parsed the body before the ${handler} handler received it, but ${signers} sign its exact bytes: mount the ${handler} handler before express.json() and express.urlencoded(), or let the host keep the bytes in req.rawBody (NestJS: NestFactory.create(AppModule, { rawBody: true }); Express: express.urlencoded({ verify }) and express.json({ verify }) with verify = (req, res, bytes) => { req.rawBody = bytes; })`,
  );
}

/** What a host's parser, such as `express.urlencoded()`, made of a form. Nested fields, which no request has, are left out. */
function toParameters(value: unknown): URLSearchParams {
  if (value instanceof URLSearchParams) return value;
  const parameters = new URLSearchParams();
  for (const [name, given] of Object.entries(typeof value === "object" && value !== null ? value : {}))
    for (const one of [given].flat()) if (typeof one === "string") parameters.append(name, one);
  return parameters;
}

/** The content encoding, if any: only the host's parser may decompress the body. */
function encodingOf(request: HttpRequest): string | undefined {
  const encoding = (request.header("content-encoding") ?? "").trim().toLowerCase();
  return encoding === "" || encoding === "identity" ? undefined : encoding;
}

function decode(bytes: Uint8Array, form: Form<unknown>, encoding: string | undefined): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw encoding === undefined ? new VerifierError("bad_request", "The body is not valid UTF-8.") : malformed(form, encoding);
  }
}

/**
 * Returns the value if it has no `__proto__` key at any level, and no deep nesting (docs/contract.md#sound-bodies): no
 * request needs them, and both are used to attack parsers.
 */
function sound(value: unknown, depth = 0): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (depth >= depthLimit || Object.hasOwn(value, "__proto__"))
    throw new VerifierError("bad_request", `The body must not nest deeper than ${depthLimit} levels or hold a key named __proto__.`);
  for (const inner of Object.values(value)) sound(inner, depth + 1);
  return value;
}

/** `encoding`: the content encoding that may have prevented reading. */
function malformed({ title }: Form<unknown>, encoding: string | undefined): VerifierError {
  if (encoding === undefined) return new VerifierError("bad_request", `The body is not valid ${title}.`);
  return new VerifierError(
    "bad_request",
    `The body is not plain ${title}, and its content-encoding, ${encoding.slice(0, 32)}, is not supported: send it without one.`,
  );
}

function tooLarge(limit: number): VerifierError {
  return new VerifierError("payload_too_large", `The body is larger than ${limit} bytes.`);
}
