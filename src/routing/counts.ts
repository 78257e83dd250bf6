import { getOrPut } from "../core/collections.js";

/** What is counted for a route in a country, the most important first. */
export const signals = ["conversion", "handOver", "receipts", "latency"] as const;
export type Signal = (typeof signals)[number];

/** How many of `all` events were good. */
export interface Tally {
  good: number;
  all: number;
}

export type Tallies = Record<Signal, Tally>;

/** The tallies of each route in a period of time. */
export type Period = ReadonlyMap<string, Tallies>;

/** Slices in a stretch, which starts at a multiple of this number. Old slices are joined into stretches. */
export const stretch = 20;

/** Milliseconds within which almost every hand-over is complete. */
const handOverTime = 10_000;

/** What one counter counts: a signal of a route in `length` slices, from slice number `first` on. */
export interface Place {
  readonly country: string | undefined;
  readonly route: string;
  readonly first: number;
  readonly length: 1 | typeof stretch;
  readonly signal: Signal;
}

interface Row extends Pick<Place, "first" | "length"> {
  readonly routes: Map<string, Tallies>;
}

export interface CountryCounts {
  readonly country: string | undefined;
  /** What this process knows of each slice or stretch, oldest first, without overlaps. */
  rows: Row[];
  /** When this process last chose a route for the country. */
  usedAt: number;
  /** When the counts of other processes were last read. Without other processes they never need to be. */
  readAt: number;
  /** By route: earlier counts were discarded. */
  readonly discardedUpTo: Map<string, number>;
  /** Hand-overs since the last evaluation. */
  newHandOvers: number;
}

/** All counts of a process, by slices of time. Times and durations are milliseconds, since the epoch. */
export interface Counts {
  /** Slice number n starts at n times this length. All processes with the same options number slices alike. */
  readonly slice: number;
  /** Age at which counts expire. */
  readonly window: number;
  /** From the end of a slice until its codes and receipts are complete: it has settled. */
  readonly settle: number;
  readonly shared: boolean;
  /** Whether the exchange keeps failing: slices then settle without being read. */
  cutOff: boolean;
  readonly countries: Map<string | undefined, CountryCounts>;
  /** Counted here, but not yet added to the store. */
  readonly unshared: Map<string, { readonly place: Place; readonly tally: Tally }>;
}

/** `delay`: milliseconds until other processes know what one of them counted; `undefined` if counts are not shared. */
export function createCounts({ window, settle }: Pick<Counts, "window" | "settle">, delay: number | undefined): Counts {
  const slice = Math.ceil(Math.max(1000, settle / 4, window / 240));
  return { slice, window, settle: settle + (delay ?? 0), shared: delay !== undefined, cutOff: false, countries: new Map(), unshared: new Map() };
}

export function noTallies(): Tallies {
  return { conversion: { good: 0, all: 0 }, handOver: { good: 0, all: 0 }, receipts: { good: 0, all: 0 }, latency: { good: 0, all: 0 } };
}

export function addTo(sum: Tallies, tallies: Tallies | undefined): void {
  if (tallies !== undefined) for (const signal of signals) add(sum[signal], tallies[signal]);
}

function add(sum: Tally, { good, all }: Tally): void {
  sum.good += good;
  sum.all += all;
}

export function countryCounts({ countries, shared }: Counts, country: string | undefined): CountryCounts {
  const never = Number.NEGATIVE_INFINITY;
  const readAt = shared ? never : Number.POSITIVE_INFINITY;
  return getOrPut(countries, country, () => ({ country, rows: [], usedAt: never, readAt, discardedUpTo: new Map(), newHandOvers: 0 }));
}

/** Adds events of a route to the slice of `at`. */
export function count(counts: Counts, country: CountryCounts, route: string, at: number, signal: Signal, tally: Tally): void {
  if (signal === "handOver") country.newHandOvers += 1;
  const first = Math.floor(at / counts.slice);
  const row = rowOf(country, first, 1);
  // Too late for a slice that is part of a stretch already.
  if (row.length !== 1) return;
  add(getOrPut(row.routes, route, noTallies)[signal], tally);
  if (!counts.shared) return;
  const place = { country: country.country, route, first, length: 1, signal } as const;
  add(getOrPut(counts.unshared, keyOf(place), () => ({ place, tally: { good: 0, all: 0 } })).tally, tally);
}

/** The number of the first slice whose codes and receipts may still change. */
export function settledUpTo({ slice, settle, cutOff }: Counts, { readAt }: CountryCounts, now: number): number {
  return Math.floor(((cutOff ? now : Math.min(readAt, now)) - settle) / slice);
}

