import type { Authentication } from "../../domain/authentication.js";
import type { Claim } from "../../domain/claim.js";
import type { Revocation } from "../../ports/store.js";
import { type StoreDeadline, unavailable } from "../deadline.js";
import type { Granted, Held, RecordsOf, RefusedClaim } from "./records.js";

/** What a rule decided (docs/contract.md#pure-rules): the result, and what to write if it changes anything. */
export interface Decided<R, T = Authentication> {
  readonly result: R;
  readonly next?: T | undefined;
  /** Granted together with the write, or nothing is written. */
  readonly claims?: readonly Claim[];
  /** An earlier commit that is taken back with the write. */
  readonly revoke?: Revocation;
  /** The indexes of the claims whose counts `granted` reads. */
  readonly counts?: readonly number[];
  /** What the store's counts make of the result. */
  readonly granted?: (counts: Granted["counts"]) => R;
  /** What holds instead where a claim is refused; absent: no claim can be. */
  readonly refused?: (claim: RefusedClaim) => Decided<R, T>;
  /** Where a claim is refused, the record is read again before that holds: another process may have answered the same request in the meantime. */
  readonly looksAgain?: boolean;
  /** Identifies the write. Default: a new token. */
  readonly token?: string;
}

/** "after 32 lost races it answers 503" (docs/contract.md#one-loop). */
const maxRaces = 32;

/** How often the record is read again where a claim is refused. */
const mostLooks = 5;

/**
 * Every change of a record: decide on what is stored, commit, and on a lost race decide again on the record that came back. Returns `undefined` when there is no record.
 *
 * It starts from the record that this process remembers, if it does: a commit proves that it is current, and a decision that writes nothing reads it first.
 */
export async function transition<R, T = Authentication>(
  records: RecordsOf<T>,
  deadline: StoreDeadline,
  customer: string,
  id: string,
  decide: (auth: T, held: Held<T>) => Decided<R, T>,
): Promise<R | undefined> {
  const remembered = records.recall(customer, id);
  const decideHeld = (held: Held<T> | undefined) => held && decide(held.auth, held);
  return change(records, deadline, customer, id, decideHeld, remembered ?? (await records.find(deadline, customer, id)), remembered === undefined);
}

/** The same if there may be no record: assumes that it is missing until a lost race shows one. */
export async function creation<R, T = Authentication>(
  records: RecordsOf<T>,
  deadline: StoreDeadline,
  customer: string,
  id: string,
  decide: (held: Held<T> | undefined) => Decided<R, T>,
): Promise<R> {
  return (await change(records, deadline, customer, id, decide, undefined, true)) as R;
}

/** `isCurrent`: `first` was just read, or may be assumed. */
async function change<R, T>(
  records: RecordsOf<T>,
  deadline: StoreDeadline,
  customer: string,
  id: string,
  decide: (held: Held<T> | undefined) => Decided<R, T> | undefined,
  first: Held<T> | undefined,
  isCurrent: boolean,
): Promise<R | undefined> {
  let held = first;
  let current = isCurrent;
  let looks = 0;
  for (let lost = 0; lost < maxRaces; lost++) {
    let decided = decide(held);
    while (decided?.next !== undefined) {
      const { next, claims, counts, revoke, token } = decided;
      const committed = await records.commit(deadline, { next, before: held, claims, counts, revoke, token });
      if (committed.done) return decided.granted === undefined ? decided.result : decided.granted(committed.counts);
      if (committed.refusedBy === undefined) {
        held = committed.held;
        current = true;
        break;
      }
      // Where claims are a step before the record, they may be refused on one that others have written since.
      if (!current || (decided.looksAgain === true && looks++ < mostLooks)) {
        held = await records.find(deadline, customer, id);
        current = true;
        break;
      }
      decided = decided.refused?.(committed);
    }
    if (decided?.next !== undefined) continue;
    if (current) return decided?.result;
    held = await records.find(deadline, customer, id);
    current = true;
  }
  throw unavailable(new Error(`lost ${maxRaces} races for the record ${id} of customer ${customer}`));
}
