import type { SendContext } from "../ports/sms-sender.js";

/** An own property, so that senders can pass its copy on; defined for all alike, since a getter in an object literal costs more than the send. */
const lazySignal: PropertyDescriptor & ThisType<TimeToSend> = {
  enumerable: true,
  get() {
    return this.asked();
  },
};

/** How long a send may take. Its AbortController is made when somebody asks for the signal: most senders in tests, and those that have a time limit of their own, never do. */
export class TimeToSend implements SendContext {
  declare readonly signal: AbortSignal;
  readonly deadline: number;
  #controller: AbortController | undefined;
  #aborted: { readonly reason: unknown } | undefined;

  constructor(
    now: number,
    readonly timeLeft: number,
  ) {
    this.deadline = now + timeLeft;
    Object.defineProperty(this, "signal", lazySignal);
  }

  abort(reason: unknown): void {
    this.#aborted = { reason };
    this.#controller?.abort(reason);
  }

  asked(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#aborted !== undefined) this.#controller.abort(this.#aborted.reason);
    return this.#controller.signal;
  }
}
