import { createPrivateKey, type KeyObject } from "node:crypto";
import { isProduction } from "../domain/environment.js";

/** Secrets, keys and digests that are or were in our documentation and examples. */
const published: ReadonlySet<string> = new Set([
  "for development only: openssl rand -base64 32",
  "pp_for_development_only_0123456789abcdef",
  "sha256:3f3d887e0b07f2fcc79626036a12428434752129505c122b9e220c62e2301015",
  `whsec_${"A".repeat(32)}`,
]);

/** Whether a secret or key is one that was published. */
export function isPublished(secret: string): boolean {
  return published.has(secret) || published.has(secret.toLowerCase());
}

/** Bits that a secret or key must hold in production; 32 random bytes hold 256, as base64 or hexadecimal digits. */
const fewestBits = 64;

/** Bits that a word is worth, whatever its length: one of 256. */
const bitsOfWord = 8;

/** What reads as a word: random letters sooner or later have four consonants in a row. */
const word = /^(?!.*[^aeiouy]{4})[a-z]{3,}$/i;

/** Words of placeholders, which are worth nothing. */
const placeholder =
  /^(?:and|api|app|base|bits?|bytes?|changeme|change|characters?|chars?|default|dev|development|example|for|foo|bar|here|hex|insert|key|least|live|local|long|must|not|one|only|openssl|password|passphrase|phoneproof|please|prod|production|put|rand|random|replace|sample|secrets?|some|string|super|test|tests|testing|than|that|the|this|token|use|value|verifier|verify|very|with|you|your)$/i;

/**
 * Whether a secret or key is worth less than 64 bits by a plain estimate. A character counts as one of those that
 * occur; 0 if it repeats or follows its neighbour, or ends four characters seen before. A word counts 8 bits at most, 0
 * if placeholders use it; a symbol counts 1.
 */
export function isGuessable(secret: string): boolean {
  let bits = 0;
  let at = 0;
  const values = valuesOf(secret);
  for (const [token] of secret.matchAll(/[A-Z]?[a-z]+|[A-Z]+|./gsu)) {
    const end = at + [...token].length;
    const drawn = values.slice(at, end).reduce((sum, value) => sum + value, 0);
    if (!word.test(token)) bits += drawn;
    else if (!placeholder.test(token)) bits += Math.min(bitsOfWord, drawn);
    at = end;
  }
  return bits < fewestBits;
}

/** What each character is worth, in bits. */
function valuesOf(secret: string): number[] {
  const characters = [...secret];
  const drawn = Math.log2(new Set(characters).size);
  const seen = new Set<string>();
  return characters.map((character, at) => {
    const four = characters.slice(Math.max(0, at - 3), at + 1).join("");
    const stoodBefore = four.length === 4 && seen.has(four);
    seen.add(four);
    if (stoodBefore || (at > 0 && areNeighbours(characters[at - 1] as string, character))) return 0;
    return /[a-z\d]/i.test(character) ? drawn : 1;
  });
}

const keyboard = "qwertyuiop asdfghjkl zxcvbnm";

function areNeighbours(one: string, other: string): boolean {
  const [a, b] = [one.toLowerCase(), other.toLowerCase()];
  const [left, right] = [keyboard.indexOf(a), keyboard.indexOf(b)];
  return Math.abs(codeOf(a) - codeOf(b)) <= 1 || (left !== -1 && right !== -1 && Math.abs(left - right) === 1);
}

const codeOf = (character: string) => character.codePointAt(0) as number;

/** What is wrong with the verifier's own secret. */
export function secretProblem(secret: string): string | undefined {
  const fix = "make one with: openssl rand -base64 32";
  // As read from a file. For a process that gets it without, every code would be wrong.
  if (/[\r\n]$/.test(secret)) return "has a line break at its end: remove it, for example with .trim()";
  return secret.length < 32 ? `must have at least 32 characters; ${fix}` : knownError(secret, fix);
}

/** What is wrong with a secret that strangers know, or may guess. */
function knownError(secret: string, fix: string): string | undefined {
  if (isPublished(secret)) return `is published in the documentation; ${fix}`;
  return isProduction() && isGuessable(secret) ? `can be guessed, and NODE_ENV is production; ${fix}` : undefined;
}

/** The form of a secret that signs callbacks (Standard Webhooks, Signature scheme: "192 bits, 512 maximum"). */
export const webhookSecretForm = "whsec_ and 24 to 64 bytes in base64";

/** Padding is optional; URL-safe base64 is invalid, as some receivers read it as an empty key. */
export function isWebhookSecret(secret: string): boolean {
  const [, digits = "", padding = ""] = /^whsec_([A-Za-z0-9+/]*)(={0,2})$/.exec(secret) ?? [];
  const bytes = Math.floor((digits.length * 3) / 4);
  const isWhole = padding === "" ? digits.length % 4 !== 1 : (digits.length + padding.length) % 4 === 0;
  return isWhole && bytes >= 24 && bytes <= 64;
}

/** What is wrong with a secret that signs callbacks. `mayBeWeak`: only its form counts. */
export function webhookSecretError(secret: string, mayBeWeak = false): string | undefined {
  const fix = 'make one with: echo "whsec_$(openssl rand -base64 32)"';
  if (!isWebhookSecret(secret)) return `must be ${webhookSecretForm}; ${fix}`;
  return mayBeWeak ? undefined : knownError(secret, fix);
}

/** Environment variables often hold line breaks as `\n`. Throws if the text is not a key. */
export function privateKeyOf(pem: string): KeyObject {
  return createPrivateKey(pem.replaceAll("\\n", "\n"));
}

/** What is wrong with an RSA private key in PEM form. Nothing of the key is in the text. */
export function rsaKeyError(pem: string): string | undefined {
  const fix = "make one with: openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048";
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = privateKeyOf(pem);
    if (asymmetricKeyType === "rsa" && Number(asymmetricKeyDetails?.modulusLength) >= 2048) return undefined;
  } catch {}
  return `must be an RSA private key of 2048 bits or more in PEM form; ${fix}`;
}
