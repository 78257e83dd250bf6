import { addTo, type Counts, noCounts, type Period, type Signal, signals, type Tally } from "./health.js";

/** How time is cut up: alike in every process with the same rules, so that all name the same slices. Milliseconds. */
export interface Calendar {
  /** Slice number n begins at n times as many, since the epoch. */
  readonly slice: number;
  /** What is older counts no more. */
  readonly window: number;
  /** From the end of a slice until the codes and receipts of its messages are all counted, and told where they are shared. */
  readonly settle: number;
  /** Likewise for its hand-overs. */
  readonly answer: number;
}

/** Slices in a stretch, which begins with a multiple of as many: what is old is kept and read by the stretch. */
export const stretch = 20;

/** Milliseconds that hand-overs take, nearly all of them. */
const handOverTime = 10_000;

/** `delay`: milliseconds until what one process counted is known to the others. */
export function calendarOf({ window, settle }: { readonly window: number; readonly settle: number }, delay: number): Calendar {
  const slice = Math.ceil(Math.max(1000, settle / 4, window / 240));
  return { slice, window, settle: settle + delay, answer: Math.min(handOverTime, settle + delay) };
}

/** One counter's place: `length` slices, a single one or a stretch, from number `first` on. */
export interface Place {
  readonly country: string | undefined;
  readonly route: string;
  readonly first: number;
  readonly length: 1 | typeof stretch;
  readonly signal: Signal;
}

/** Something counted here that the others are to be told. */
export interface News extends Place {
  readonly tally: Tally;
}

/** What a route did in a row's time, as far as it is known here. `untold`: the part of it that the others do not know. */
interface Slot extends Counts {
  readonly of: Omit<Place, "length" | "signal">;
  untold: Counts | undefined;
}

interface Row {
  readonly first: number;
  readonly length: Place["length"];
  readonly slots: Map<string, Slot>;
}

/** What is counted for one country. */
export interface CountryCounters {
  readonly country: string | undefined;
  /** Oldest first; stretches before single slices. */
  readonly rows: Row[];
  /** When a message to it was last to be sent here. */
  metAt: number;
  /** Slices below have been read when they had settled. */
  settledUpTo: number;
  /** Slices below have been read when their hand-overs were over. */
  answeredUpTo: number;
  /** From which time on a route is judged, where it was put to the test. */
  readonly freshSince: Map<string, number>;
  /** Hand-overs since it was judged. */
  events: number;
}

/** Counters of what routes did, by country and slice of the send's time, bounded in number. Times are milliseconds since the epoch. */
export interface Counters {
  readonly calendar: Calendar;
  /** Whether other processes are told, and asked before a slice is settled. */
  readonly shared: boolean;
  of(country: string | undefined): CountryCounters;
  /** Adds what a route did to the slice of `at`. */
  count(counters: CountryCounters, route: string, at: number, signal: Signal, good: number, all: number): void;
  /** The number of the first slice whose codes and receipts may still change. */
  settledUpTo(counters: CountryCounters, now: number): number;
  /** What was counted in slices that began at `since` or later; conversion and receipts of settled slices alone: were a typed code counted at once, the newest messages would all seem to convert. */
  periods(counters: CountryCounters, now: number, since?: number): readonly Period[];
  /** What the route did before is forgotten. */
  forget(counters: CountryCounters, route: string, before: number): void;
  /** Lets go of what is too old, and joins slices that are old and settled into stretches. */
  tidy(counters: CountryCounters, now: number): void;
  /** What the others are to be told. It counts as told then. */
  news(): News[];
  readonly hasNews: boolean;
  /** What to ask the store for, of countries that had messages lately; `done` once all of it was taken. */
  wants(now: number): { readonly reads: Omit<Place, "route">[]; readonly done: () => void };
  /** Takes in what all processes together counted at a place. */
  take(place: Place, tally: Tally): void;
  /** `true` while the others cannot be asked: each then goes by what it knows. */
  alone: boolean;
}

