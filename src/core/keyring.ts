import { randomBytes, randomInt, timingSafeEqual } from "node:crypto";
import { idInSlot, slotOf, uuidOfHex } from "../domain/ids.js";
import { type Hmac, hmacOf, sha256 } from "./hash.js";

/** Random values, and values keyed with a secret. */
export type Keyring = ReturnType<typeof createKeyring>;

/** What is derived under each secret; there is at least one. */
export type UnderEach<T> = readonly [T, ...T[]];

/** Characters kept of a base64url digest: 132 bits, more than the half required by RFC 2104, section 5. */
const digestLength = 22;

/** Characters kept where collisions could only happen by chance. */
const pseudonymLength = 16;

/** `secrets`: current first. `pepper`: keys the names of windows, slots and keyed ids. Default: one of the secrets. */
export function createKeyring(secrets: readonly string[], pepper?: string) {
  const random = randomPool();
  const keys = secrets.map((secret) => hmacOf(secret));
  const current = keys[0] as Hmac;
  // Names must be the same in every process, even if processes list the secrets in a different order.
  const ordered = [...secrets].sort((a, b) => (sha256(a) < sha256(b) ? -1 : 1));
  const namingKeys = (pepper === undefined ? ordered : [pepper]).map((secret) => hmacOf(secret));
  const keyed = (key: Hmac, purpose: string, text: string) => key(`${purpose}\0${text}`).slice(0, digestLength);
  const each = <T>(by: readonly Hmac[], derive: (key: Hmac) => T) => by.map(derive) as unknown as UnderEach<T>;
  const pseudonyms = each(namingKeys, (key) => (text: string) => keyed(key, "window", text).slice(0, pseudonymLength));

  return {
    /** Draws a code: "unbiased from the platform's CSPRNG" (docs/contract.md#code). */
    draw: (length: number) => String(randomInt(10 ** length)).padStart(length, "0"),
    /**
     * "stored only as HMAC-SHA-256 under a secret from the options, over authentication and code"
     * (docs/contract.md#code); the first 132 bits.
     */
    digest: (id: string, code: string) => keyed(current, "code", `${id}\0${code}`),
    /**
     * The last item whose digest matches `code` under any secret (docs/contract.md#secret-rotation), "compared in
     * constant time" (docs/contract.md#code).
     */
    matching<T extends { readonly digest: string }>(id: string, code: string, held: readonly T[]): T | undefined {
      if (held.length === 0) return undefined;
      let found: T | undefined;
      for (const key of keys) {
        const made = keyed(key, "code", `${id}\0${code}`);
        for (const one of held) if (isSame(one.digest, made)) found = one;
      }
      return found;
    },
    /** Digests of a text under each secret, current first. `purpose` separates uses. */
    fingerprints: (purpose: string, text: string) => each(keys, (key) => keyed(key, purpose, text)),
    /**
     * "An idempotency key makes the id of the authentication (a UUID from a hash of customer and key, keyed with `pepper`)"
     * (docs/contract.md#keyed-id): the id under the pepper, or under each secret. The order does not depend on theirs.
     */
    idsFor: (customer: string, name: string) => each(namingKeys, (key) => toUuid(Buffer.from(keyed(key, "id", `${customer}\0${name}`), "base64url"))),
    /** The slot of a name under the pepper, or under each secret, in the order of `idsFor` (docs/contract.md#slot). */
    slotsFor: (customer: string, name: string) => each(namingKeys, (key) => toSlot(keyed(key, "slot", `${customer}\0${name}`))),
    /** Returns a new id in a slot. */
    newIdIn(slot: string): string {
      const last = randomInt(1, 2 ** 32);
      return idInSlot(slot, last.toString(16).padStart(8, "0"));
    },
    /** "Window names hold no number … in clear: a keyed hash" (docs/contract.md#hashed-names); its first 96 bits. */
    pseudonym: pseudonyms[0],
    /** The same under the pepper, or under each secret, the one in use first: finds what was stored before a rotation. */
    pseudonyms,
    /** Encrypts the middle digits of a number for storage; a secret is needed to read them. */
    encryptNumber(id: string, number: string): string {
      const { from, to } = middleOf(number);
      return `${number.slice(0, from)}*${encryptedDigits(number.slice(from, to), keyed(current, "number", id))}${number.slice(to)}`;
    },
    /** Decrypts a number under any of the secrets; if none fits, it is masked. `undefined`: it is not encrypted. */
    decryptNumber(id: string, encrypted: string): string | undefined {
      const [, head, kept, tail] = encryptedNumber.exec(encrypted) ?? [];
      if (kept === undefined) return undefined;
      for (const key of keys) {
        const digits = digitsIn(kept, keyed(key, "number", id));
        if (digits !== undefined) return head + digits + tail;
      }
      return `${head}****${tail}`;
    },
    /** Returns a new random UUID. */
    newId: () => toUuid(random(16)),
    /** Returns a token for one write: 64 random bits. */
    newToken: () => random(8).toString("base64url"),
  };
}

/** Compares two digests in constant time. */
function isSame(one: string, other: string): boolean {
  return one.length === digestLength && other.length === digestLength && timingSafeEqual(Buffer.from(one, "latin1"), Buffer.from(other, "latin1"));
}

/**
 * Random bytes, fetched from the platform 4 KiB at a time. No byte is used twice. Without this short cut, a direct flow
 * takes a quarter more of the processor's time.
 */
function randomPool(): (size: number) => Buffer {
  let pool = Buffer.alloc(0);
  let at = 0;
  return (size) => {
    if (at + size > pool.length) {
      pool = randomBytes(4096);
      at = 0;
    }
    at += size;
    return pool.subarray(at - size, at);
  };
}

/** The first ninety bits of a digest, as a slot. */
function toSlot(digest: string): string {
  return slotOf(toUuid(Buffer.from(digest, "base64url"), 0x80));
}

/** Turns the first sixteen bytes into a UUID, of version 4 by default. */
function toUuid(bytes: Buffer, version = 0x40): string {
  bytes[6] = ((bytes[6] as number) & 0x0f) | version;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  return uuidOfHex(bytes.toString("hex", 0, 16));
}

/** An encrypted number: its visible digits, with a star and six characters replacing the middle ones. */
const encryptedNumber = /^(\+\d*)\*([\w-]{6})(\d{0,2})$/;

/** The range of the hidden digits: those that `maskNumber` hides. */
function middleOf(number: string): { readonly from: number; readonly to: number } {
  const from = Math.min(number.length, Math.max(3, number.length - 6));
  return { from, to: Math.max(from, number.length - 2) };
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/**
 * Encrypts up to four digits with a pad: three characters of the pad's digest, which identify the secret, and three for
 * the digits with a 1 before them.
 */
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
