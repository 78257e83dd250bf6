import type { StoredRecord } from "../../../src/ports/store.js";
import { type Document, endsAt } from "./driver.js";

/** The key of a record: the same `id` under two customers is two records, whatever characters they hold. */
export function recordKey(customer: string, id: string): Document {
  return { customer, id };
}

/** A record's fields as MongoDB holds them beside `_id`: those of the port, and `expireAt` for MongoDB's housekeeping. */
export function recordFields({ tokens, data, keepUntil, wakeAt }: StoredRecord): Document {
  return { tokens: [...tokens], data, keepUntil, ...(wakeAt === undefined ? {} : { wakeAt }), expireAt: endsAt(keepUntil) };
}

/** The record, or an error that names it when the document is not what `recordFields` makes. */
export function parseRecord(document: unknown): StoredRecord {
  const { _id, tokens, data, keepUntil, wakeAt } = document as Document;
  const { customer, id } = (_id ?? {}) as Document;
  const whole =
    typeof customer === "string" &&
    typeof id === "string" &&
    Array.isArray(tokens) &&
    tokens.length > 0 &&
    tokens.every((token) => typeof token === "string") &&
    typeof data === "string" &&
    typeof keepUntil === "number" &&
    (wakeAt === undefined || typeof wakeAt === "number");
  if (!whole) throw new CorruptRecord(`mongoStore: the record of authentication ${id} of customer ${customer} is corrupt; it was left as it is`);
  return { customer, id, tokens, data, keepUntil, ...(wakeAt === undefined ? {} : { wakeAt }) };
}

/** What stands under a record's key cannot be read. */
export class CorruptRecord extends Error {}
