import { createHash } from "node:crypto";
import { decodeLedger, emptyLedger, encodeLedger, type Ledger, ledgerLife } from "../domain/spend.js";
import type { Store, StoredRecord } from "../ports/store.js";
import { withTimeout } from "./budget.js";
import { toUuid } from "./codes.js";
import type { BaseParts } from "./parts.js";
import { nextTokens } from "./records.js";

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

/** After so many lost races something else is wrong. The requests give up by their own deadline long before. */
const maxRaces = 1000;

/** How many ledgers a process remembers, to swap them without reading them first. */
const remembered = 1024;

export function createLedgers({ store, codes, clock, settings }: Pick<BaseParts, "store" | "codes" | "clock" | "settings">): Ledgers {
  /** Orders that wait, by customer, while one of them is worked on. */
  const waiting = new Map<string, Order[]>();
  const recent = new Map<string, StoredRecord>();

  const ask = <T>(work: (store: Store) => Promise<T>): Promise<T> => withTimeout(clock, settings.storeTimeout, () => work(store));

  const remember = (customer: string, record: StoredRecord): void => {
    recent.delete(customer);
    recent.set(customer, record);
    if (recent.size > remembered) recent.delete(recent.keys().next().value as string);
  };

  const carryOut = async (customer: string, orders: readonly Order[]): Promise<void> => {
    const place = placeOf(customer);
    let held = recent.get(customer);
    let fresh = held === undefined;
    if (fresh) held = await ask(() => store.find(place.customer, place.id));
    for (let race = 0; race < maxRaces; race++) {
      const now = clock.now();
      const before = held === undefined ? emptyLedger : decodeLedger(held.data);
      let ledger = before;
      const decided = orders
        .filter((order) => !order.abandoned())
        .map(({ decide, resolve }) => {
          const { result, next } = decide(ledger, now);
          ledger = next ?? ledger;
          return () => resolve(result as never);
        });
      if (ledger !== before) {
        const next = { ...place, keepUntil: now + ledgerLife, tokens: nextTokens(codes, held?.tokens), data: encodeLedger(ledger) };
        recent.delete(customer);
        const swap = await ask(() => store.compareAndSwap(next, held?.tokens[0] ?? null));
        if (swap.swapped) {
          remember(customer, next);
          for (const tell of decided) tell();
          return;
        }
        held = swap.current;
      } else if (fresh) {
        for (const tell of decided) tell();
        return;
      } else {
        held = await ask(() => store.find(place.customer, place.id));
      }
      fresh = true;
    }
    throw new Error(`lost ${maxRaces} races for the ledger of customer ${customer}`);
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

/** A ledger lies under a customer of its own: no request of the customer's reaches it. */
function placeOf(customer: string): { readonly customer: string; readonly id: string } {
  return { customer: toUuid(createHash("sha256").update(`phoneproof ledger\0${customer}`).digest().subarray(0, 16)), id: customer };
}
