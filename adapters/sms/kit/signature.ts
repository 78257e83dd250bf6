import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { isRecord, parseJson, pick } from "../../kit/json.js";

/** Compares in constant time, whatever the lengths; a prefix does not match. */
export function sameText(a: string, b: string): boolean {
  return timingSafeEqual(createHash("sha256").update(a).digest(), createHash("sha256").update(b).digest());
}

export function sha256Hex(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Whether `hash`, in either case, is the SHA-256 of the bytes. */
export function isSha256Of(bytes: Uint8Array | string, hash: unknown): boolean {
  return typeof hash === "string" && sameText(hash.toLowerCase(), sha256Hex(bytes));
}

/** The parameters sorted by name, then value, in one pass: a stranger may post tens of thousands. */
export function sortedPairs(form: URLSearchParams): [name: string, value: string][] {
  const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  return [...form].sort(([name, value], [otherName, otherValue]) => order(name, otherName) || order(value, otherValue));
}

const jwtHashes: ReadonlyMap<unknown, string> = new Map([
  ["HS256", "sha256"],
  ["HS384", "sha384"],
  ["HS512", "sha512"],
]);

/** The claims of a JSON Web Token signed with `secret` (HS256, HS384 or HS512 only); undefined for any other. */
export function readJwt(token: string, secret: string): Readonly<Record<string, unknown>> | undefined {
  const parts = token.split(".");
  const [head = "", claims = "", signature = ""] = parts;
  const hash = jwtHashes.get(pick(decode(head), "alg"));
  if (parts.length !== 3 || hash === undefined) return undefined;
  if (!sameText(createHmac(hash, secret).update(`${head}.${claims}`).digest("base64url"), signature)) return undefined;
  const body = decode(claims);
  return isRecord(body) ? body : undefined;
}

function decode(part: string): unknown {
  return parseJson(Buffer.from(part, "base64url").toString("utf8"));
}

/** A JWT's time claim in milliseconds since the epoch. */
export function claimTime(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value * 1000 : undefined;
}
