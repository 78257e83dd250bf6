import type { Authentication } from "../../domain/authentication.js";
import { type StoreDeadline, unavailable } from "../deadline.js";
import type { Granted, Held, RecordsOf, RefusedClaim, Writing } from "./records.js";

/**
 * What a rule decided (docs/contract.md#pure-rules): the result, and what to write if anything changes. Nothing is
 * written without `next`, or if one of `claims` is rejected.
 */
export interface Decided<R, T = Authentication> extends Omit<Writing<T>, "id" | "before" | "next"> {
  readonly result: R;
  readonly next?: T | undefined;
  /** If a claim is rejected, read the record again first: another process may have handled the same request. */
  readonly looksAgain?: boolean;
}

/** The final result, and the store's response to its claims. */
export interface Outcome<R> {
  readonly result: R;
  readonly counts: Granted["counts"];
  /** The claim that was rejected; nothing was written. */
  readonly refused?: RefusedClaim;
}

/** "after 32 lost races the response is 503" (docs/contract.md#one-loop). */
const maxRaces = 32;

/** How often the record is read again after a claim is rejected. */
const mostLooks = 5;

/**
 * Changes a record: decides on the stored one, commits, and decides again after a lost race. It starts from this
 * process's copy: a commit proves that it is current, and decisions without a write read it first. `isNew`: without
 * a copy, it starts without a record, until a lost race returns one.
 */
export async function transact<R, T = Authentication>(
  records: RecordsOf<T>,
  deadline: StoreDeadline,
  customer: string,
  id: string,
  decide: (held: Held<T> | undefined) => Decided<R, T>,
  isNew = false,
): Promise<Outcome<R>> {
  let held = records.recall(customer, id);
  let isCurrent = isNew && held === undefined;
  let looks = 0;
  for (let races = 0; races < maxRaces; races++) {
    if (held === undefined && !isCurrent) {
      held = await records.find(deadline, customer, id);
      isCurrent = true;
    }
    const { result, next, claims, counts, revoke, looksAgain = false, token } = decide(held);
    if (next === undefined) {
      if (isCurrent) return { result, counts: [] };
    } else {
      const committed = await records.commit(deadline, { id, next, before: held, claims, counts, revoke, token });
      if (committed.done) return { result, counts: committed.counts };
      if (committed.refusedBy === undefined) {
        held = committed.held;
        isCurrent = true;
        continue;
      }
      // In stores that apply claims before the record, a claim may be rejected on a record that has changed since.
      if (isCurrent && !(looksAgain && looks++ < mostLooks)) return { result, counts: [], refused: committed };
    }
    held = undefined;
    isCurrent = false;
  }
  throw unavailable(new Error(`lost ${maxRaces} races for the record ${id} of customer ${customer}`));
}

/** Changes an existing record, with claims that are always granted. `undefined`: the record does not exist. */
export async function update<R, T = Authentication>(
  records: RecordsOf<T>,
  deadline: StoreDeadline,
  customer: string,
  id: string,
  decide: (value: T, held: Held<T>) => Decided<R, T>,
): Promise<R | undefined> {
  const { result } = await transact<R | undefined, T>(records, deadline, customer, id, (held) =>
    held === undefined ? { result: undefined } : decide(held.auth, held),
  );
  return result;
}
