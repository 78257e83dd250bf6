import type { Authentication } from "../domain/authentication.js";
import { type StoreBudget, unavailable } from "./budget.js";
import type { Records } from "./records.js";

/** What a rule decided on a record: the result, and the record to write if it changes anything. */
export interface Decided<R> {
  readonly result: R;
  readonly next?: Authentication | undefined;
}

/** "after 32 lost races it answers 503" (architecture.md, rule 5). */
export const maxRaces = 32;

/**
 * The loop of every change: decide on what is stored, swap, and on a lost race decide again on the record that came back. `undefined` when there is no record.
 *
 * It starts from the record that this process still holds, if it does: "a swap proves it fresh, and a decision that writes nothing re-reads first" (architecture.md, rule 7).
 */
export async function transition<R>(
  records: Records,
  budget: StoreBudget,
  customer: string,
  id: string,
  decide: (auth: Authentication) => Decided<R>,
): Promise<R | undefined> {
  const recalled = records.recall(customer, id);
  let fresh = recalled === undefined;
  let held = recalled ?? (await records.find(budget, customer, id));
  for (let race = 0; race < maxRaces && held !== undefined; race++) {
    const { result, next } = decide(held.auth);
    if (next !== undefined) {
      const swap = await records.swap(budget, next, held);
      if (swap.swapped) return result;
      held = swap.held;
    } else if (fresh) {
      return result;
    } else {
      held = await records.find(budget, customer, id);
    }
    fresh = true;
  }
  if (held !== undefined) throw unavailable(new Error(`lost ${maxRaces} races for authentication ${id}`));
  return undefined;
}
