import { type Authentication, isForgotten } from "../../domain/authentication.js";
import type { CommitResult, RecordWrite, Store, StoredRecord } from "../../ports/store.js";
import type { Question, StoreBudget } from "../clock/budget.js";
import type { Soon } from "../soon.js";
import { encodeRecord } from "./codec.js";
import type { Committed, Held, Remembered, Writing } from "./records.js";

/** "Random tokens of the last writes … 1 to 16 of them" (ports/store.ts). */
export const keptTokens = 16;

/** How often an ended record, or one that vanishes just then, is got out of the way of a new one. */
const maxRounds = 10;

const none: readonly never[] = [];

/** What a write needs of the records. */
export interface Shelf {
  readonly store: Store;
  now(): number;
  heldOf(record: StoredRecord): Held;
  /** Remembers what was written. */
  keep(held: Remembered, at: number): void;
}

/** One write of a record, over what was written with the tokens of `before`. An object of its own rather than functions: every request makes one or two. */
export class Write<R> implements Question<CommitResult, R> {
  readonly #data: string;
  #over: readonly string[];
  #tokens: readonly string[] = none;
  #round = 0;

  /** `auth`: what is to be written for `writing.next`. `at`: what time it is. `end`: what is made of what comes of it. */
  constructor(
    readonly shelf: Shelf,
    readonly budget: StoreBudget,
    readonly writing: Writing,
    readonly auth: Authentication,
    readonly wakeAt: RecordWrite["wakeAt"],
    readonly token: string,
    readonly at: number,
    readonly end: (committed: Committed) => Soon<R>,
  ) {
    this.#data = encodeRecord(auth);
    this.#over = writing.before?.tokens ?? none;
  }

  ask(): Promise<CommitResult> {
    const { wakeAt, at: now } = this;
    const { claims = none, asks = none } = this.writing;
    const { customer, id, keepUntil } = this.auth;
    const over = this.#over;
    const data = this.#data;
    const tokens = [this.token].concat(over.length < keptTokens ? over : over.slice(0, keptTokens - 1));
    this.#tokens = tokens;
    const record = wakeAt === undefined ? { customer, id, keepUntil, now, tokens, data } : { customer, id, keepUntil, now, tokens, data, wakeAt };
    return this.shelf.store.commit({ claims, asks, record, expected: over[0] ?? null });
  }

  read(result: CommitResult): Soon<R> {
    const { shelf, auth, end } = this;
    if (result.done) {
      shelf.keep({ auth, tokens: this.#tokens, data: this.#data }, this.at);
      return end(result);
    }
    if (result.refusedBy !== undefined) return end(result);
    const { current } = result;
    const ended = current !== undefined && isForgotten(current, shelf.now());
    if (current !== undefined && !ended) return end({ done: false, held: shelf.heldOf(current) });
    if (this.writing.before !== undefined || this.#round === maxRounds) return end({ done: false });
    // A record past its end that the store has not cleared away yet is as good as none, so the new one takes its place; unless it is cleared away just then.
    this.#over = current?.tokens ?? none;
    this.#round++;
    return this.budget.ask(this);
  }
}
