import type { RecordWrite, StoredRecord } from "../../../src/ports/store.js";
import { CorruptRecord } from "../../kit/store.js";
import { type Document, literal, type Statement, upsert } from "./driver.js";

/** The key of a record: the same `id` under two customers is two records, whatever characters they contain. */
export const recordKey = ({ customer, id }: Pick<StoredRecord, "customer" | "id">): Document => ({ customer, id });

/** Writes the record if the newest stored token is `expected`, else fails. */
export function writeRecord(record: RecordWrite, expected: string | null, end: Date): Statement {
  const { tokens, data, keepUntil, wakeAt } = record;
  const key = recordKey(record);
  const fields = { tokens: [...tokens], data, keepUntil, ...(typeof wakeAt === "number" && { wakeAt }) };
  if (expected === null) return upsert({ _id: key, expireAt: { $exists: false } }, { $set: { ...fields, expireAt: end } });
  // As much later or earlier as the record ends, whatever the caller's clock.
  const expireAt = { $add: ["$expireAt", { $subtract: [keepUntil, "$keepUntil"] }] };
  // A document without tokens has no `$size`: if none matches, the statement fails without creating one.
  const _id = { $cond: [{ $size: "$tokens" }, "$_id", null] };
  const $set = { ...fields, tokens: literal(tokens), data: literal(data), expireAt, _id };
  const $unset = wakeAt === undefined ? ["lease", "wakeAt"] : "lease";
  return upsert({ _id: key, "tokens.0": expected, tokens: { $ne: tokens[0] } }, [{ $set }, ...(wakeAt === "unchanged" ? [] : [{ $unset }])]);
}

/** Returns the record, or an error that names it if the document is not one that `writeRecord` makes. */
export function parseRecord(document: unknown): StoredRecord {
  const { _id, tokens, data, keepUntil } = document as Document;
  const { customer, id } = (_id ?? {}) as Document;
  const isText = (value: unknown) => typeof value === "string";
  const whole = [customer, id, data].every(isText) && Array.isArray(tokens) && tokens.length > 0 && tokens.every(isText) && typeof keepUntil === "number";
  if (!whole) throw new CorruptRecord("mongoStore", customer, id);
  return { customer, id, tokens, data, keepUntil } as StoredRecord;
}