export function createCounters(calendar: Calendar, shared: boolean): Counters {
  const { slice, window } = calendar;
  const countries = new Map<string | undefined, CountryCounters>();
  const untold = new Set<Slot>();

  /** The number of the first slice that did not end `delay` milliseconds ago. */
  const overUpTo = (now: number, delay: number) => Math.floor((now - delay) / slice);
  /** The first slice that is kept by itself, though it is settled. */
  const firstSingle = (settled: number) => (Math.floor(settled / stretch) - 1) * stretch;

  const of = (country: string | undefined): CountryCounters => {
    let counters = countries.get(country);
    if (counters === undefined) {
      const never = Number.NEGATIVE_INFINITY;
      counters = { country, rows: [], metAt: never, settledUpTo: never, answeredUpTo: never, freshSince: new Map(), events: 0 };
      countries.set(country, counters);
    }
    return counters;
  };

  const slotOf = ({ slots, first }: Row, { country }: CountryCounters, route: string): Slot => {
    let slot = slots.get(route);
    if (slot === undefined) slots.set(route, (slot = { ...noCounts(), of: { country, route, first }, untold: undefined }));
    return slot;
  };

  const settledUpTo = (counters: CountryCounters, now: number) => {
    const byTime = overUpTo(now, calendar.settle);
    return !shared || self.alone ? byTime : Math.min(counters.settledUpTo, byTime);
  };

  const self: Counters = {
    calendar,
    shared,
    alone: false,
    of,
    settledUpTo,

    count(counters, route, at, signal, good, all) {
      if (signal === "handOver") counters.events += 1;
      const row = rowOf(counters.rows, Math.floor(at / slice), 1);
      if (row.length !== 1) return;
      const slot = slotOf(row, counters, route);
      slot[signal].good += good;
      slot[signal].all += all;
      if (!shared) return;
      slot.untold ??= noCounts();
      slot.untold[signal].good += good;
      slot.untold[signal].all += all;
      untold.add(slot);
    },

    periods(counters, now, since = 0) {
      const settled = settledUpTo(counters, now);
      return counters.rows
        .filter(({ first }) => first * slice >= since)
        .map(({ first, length, slots }) => (first + length <= settled ? slots : new Map([...slots].map(([route, slot]) => [route, unsettled(slot)]))));
    },

    forget({ rows, freshSince }, route, before) {
      freshSince.set(route, before);
      for (const { first, slots } of rows) if (first * slice < before) slots.delete(route);
    },

    tidy(counters, now) {
      const { rows } = counters;
      // For a slice that was not read, what others counted may still come.
      const single = firstSingle(shared ? Math.min(counters.settledUpTo, overUpTo(now, calendar.settle)) : settledUpTo(counters, now));
      for (const { slots } of rows.filter(({ first, length }) => length === 1 && first < single)) {
        for (const [route, slot] of slots) addTo(slotOf(rowOf(rows, stretchOf(slot.of.first), stretch), counters, route), slot);
      }
      while (rows[0] !== undefined && rows[0].first * slice <= now - window) rows.shift();
      // A clock was set back.
      while ((rows.at(-1)?.first ?? 0) * slice > now + calendar.settle) rows.pop();
    },

    news() {
      const told = [...untold].flatMap(({ of: place, untold: counts = noCounts() }) =>
        signals
          .filter((signal) => counts[signal].all + counts[signal].good > 0)
          .map((signal): News => ({ ...place, length: 1, signal, tally: counts[signal] })),
      );
      for (const slot of untold) slot.untold = undefined;
      untold.clear();
      return told;
    },

    get hasNews() {
      return untold.size > 0;
    },

    wants(now) {
      const reads: Omit<Place, "route">[] = [];
      const settled = overUpTo(now, calendar.settle);
      const answered = overUpTo(now, calendar.answer);
      const oldest = Math.floor((now - window) / slice) + 1;
      const single = firstSingle(settled);
      const active = [...countries.values()].filter(({ metAt }) => now - metAt <= stretch * slice);
      for (const { country, ...upTo } of active) {
        const from = Math.max(oldest, Math.min(upTo.settledUpTo, settled));
        for (let first = Math.max(stretchOf(from), stretchOf(oldest + stretch - 1)); first < single; first += stretch) {
          for (const signal of signals) reads.push({ country, first, length: stretch, signal });
        }
        for (let first = Math.max(from, single); first < settled; first++) for (const signal of signals) reads.push({ country, first, length: 1, signal });
        for (let first = Math.max(from, settled, Math.min(upTo.answeredUpTo, answered)); first * slice <= now; first++) {
          reads.push({ country, first, length: 1, signal: "handOver" }, { country, first, length: 1, signal: "latency" });
        }
      }
      return {
        reads,
        done() {
          for (const counters of active) Object.assign(counters, { settledUpTo: settled, answeredUpTo: answered });
        },
      };
    },

    take({ country, route, first, length, signal }, { good, all }) {
      const counters = of(country);
      if (first * slice < (counters.freshSince.get(route) ?? 0)) return;
      if (all + good === 0 && !counters.rows.some((row) => row.first === first && row.slots.has(route))) return;
      const row = rowOf(counters.rows, first, length);
      if (row.length !== length) return;
      const slot = slotOf(row, counters, route);
      const later = slot.untold?.[signal];
      const seen = { good: good + (later?.good ?? 0), all: all + (later?.all ?? 0) };
      if (signal === "handOver") counters.events += Math.abs(seen.all - slot.handOver.all);
      slot[signal] = seen;
    },
  };
  return self;
}

/** The row of these slices; one that covers them; or a new one in the place of those that it covers. */
function rowOf(rows: Row[], first: number, length: Place["length"]): Row {
  const at = rows.findLastIndex((row) => row.first <= first);
  const found = rows[at];
  if (found !== undefined && found.first + found.length >= first + length) return found;
  const row: Row = { first, length, slots: new Map() };
  const from = found?.first === first ? at : at + 1;
  const covered = rows.slice(from).findIndex((other) => other.first >= first + length);
  rows.splice(from, covered < 0 ? rows.length : covered, row);
  return row;
}

function stretchOf(slice: number): number {
  return Math.floor(slice / stretch) * stretch;
}

function unsettled({ handOver, latency }: Counts): Counts {
  return { ...noCounts(), handOver, latency };
}
