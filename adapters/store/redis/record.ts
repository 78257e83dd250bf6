import type { StoredRecord } from "../../../src/ports/store.js";

const packed = /^a([^|]+)\|([^|]+)\|([^|]*)\|(.*)$/s;

/** A record as Redis holds it: `a`, the tokens separated by commas, `keepUntil`, `wakeAt` or nothing, the data; separated by bars. */
export function packRecord(record: StoredRecord): string {
  const wakeAt = record.wakeAt === undefined ? "" : packTime(record.wakeAt);
  return `a${record.tokens.map(packToken).join(",")}|${packTime(record.keepUntil)}|${wakeAt}|${record.data}`;
}

/** One token as it stands in a packed record; empty for none. */
export function packToken(token: string | null | undefined): string {
  return token ? encodeURIComponent(token) : "";
}

/** The record, or an error that names it when `text` is not what `packRecord` makes. */
export function parseRecord(customer: string, id: string, text: string): StoredRecord {
  try {
    const [, tokens = "", keepUntil = "", wakeAt = "", data = ""] = packed.exec(text) as RegExpExecArray;
    const record = { customer, id, tokens: tokens.split(",").map(decodeURIComponent), data, keepUntil: parseTime(keepUntil) };
    return wakeAt === "" ? record : { ...record, wakeAt: parseTime(wakeAt) };
  } catch {
    throw corruptRecord(customer, id);
  }
}

/** What stands under the record's key cannot be read. */
export function corruptRecord(customer: string, id: string): Error {
  return new Error(`redisStore: the record of authentication ${id} of customer ${customer} is corrupt; it was left as it is`);
}

/** Milliseconds in base 36, which is shorter; after a dot in base 10 where there is a fraction. */
function packTime(ms: number): string {
  return Number.isInteger(ms) ? ms.toString(36) : `.${ms}`;
}

function parseTime(text: string): number {
  const ms = text.startsWith(".") ? Number(text.slice(1)) : Number.parseInt(text, 36);
  if (Number.isNaN(ms)) throw new RangeError("not a time");
  return ms;
}
