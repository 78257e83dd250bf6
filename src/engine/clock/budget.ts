import { VerifierError } from "../../errors.js";
import type { Clock } from "../../ports/clock.js";
import type { Logger } from "../../ports/logger.js";

/** "One deadline (2 s) covers all store calls of a request; past it the request fails closed with 503" (architecture.md, rule 8). */
export interface StoreBudget {
  /** Waits for a store call; rejects with `unavailable` when it fails or the time is used up. */
  call<T>(work: () => Promise<T>): Promise<T>;
  /** Waits for something that is not a store call; the time it takes is not charged. */
  aside<T>(work: () => Promise<T>): Promise<T>;
}

/** A budget for one request. `timeout` in milliseconds. */
export function storeBudget(clock: Clock, logger: Logger, timeout: number): StoreBudget {
  let deadline = clock.now() + timeout;
  return {
    async call(work) {
      const left = deadline - clock.now();
      if (left <= 0) throw unavailable(new Error(`the store used up its ${timeout} ms`));
      try {
        return await withTimeout(clock, left, work);
      } catch (cause) {
        logger.error({ err: cause }, "the store failed");
        throw unavailable(cause);
      }
    },
    async aside(work) {
      const started = clock.now();
      try {
        return await work();
      } finally {
        deadline += Math.max(0, clock.now() - started);
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

/** The result of `work`, or a rejection with `TimedOut` after `ms`. What `work` does later is ignored. */
export function withTimeout<T>(clock: Clock, ms: number, work: () => PromiseLike<T> | T): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const cancel = clock.after(ms, () => reject(new TimedOut(`no answer within ${ms} ms`)));
    const settle = <A>(finish: (value: A) => void) => {
      return (value: A) => {
        cancel();
        finish(value);
      };
    };
    try {
      Promise.resolve(work()).then(settle(resolve), settle(reject));
    } catch (error) {
      settle(reject)(error);
    }
  });
}
