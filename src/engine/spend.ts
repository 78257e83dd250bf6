import type { Decision } from "../domain/decision.js";
import { type Cost, emptyLedger, type Hold, holdSpend, type Ledger, leaveSpend, settleSpend, spendRefusal } from "../domain/spend.js";
import type { Account } from "./account.js";
import type { StoreBudget } from "./budget.js";
import { createLedgers, type DecidedSpend } from "./ledgers.js";
import type { BaseParts } from "./parts.js";

/** What a message may cost, held until it is known what it did cost. One of the two is called, once; neither rejects: what cannot be given back stays spent. */
export interface SpendHold {
  /** What was held in all; absent: there is no ceiling. */
  readonly amount?: number;
  /** The message was handed over: `spent` of it was spent; `undefined`: what was planned. */
  settle(budget: StoreBudget, spent: number | undefined): Promise<void>;
  /** It was not: what no twin shares is given back. */
  leave(budget: StoreBudget): Promise<void>;
}

type Admitted = { readonly hold: SpendHold } | { readonly refusal: Decision };

/** "A spend ceiling per hour and day that closes": held before the message is written down, so that no number of racers spends more. */
export interface Spending {
  /** Holds what a message may cost, or names the ceiling that refuses. Twins of one request hold once, under its `name`. */
  hold(budget: StoreBudget, account: Account, cost: Cost, name?: string): Promise<Admitted>;
  /** The ceiling that would refuse, holding nothing. */
  refusal(budget: StoreBudget, account: Account, cost: Cost): Promise<Decision | undefined>;
}

/** Where there is no ceiling, or nothing to pay. */
const free: Admitted = { hold: { settle: async () => undefined, leave: async () => undefined } };

export function createSpending(parts: Pick<BaseParts, "store" | "codes" | "clock" | "settings" | "logger">): Spending {
  const { settings, logger, clock } = parts;
  const ledgers = createLedgers(parts);

  const ask = async <R>(budget: StoreBudget, customer: string, decide: (ledger: Ledger, now: number) => DecidedSpend<R>): Promise<R> => {
    let abandoned = false;
    try {
      return await budget.call(() => ledgers.change(customer, decide, () => abandoned));
    } finally {
      abandoned = true;
    }
  };

  /** Goes on where the request's time is used up: the request does not wait for it then. */
  const giveBack = async (budget: StoreBudget, customer: string, change: (ledger: Ledger) => Ledger): Promise<void> => {
    const done = ledgers
      .change(
        customer,
        (ledger) => ({ result: undefined, next: change(ledger) }),
        () => false,
      )
      .catch((err: unknown) => logger.error({ err, customer_uuid: customer }, "what a message did not cost could not be given back; it stays spent"));
    await budget.call(() => done).catch(() => undefined);
  };

  const holdOf = (customer: string, price: number, held: Hold): SpendHold => ({
    amount: held.amount,
    async settle(budget, spent = price) {
      if (spent !== held.amount) await giveBack(budget, customer, (ledger) => settleSpend(ledger, held, spent));
    },
    leave: (budget) => giveBack(budget, customer, (ledger) => leaveSpend(ledger, held)),
  });

  return {
    async hold(budget, { customer, policy }, cost, name) {
      const ceilings = policy.limits.spend;
      if (ceilings.length === 0 || cost === "free") return free;
      if (cost === undefined) {
        logger.error({ customer_uuid: customer }, "policy.limits.spend refuses a message: the sender told no price for it");
        return { refusal: spendRefusal(emptyLedger, cost, ceilings, clock.now(), settings.clockSkew) as Decision };
      }
      return ask<Admitted>(budget, customer, (ledger, now) => {
        const held = holdSpend(ledger, cost, name, ceilings, now, settings.clockSkew);
        return "refusal" in held ? { result: held } : { result: { hold: holdOf(customer, cost, held.hold) }, next: held.next };
      });
    },
    async refusal(budget, { customer, policy }, cost) {
      const ceilings = policy.limits.spend;
      if (ceilings.length === 0 || cost === "free") return undefined;
      return ask(budget, customer, (ledger, now) => ({ result: spendRefusal(ledger, cost, ceilings, now, settings.clockSkew) }));
    },
  };
}
