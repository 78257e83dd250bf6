import type { StoredRecord } from "../../../src/ports/store.js";
import { CorruptRecord, customerOf } from "../../kit/store.js";

const nameOfRecord = /^(:[^:]*:|[^:]{22})(:[^:]*:|[^:]{22})$/;

export type Keys = ReturnType<typeof keysUnder>;

/**
 * Names all keys of the store: `prefix{0}r…` is a record, `prefix{0}w` the wake index of shard 0, `prefix{t}…` a
 * counter, `prefix{}…` a value. Per customer: `prefix{customer}:…` is a list, `prefix{customer}.…` a window with
 * limits, `prefix{customer}#…#17` part 17 of a sum, `prefix{customer}!…` a ticket. `prefix` has no brace, so a key's
 * first brace opens its hash tag.
 */
export function keysUnder(prefix: string, shards: number) {
  return {
    /** The record, its wake index and its name in that; the two keys share a slot. */
    record(customer: string, id: string) {
      // Eight digits of a UUID are random enough. Any other id is in shard 0, whatever the number of shards.
      const shard = `${prefix}{${shards > 1 && isUuid(id) ? Number.parseInt(id.slice(0, 8), 16) % shards : 0}}`;
      const name = packUuid(customer) + packUuid(id);
      return { record: `${shard}r${name}`, wake: `${shard}w`, name };
    },
    /** The wake index of every shard. */
    wakes: Array.from({ length: shards }, (_, shard) => `${prefix}{${shard}}w`),
    /** The prefix of a customer's keys, which share a slot. `name`: one of the customer's windows or sums. */
    customer: (name: string) => `${prefix}{${packUuid(customerOf(name))}}`,
    /** A counter; all counters share a slot. */
    counter: (counter: string) => `${prefix}{t}${counter}`,
    /** A value, each in its own slot: Redis ignores an empty hash tag. */
    value: (key: string) => `${prefix}{}${key}`,
  };
}

// What a key adds to the prefix of `customer`; the number of a part follows its sum.
export const listName = (list: string) => list.slice(customerOf(list).length);
export const windowName = (window: string) => `.${listName(window)}`;
export const partName = (sum: string) => `#${listName(sum)}#`;

/** The customer and id in a record's name in the wake index. */
export function parseName(name: string): { readonly customer: string; readonly id: string } {
  const [, customer = "", id = ""] = nameOfRecord.exec(name) ?? [];
  return { customer: unpackUuid(customer), id: unpackUuid(id) };
}

/** A member as stored in a window, without spaces or line breaks; a leading UUID takes a tilde and 22 characters. */
export function packMember(member: string): string {
  if (member === "" || /[ \n]/.test(member)) return `~=${member.replace(/[ \n%]/g, encodeURIComponent)}`;
  if (isUuid(member.slice(0, 36))) return `~${packUuid(member.slice(0, 36))}${member.slice(36)}`;
  return member.startsWith("~") ? `~${member}` : member;
}

/** Reverses `packMember`. */
export function parseMember(packed: string): string {
  if (!packed.startsWith("~")) return packed;
  if (packed.startsWith("~=")) return decodeURIComponent(packed.slice(2));
  return packed.startsWith("~~") ? packed.slice(1) : unpackUuid(packed.slice(1, 23)) + packed.slice(23);
}

/** Whether a text is a UUID in lower case. */
const isUuid = (text: string): boolean => /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(text);

/** Packs a lower-case UUID into 22 characters; other texts are escaped between colons. */
function packUuid(text: string): string {
  return isUuid(text) ? Buffer.from(text.replaceAll("-", ""), "hex").toString("base64url") : `:${encodeURIComponent(text)}:`;
}

/** Reverses `packUuid`. */
function unpackUuid(packed: string): string {
  if (packed.startsWith(":")) return decodeURIComponent(packed.slice(1, -1));
  return Buffer.from(packed, "base64url")
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

const packed = /^[sw]([^|]+)\|([^|]+)\|(.*)$/s;

/**
 * A record as stored in Redis, without the first letter, which marks whether it has to wake: tokens separated by
 * commas, `keepUntil` in base 36, and the data, separated by bars.
 */
export const packRecord = ({ tokens, keepUntil, data }: StoredRecord) => `${tokens.map(packToken).join(",")}|${keepUntil.toString(36)}|${data}`;

/** One token as written in a packed record; empty for none. */
export const packToken = (token: string | null | undefined) => (token ? encodeURIComponent(token) : "");

/** Returns the record, or an error that names it if `text` is not from `packRecord`. */
export function parseRecord({ customer, id }: Pick<StoredRecord, "customer" | "id">, text: string): StoredRecord {
  try {
    const [, tokens = "", end = "", data = ""] = packed.exec(text) as RegExpExecArray;
    const keepUntil = Number.parseInt(end, 36);
    if (Number.isNaN(keepUntil)) throw new RangeError("not a time");
    return { customer, id, tokens: tokens.split(",").map(decodeURIComponent), data, keepUntil };
  } catch {
    throw new CorruptRecord("redisStore", customer, id);
  }
}
