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
  /** The indexes of the claims whose counts are read. */
  readonly counts?: readonly number[];
  /** An earlier commit that is taken back with the write. */
  readonly revoke?: Revocation;
  /** Where a claim is refused, the record is read again before that holds: another process may have answered the same request. */
  readonly looksAgain?: boolean;
  /** Identifies the write. Default: a new token. */
  readonly token?: string;
}

/** What was decided last, and what the store said to its claims. */
export interface Outcome<R> {
  readonly result: R;
  readonly counts: Granted["counts"];
  /** The claim that was refused: then nothing was written. */
  readonly refused?: RefusedClaim;
}

/** "after 32 lost races it answers 503" (docs/contract.md#one-loop). */
const maxRaces = 32;

/** How often the record is read again where a claim is refused. */
const mostLooks = 5;

/**
 * Every change of a record: decide on what is stored, commit, and on a lost race decide again on the record that came back.
 * It starts from the record that this process remembers: a commit proves that it is current, and a decision that writes nothing reads it first.
 * `isNew`: it starts from no record at all, until a lost race shows one.
 */
export async function transact<R, T = Authentication>(
  records: RecordsOf<T>,
  deadline: StoreDeadline,
  customer: string,
  id: string,
  decide: (held: Held<T> | undefined) => Decided<R, T>,
  isNew = false,
): Promise<Outcome<R>> {
  let held = isNew ? undefined : records.recall(customer, id);
  let isCurrent = isNew;
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
      const committed = await records.commit(deadline, { next, before: held, claims, counts, revoke, token });
      if (committed.done) return { result, counts: committed.counts };
      if (committed.refusedBy === undefined) {
        held = committed.held;
        isCurrent = true;
        continue;
      }
      // Where claims are a step before the record, they may be refused on one that others have written since.
      if (isCurrent && !(looksAgain && looks++ < mostLooks)) return { result, counts: [], refused: committed };
    }
    held = undefined;
    isCurrent = false;
  }
  throw unavailable(new Error(`lost ${maxRaces} races for the record ${id} of customer ${customer}`));
}

/** A change of a record that is there, and whose claims are always granted. `undefined`: there is none. */
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
