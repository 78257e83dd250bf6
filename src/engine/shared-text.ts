import { createHash } from "node:crypto";
import type { Clock } from "../ports/clock.js";
import type { Store, StoredRecord } from "../ports/store.js";
import { withTimeout } from "./budget.js";
import { toUuid } from "./codes.js";
import { nextTokens } from "./records.js";

/** Where a text lies. */
export interface Place {
  readonly customer: string;
  readonly id: string;
}

/** Texts that processes change together: what is not an authentication, and lies in the store under customers that nobody is, so that no request reaches it. */
export interface SharedTexts {
  /**
   * Decides on the text as it is stored, and swaps: `decide` answers the text to write, or `undefined` to leave it. On a lost race it is asked again, so that what it says last is what holds. Rejects when the store fails.
   */
  change(place: Place, decide: (text: string | undefined, now: number) => string | undefined): Promise<void>;
}

export interface SharedTextOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly newToken: () => string;
  /** How long one call of the store may take, in milliseconds. */
  readonly timeout: number;
  /** How long a text is kept after its last change, in milliseconds. */
  readonly life: number;
  /** How many texts are remembered, to be swapped without being read first. */
  readonly remembered: number;
}

/** After so many lost races something else is wrong. */
const maxRaces = 1000;

export function createSharedTexts({ store, clock, newToken, timeout, life, remembered }: SharedTextOptions): SharedTexts {
  const recent = new Map<string, StoredRecord>();

  const ask = <T>(work: () => Promise<T>): Promise<T> => withTimeout(clock, timeout, work);

  const remember = (record: StoredRecord): void => {
    recent.set(record.id, record);
    if (recent.size > remembered) recent.delete(recent.keys().next().value as string);
  };

  return {
    async change({ customer, id }, decide) {
      let held = recent.get(id);
      let fresh = held === undefined;
      if (fresh) held = await ask(() => store.find(customer, id));
      for (let race = 0; race < maxRaces; race++) {
        const now = clock.now();
        const data = decide(held?.data, now);
        if (data !== undefined) {
          const next = { customer, id, keepUntil: now + life, tokens: nextTokens(newToken(), held?.tokens), data };
          recent.delete(id);
          const swap = await ask(() => store.compareAndSwap(next, held?.tokens[0] ?? null));
          if (swap.swapped) return remember(next);
          held = swap.current;
        } else if (fresh) {
          return;
        } else {
          held = await ask(() => store.find(customer, id));
        }
        fresh = true;
      }
      throw new Error(`lost ${maxRaces} races for the text ${id}`);
    },
  };
}

/** A UUID that is the same for the same name, and nobody's. */
export function uuidOf(name: string): string {
  return toUuid(createHash("sha256").update(`phoneproof\0${name}`).digest().subarray(0, 16));
}
