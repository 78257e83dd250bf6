import { AssertionError } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { inspect, isDeepStrictEqual } from "node:util";
import type { Claim, ReserveResult, Store, StoredRecord, SwapResult } from "../../ports/store.js";

/** A case before `storeContract` fills in the default peer. */
export interface StoreCase {
  readonly name: string;
  run(store: Store, peer: Store): Promise<void>;
}

/** Half an hour from now, in milliseconds since the epoch. */
export function later(): number {
  return Date.now() + 1_800_000;
}

/** A record of a customer of its own, with one token. */
export function newRecord(fields: Partial<StoredRecord> = {}): StoredRecord {
  return { customer: randomUUID(), id: randomUUID(), tokens: [randomUUID()], data: "first", keepUntil: later(), ...fields };
}

/** What the next write of `record` is: a new token before the older ones, at most 16 in all. `wakeAt` is left out unless it is given. */
export function following(record: StoredRecord, fields: Partial<StoredRecord> = {}): StoredRecord {
  const { customer, id, tokens, data, keepUntil } = record;
  return { customer, id, tokens: [randomUUID(), ...tokens].slice(0, 16), data, keepUntil, ...fields };
}

/** The newest token of `record`. */
export function newest(record: StoredRecord): string {
  const [token] = record.tokens;
  if (token === undefined) throw new AssertionError({ message: "a record without tokens came back" });
  return token;
}

/** Fails with both values shown. */
export function same(actual: unknown, expected: unknown, what: string): void {
  if (isDeepStrictEqual(actual, expected)) return;
  throw new AssertionError({ message: `${what}: expected ${show(expected)}, got ${show(actual)}`, actual, expected });
}

/** Fails unless `holds`. */
export function ensure(holds: boolean, what: string): void {
  if (!holds) throw new AssertionError({ message: what });
}

function show(value: unknown): string {
  return inspect(value, { depth: 4, maxArrayLength: 20, maxStringLength: 200, breakLength: Number.POSITIVE_INFINITY });
}

/** The record without regard to its prototype. */
function plain(record: StoredRecord | undefined): unknown {
  return record && { ...record, tokens: [...record.tokens] };
}

/** Fails unless `actual` has exactly the fields of `expected`. */
export function sameRecord(actual: StoredRecord | undefined, expected: StoredRecord | undefined, what: string): void {
  same(plain(actual), plain(expected), what);
}

/** Fails unless `find` returns exactly `expected`. */
export async function stored(store: Store, expected: StoredRecord, what: string): Promise<void> {
  sameRecord(await store.find(expected.customer, expected.id), expected, what);
}

/** Writes `next`, which must land. */
export async function write(store: Store, next: StoredRecord, expected: string | null, what = "a write that nothing stands against"): Promise<StoredRecord> {
  same((await store.compareAndSwap(next, expected)).swapped, true, `${what} is swapped`);
  return next;
}

/** Fails unless the swap was refused and brought exactly `current` back. */
export function refusedWith(result: SwapResult, current: StoredRecord | undefined, what: string): void {
  if (result.swapped) throw new AssertionError({ message: `${what}: expected it refused, but it was swapped` });
  sameRecord(result.current, current, `${what}: the record that comes back`);
}

/** Fails unless the promise rejects. */
export async function rejects(promise: Promise<unknown>, what: string): Promise<void> {
  const outcome = await promise.then(
    (value) => ({ value }),
    () => "rejected",
  );
  if (outcome !== "rejected") throw new AssertionError({ message: `${what}: expected a rejection, got ${show(outcome)}` });
}

/** The name of a window of a customer of its own, or of `customer`. */
export function newWindow(customer: string = randomUUID()): string {
  return `${customer}:${randomUUID()}`;
}

/** A claim on `window`: a new member, limit 1, over the last minute. */
export function claim(window: string, fields: Partial<Claim> = {}): Claim {
  const now = fields.now ?? Date.now();
  return { window, member: randomUUID(), limit: 1, since: now - 60_000, now, keepUntil: now + 1_800_000, ...fields };
}

export const granted: ReserveResult = { granted: true };

/** The answer that names the claim at `index`. */
export function refusedBy(index: number): ReserveResult {
  return { granted: false, refusedBy: index };
}

/** Reserves one after another and fails unless every one is granted. */
export async function fill(store: Store, window: string, members: number, fields: Partial<Claim>): Promise<void> {
  for (let i = 0; i < members; i++)
    same(await store.reserve([claim(window, fields)]), granted, `member ${i + 1} of ${members} under a limit of ${fields.limit ?? 1}`);
}

/** Fails unless `window` holds `expected` members newer than `since`. */
export async function holds(store: Store, window: string, since: number, expected: number, what: string): Promise<void> {
  same(await store.count([{ window, since }]), [expected], what);
}

/** Texts that stores and their clients are known to change. */
export const awkwardTexts: readonly string[] = [
  "0",
  "123456",
  "0123456",
  "-1",
  "1.0",
  "1e5",
  "0x10",
  "9007199254740993",
  "12345678901234567890",
  "Infinity",
  "NaN",
  "null",
  "nil",
  "undefined",
  "true",
  "false",
  "",
  " ",
  " 1 ",
  "\n",
  "[]",
  "{}",
  "[1,2]",
  '"quoted"',
  '{"code":123456,"a.b":1,"$set":{"x":null},"__proto__":{"y":1}}',
  "$where",
  "$inc",
  "a.b.c",
  "it's",
  "back\\slash",
  "two\r\nlines",
  "nul\0inside",
  "\0",
  "tab\tbell\u0007",
  "line\u2028paragraph\u2029",
  "\ufeffbom",
  "é e\u0301 ß ñ",
  "日本語",
  "😀👩‍👩‍👧",
  "\u007f\u0080\u00ff\u0100",
];
