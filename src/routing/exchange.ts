import { randomUUID } from "node:crypto";
import { decodeBoard, encodeBoard, type Heard, mostCounted, mostHeard, type Post, postsAfter } from "../domain/routing-board.js";
import { createSharedTexts, uuidOf } from "../engine/shared-text.js";
import type { Clock } from "../ports/clock.js";
import type { Logger } from "../ports/logger.js";
import type { Store } from "../ports/store.js";
import type { HealthBook } from "./health-book.js";

/** Tells the other processes what this one knows of its routes, and learns what they know, over the store they share. */
export interface Exchange {
  /** An event of a message that another process must have sent. */
  pass(heard: Heard): void;
  /** Exchanges if it is time to. Nobody waits for it. */
  poke(): void;
}

export interface ExchangeOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Routers with other routes have boards of their own. */
  readonly routes: readonly string[];
  readonly book: HealthBook;
  /** How long the board is kept without a change, in milliseconds. */
  readonly life: number;
}

/** Milliseconds between two exchanges, while there are messages. */
export const exchangeEvery = 2000;

/** Events that wait to be passed on; beyond that the oldest are dropped, of all routes alike. */
const maxHeard = 1000;

export function createExchange({ store, clock, logger, routes, book, life }: ExchangeOptions): Exchange {
  const texts = createSharedTexts({ store, clock, newToken: randomUUID, timeout: exchangeEvery, life, remembered: 0 });
  const place = { customer: uuidOf("routes"), id: uuidOf([...routes].sort().join("\0")) };
  const known = new Set(routes);
  const waiting: Heard[] = [];
  // Drawn with the first exchange: some platforms give no randomness before the first request.
  let process: string | undefined;
  let seen = 0;
  let exchangedAt = Number.NEGATIVE_INFINITY;
  let scheduled = false;
  let failing = false;
  book.settleUpTo(clock.now());

  /** What cannot be told is lost, of all routes alike: told again it might count twice. */
  const exchange = async (): Promise<void> => {
    const [began, before] = [clock.now(), seen];
    process ??= randomUUID().slice(0, 8);
    const post = { process, heard: waiting.splice(0, mostHeard), counted: book.news(mostCounted) };
    let news: readonly Post[] = [];
    let last = before;
    await texts.change(place, (text) => {
      const board = decodeBoard(text);
      news = postsAfter(board, before);
      last = board.last;
      if (post.heard.length === 0 && post.counted.length === 0) return undefined;
      last += 1;
      return encodeBoard(board, post);
    });
    // Another exchange of this process has overtaken this one, and read the same.
    if (seen !== before) return;
    seen = last;
    failing = false;
    const now = clock.now();
    for (const { heard, counted } of news.filter((other) => other.process !== process)) {
      for (const event of heard) book.heard(event, now);
      for (const tallies of counted) if (known.has(tallies.route)) book.learn(tallies, now);
    }
    book.settleUpTo(began);
  };

  /** Each process goes by what it knows then. Told once for each time that the store fails, not every two seconds. */
  const failed = (err: unknown) => {
    book.settleUpTo(clock.now());
    if (!failing) logger.warn({ err }, "the routes' health cannot be exchanged with other processes; this one goes by what it knows");
    failing = true;
  };

  const poke = () => {
    const now = clock.now();
    const wait = exchangedAt + exchangeEvery - now;
    // A clock that was set back must not keep it waiting for longer.
    if (wait <= 0 || wait > exchangeEvery) {
      exchangedAt = now;
      void exchange()
        .catch(failed)
        .catch(() => undefined);
    } else if (waiting.length > 0 && !scheduled) {
      // What was heard here may be waited for elsewhere, though nothing more happens here.
      scheduled = true;
      clock.after(
        wait,
        () => {
          scheduled = false;
          poke();
        },
        "background",
      );
    }
  };

  return {
    pass(heard) {
      waiting.push(heard);
      if (waiting.length > maxHeard) waiting.shift();
    },
    poke,
  };
}
