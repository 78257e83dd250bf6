import { AssertionError } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { Expiry, MemberClaim, RecordWrite, StoredRecord, SumClaim, SumParts } from "../../ports/store.js";

/** Half an hour, in milliseconds. What must be kept is kept for that long. */
export const halfHour = 1_800_000;

/** Default length of a member window. Milliseconds. */
export const minute = 60_000;

/** An expiry in half an hour. */
export function expiry(now: number = Date.now()): Expiry {
  return { now, keepUntil: now + halfHour };
}

/** A record of a new customer, with one token. */
export function newRecord(fields: Partial<RecordWrite> = {}): RecordWrite {
  return { customer: randomUUID(), id: randomUUID(), tokens: [randomUUID()], data: "first", ...expiry(fields.now), ...fields };
}

/** The next write of `record`: a new token before the older ones, at most 16 in all. `wakeAt` is omitted by default. */
export function following({ customer, id, tokens, data }: StoredRecord, fields: Partial<RecordWrite> = {}): RecordWrite {
  return newRecord({ customer, id, tokens: [randomUUID(), ...tokens].slice(0, 16), data, ...fields });
}

/** The newest token of `record`. */
export function newest(record: StoredRecord): string {
  const [token] = record.tokens;
  if (token === undefined) throw new AssertionError({ message: "a record without tokens came back" });
  return token;
}

/** The name of a window or a sum, of a new customer or of `customer`. */
export function newName(customer: string = randomUUID()): string {
  return `${customer}:${randomUUID()}`;
}

/** A record of a new customer, and names of everything else that a case may need of the same one. `full`: a window. */
export function newScene(fields: Partial<RecordWrite> = {}) {
  const record = newRecord(fields);
  const { customer, now } = record;
  const name = () => newName(customer);
  return { record, customer, now, window: name(), full: name(), list: name(), sum: name(), other: name(), counter: name(), key: name() };
}

/** A claim on `window`: a new member, over the last minute. Without `limit`, the window is a list. */
export function member(window: string, fields: Partial<MemberClaim> = {}): MemberClaim {
  const now = fields.now ?? Date.now();
  return { window, member: randomUUID(), since: now - minute, ...expiry(now), ...fields };
}

/** The newest part that counts, unless a case sets another. */
export const part = 700_000;

/** The parts of `sum` that count. Default: three, of which `part` is the newest. */
export function partsOf(sum: string, fields: Partial<SumParts> = {}): SumParts {
  return { sum, part, parts: 3, ...fields };
}

/** A claim of `weight` on `sum`, on the parts that `partsOf` names. */
export function weight(sum: string, weight: number, fields: Partial<SumClaim> = {}): SumClaim {
  return { ...partsOf(sum), weight, ...expiry(fields.now), ...fields };
}

/** Texts that some stores and clients are known to change. */
export const oddTexts: readonly string[] = [
  ...["0", "1", "01", "-1", "1.0", "1e0", "1e5", "0x10", "0123456", "9007199254740993", "12345678901234567890", "Infinity", "NaN"],
  ...["null", "nil", "undefined", "true", "false", "__proto__", "constructor", "toString", "$", "$where", "$inc", ".", "a.b", "*"],
  ...[":", "::a", "a:b", "[]", "{}", "{a}", "[1,2]", '"quoted"', "it's", "back\\slash", '{"code":123456,"a.b":1,"$set":{"x":null},"__proto__":{"y":1}}'],
  ...[" ", "a ", " a", "\n", "two\r\nlines", "\0", "nul\0inside", "tab\tbell\u0007", "line\u2028paragraph\u2029", "\ufeffbom"],
  ...["é", "e\u0301", "ß ñ", "日本語", "😀👩‍👩‍👧", "\u007f\u0080\u00ff\u0100", "case", "Case", "x".repeat(256), `${"x".repeat(255)}y`],
];
