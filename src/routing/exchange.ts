import { createHash } from "node:crypto";
import { withTimeout } from "../core/deadline.js";
import type { Clock } from "../ports/clock.js";
import type { Logger } from "../ports/logger.js";
import type { Store } from "../ports/store.js";
import { type Counters, type Place, stretch } from "./counters.js";
import type { Tally } from "./health.js";

/** Adds to the counters that all processes share what this one counted, and reads what all counted together. */
export interface Exchange {
  /** Exchanges if it is time to, or later if there is something to tell. Nobody waits for it. */
  poke(): void;
}

export interface ExchangeOptions {
  readonly store: Pick<Store, "tally">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Routers with other routes have counters of their own; those that cut up time otherwise too, for their slices have other numbers. */
  readonly routes: readonly { readonly name: string; readonly countries?: ReadonlySet<string> | undefined }[];
  readonly counters: Counters;
}

/** Milliseconds between two exchanges, at least. */
export const exchangeEvery = 2000;

/** Exchanges that must fail before the others are not waited for: a process that was suspended finds its call timed out, and has heard of no codes. */
const aloneAfter = 3;

/** Counters named in one call. */
const mostAtATime = 2000;

/** One counter of the store, what is added to it, and who wants to know what it then holds. */
interface Line {
  readonly name: string;
  readonly place: Place;
  by: number;
  wanted: boolean;
}

export function createExchange({ store, clock, logger, routes, counters }: ExchangeOptions): Exchange {
  const { slice, window, settle } = counters.calendar;
  const ids = new Map(
    routes
      .map(({ name }) => name)
      .toSorted()
      .map((name, at) => [name, at.toString(36)]),
  );
  const digest = createHash("sha256")
    .update(JSON.stringify([...ids.keys()]))
    .digest("base64url");
  let exchangedAt = Number.NEGATIVE_INFINITY;
  let failures = 0;
  let busy = false;
  let scheduled = false;

  const nameOf = ({ country = "", route, first, length, signal }: Place) =>
    `r:${digest.slice(0, 8)}:${country}:${ids.get(route)}:${(first / length).toString(36)}${length === 1 ? signal[0] : signal[0]!.toUpperCase()}`;

  /** As long as it may be read. */
  const keepUntil = ({ first, length }: Place) => (length === 1 ? (first + 3 * stretch) * slice + settle : (first + 2 * stretch) * slice + window);

  /** What cannot be told is lost to the others: told again it might count twice. */
  const exchange = async (): Promise<void> => {
    const now = Math.floor(clock.now());
    const lines = new Map<string, Line>();
    const lineOf = (place: Place): Line => {
      const name = nameOf(place);
      let line = lines.get(name);
      if (line === undefined) lines.set(name, (line = { name, place, by: 0, wanted: false }));
      return line;
    };
    for (const { tally, ...place } of counters.news()) {
      const line = lineOf(place);
      line.by = pack(tally);
      line.wanted = true;
      lineOf({ ...place, first: Math.floor(place.first / stretch) * stretch, length: stretch }).by += line.by;
    }
    const { reads, done } = counters.wants(now);
    for (const read of reads) {
      for (const { name: route, countries } of routes) {
        if (countries === undefined || (read.country !== undefined && countries.has(read.country))) lineOf({ ...read, route }).wanted = true;
      }
    }
    const all = [...lines.values()];
    for (let from = 0; from < all.length; from += mostAtATime) {
      const some = all.slice(from, from + mostAtATime);
      const adds = some.filter(({ by }) => by > 0).map(({ name: counter, place, by }) => ({ counter, by, now, keepUntil: keepUntil(place) }));
      const wanted = some.filter((line) => line.wanted);
      const answers = await withTimeout(clock, exchangeEvery, () =>
        store.tally(
          adds,
          wanted.map(({ name }) => name),
        ),
      );
      for (const [at, { place }] of wanted.entries()) counters.take(place, unpack(answers[at] ?? 0));
    }
    done();
    failures = 0;
    counters.alone = false;
  };

  /** Told once for each time that the store fails, not every two seconds. */
  const failed = (err: unknown) => {
    failures += 1;
    counters.alone = failures >= aloneAfter;
    if (failures === 1) logger.warn({ err }, "the routes' health cannot be exchanged with other processes; meanwhile this one goes by what it knows");
  };

  const poke = () => {
    if (busy) return;
    const now = clock.now();
    const wait = exchangedAt + exchangeEvery - now;
    // A clock that was set back must not keep it waiting for longer.
    if (wait <= 0 || wait > exchangeEvery) {
      exchangedAt = now;
      busy = true;
      exchange()
        .catch(failed)
        .finally(() => {
          busy = false;
          if (counters.hasNews) poke();
        });
    } else if (counters.hasNews && !scheduled) {
      // What was counted here may be waited for elsewhere, though nothing more happens here.
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

  return { poke };
}

/** Both numbers of a tally in one counter: it adds up as they do, below 67 million messages. */
const goodAt = 2 ** 26;

function pack({ good, all }: Tally): number {
  return good * goodAt + all;
}

function unpack(sum: number): Tally {
  return { good: Math.floor(sum / goodAt), all: sum % goodAt };
}
