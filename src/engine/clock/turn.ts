import { inWorker } from "../workers.js";

/** Runs what it is given when what has arrived meanwhile was read. */
export const nextTurn: (run: () => void) => unknown = globalThis.setImmediate ?? setTimeout;

/** Whether requests may wait for one another. Not in a Worker; not where a test's own clock was there first (its timers have a `clock`), since turns then end when the test says so; and not by a timer, which takes too long. */
const gathers = !inWorker && nextTurn === globalThis.setImmediate && !("clock" in nextTurn);

/**
 * Lets what comes in one turn of the event loop go on together, when all of it has come: one after another they find code and data in the processor's caches, which takes a third off the work of a request.
 * Only after a turn in which several came: where they come one at a time nobody waits.
 */
export class Cohort {
  #came = 0;
  #isCrowded = false;
  #gathering: Promise<void> | undefined;
  #leave = () => {};

  /** What to wait for; `undefined`: nothing. */
  join(): Promise<void> | undefined {
    if (!gathers) return undefined;
    if (this.#came++ === 0) nextTurn(this.#end);
    if (!this.#isCrowded) return undefined;
    this.#gathering ??= new Promise((resolve) => {
      this.#leave = resolve;
    });
    return this.#gathering;
  }

  /** As many as came in this turn are taken for as many as come in the next. */
  readonly #end = (): void => {
    this.#isCrowded = this.#came > 1;
    this.#came = 0;
    this.#gathering = undefined;
    this.#leave();
  };
}
