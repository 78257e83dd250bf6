import { createHash, randomBytes, randomInt, timingSafeEqual } from "node:crypto";
import { type Hmac, hmacOf } from "./hash.js";

/** Everything that is drawn at random or keyed with a secret. */
export interface Keyring {
  /** "unbiased from the platform's CSPRNG" (docs/contract.md#code). */
  draw(length: number): string;
  /** "stored only as HMAC-SHA-256 under a secret from the options, over authentication and code" (docs/contract.md#code), the first 132 bits of it. */
  digest(id: string, code: string): string;
  /** The last of what holds a digest that was made of `code`, under any secret (docs/contract.md#secret-rotation). "compared in constant time" (docs/contract.md#code). */
  matching<T extends { readonly digest: string }>(id: string, code: string, held: readonly T[]): T | undefined;
  /** Digests of a text under each secret, the current one first; `purpose` keeps the uses apart. */
  fingerprints(purpose: string, text: string): readonly string[];
  /** "An idempotency key makes the id of the authentication (a UUID from a keyed hash of customer and key)" (docs/contract.md#keyed-id): the id under each secret. The order is the same in whatever order the secrets are given. */
  idsFor(customer: string, name: string): readonly string[];
  /** "Window names hold no number, address or device in clear: a keyed hash" (docs/contract.md#hashed-names), the first 96 bits of it. */
  pseudonym(text: string): string;
  /** A number as records keep it: its middle digits can be read by those who hold a secret alone. */
  encryptNumber(id: string, number: string): string;
  /** The number that was sealed under any secret; `undefined`: under none of these. */
  decryptNumber(id: string, encrypted: string): string | undefined;
  /** A new random UUID. */
  newId(): string;
  /** A token for one write: 64 random bits. */
  newToken(): string;
}

/** Characters of a base64url digest that are kept: 132 bits, more than the half that RFC 2104, section 5, asks for. */
const digestLength = 22;

/** Characters that are kept where chance alone could give two texts one digest. */
const pseudonymLength = 16;

/** `secrets`: the current one first. `pepper`: keys the names of windows. Default: one of the secrets. */
export function createKeyring(secrets: readonly string[], pepper?: string): Keyring {
  const random = randomPool();
  const keys = secrets.map((secret) => hmacOf(secret));
  const current = keys[0] as Hmac;
  // Names must be the same in every process, also where two processes list the secrets in another order.
  const digestOf = (secret: string) => createHash("sha256").update(secret).digest("hex");
  const ordered = [...secrets].sort((a, b) => (digestOf(a) < digestOf(b) ? -1 : 1));
  const namingKeys = ordered.map((secret) => hmacOf(secret));
  const windowKey = hmacOf(pepper ?? (ordered[0] as string));
  const keyed = (key: Hmac, purpose: string, text: string) => key(`${purpose}\0${text}`).slice(0, digestLength);

  return {
    draw: (length) => String(randomInt(10 ** length)).padStart(length, "0"),
    digest: (id, code) => keyed(current, "code", `${id}\0${code}`),
    matching<T extends { readonly digest: string }>(id: string, code: string, held: readonly T[]) {
      if (held.length === 0) return undefined;
      let found: T | undefined;
      for (const key of keys) {
        const made = keyed(key, "code", `${id}\0${code}`);
        for (const one of held) if (isSame(one.digest, made)) found = one;
      }
      return found;
    },
    fingerprints: (purpose, text) => keys.map((key) => keyed(key, purpose, text)),
    idsFor: (customer, name) => namingKeys.map((key) => toUuid(Buffer.from(keyed(key, "id", `${customer}\0${name}`), "base64url"), 0, 16)),
    pseudonym: (text) => keyed(windowKey, "window", text).slice(0, pseudonymLength),
    encryptNumber(id, number) {
      const { from, to } = middleOf(number);
      return `${number.slice(0, from)}*${encryptedDigits(number.slice(from, to), keyed(current, "number", id))}${number.slice(to)}`;
    },
    decryptNumber(id, encrypted) {
      const [, head, kept, tail] = encryptedNumber.exec(encrypted) ?? [];
      if (kept === undefined) return undefined;
      for (const key of keys) {
        const digits = digitsIn(kept, keyed(key, "number", id));
        if (digits !== undefined) return head + digits + tail;
      }
      return undefined;
    },
    newId: () => random(16, toUuid),
    newToken: () => random(8, toToken),
  };
}

/** Whether two digests are the same, compared in constant time. */
function isSame(one: string, other: string): boolean {
  return one.length === digestLength && other.length === digestLength && timingSafeEqual(Buffer.from(one, "latin1"), Buffer.from(other, "latin1"));
}

/** Random bytes from the platform, fetched 4 KiB at a time: a call into the CSPRNG costs more than its bytes. No byte is handed out twice. */
function randomPool(): <T>(size: number, read: (pool: Buffer, from: number, to: number) => T) => T {
  let pool = Buffer.alloc(0);
  let at = 0;
  return (size, read) => {
    if (at + size > pool.length) {
      pool = randomBytes(4096);
      at = 0;
    }
    at += size;
    return read(pool, at - size, at);
  };
}

const toToken = (bytes: Buffer, from: number, to: number): string => bytes.toString("base64url", from, to);

/** Sixteen bytes in the form of a version 4 UUID, which they are made into. */
function toUuid(bytes: Buffer, from: number, to: number): string {
  bytes[from + 6] = ((bytes[from + 6] as number) & 0x0f) | 0x40;
  bytes[from + 8] = ((bytes[from + 8] as number) & 0x3f) | 0x80;
  const hex = bytes.toString("hex", from, to);
  // Joined it is one piece; a template would keep its five alive wherever it is held.
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** A sealed number: what people may see of it, and in the place of its middle digits a star and six characters. */
export const encryptedNumber = /^(\+\d*)\*([\w-]{6})(\d{0,2})$/;

/** Where the digits begin and end that are not to be seen: those that `maskNumber` leaves out. */
function middleOf(number: string): { readonly from: number; readonly to: number } {
  const from = Math.min(number.length, Math.max(3, number.length - 6));
  return { from, to: Math.max(from, number.length - 2) };
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Up to four digits under a pad: three characters of its digest, which tell the secret, and three that hold the digits, a 1 before them. */
function encryptedDigits(digits: string, pad: string): string {
  const value = Number(`1${digits}`);
  let sealed = pad.slice(0, 3);
  for (let at = 3; at < 6; at++) sealed += alphabet[((value >> (6 * (5 - at))) & 63) ^ alphabet.indexOf(pad[at] as string)];
  return sealed;
}

function digitsIn(sealed: string, pad: string): string | undefined {
  if (!sealed.startsWith(pad.slice(0, 3))) return undefined;
  const value = [3, 4, 5].reduce((sum, at) => sum * 64 + (alphabet.indexOf(sealed[at] as string) ^ alphabet.indexOf(pad[at] as string)), 0);
  const text = String(value);
  return text.startsWith("1") && text.length <= 5 ? text.slice(1) : undefined;
}
