import { createHash } from "node:crypto";
import { chunksOf, getOrPut } from "../core/collections.js";
import { withTimeout } from "../core/deadline.js";
import { safeLogger } from "../core/loggers.js";
import type { Store } from "../ports/store.js";
import { type Counts, mergeRead, type Place, readsDue, stretch, stretchOf, type Tally } from "./counts.js";
import type { RouterSettings } from "./router-options.js";

/** Milliseconds between two exchanges, at least. */
export const exchangeEvery = 2000;

/** Failures in a row until slices settle unread. After a pause a process finds its call timed out, and must read. */
const cutOffAfter = 3;

/** Counters in one call of the store. */
const mostPerCall = 2000;

/** A counter holds `good * goodUnit + all`: both numbers of a tally add up as one, up to 33 million messages. */
const goodUnit = 2 ** 26;

/** `all` may be below 0: what was taken out may be known before what it is taken from. */
function tallyIn(sum: number): Tally {
  const good = Math.round(sum / goodUnit);
  return { good, all: sum - good * goodUnit };
}

/** Exchanges counts with other processes over counters in the store. It never throws. */
export interface Exchange {
  /** Exchanges counts when it is time to, and later if there is something to share. No request waits for it. */
  poke(): void;
  /** Shares what is left, and leaves the store alone until the next `poke`. */
  finish(): Promise<void>;
}

export function createExchange(store: Store, counts: Counts, { routes, clock, logger }: Pick<RouterSettings, "routes" | "clock" | "logger">): Exchange {
  const nameOf = counterNames(routes.map(({ name }) => name));
  let startedAt = Number.NEGATIVE_INFINITY;
  let failures = 0;
  let running: Promise<void> | undefined;
  let cancel: (() => void) | undefined;

  /** Counts are lost to other processes if the call fails: repeated, they might count twice. */
  const exchange = async (): Promise<void> => {
    const now = Math.floor(clock.now());
    const lines = new Map<string, { readonly place: Place; by: number; read: boolean }>();
    const lineOf = (place: Place) => getOrPut(lines, nameOf(place), () => ({ place, by: 0, read: false }));
    const unshared = [...counts.unshared.values()];
    counts.unshared.clear();
    for (const { place, tally } of unshared) {
      const by = tally.good * goodUnit + tally.all;
      Object.assign(lineOf(place), { by, read: true });
      lineOf({ ...place, first: stretchOf(place.first), length: stretch }).by += by;
    }
    const { reads, done } = readsDue(counts, now);
    for (const { name: route, countries } of routes) {
      for (const read of reads) if (countries === undefined || countries.has(read.country ?? "")) lineOf({ ...read, route }).read = true;
    }
    const all = [...lines].map(([counter, line]) => ({ counter, ...line }));
    for (const part of chunksOf(all, mostPerCall)) {
      const adds = part.filter(({ by }) => by !== 0).map(({ counter, place, by }) => ({ counter, by, now, keepUntil: keepUntil(counts, place) }));
      const toRead = part.filter(({ read }) => read);
      const names = toRead.map(({ counter }) => counter);
      const sums = await withTimeout(clock, exchangeEvery, () => store.tally(adds, names));
      for (const [index, { place }] of toRead.entries()) mergeRead(counts, place, tallyIn(sums[index] ?? 0));
    }
    done();
  };

  const run = async (): Promise<void> => {
    startedAt = clock.now();
    try {
      await exchange();
      failures = 0;
    } catch (err) {
      failures += 1;
      if (failures === 1)
        safeLogger(logger).warn({ err }, "the routes' health cannot be exchanged with other processes; until it can, this process uses only its own counts");
    }
    counts.cutOff = failures >= cutOffAfter;
    running = undefined;
    if (counts.unshared.size > 0) poke();
  };

  const poke = () => {
    if (running !== undefined) return;
    const wait = startedAt + exchangeEvery - clock.now();
    // After a clock was set back the wait would be too long.
    if (wait <= 0 || wait > exchangeEvery) running = run();
    else if (counts.unshared.size > 0 && cancel === undefined) {
      const later = () => {
        cancel = undefined;
        poke();
      };
      cancel = clock.after(wait, later, "background");
    }
  };

  const finish = async () => {
    await running;
    cancel?.();
    cancel = undefined;
    if (counts.unshared.size > 0) await (running = run());
  };
  return { poke, finish };
}

/** Routers with other routes use other counters; so do those with other slices, because these have other numbers. */
function counterNames(routes: readonly string[]): (place: Place) => string {
  const sorted = routes.toSorted();
  const ids = new Map(sorted.map((name, index) => [name, index.toString(36)]));
  const digest = createHash("sha256").update(JSON.stringify(sorted)).digest("base64url").slice(0, 8);
  return ({ country = "", route, first, length, signal }) =>
    `r:${digest}:${country}:${ids.get(route)}:${(first / length).toString(36)}${length === 1 ? signal[0] : signal[0]!.toUpperCase()}`;
}

/** Until when a counter may be read. */
function keepUntil({ slice, settle, window }: Counts, { first, length }: Place): number {
  return length === 1 ? (first + 3 * stretch) * slice + settle : (first + 2 * stretch) * slice + window;
}
