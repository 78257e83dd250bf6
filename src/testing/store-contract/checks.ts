import { AssertionError } from "node:assert/strict";
import { inspect, isDeepStrictEqual } from "node:util";
import type { Change, Claim, CommitResult, MemberClaim, RecordWrite, Store, StoredRecord, SumParts } from "../../ports/store.js";
import { member, partsOf } from "./fixtures.js";

/** Runs a case. `storeContract` fills in the default peer. */
export type StoreCase = (store: Store, peer: Store) => Promise<void>;

/** Cases by their names. */
export type StoreCases = Readonly<Record<string, StoreCase>>;

/** Fails unless both values are equal; the error shows them. */
export function same(actual: unknown, expected: unknown, what: string): void {
  if (isDeepStrictEqual(actual, expected)) return;
  throw new AssertionError({ message: `${what}: expected ${show(expected)}, got ${show(actual)}`, actual, expected });
}

/** Fails unless `holds`. */
export function ensure(holds: boolean, what: string): void {
  if (!holds) throw new AssertionError({ message: what });
}

/** Fails unless `lowest <= actual <= highest`. */
export function between(actual: number | undefined, lowest: number, highest: number, what: string): void {
  ensure(actual !== undefined && actual >= lowest && actual <= highest, `${what}: expected ${lowest} to ${highest}, got ${show(actual)}`);
}

function show(value: unknown): string {
  return inspect(value, { depth: 4, maxArrayLength: 20, maxStringLength: 200, breakLength: Number.POSITIVE_INFINITY });
}

/** Fails unless `actual` has, with any prototype, exactly the fields of `expected` that are stored. */
export function sameRecord(actual: StoredRecord | undefined, expected: StoredRecord | undefined, what: string): void {
  const { now: _, wakeAt: __, ...due } = { ...expected } as Partial<RecordWrite>;
  same(actual && { ...actual, tokens: [...actual.tokens] }, expected && { ...due, tokens: [...expected.tokens] }, what);
}

/** Fails unless `find` returns exactly `expected`. */
export async function stored(store: Store, expected: StoredRecord, what: string): Promise<void> {
  sameRecord(await store.find(expected.customer, expected.id), expected, what);
}

/** Makes a commit, which must be done, and returns its result. */
export async function commit(store: Store, change: Change, what: string): Promise<Extract<CommitResult, { done: true }>> {
  const result = await store.commit(change);
  if (!result.done) throw new AssertionError({ message: `${what}: expected it done, got ${show(result)}` });
  return result;
}

/** Writes `next`, which must be done. */
export async function write(store: Store, next: RecordWrite, expected: string | null, what = "a write that nothing stands against"): Promise<RecordWrite> {
  await commit(store, { record: next, expected }, what);
  return next;
}

/** Fails unless the record was rejected and exactly `current` was returned. */
export function refusedWith(result: CommitResult, current: StoredRecord | undefined, what: string): void {
  if (result.done) throw new AssertionError({ message: `${what}: expected it refused, but it was done` });
  if (result.refusedBy !== undefined) throw new AssertionError({ message: `${what}: expected the record refused, got ${show(result)}` });
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

/** Commits claims, which must be granted with exactly these counts. */
export async function granted(store: Store, claims: readonly Claim[], counts: readonly number[], what: string): Promise<void> {
  const result = await commit(store, { claims }, what);
  same(result.counts, counts, `${what}: the counts`);
  same(result.asked, [], `${what}: what is returned where nothing was asked`);
}

/** Commits claims. The one at `refusedBy` must be the first one rejected; `count` is what is held without it. */
export async function refused(store: Store, claims: readonly Claim[], refusedBy: number, count: number, what: string): Promise<void> {
  const result = await store.commit({ claims });
  if (result.done) throw new AssertionError({ message: `${what}: expected claim ${refusedBy} refused, but all were granted` });
  same({ refusedBy: result.refusedBy, count: result.refusedBy === undefined ? undefined : result.count }, { refusedBy, count }, what);
}

/**
 * Commits a claim, which must be rejected. If the store reports when there will be room, that must be the earliest
 * possible `since` or `part`, and is returned.
 */
export async function roomFor(store: Store, claim: Claim, what: string): Promise<number | undefined> {
  const result = await store.commit({ claims: [claim] });
  if (result.done || result.refusedBy === undefined) throw new AssertionError({ message: `${what}: expected the claim refused, got ${show(result)}` });
  const room = "sum" in claim ? result.roomPart : result.roomSince;
  if (room === undefined) return undefined;
  const own = "sum" in claim ? claim.part : claim.since;
  ensure(Number.isSafeInteger(room) && room > own, `${what}: expected room after ${own}, got ${room}`);
  const at = (place: number): Claim => ("sum" in claim ? { ...claim, part: place } : { ...claim, since: place });
  for (const place of "sum" in claim ? Array.from({ length: room - own - 1 }, (_, i) => own + 1 + i) : [room - 1]) {
    const before = await store.commit({ claims: [at(place)] });
    if (before.done) throw new AssertionError({ message: `${what}: expected room from ${room} on, and there was at ${place}` });
  }
  await commit(store, { claims: [at(room)] }, `${what}: a claim at ${room}, where there would be room`);
  return room;
}

/** Claims new members one after another. Each must be granted. */
export async function fill(store: Store, window: string, members: number, fields: Partial<MemberClaim>): Promise<void> {
  for (let i = 0; i < members; i++) await commit(store, { claims: [member(window, fields)] }, `member ${i + 1} of ${members} under a limit of ${fields.limit}`);
}

/** How many members of `window` are newer than `since`: removing a member that does not exist returns it. */
export async function countOf(store: Store, window: string, since: number, list = false): Promise<number | undefined> {
  const taken = member(window, { since, now: since + 1, out: true, ...(list ? {} : { limit: 1_000 }) });
  return (await commit(store, { claims: [taken] }, "taking out a member that is not there")).counts[0];
}

/** Fails unless `window`, which has limits, holds `expected` members newer than `since`. */
export async function holds(store: Store, window: string, since: number, expected: number, what: string): Promise<void> {
  same(await countOf(store, window, since), expected, what);
}

/** What the sums hold. */
export async function ask(store: Store, asks: readonly SumParts[]): Promise<readonly number[]> {
  return (await commit(store, { asks }, "a commit that only asks")).asked;
}

/** Fails unless the parts of `sum` that count hold `expected`. */
export async function sums(store: Store, sum: string, expected: number, what: string, fields: Partial<SumParts> = {}): Promise<void> {
  same(await ask(store, [partsOf(sum, fields)]), [expected], what);
}

/** Overwrites a returned record, as a careless caller might. */
export function spoil(handedOut: StoredRecord): void {
  const record = handedOut as unknown as { data: string; tokens: string[] };
  try {
    record.data = "spoiled";
    record.tokens[0] = "spoiled";
    record.tokens.push("spoiled");
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // Frozen: as good as a copy.
  }
}
