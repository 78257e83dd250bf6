import { VerifierError } from "../../errors.js";
import type { Clock } from "../../ports/clock.js";
import type { Outage } from "../eyes/outages.js";

/** "One deadline (2 s) covers all store calls of a request; past it the request fails closed with 503" (docs/contract.md#store-deadline). Time in which no store call is under way is not charged. */
export interface StoreBudget {
  /** Waits for a store call; rejects with `unavailable` when it fails or the time is used up. */
  call<T>(work: () => Promise<T>): Promise<T>;
}

/** A budget for one request. `store`: who is told whether the store works. `timeout` in milliseconds. */
export function storeBudget(clock: Clock, store: Outage, timeout: number): StoreBudget {
  return new Budget(clock, store, timeout);
}

class Budget implements StoreBudget {
  #deadline: number;
  #underWay = 0;
  /** Since when no call is under way: at first since ever, so that all of the time is left to the first call. */
  #idleSince = 0;

  constructor(
    readonly clock: Clock,
    readonly store: Outage,
    readonly timeout: number,
  ) {
    this.#deadline = timeout;
  }

  call<T>(work: () => Promise<T>): Promise<T> {
    const now = this.clock.now();
    if (this.#underWay === 0) this.#deadline += now - this.#idleSince;
    const left = this.#deadline - now;
    if (left <= 0) {
      this.#idleSince = now;
      return Promise.reject(unavailable(new Error(`the store used up its ${this.timeout} ms`)));
    }
    this.#underWay++;
    return new Promise((resolve, reject) => new StoreCall<T>(this, left, resolve, reject).waitFor(work));
  }

  failed(cause: unknown): VerifierError {
    this.#over();
    this.store.failed({ err: cause });
    return unavailable(cause);
  }

  /** `left`: what was left of the time when the call began. */
  answered(left: number): void {
    const then = this.#over();
    // The clock jumped over the call: how long it took nobody knows, and the next has as much.
    if (then >= this.#deadline) this.#deadline = then + left;
    if (this.store.on) this.store.worked();
  }

  #over(): number {
    this.#underWay--;
    this.#idleSince = this.clock.now();
    return this.#idleSince;
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

/** Runs what it is given when what has arrived meanwhile was read. */
const nextTurn: (run: () => void) => unknown = globalThis.setImmediate ?? setTimeout;

/**
 * Runs `late` after `ms` and one turn of the event loop. The function returned calls it off.
 *
 * Where the clock jumps, in a test or because the process stood still, an answer may be there that nobody could read yet: it is read in that turn, and is not late.
 */
export function afterTurn(clock: Clock, ms: number, late: () => void): () => void {
  let isOff = false;
  const cancel = clock.after(ms, () => void nextTurn(() => isOff || late()));
  return () => {
    isOff = true;
    cancel();
  };
}

/** The result of `work`, or a rejection with `TimedOut` after `ms`. What `work` does later is ignored. */
export function withTimeout<T>(clock: Clock, ms: number, work: () => PromiseLike<T> | T): Promise<T> {
  return new Promise((resolve, reject) => new Wait<T>(clock, ms, resolve, reject).waitFor(work));
}

/** One wait with a limit; every request makes several. As for `afterTurn`, an answer that is there when the time is up is read, and is not late. */
class Wait<T> {
  #isOver = false;
  readonly #cancel: () => void;

  constructor(
    clock: Clock,
    readonly ms: number,
    readonly resolve: (value: T) => void,
    readonly reject: (error: unknown) => void,
  ) {
    this.#cancel = clock.after(ms, () => void nextTurn(() => this.#fail(new TimedOut(`no answer within ${this.ms} ms`))));
  }

  waitFor(work: () => PromiseLike<T> | T): void {
    const fail = (error: unknown) => this.#fail(error);
    try {
      Promise.resolve(work()).then((value) => {
        if (!this.#isFirst()) return;
        this.answered();
        this.resolve(value);
      }, fail);
    } catch (error) {
      fail(error);
    }
  }

  /** Told of a result that comes in time. */
  answered(): void {}

  /** What to reject with. */
  failure(error: unknown): unknown {
    return error;
  }

  #fail(error: unknown): void {
    if (this.#isFirst()) this.reject(this.failure(error));
  }

  #isFirst(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#cancel();
    return true;
  }
}

class StoreCall<T> extends Wait<T> {
  constructor(
    readonly budget: Budget,
    left: number,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
  ) {
    super(budget.clock, left, resolve, reject);
  }

  override answered(): void {
    this.budget.answered(this.ms);
  }

  override failure(error: unknown): unknown {
    return this.budget.failed(error);
  }
}
