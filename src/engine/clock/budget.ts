import { VerifierError } from "../../errors.js";
import type { Clock } from "../../ports/clock.js";
import type { Outage } from "../eyes/outages.js";
import { nextTurn } from "./turn.js";

/** "One deadline (2 s) covers all store calls of a request; past it the request fails closed with 503" (docs/contract.md#store-deadline). Time in which no store call is under way is not charged. */
export interface StoreBudget {
  /** The answer of a store call; rejects with `unavailable` when the call fails or the time is used up. */
  call<T>(ask: () => Promise<T>): Promise<T>;
  /** The same, and what is made of the answer. */
  ask<T, R>(question: Question<T, R>): Promise<R>;
}

/** What is asked, and what is made of the answer. Here rather than in a `then`, which is a promise and a turn more for each. */
export interface Question<T, R = T> {
  ask(): PromiseLike<T> | T;
  /** Default: the answer. */
  readonly read?: ((answer: T) => R | PromiseLike<R>) | undefined;
  /** What is made of a failure. Default: a rejection with it. */
  readonly failed?: ((error: unknown) => R) | undefined;
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

  call<T>(ask: () => Promise<T>): Promise<T> {
    return this.ask<T, T>({ ask });
  }

  ask<T, R>(question: Question<T, R>): Promise<R> {
    const now = this.clock.now();
    if (this.#underWay === 0) this.#deadline += now - this.#idleSince;
    const left = this.#deadline - now;
    if (left <= 0) {
      this.#idleSince = now;
      return Promise.reject(unavailable(new Error(`the store used up its ${this.timeout} ms`)));
    }
    this.#underWay++;
    return new StoreCall(this, left, question).begin();
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

/** The result of `ask`; a rejection with `TimedOut` after `ms`. What `ask` does later is ignored. */
export function withTimeout<T>(clock: Clock, ms: number, ask: () => PromiseLike<T> | T): Promise<T> {
  return askWithin<T, T>(clock, ms, { ask });
}

/** The same, and what is made of the result, or of the failure. */
export function askWithin<T, R>(clock: Clock, ms: number, question: Question<T, R>): Promise<R> {
  return new Wait(clock, ms, question).begin();
}

/** What a promise that is being made is settled by: `Promise.withResolvers`, which Node 20 has not, without a function of its own for each. */
const newest: { resolve: (value: unknown) => void; reject: (error: unknown) => void } = { resolve: () => {}, reject: () => {} };
const capture = (resolve: (value: unknown) => void, reject: (error: unknown) => void): void => {
  newest.resolve = resolve;
  newest.reject = reject;
};

const nothing = () => {};

/** One wait with a limit; every request makes several. As for `afterTurn`, an answer that is there when the time is up is read, and is not late. */
class Wait<T, R> {
  readonly #promise = new Promise<R>(capture as ConstructorParameters<typeof Promise<R>>[0]);
  readonly #resolve: (value: R | PromiseLike<R>) => void = newest.resolve;
  readonly #reject = newest.reject;
  #isOver = false;
  #cancel = nothing;

  constructor(
    readonly clock: Clock,
    readonly ms: number,
    readonly question: Question<T, R>,
  ) {}

  begin(): Promise<R> {
    const fail = (error: unknown) => this.#fail(error);
    this.#cancel = this.clock.after(this.ms, () => void nextTurn(() => fail(new TimedOut(`no answer within ${this.ms} ms`))));
    try {
      Promise.resolve(this.question.ask()).then((answer) => {
        if (this.#isFirst()) this.#read(answer);
      }, fail);
    } catch (error) {
      fail(error);
    }
    return this.#promise;
  }

  /** Told of a result that comes in time. */
  answered(): void {}

  /** What to reject with. */
  failure(error: unknown): unknown {
    return error;
  }

  #read(answer: T): void {
    this.answered();
    const { read } = this.question;
    if (read === undefined) this.#resolve(answer as unknown as R);
    else this.#settle(read, answer);
  }

  #fail(error: unknown): void {
    if (!this.#isFirst()) return;
    const fault = this.failure(error);
    const { failed } = this.question;
    if (failed === undefined) this.#reject(fault);
    else this.#settle(failed, fault);
  }

  #settle<A>(read: (answer: A) => R | PromiseLike<R>, answer: A): void {
    try {
      this.#resolve(read.call(this.question, answer));
    } catch (error) {
      this.#reject(error);
    }
  }

  #isFirst(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#cancel();
    return true;
  }
}

class StoreCall<T, R> extends Wait<T, R> {
  constructor(
    readonly budget: Budget,
    left: number,
    question: Question<T, R>,
  ) {
    super(budget.clock, left, question);
  }

  override answered(): void {
    this.budget.answered(this.ms);
  }

  override failure(error: unknown): unknown {
    return this.budget.failed(error);
  }
}
