import type { Authentication } from "../domain/authentication.js";
import type { Answer } from "../domain/cells.js";
import type { Ask, Claim } from "../domain/claim.js";
import { type StoreBudget, unavailable } from "./clock/budget.js";
import type { Held, RecordsOf, RefusedClaim } from "./records/records.js";

/** What a rule decided (docs/contract.md#pure-rules): the result, and what to write if it changes anything. */
export interface Decided<R, T = Authentication> {
  readonly result: R;
  readonly next?: T | undefined;
  /** Granted together with the write, or nothing is written. */
  readonly claims?: readonly Claim[];
  /** What one wants to know with the write. */
  readonly asks?: readonly Ask[];
  /** What the store's counts make of the result. */
  readonly answered?: (answer: Answer) => R;
  /** What holds instead where a claim is refused; absent: none can be. */
  readonly refused?: (claim: RefusedClaim) => Decided<R, T>;
  /** Of the write, to know it again. */
  readonly token?: string;
}

/** "after 32 lost races it answers 503" (docs/contract.md#one-loop). */
const maxRaces = 32;

/**
 * Every change of a record: decide on what is stored, commit, and on a lost race decide again on the record that came back. `undefined` when there is no record.
 *
 * It starts from the record that this process still holds, if it does: a commit proves that one fresh, and a decision that writes nothing reads first.
 */
export function transition<R, T = Authentication>(
  records: RecordsOf<T>,
  budget: StoreBudget,
  customer: string,
  id: string,
  decide: (auth: T, held: Held<T>) => Decided<R, T>,
): Promise<R | undefined> {
  const recalled = records.recall(customer, id);
  return loop(records, budget, customer, id, (held) => held && decide(held.auth, held), recalled, recalled === undefined ? "unread" : "recalled");
}

/** The same where there need be no record: it is taken that there is none, until a lost race tells. */
export function creation<R, T = Authentication>(
  records: RecordsOf<T>,
  budget: StoreBudget,
  customer: string,
  id: string,
  decide: (held: Held<T> | undefined) => Decided<R, T>,
): Promise<R> {
  return loop(records, budget, customer, id, decide, undefined, "fresh") as Promise<R>;
}

/** `known`: what is known of `held` at first; it is `fresh` where it was read or came back in this very transition. */
async function loop<R, T>(
  records: RecordsOf<T>,
  budget: StoreBudget,
  customer: string,
  id: string,
  decide: (held: Held<T> | undefined) => Decided<R, T> | undefined,
  held: Held<T> | undefined,
  known: "unread" | "recalled" | "fresh",
): Promise<R | undefined> {
  let isFresh = known === "fresh";
  if (known === "unread") {
    held = await records.find(budget, customer, id);
    isFresh = true;
  }
  for (let lost = 0; lost < maxRaces; lost++) {
    let decided = decide(held);
    while (decided?.next !== undefined) {
      const { result, next, claims, asks, token, refused, answered } = decided;
      const committed = await records.commit(budget, { next, before: held, claims, asks, token });
      if (committed.done) return answered === undefined ? result : answered(committed.answer);
      if (committed.refused === undefined) {
        held = committed.held;
        break;
      }
      decided = refused?.(committed.refused);
    }
    if (decided?.next === undefined) {
      if (isFresh) return decided?.result;
      held = await records.find(budget, customer, id);
    }
    isFresh = true;
  }
  throw unavailable(new Error(`lost ${maxRaces} races for the record ${id} of customer ${customer}`));
}
