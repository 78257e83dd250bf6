import type { Authentication } from "../domain/authentication.js";
import type { Decision } from "../domain/decision.js";
import type { Charge } from "../domain/quota.js";
import type { StoreBudget } from "./budget.js";
import type { Parts } from "./parts.js";
import type { Held, Swap } from "./records.js";
import type { SpendHold } from "./spend.js";

/** What the caps said: `undefined`, or the cap that refuses. */
export type Refusal = Charge | undefined;

/** Charges every window or none. A customer without caps is charged nothing. */
export async function charge({ store }: Parts, budget: StoreBudget, charges: readonly Charge[]): Promise<Refusal> {
  if (charges.length === 0) return undefined;
  const result = await budget.call(() => store.reserve(charges));
  return result.granted ? undefined : (charges[result.refusedBy] ?? charges[0]);
}

/** Whether a cap would refuse, charging nothing. */
export async function wouldRefuse({ store }: Parts, budget: StoreBudget, charges: readonly Charge[]): Promise<Refusal> {
  if (charges.length === 0) return undefined;
  const counts = await budget.call(() => store.count(charges));
  return charges.find((one, at) => (counts[at] ?? 0) >= one.limit);
}

/**
 * "`reserve` and the swap go out side by side (one round trip)" (architecture.md, rule 7). Waits for both, so that a write whose charge was refused, or failed, can be taken back by `undo`. Where the message is not to be sent, what was held for it is given back.
 */
export async function chargeAndSwap(
  parts: Parts,
  budget: StoreBudget,
  charges: readonly Charge[],
  hold: SpendHold,
  next: Authentication,
  before: Held | undefined,
  undo: (held: Held) => Promise<unknown>,
): Promise<{ readonly swap: Swap; readonly refusal: Refusal }> {
  const [charged, swapped] = await Promise.allSettled([charge(parts, budget, charges), parts.records.swap(budget, next, before)]);
  const landed = swapped.status === "fulfilled" && swapped.value.swapped ? swapped.value.held : undefined;
  if (landed === undefined || charged.status === "rejected" || charged.value !== undefined) await hold.leave(budget);
  if (charged.status === "rejected") {
    // The request fails whether or not this works.
    if (landed !== undefined) await undo(landed).catch(() => undefined);
    throw charged.reason;
  }
  if (swapped.status === "rejected") throw swapped.reason;
  return { swap: swapped.value, refusal: charged.value };
}

/** Runs a step between hold and send. Where it fails nothing is sent. */
export async function leaving<T>(hold: SpendHold | undefined, budget: StoreBudget, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (cause) {
    await hold?.leave(budget);
    throw cause;
  }
}

/** The record of a cap that refused. */
export function capDecision(refusal: Charge): Decision {
  return { at: refusal.now, rule: refusal.rule, mode: "enforce", value: refusal.limit, threshold: refusal.limit };
}