/**
 * What was counted since then, oldest first. Conversion and receipts are those of settled slices only: a code is
 * counted as soon as it is entered, so all of the newest messages would seem to convert.
 */
export function periodsOf(counts: Counts, country: CountryCounts, now: number, since = 0): readonly Period[] {
  const settled = settledUpTo(counts, country, now);
  return country.rows
    .filter(({ first }) => first * counts.slice >= since)
    .map(({ first, length, routes }) => {
      if (first + length <= settled) return routes;
      return new Map([...routes].map(([route, { handOver, latency }]) => [route, { ...noTallies(), handOver, latency }]));
    });
}

/** Discards what a route did earlier, including what other processes report of that time later. */
export function discardBefore({ slice }: Counts, { rows, discardedUpTo }: CountryCounts, route: string, time: number): void {
  discardedUpTo.set(route, time);
  for (const { first, routes } of rows) if (first * slice < time) routes.delete(route);
}

/** Joins old slices into stretches. Drops what has expired and, after a clock was set back, what lies ahead. */
export function tidy({ slice, window, settle }: Counts, country: CountryCounts, now: number): void {
  // Counts of other processes may still arrive for a slice that was not read.
  const single = firstSingle(Math.floor((Math.min(country.readAt, now) - settle) / slice));
  for (const { first, routes } of country.rows.filter((row) => row.length === 1 && row.first < single)) {
    const joined = rowOf(country, stretchOf(first), stretch);
    for (const [route, tallies] of routes) addTo(getOrPut(joined.routes, route, noTallies), tallies);
  }
  country.rows = country.rows.filter(({ first }) => first * slice > now - window && first * slice <= now + settle);
}

/** The counters to read, of recently used countries. Call `done` once all of them are merged. */
export function readsDue({ slice, window, settle, countries }: Counts, now: number) {
  const sliceAt = (time: number) => Math.floor(time / slice);
  const [settled, oldest] = [sliceAt(now - settle), sliceAt(now - window) + 1];
  const single = firstSingle(settled);
  const used = [...countries.values()].filter(({ usedAt }) => now - usedAt <= stretch * slice);
  const reads: Omit<Place, "route">[] = [];
  for (const { country, readAt } of used) {
    const from = Math.max(oldest, sliceAt(Math.min(readAt, now) - settle));
    const handOversFrom = sliceAt(Math.min(readAt, now) - Math.min(handOverTime, settle));
    let first = from < single ? Math.max(stretchOf(from), stretchOf(oldest + stretch - 1)) : from;
    for (let length: Place["length"]; first * slice <= now; first += length) {
      length = first < single ? stretch : 1;
      const unsettled = first >= handOversFrom ? (["handOver", "latency"] as const) : [];
      for (const signal of first < settled ? signals : unsettled) reads.push({ country, first, length, signal });
    }
  }
  const done = () => {
    for (const country of used) country.readAt = now;
  };
  return { reads, done };
}

/** Replaces a count by what all processes counted, plus what this one has counted since it last shared. */
export function mergeRead(counts: Counts, place: Place, read: Tally): void {
  const { route, first, length, signal } = place;
  const country = countryCounts(counts, place.country);
  if (first * counts.slice < (country.discardedUpTo.get(route) ?? 0)) return;
  if (read.all + read.good === 0 && !country.rows.some((row) => row.first === first && row.routes.has(route))) return;
  const row = rowOf(country, first, length);
  if (row.length !== length) return;
  const [tallies, tally] = [getOrPut(row.routes, route, noTallies), { ...read }];
  add(tally, counts.unshared.get(keyOf(place))?.tally ?? { good: 0, all: 0 });
  if (signal === "handOver") country.newHandOvers += Math.abs(tally.all - tallies.handOver.all);
  tallies[signal] = tally;
}

/** The row that covers these slices. If there is none, a new one, which replaces the rows that it covers. */
function rowOf(country: CountryCounts, first: number, length: Place["length"]): Row {
  const found = country.rows.findLast((row) => row.first <= first);
  if (found !== undefined && found.first + found.length >= first + length) return found;
  const row: Row = { first, length, routes: new Map() };
  country.rows = [...country.rows.filter((other) => other.first < first), row, ...country.rows.filter((other) => other.first >= first + length)];
  return row;
}

function keyOf({ country, route, first, length, signal }: Place): string {
  return `${country}:${first}:${length}:${signal}:${route}`;
}

/** The first slice of a slice's stretch. */
export function stretchOf(slice: number): number {
  return Math.floor(slice / stretch) * stretch;
}

/** The first slice that is not joined into a stretch. */
function firstSingle(settled: number): number {
  return stretchOf(settled) - stretch;
}
