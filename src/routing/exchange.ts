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
  const process = randomUUID().slice(0, 8);
  const waiting: Heard[] = [];
  let seen = 0;
  let next = Number.NEGATIVE_INFINITY;
  let running = false;
  let failing = false;

  /** Told once for each time that the store fails, not every two seconds. */
  const failed = (err: unknown) => {
    if (!failing) logger.warn({ err }, "the routes' health cannot be exchanged with other processes; this one goes by what it knows");
    failing = true;
  };

  /** What cannot be told is lost, of all routes alike: told again it might count twice. */
  const exchange = async (post: Post): Promise<void> => {
    let news: readonly Post[] = [];
    let last = seen;
    await texts.change(place, (text) => {
      const board = decodeBoard(text);
      news = postsAfter(board, seen);
      last = board.last;
      if (post.heard.length === 0 && post.counted.length === 0) return undefined;
      last += 1;
      return encodeBoard(board, post);
    });
    seen = last;
    const now = clock.now();
    for (const { heard, counted } of news.filter((other) => other.process !== process)) {
      for (const event of heard) book.heard(event, now);
      for (const tallies of counted) book.learn(tallies, now);
    }
  };

  return {
    pass(heard) {
      waiting.push(heard);
      if (waiting.length > maxHeard) waiting.shift();
    },
    poke() {
      const now = clock.now();
      if (running || now < next) return;
      running = true;
      next = now + exchangeEvery;
      const post = { process, heard: waiting.splice(0, mostHeard), counted: book.news(mostCounted) };
      exchange(post)
        .then(() => (failing = false), failed)
        .finally(() => {
          running = false;
        });
    },
  };
}
