import type { RecordWrite, StoredRecord } from "../../../src/ports/store.js";
import { type Document, expireAt, isDuplicate, literal, type MongoCollection } from "./driver.js";

/** A write that another came before, with what stands there. */
interface Lost {
  readonly done: false;
  readonly current?: StoredRecord;
}

/** The key of a record: the same `id` under two customers is two records, whatever characters they hold. */
export function recordKey(customer: string, id: string): Document {
  return { customer, id };
}

/** Writes the record if the newest stored token is `expected`: one conditional update. */
export async function writeRecord(authentications: MongoCollection, record: RecordWrite, expected: string | null): Promise<Lost | undefined> {
  const { customer, id, tokens, data, keepUntil, wakeAt } = record;
  const _id = recordKey(customer, id);
  const filter = expected === null ? { _id, expireAt: { $exists: false } } : { _id, "tokens.0": expected, tokens: { $ne: tokens[0] } };
  const kept = wakeAt === "unchanged" ? { _id: "$_id", wakeAt: "$wakeAt", lease: "$lease" } : { _id: "$_id", wakeAt };
  const next = { $mergeObjects: [kept, literal({ tokens: [...tokens], data, keepUntil }), { expireAt: expireAt(record) }] };
  try {
    const written = await authentications.updateOne(filter, [{ $replaceWith: next }], { upsert: expected === null });
    const { matchedCount, upsertedCount } = written as { readonly matchedCount: number; readonly upsertedCount: number };
    if (matchedCount + upsertedCount > 0) return undefined;
  } catch (error) {
    if (!isDuplicate(error)) throw error;
  }
  // What the race was lost to may not have reached the majority yet: a read there could answer with the record from before.
  const current = await authentications.findOne({ _id }, { readConcern: { level: "local" } });
  return current === null ? { done: false } : { done: false, current: parseRecord(current) };
}

/** The record, or an error that names it when the document is not what `writeRecord` makes. */
export function parseRecord(document: unknown): StoredRecord {
  const { _id, tokens, data, keepUntil } = document as Document;
  const { customer, id } = (_id ?? {}) as Document;
  const whole =
    typeof customer === "string" &&
    typeof id === "string" &&
    Array.isArray(tokens) &&
    tokens.length > 0 &&
    tokens.every((token) => typeof token === "string") &&
    typeof data === "string" &&
    typeof keepUntil === "number";
  if (!whole) throw new CorruptRecord(`mongoStore: the record of authentication ${id} of customer ${customer} is corrupt; it was left as it is`);
  return { customer, id, tokens, data, keepUntil };
}

/** What stands under a record's key cannot be read. */
export class CorruptRecord extends Error {}
