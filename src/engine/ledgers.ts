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

/** What one request wants of a ledger. */
interface Order {
  readonly decide: (ledger: Ledger, now: number) => DecidedSpend<unknown>;
  readonly abandoned: () => boolean;
  /** `lead`: it is its turn to see to all that wait; or its result. */
  readonly tell: (word: { readonly lead: true } | { readonly result: unknown }) => void;
  readonly fail: (cause: unknown) => void;
}

/** Orders that wait while one of them is worked on. */
interface Desk {
  readonly waiting: Order[];
  /** When the turn began, in milliseconds since the epoch. */
  since: number;
}

export function createLedgers({ store, codes, clock, settings }: Pick<BaseParts, "store" | "codes" | "clock" | "settings">): Ledgers {
  const texts = createSharedTexts({ store, clock, newToken: codes.newToken, timeout: settings.storeTimeout, life: ledgerLife, remembered: 1024 });
  const desks = new Map<string, Desk>();

  const carryOut = async (customer: string, orders: readonly Order[]): Promise<void> => {
    let results: readonly (() => void)[] = [];
    await texts.change({ customer: uuidOf(`ledger\0${customer}`), id: customer }, (text, now) => {
      const before = text === undefined ? emptyLedger : decodeLedger(text);
      let ledger = before;
      results = orders
        .filter((order) => !order.abandoned())
        .map(({ decide, tell }) => {
          const { result, next } = decide(ledger, now);
          ledger = next ?? ledger;
          return () => tell({ result });
        });
      return ledger === before ? undefined : encodeLedger(ledger);
    });
    for (const tell of results) tell();
  };

  /** One turn, for all that wait. The next is led by a request that waits still: where a platform ends what a request began with its answer, nobody waits for one that is answered. */
  const lead = async (customer: string, desk: Desk, orders: readonly Order[]): Promise<void> => {
    desk.since = clock.now();
    await carryOut(customer, orders).catch((cause: unknown) => {
      for (const { fail } of orders) fail(cause);
    });
    while (desk.waiting[0]?.abandoned()) desk.waiting.shift();
    const next = desk.waiting.shift();
    if (next !== undefined) next.tell({ lead: true });
    else if (desks.get(customer) === desk) desks.delete(customer);
  };

  return {
    async change<R>(customer: string, decide: (ledger: Ledger, now: number) => DecidedSpend<R>, abandoned: () => boolean): Promise<R> {
      const found = desks.get(customer);
      // Whoever led a turn for that long is gone.
      const busy = found !== undefined && clock.now() - found.since <= 2 * settings.storeTimeout;
      const desk: Desk = busy ? found : { waiting: [], since: clock.now() };
      if (!busy) desks.set(customer, desk);

      const order = (tell: Order["tell"], fail: Order["fail"]): Order => ({ decide, abandoned, tell, fail });
      // A timer of its own: a platform that ends requests which wait for nothing of theirs must see that this one does.
      const cancel = busy ? clock.after(2 * settings.storeTimeout, () => undefined, "background") : undefined;
      const asked = await new Promise<Parameters<Order["tell"]>[0]>((resolve, reject) => {
        if (busy) desk.waiting.push(order(resolve, reject));
        else resolve({ lead: true });
      }).finally(cancel);
      if ("result" in asked) return asked.result as R;
      return new Promise<R>((resolve, reject) => {
        const own = order((word) => "result" in word && resolve(word.result as R), reject);
        void lead(customer, desk, [own, ...desk.waiting.splice(0)]);
      });
    },
  };
}
