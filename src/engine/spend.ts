import type { Decision } from "../domain/decision.js";
import { type Hold, type Ledger, settled, spendRefusal, withHold } from "../domain/spend.js";
import type { Account } from "./account.js";
import type { StoreBudget } from "./budget.js";
import { createLedgers, type DecidedSpend } from "./ledgers.js";
import type { BaseParts } from "./parts.js";

/** What a message may cost, held until it is known what it did cost. */
export interface SpendHold {
  /** Gives back what was held beyond `spent`; 0: nothing was sent; `undefined`: what was planned. Never rejects: what cannot be given back stays spent. */
  settle(budget: StoreBudget, spent: number | undefined): Promise<void>;
}

type Admitted = { readonly hold: SpendHold } | { readonly refusal: Decision };

/** "A spend ceiling per hour and day that closes": held before the message is written down, so that no number of racers spends more. */
export interface Spending {
  /** Holds `price` for a message, or names the ceiling that refuses. Twins of one request hold once, under its `name`: the one of them that gets to send settles. */
  hold(budget: StoreBudget, account: Account, price: number | undefined, name?: string): Promise<Admitted>;
  /** The ceiling that would refuse, holding nothing. */
  refusal(budget: StoreBudget, account: Account, price: number | undefined): Promise<Decision | undefined>;
}

/** Where there is no ceiling, or no price to pay. */
const free: Admitted = { hold: { settle: async () => undefined } };

export function createSpending(parts: Pick<BaseParts, "store" | "codes" | "clock" | "settings" | "logger">): Spending {
  const { settings, logger } = parts;
  const ledgers = createLedgers(parts);

  const change = async <R>(budget: StoreBudget, customer: string, decide: (ledger: Ledger, now: number) => DecidedSpend<R>): Promise<R> => {
    let abandoned = false;
    try {
      return await budget.call(() => ledgers.change(customer, decide, () => abandoned));
    } finally {
      abandoned = true;
    }
  };

  const holdOf = (customer: string, price: number, held: Hold): SpendHold => ({
    async settle(budget, spent = price) {
      if (spent === held.amount) return;
      try {
        await change(budget, customer, (ledger) => ({ result: undefined, next: settled(ledger, held, spent) }));
      } catch (err) {
        logger.error({ err, customer_uuid: customer }, "what a message did not cost could not be given back; it stays spent");
      }
    },
  });

  return {
    async hold(budget, { customer, policy }, price, name) {
      const ceilings = policy.limits.spend;
      if (ceilings.length === 0 || price === 0) return free;
      if (price === undefined) logger.error({ customer_uuid: customer }, "policy.limits.spend refuses a message: the sender told no price for it");
      return change<Admitted>(budget, customer, (ledger, now) => {
        const twin = ledger.named.find((hold) => hold.name === name);
        if (twin !== undefined && price !== undefined) return { result: { hold: holdOf(customer, price, twin) } };
        const refusal = spendRefusal(ledger, price, ceilings, now, settings.clockSkew);
        if (refusal !== undefined || price === undefined) return { result: { refusal: refusal as Decision } };
        const held = { name, amount: price, at: now };
        return { result: { hold: holdOf(customer, price, held) }, next: withHold(ledger, held) };
      });
    },
    async refusal(budget, { customer, policy }, price) {
      const ceilings = policy.limits.spend;
      if (ceilings.length === 0 || price === 0) return undefined;
      return change(budget, customer, (ledger, now) => ({ result: spendRefusal(ledger, price, ceilings, now, settings.clockSkew) }));
    },
  };
}
