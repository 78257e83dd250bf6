import type { Authentication } from "../domain/authentication.js";
import type { Answer } from "../domain/cells.js";
import type { Ask, Claim } from "../domain/claim.js";
import { type StoreBudget, unavailable } from "./clock/budget.js";
import type { Held, RecordsOf, RefusedClaim } from "./records/records.js";
import type { Soon } from "./soon.js";

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
  return new Change(records, budget, customer, id, decide).begin(records.recall(customer, id), false);
}

/** The same where there need be no record: it is taken that there is none, until a lost race tells. */
export function creation<R, T = Authentication>(
  records: RecordsOf<T>,
  budget: StoreBudget,
  customer: string,
  id: string,
  decide: (held: Held<T> | undefined) => Decided<R, T>,
): Promise<R> {
  return new Creation(records, budget, customer, id, decide).begin(undefined, true) as Promise<R>;
}

/** Decides and commits until one of both comes to an end. No async function: nearly all end with the first commit. */
abstract class Loop<R, T, Decide> {
  constructor(
    readonly records: RecordsOf<T>,
    readonly budget: StoreBudget,
    readonly customer: string,
    readonly id: string,
    readonly decide: Decide,
  ) {}

  abstract decided(held: Held<T> | undefined): Decided<R, T> | undefined;

  /** `isFresh`: it is known that there is no record, or taken for known. */
  begin(held: Held<T> | undefined, isFresh: boolean): Promise<R | undefined> {
    if (held === undefined && !isFresh) return this.#read(0);
    try {
      const result = this.#from(held, isFresh, 0);
      return result instanceof Promise ? result : Promise.resolve(result);
    } catch (fault) {
      return Promise.reject(fault);
    }
  }

  #read(lost: number): Promise<R | undefined> {
    return this.records.find(this.budget, this.customer, this.id).then((held) => this.#from(held, true, lost));
  }

  /** `isFresh`: `held` was read or came back in this very transition. */
  #from(held: Held<T> | undefined, isFresh: boolean, lost: number): Soon<R | undefined> {
    if (lost === maxRaces) throw unavailable(new Error(`lost ${maxRaces} races for the record ${this.id} of customer ${this.customer}`));
    return this.#settle(this.decided(held), held, isFresh, lost);
  }

  #settle(decided: Decided<R, T> | undefined, held: Held<T> | undefined, isFresh: boolean, lost: number): Soon<R | undefined> {
    if (decided?.next === undefined) return isFresh ? decided?.result : this.#read(lost + 1);
    const { next, claims, asks, token } = decided;
    return this.records.commit(this.budget, { next, before: held, claims, asks, token }, (committed): Soon<R | undefined> => {
      if (committed.done) return decided.answered === undefined ? decided.result : decided.answered(committed);
      if (committed.refusedBy === undefined) return this.#from(committed.held, true, lost + 1);
      return this.#settle(decided.refused?.(committed), held, isFresh, lost);
    });
  }
}

class Change<R, T> extends Loop<R, T, (auth: T, held: Held<T>) => Decided<R, T>> {
  override decided(held: Held<T> | undefined): Decided<R, T> | undefined {
    return held && this.decide(held.auth, held);
  }
}

class Creation<R, T> extends Loop<R, T, (held: Held<T> | undefined) => Decided<R, T>> {
  override decided(held: Held<T> | undefined): Decided<R, T> {
    return this.decide(held);
  }
}
