import type { StoredRecord } from "../../../src/ports/store.js";
import { CorruptRecord } from "../../kit/store.js";

const packed = /^[sw]([^|]+)\|([^|]+)\|(.*)$/s;

/**
 * A record as stored in Redis, without the first letter, which marks whether it has to wake: tokens separated by
 * commas, `keepUntil` in base 36, and the data, separated by bars.
 */
export function packRecord({ tokens, keepUntil, data }: StoredRecord): string {
  return `${tokens.map(packToken).join(",")}|${keepUntil.toString(36)}|${data}`;
}

/** One token as written in a packed record; empty for none. */
export function packToken(token: string | null | undefined): string {
  return token ? encodeURIComponent(token) : "";
}

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
