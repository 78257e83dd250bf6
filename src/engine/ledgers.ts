import { decodeLedger, emptyLedger, encodeLedger, type Ledger, ledgerLife } from "../domain/spend.js";
import type { BaseParts } from "./parts.js";
import { createSharedTexts, uuidOf } from "./shared-text.js";

/** What a rule decided on a ledger: the result, and the ledger to write if it changes anything. */
export interface DecidedSpend<R> {
  readonly result: R;
  readonly next?: Ledger;
}

/** The customers' ledgers in the store. */
export interface Ledgers {
  /**
   * Decides on the ledger as it is stored, and swaps. All that a process wants of one ledger at a time is written at once: its racers are the other processes alone, and one of them always gets on.
   * Rejects when the store fails. What is `abandoned` before its turn changes nothing.
   */
  change<R>(customer: string, decide: (ledger: Ledger, now: number) => DecidedSpend<R>, abandoned: () => boolean): Promise<R>;
}

interface Order {
  readonly decide: (ledger: Ledger, now: number) => DecidedSpend<unknown>;
  readonly abandoned: () => boolean;
  readonly resolve: (result: never) => void;
  readonly reject: (cause: unknown) => void;
}

export function createLedgers({ store, codes, clock, settings }: Pick<BaseParts, "store" | "codes" | "clock" | "settings">): Ledgers {
  const texts = createSharedTexts({ store, clock, newToken: codes.newToken, timeout: settings.storeTimeout, life: ledgerLife, remembered: 1024 });
  /** Orders that wait, by customer, while one of them is worked on. */
  const waiting = new Map<string, Order[]>();

  const carryOut = async (customer: string, orders: readonly Order[]): Promise<void> => {
    let tell: readonly (() => void)[] = [];
    await texts.change({ customer: uuidOf(`ledger\0${customer}`), id: customer }, (text, now) => {
      const before = text === undefined ? emptyLedger : decodeLedger(text);
      let ledger = before;
      tell = orders
        .filter((order) => !order.abandoned())
        .map(({ decide, resolve }) => {
          const { result, next } = decide(ledger, now);
          ledger = next ?? ledger;
          return () => resolve(result as never);
        });
      return ledger === before ? undefined : encodeLedger(ledger);
    });
    for (const one of tell) one();
  };

  const serve = async (customer: string, orders: Order[]): Promise<void> => {
    while (orders.length > 0) {
      const turn = orders.splice(0);
      await carryOut(customer, turn).catch((cause: unknown) => {
        for (const { reject } of turn) reject(cause);
      });
    }
    waiting.delete(customer);
  };

  return {
    change(customer, decide, abandoned) {
      return new Promise((resolve, reject) => {
        const order: Order = { decide, abandoned, resolve, reject };
        const queue = waiting.get(customer);
        if (queue !== undefined) queue.push(order);
        else {
          const orders = [order];
          waiting.set(customer, orders);
          void serve(customer, orders);
        }
      });
    },
  };
}
