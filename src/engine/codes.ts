import { createHmac, createSecretKey, type KeyObject, randomBytes, randomInt, timingSafeEqual } from "node:crypto";
import { lastUsed } from "./records/last-used.js";

/** Everything that is drawn at random or keyed with a secret. */
export interface Codes {
  /** "unbiased from the platform's CSPRNG" (contract.md, code). */
  draw(length: number): string;
  /** "stored only as HMAC-SHA-256 under a secret from the options … over authentication and code" (contract.md, code), the first 132 bits of it. */
  digest(id: string, code: string): string;
  /** Which of `digests` was made of `code`, under any secret; -1: none. "(two secrets during rotation) … compared in constant time" (contract.md, code). */
  matching(id: string, code: string, digests: readonly string[]): number;
  /** Digests of a text under each secret, the current one first; `purpose` keeps the uses apart. */
  fingerprints(purpose: string, text: string): readonly string[];
  /** "An idempotency key makes the id (a UUID from a keyed hash of customer and key)" (architecture.md, rule 5): the id under each secret, the current one first. */
  idsFor(customer: string, name: string): readonly string[];
  /** "Window names hold no number, address or device in clear: a keyed hash" (contract.md, Limits), the first 96 bits of it. */
  mask(text: string): string;
  /** A new random UUID. */
  newId(): string;
  /** A token for one write: 64 random bits. */
  newToken(): string;
}

/** Characters of a base64url digest that are kept: 132 bits, more than the half that RFC 2104, section 5, asks for. */
const digestLength = 22;

/** Characters that are kept where chance alone could give two texts one digest. */
const maskLength = 16;

/** `secrets`: the current one first. `pepper`: keys the names of windows. Default: the current secret. */
export function createCodes(secrets: readonly string[], pepper = secrets[0] as string): Codes {
  const random = randomPool();
  // A key that is made once spares each digest that work.
  const keys = secrets.map(keyOf);
  const current = keys[0] as KeyObject;
  const windowKey = keyOf(pepper);
  // A number is masked for its create, its retries and its check, a range for all its numbers.
  const masks = lastUsed<string>(4_096);
  const keyed = (key: KeyObject, purpose: string, text: string) =>
    createHmac("sha256", key).update(`${purpose}\0${text}`).digest("base64url").slice(0, digestLength);

  return {
    draw: (length) => String(randomInt(10 ** length)).padStart(length, "0"),
    digest: (id, code) => keyed(current, "code", `${id}\0${code}`),
    matching(id, code, digests) {
      if (digests.length === 0) return -1;
      const held = digests.map((digest) => Buffer.from(digest));
      let found = -1;
      for (const key of keys) {
        const made = Buffer.from(keyed(key, "code", `${id}\0${code}`));
        for (const [at, digest] of held.entries()) if (digest.length === made.length && timingSafeEqual(digest, made)) found = at;
      }
      return found;
    },
    fingerprints: (purpose, text) => keys.map((key) => keyed(key, purpose, text)),
    idsFor: (customer, name) => keys.map((key) => toUuid(Buffer.from(keyed(key, "id", `${customer}\0${name}`), "base64url"))),
    mask(text) {
      const known = masks.get(text);
      if (known !== undefined) return known;
      const masked = keyed(windowKey, "window", text).slice(0, maskLength);
      masks.set(text, masked, 1);
      return masked;
    },
    newId: () => toUuid(random(16)),
    newToken: () => random(8).toString("base64url"),
  };
}

function keyOf(secret: string): KeyObject {
  return createSecretKey(secret, "utf8");
}

/** Random bytes from the platform, fetched 4 KiB at a time: a call into the CSPRNG costs more than its bytes. No byte is handed out twice. */
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

/** Sixteen bytes in the form of a version 4 UUID. */
function toUuid(bytes: Buffer): string {
  const own = Buffer.from(bytes);
  own.writeUInt8((own.readUInt8(6) & 0x0f) | 0x40, 6);
  own.writeUInt8((own.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = own.toString("hex");
  // Joined it is one piece; a template would keep its five alive wherever it is held.
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
