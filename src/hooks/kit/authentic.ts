import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { isProduction } from "../../domain/environment.js";
import { isWebhookSecret } from "../../options/secret.js";
import { openSecrets, optionError } from "./option-error.js";

/** What shows whether a request is authentic. */
export interface HookRequest {
  /** Returns a header by its lower-case name; several values are joined by `, `. */
  header(name: string): string | undefined;
  /** The part of the path behind the hook's name, of hooks with `secretInPath`. */
  readonly pathSecret?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Reads the exact bytes of the body. A check of a token does without, so that a stranger's body is never read. */
  bytes(): Promise<Uint8Array>;
}

/** Returns why a request is not authentic, for the log and without anything of the request; `undefined` if it is. */
export type Authenticate = (request: HookRequest) => string | undefined | Promise<string | undefined>;

/** How far a signed timestamp may be off, in seconds. */
const tolerance = 300;

/** Compares in constant time, whatever the lengths. */
export function sameText(one: string, other: string): boolean {
  return timingSafeEqual(createHash("sha256").update(one).digest(), createHash("sha256").update(other).digest());
}

/** Whether any of `given` is one of `expected`. Every pair is compared. */
function anySame(given: readonly string[], expected: readonly string[]): boolean {
  return expected.map((one) => given.map((other) => sameText(one, other)).includes(true)).includes(true);
}

/** One secret, or several for rotation. */
export type Secrets = string | readonly string[];

/** How a server sends a fixed token. */
export interface TokenOptions {
  /** Sent alone, as `Bearer <token>`, or as the password of `Basic`. Several during a rotation. */
  readonly token: Secrets;
  /** The header that holds it. Default `authorization`. */
  readonly header?: string | undefined;
}

/**
 * Accepts a token in a header: alone, as `Bearer <token>`, or as the password of `Basic`. With `secretInPath`, the path
 * may hold it instead.
 *
 * @throws TypeError if there is no token, and in production if it can be guessed.
 */
export function byToken(owner: string, { token, header = "authorization" }: TokenOptions, option = "token"): Authenticate {
  const fix = "Make one with `openssl rand -hex 24`, and set the same value in the server.";
  const secrets = openSecrets(owner, option, token, fix);
  if (isProduction() && secrets.some(({ length }) => length < 16))
    throw optionError(owner, option, "has fewer than 16 characters, and NODE_ENV is production", fix);
  const name = header.toLowerCase();
  return (request) => {
    const given = [...tokensIn(request.header(name)), ...(request.pathSecret === undefined ? [] : [request.pathSecret])];
    if (given.length === 0) return `it has no ${name} header`;
    return anySame(given, secrets) ? undefined : "its token is wrong";
  };
}

/** What a header may mean as a token. */
function tokensIn(header: string | undefined): string[] {
  if (header === undefined || header === "") return [];
  const [, scheme = "", rest = ""] = /^(bearer|basic) +(.+?) *$/i.exec(header) ?? [];
  if (scheme.toLowerCase() === "bearer") return [header, rest];
  if (scheme === "") return [header];
  const pair = Buffer.from(rest, "base64").toString("utf8");
  return [header, pair, pair.slice(pair.indexOf(":") + 1)];
}

/** Accepts the hexadecimal HMAC-SHA-256 of the body in a header. @throws TypeError if there is no key. */
export function byBodyHmac(owner: string, option: string, keys: Secrets | undefined, header: string, fix: string): Authenticate {
  const secrets = openSecrets(owner, option, keys, fix);
  return async (request) => {
    const given = request.header(header);
    if (given === undefined) return `it has no ${header} header`;
    const body = await request.bytes();
    const made = secrets.map((key) => createHmac("sha256", key).update(body).digest("hex"));
    return anySame([given.toLowerCase()], made) ? undefined : "its signature does not match";
  };
}

/**
 * Accepts `<header>: t=<seconds>,v1=<hex>`, several `v1` during a rotation: the HMAC-SHA-256 of `<seconds>.<body>`.
 *
 * @throws TypeError if there is no key.
 */
export function byTimedHmac(owner: string, option: string, keys: Secrets | undefined, header: string, fix: string): Authenticate {
  const secrets = openSecrets(owner, option, keys, fix);
  return async (request) => {
    const parts = (request.header(header) ?? "").split(",").map((part) => part.trim().split("="));
    const seconds = parts.find(([name]) => name === "t")?.[1] ?? "";
    const given = parts.flatMap(([name, value = ""]) => (name === "v1" ? [value.toLowerCase()] : []));
    if (seconds === "" || given.length === 0) return `it has no ${header} header with t and v1`;
    if (isStale(seconds, request.now)) return `its timestamp is more than ${tolerance} s off`;
    const body = await request.bytes();
    const made = secrets.map((key) => createHmac("sha256", key).update(`${seconds}.`).update(body).digest("hex"));
    return anySame(given, made) ? undefined : "its signature does not match";
  };
}

/**
 * Accepts the signature of Standard Webhooks. Several signatures may be separated by spaces or commas.
 *
 * @param secrets `whsec_<base64>`, 24 to 64 bytes.
 * @throws TypeError for any other secret.
 */
export function byStandardWebhook(owner: string, option: string, secrets: readonly string[], fix: string): Authenticate {
  if (!secrets.every(isWebhookSecret)) throw optionError(owner, option, "must be whsec_ and 24 to 64 bytes in base64", fix);
  const keys = secrets.map((secret) => Buffer.from(secret.slice("whsec_".length), "base64"));
  return async (request) => {
    const [id, seconds, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => request.header(name));
    if (!id || !seconds || !signatures) return "it has no webhook-id, webhook-timestamp and webhook-signature headers";
    if (isStale(seconds, request.now)) return `its timestamp is more than ${tolerance} s off`;
    const body = await request.bytes();
    const made = keys.map((key) => createHmac("sha256", key).update(`${id}.${seconds}.`).update(body).digest("base64"));
    const given = [...signatures.matchAll(/(?<![^\s,])v1,([^\s,]+)/g)].map(([, signature = ""]) => signature);
    return anySame(given, made) ? undefined : "its signature does not match";
  };
}

/** Written so that a clock that returns NaN accepts nothing. */
function isStale(seconds: string, now: number): boolean {
  return !/^\d{1,12}$/.test(seconds) || !(Math.abs(now / 1000 - Number(seconds)) <= tolerance);
}
