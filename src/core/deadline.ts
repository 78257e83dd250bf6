import { VerifierError } from "../errors.js";
import type { Clock } from "../ports/clock.js";

export type StoreDeadline = ReturnType<typeof storeDeadline>;

/** Receives the results of store calls. */
export interface CallHealth {
  /** Whether the store is failing; only then are successful calls reported. */
  readonly on: boolean;
  failed(fields: Readonly<Record<string, unknown>>): void;
  worked(): void;
}

/**
 * "One deadline (2 s) covers all store calls of a request; past it the request fails closed with 503"
 * (docs/contract.md#store-deadline). Only time during store calls counts. `store`: is notified of failures and recovery.
 * `timeout`: milliseconds.
 */
export function storeDeadline(clock: Clock, store: CallHealth, timeout: number) {
  const elapsed = () => clock.elapsed?.() ?? clock.now();
  let left = timeout;
  let underWay = 0;
  let busySince = 0;

  /** Adds the time once no call is in progress. `answered`: a response is not late because a clock jumped. */
  const over = (answered: boolean) => {
    if (--underWay > 0) return;
    const took = elapsed() - busySince;
    if (!answered || took < left) left -= Math.max(0, took);
  };

  return {
    /** Returns the result of a store call. Rejects with `unavailable` if the call fails or the time is used up. */
    async call<T>(ask: () => Promise<T>): Promise<T> {
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

/** The error for every store failure. The message holds nothing internal. */
export function unavailable(cause?: unknown): VerifierError {
  return new VerifierError("unavailable", "The service cannot reach its data at the moment; try again in a few seconds.", { cause });
}

/** A time limit was exceeded. */
export class TimedOut extends Error {
  override readonly name = "TimedOut";
}

/** Runs a callback after pending input was read: in real time, even if a test fakes the timers later. */
export const nextTurn: (run: () => void) => unknown = globalThis.setImmediate ?? setTimeout;

/**
 * Runs `late` after `ms` and one turn of the event loop. The returned function cancels it.
 *
 * If the clock jumps, in a test or because the process stalled, a response may be waiting unread. It is read in that
 * turn and is not late.
 */
export function afterTurn(clock: Clock, ms: number, late: () => void): () => void {
  let isOff = false;
  const cancel = clock.after(ms, () => void nextTurn(() => isOff || late()));
  return () => {
    isOff = true;
    cancel();
  };
}

/**
 * Returns the result of `ask`, or rejects with `TimedOut` after `ms`. Later results of `ask` are ignored. What cannot be
 * read, as a revoked proxy, is not passed on: looking at it would throw again.
 */
export async function withTimeout<T>(clock: Clock, ms: number, ask: () => PromiseLike<T> | T): Promise<T> {
  let cancel: (() => void) | undefined;
  const late = new Promise<never>((_, reject) => {
    cancel = afterTurn(clock, ms, () => reject(new TimedOut(`no response within ${Math.round(ms)} ms`)));
  });
  try {
    return await Promise.race([ask(), late]);
  } catch (error) {
    throw isReadable(error) ? error : new Error("what was thrown cannot be read");
  } finally {
    cancel?.();
  }
}

function isReadable(thrown: unknown): boolean {
  try {
    return thrown instanceof Error || true;
  } catch {
    return false;
  }
}
