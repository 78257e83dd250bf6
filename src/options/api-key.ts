import { isProduction } from "../domain/environment.js";
import { isGuessable, isPublished } from "./secret.js";

// A key (docs/contract.md#api-keys) is `pp_`, 32 random bytes as 43 digits of base 62, and their CRC-32 as six more.
// Secret scanners and people recognise it, and a key with a typo is rejected without a look-up.

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const form = /^pp_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

/** In characters. */
const shortestKey = 32;

/** The key made of 32 random bytes. */
export function apiKeyOf(bytes: Uint8Array): string {
  const drawn = inBase62(BigInt(`0x${Buffer.from(bytes).toString("hex")}`), 43);
  return `pp_${drawn}${checksum(drawn)}`;
}

/** "accepted without its underscore" (docs/contract.md#api-keys). Keys of any other form are returned unchanged. */
export function keyNamed(given: string): string {
  const whole = given.replace(/^pp(?=[0-9A-Za-z]{49}$)/, "pp_");
  return isMistyped(whole) ? given : whole;
}

/** Longer than any key, in characters. Longer header values are not worth hashing. */
export const longestKey = 512;

/** A key may be given as its digest. */
const digest = /^sha256:[0-9a-fA-F]{64}$/;

/** Other notations for digests: of sha256sum, OpenSSL, Subresource Integrity. */
const otherDigest = /^(?:sha2?-?256\b|[0-9a-f]{64}(?:\s|$))/i;

/** What is wrong with a key in the configuration. */
export function keyError(key: string): string | undefined {
  if (isPublished(key)) return "is published in the documentation: generateApiKey() makes one";
  const problem = formError(key);
  if (problem !== undefined || key.startsWith("sha256:")) return problem;
  return isProduction() && isGuessable(key) ? "can be guessed, and NODE_ENV is production: generateApiKey() makes one that cannot" : undefined;
}

/** What is wrong with a key that no request could carry, if anything: mostly an error in a file or a variable. */
function formError(key: string): string | undefined {
  if (key.trim() !== key) return "has white space around it, which headers do not keep: remove it, for example with .trim()";
  if (/[^ -~]/.test(key)) return "must be of printable ASCII characters: it is sent in a header";
  if (/^(["'`]).*\1$/.test(key)) return "has quotes around it, which no request will contain: leave them out";
  if (/^bearer[ :]/i.test(key)) return "begins with Bearer: the header x-api-key contains only the key, so leave that out";
  const parts = key.split(/[\s,;]+/);
  if (parts.length > 1 && parts.every((part) => part === "" || part.length >= shortestKey)) return "is several keys in one string: give each key its own entry";
  if (key.length > longestKey) return `must be at most ${longestKey} characters`;
  if (digest.test(key)) return undefined;
  if (/^[0-9a-f]{64}$/i.test(key))
    return "is 64 hexadecimal digits: the digest of a key is written sha256: and these, and no key looks like one (generateApiKey() creates a key)";
  if (otherDigest.test(key)) return "looks like a digest but would be used as a key: write sha256:, in small letters, and 64 hexadecimal digits";
  if (key.length < shortestKey)
    return `must be an API key of at least ${shortestKey} characters (generateApiKey() makes one), or sha256: and 64 hexadecimal digits`;
  return isMistyped(key) ? "is mistyped: its last six characters are a checksum, which does not match" : undefined;
}

/** Whether a text has the form of a generated key but the wrong checksum. Keys of any other form are not checked. */
export function isMistyped(key: string): boolean {
  const [, drawn, sum] = form.exec(key) ?? [];
  return drawn !== undefined && checksum(drawn) !== sum;
}

function checksum(text: string): string {
  return inBase62(BigInt(crc32(text)), 6);
}

function inBase62(value: bigint, width: number): string {
  let text = "";
  for (let left = value; text.length < width; left /= 62n) text = base62.charAt(Number(left % 62n)) + text;
  return text;
}

/** CRC-32 as in ISO 3309 and zlib, of a text in ASCII. */
function crc32(text: string): number {
  let sum = 0xffffffff;
  for (let at = 0; at < text.length; at++) {
    sum ^= text.charCodeAt(at);
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}
