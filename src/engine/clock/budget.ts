import { VerifierError } from "../../errors.js";
import type { Clock } from "../../ports/clock.js";
import type { Outage } from "../eyes/outages.js";
import type { Soon } from "../soon.js";

/** "One deadline (2 s) covers all store calls of a request; past it the request fails closed with 503" (architecture.md, rule 8). */
export interface StoreBudget {
  /** Waits for a store call; rejects with `unavailable` when it fails or the time is used up. */
  call<T>(work: () => Promise<T>): Promise<T>;
  /** Something that is not a store call; the time it takes is not charged. */
  aside<T>(work: () => Soon<T>): Soon<T>;
}

/** A budget for one request. `store`: who is told whether the store works. `timeout` in milliseconds. */
export function storeBudget(clock: Clock, store: Outage, timeout: number): StoreBudget {
  return new Budget(clock, store, timeout);
}

class Budget implements StoreBudget {
  #deadline: number;

  constructor(
    readonly clock: Clock,
    readonly store: Outage,
    readonly timeout: number,
  ) {
    this.#deadline = clock.now() + timeout;
  }

  call<T>(work: () => Promise<T>): Promise<T> {
    const left = this.#deadline - this.clock.now();
    if (left <= 0) return Promise.reject(unavailable(new Error(`the store used up its ${this.timeout} ms`)));
    const done = withTimeout(this.clock, left, work, (cause) => {
      this.store.failed({ err: cause });
      return unavailable(cause);
    });
    return this.store.on ? done.then((value) => this.#worked(value)) : done;
  }

  #worked<T>(value: T): T {
    this.store.worked();
    return value;
  }

  aside<T>(work: () => Soon<T>): Soon<T> {
    const started = this.clock.now();
    const goOn = () => {
      this.#deadline += Math.max(0, this.clock.now() - started);
    };
    const value = work();
    if (!(value instanceof Promise)) return value;
    return value.then(
      (one) => {
        goOn();
        return one;
      },
      (error) => {
        goOn();
        throw error;
      },
    );
  }
}

/** The answer to every store fault: nothing internal in the message. */
export function unavailable(cause?: unknown): VerifierError {
  return new VerifierError("unavailable", "The service cannot reach its data at the moment; try again in a few seconds.", { cause });
}

/** A time limit that ran out. */
export class TimedOut extends Error {
  override readonly name = "TimedOut";
}

/** The result of `work`, or a rejection with `TimedOut` after `ms`. What `work` does later is ignored. `failure`: what to reject with instead. */
export function withTimeout<T>(clock: Clock, ms: number, work: () => PromiseLike<T> | T, failure = (error: unknown) => error): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let over = false;
    const fail = (error: unknown) => {
      if (over) return;
      over = true;
      cancel();
      reject(failure(error));
    };
    const cancel = clock.after(ms, () => fail(new TimedOut(`no answer within ${ms} ms`)));
    try {
      Promise.resolve(work()).then((value) => {
        over = true;
        cancel();
        resolve(value);
      }, fail);
    } catch (error) {
      fail(error);
    }
  });
}
