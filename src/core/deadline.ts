import { VerifierError } from "../errors.js";
import type { Clock } from "../ports/clock.js";

/** "One deadline (2 s) covers all store calls of a request; past it the request fails closed with 503" (docs/contract.md#store-deadline). Time in which no store call is under way is not charged. */
export interface StoreDeadline {
  /** The answer of a store call; rejects with `unavailable` when the call fails or the time is used up. */
  call<T>(ask: () => Promise<T>): Promise<T>;
}

/** Where calls report how the store does. */
export interface CallHealth {
  /** Whether it fails at the moment: only then a call that worked need be reported. */
  readonly on: boolean;
  failed(fields: Readonly<Record<string, unknown>>): void;
  worked(): void;
}

/** A deadline for one request. `store`: learns whether the store works. `timeout` in milliseconds. */
export function storeDeadline(clock: Clock, store: CallHealth, timeout: number): StoreDeadline {
  const elapsed = () => clock.elapsed?.() ?? clock.now();
  let left = timeout;
  let underWay = 0;
  let busySince = 0;

  /** Charges the time since calls began, once none is under way. `answered`: a clock that jumped past the limit says nothing about how long the call took. */
  const over = (answered: boolean) => {
    if (--underWay > 0) return;
    const took = elapsed() - busySince;
    if (!answered || took < left) left -= Math.max(0, took);
  };

  return {
    async call(ask) {
      if (underWay++ === 0) busySince = elapsed();
      try {
        const limit = left - (elapsed() - busySince);
        if (limit <= 0) throw new Error(`the store used up its ${timeout} ms`);
        const answer = await withTimeout(clock, limit, ask);
        over(true);
        if (store.on) store.worked();
        return answer;
      } catch (cause) {
        over(false);
        store.failed({ err: cause });
        throw unavailable(cause);
      }
    },
  };
}

/** The answer to every store fault: nothing internal in the message. */
export function unavailable(cause?: unknown): VerifierError {
  return new VerifierError("unavailable", "The service cannot reach its data at the moment; try again in a few seconds.", { cause });
}

/** A time limit that ran out. */
export class TimedOut extends Error {
  override readonly name = "TimedOut";
}

/** Runs what it is given when what has arrived meanwhile was read. */
const nextTurn: (run: () => void) => unknown = globalThis.setImmediate ?? setTimeout;

/**
 * Runs `late` after `ms` and one turn of the event loop. The function returned cancels it.
 *
 * Where the clock jumps, in a test or because the process stood still, an answer may be there that has not been read yet: it is read in that turn, and is not late.
 */
export function afterTurn(clock: Clock, ms: number, late: () => void): () => void {
  let isOff = false;
  const cancel = clock.after(ms, () => void nextTurn(() => isOff || late()));
  return () => {
    isOff = true;
    cancel();
  };
}

/** The result of `ask`; rejects with `TimedOut` after `ms`. What `ask` does later is ignored. */
export function withTimeout<T>(clock: Clock, ms: number, ask: () => PromiseLike<T> | T): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const cancel = afterTurn(clock, ms, () => reject(new TimedOut(`no answer within ${ms} ms`)));
    const fail = (error: unknown) => {
      cancel();
      reject(error);
    };
    try {
      Promise.resolve(ask()).then((answer) => {
        cancel();
        resolve(answer);
      }, fail);
    } catch (error) {
      fail(error);
    }
  });
}
