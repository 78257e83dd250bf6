import type { Counted, Heard } from "../domain/routing-board.js";
import { type Breaker, closed, expire, mayProbe, settleProbes, trip, withForeignProbes, withProbe } from "../domain/routing-breaker.js";
import { healthFactor, type Period, probesPass, quality, type Signal, signals, strain, type Tally, total } from "../domain/routing-health.js";
import type { HealthSettings } from "./router-options.js";

/** How a route stands in a country now. */
export interface Standing {
  /** What is left of its weight: above 0, at most 1. */
  readonly health: number;
  readonly breaker: Breaker["state"];
  readonly mayProbe: boolean;
  readonly quality: number;
}

/** Health of one route in one country, as `health()` shows it. What is counted is not older than `window`, and not older than the breaker's last round of probes. */
export interface RouteHealth extends Readonly<Record<Signal, Tally>> {
  readonly route: string;
  /** ISO 3166-1 alpha-2; absent for numbers without a country. */
  readonly country?: string;
  /** `closed`: carries its share; `open`: carries nothing while another route can; `half-open`: carries probes. */
  readonly breaker: Breaker["state"];
  /** What health leaves of the route's weight while its breaker is closed: above 0, at most 1. */
  readonly health: number;
  /** Of the first messages of authentications, given to the route by choice: those whose code was typed within `settle`. */
  readonly conversion: Tally;
  /** Of all hand-overs: those that the carrier accepted. */
  readonly handOver: Tally;
  /** Of the final receipts that came within `settle`: those of delivery. */
  readonly receipts: Tally;
  /** Of the hand-overs that were answered: those answered within `slowAfter`. */
  readonly latency: Tally;
}

/** What routes did in each country: counters in the memory of this process, bounded in number. Times are milliseconds since the epoch. */
export interface HealthBook {
  /** How the routes that could take a message to `country` stand, judged by what is known up to now. */
  standings(country: string | undefined, routes: readonly string[], now: number): readonly Standing[];
  /**
   * A message is about to be handed to a route. The function returned takes what came of it, once.
   * `follow` names the message where chance gave it to the route: its code and its receipt are waited for. Messages that come from a failover or a retry are another crowd and would make routes incomparable.
   */
  handing(
    country: string | undefined,
    route: string,
    now: number,
    follow: string | undefined,
  ): (outcome: "accepted" | "rejected" | "unknown", now: number) => void;
  /** An event of a message that is followed under this name; false for any other, of which nothing is counted. */
  heard(event: Heard, now: number): boolean;
  /** What was counted here and is not told yet, at most `limit` of it; nothing unless `shared`. */
  news(limit: number): Counted[];
  /** Where the book is `shared`: counts messages only as far as other processes have been heard; their time is over at `time`, in milliseconds since the epoch, at the latest. */
  settleUpTo(time: number): void;
  /** Takes in what another process counted. */
  learn(counted: Counted, now: number): void;
  report(now: number): readonly RouteHealth[];
}

/** The window is kept in as many buckets, and in more where traffic is dense, so that the newest messages can be told from older ones. */
const slices = 12;
const bucketSize = 20;
const maxBuckets = 60;
/** Messages waited for. Beyond that the oldest are forgotten, uncounted. */
const maxFollowed = 20_000;

/** Judging takes some 10 µs for each route: not more often than after so many events, or so many milliseconds. */
const judgeAfterEvents = 10;
const judgeAfter = 1000;

interface Counters extends Record<Signal, { good: number; all: number }> {}

/** What a route did in a bucket. */
interface Slot extends Counters {
  /** The part of it that was counted here and is not told yet. */
  untold: Counters;
  readonly of: Pick<Counted, "country" | "route" | "at">;
}

interface Bucket {
  readonly start: number;
  /** Hand-overs still to be counted in it. */
  room: number;
  readonly routes: Map<string, Slot>;
}

interface RouteBook {
  breaker: Breaker;
  strained: number;
  /** When what it had done before was forgotten. */
  freshSince: number;
}

interface CountryBook {
  /** Oldest first. */
  readonly buckets: Bucket[];
  readonly routes: Map<string, RouteBook>;
  /** Events counted since the last judgement. */
  unjudged: number;
  judgedAt: number;
}

interface Followed {
  readonly book: CountryBook;
  readonly slot: Slot;
  readonly until: number;
  validated: boolean;
  receipt: "delivered" | "undeliverable" | undefined;
}

/** An empty book. `shared`: other processes are told its news. */
export function healthBook(settings: HealthSettings, shared = false): HealthBook {
  const countries = new Map<string | undefined, CountryBook>();
  /** By name, in the order of `until`. */
  const followed = new Map<string, Followed>();
  const untold = new Set<Slot>();
  let heardUpTo = Number.POSITIVE_INFINITY;

  const count = (slot: Slot, signal: Signal, good: boolean) => {
    add(slot[signal], good);
    if (!shared) return;
    add(slot.untold[signal], good);
    untold.add(slot);
  };

  const bookOf = (country: string | undefined): CountryBook => {
    let book = countries.get(country);
    if (book === undefined) countries.set(country, (book = { buckets: [], routes: new Map(), unjudged: 0, judgedAt: Number.NEGATIVE_INFINITY }));
    return book;
  };

  /** Counts the messages whose time is over. All are counted at the same age: were a typed code counted at once, the newest messages would all seem to convert. */
  const settle = (now: number) => {
    for (const [name, message] of followed) {
      if (message.until > Math.min(now, heardUpTo)) return;
      followed.delete(name);
      count(message.slot, "conversion", message.validated);
      if (message.receipt !== undefined) count(message.slot, "receipts", message.receipt === "delivered");
      message.book.unjudged += 1;
    }
  };

  const judge = (book: CountryBook, now: number) => {
    while (book.buckets[0] !== undefined && book.buckets[0].start <= now - settings.window) {
      book.buckets.shift();
      book.unjudged += 1;
    }
    const due = book.unjudged >= judgeAfterEvents || (book.unjudged > 0 && Math.abs(now - book.judgedAt) >= judgeAfter);
    for (const [name, route] of book.routes) {
      const { breaker } = route;
      if (breaker.state === "closed") {
        if (!due) continue;
        route.strained = strain(periodsOf(book), name, othersOf(book, name), settings);
        route.breaker = trip(breaker, route.strained, now, settings);
      } else if (breaker.state === "open") {
        route.breaker = expire(breaker, now);
        if (route.breaker.state === "half-open") {
          route.freshSince = now;
          startAfresh(book, name);
        }
      } else {
        const pass = () => probesPass(periodsOf(book, breaker.since), name, othersOf(book, name), settings);
        route.breaker = settleProbes(breaker, pass, now, settings);
        if (route.breaker.state === "closed") route.strained = 0;
      }
    }
    if (due) Object.assign(book, { unjudged: 0, judgedAt: now });
  };

  const bucketAt = ({ buckets }: CountryBook, at: number): Bucket => {
    const newest = buckets.at(-1);
    const past = newest !== undefined && at < newest.start;
    if (past) return buckets.findLast(({ start }) => start <= at) ?? (buckets[0] as Bucket);
    if (newest !== undefined && newest.room > 0 && at - newest.start < settings.window / slices) return newest;
    const bucket = { start: at, room: bucketSize, routes: new Map() };
    buckets.push(bucket);
    if (buckets.length > maxBuckets) buckets.shift();
    return bucket;
  };

  /** The slot for `handOvers` more. */
  const slotOf = (book: CountryBook, country: string | undefined, route: string, at: number, handOvers: number): Slot => {
    const bucket = bucketAt(book, at);
    bucket.room -= handOvers;
    let slot = bucket.routes.get(route);
    if (slot === undefined) bucket.routes.set(route, (slot = { ...newCounters(), untold: newCounters(), of: { country, route, at: bucket.start } }));
    return slot;
  };

  const routeOf = (book: CountryBook, name: string): RouteBook => {
    let route = book.routes.get(name);
    if (route === undefined) book.routes.set(name, (route = { breaker: closed, strained: 0, freshSince: Number.NEGATIVE_INFINITY }));
    return route;
  };

  const standingOf = (book: CountryBook, name: string): Standing => {
    const { breaker, strained } = routeOf(book, name);
    return {
      health: healthFactor(strained, settings.probeShare),
      breaker: breaker.state,
      mayProbe: mayProbe(breaker, settings),
      quality: breaker.state === "closed" ? 1 : quality(periodsOf(book), name),
    };
  };

  return {
    standings(country, routes, now) {
      settle(now);
      const book = bookOf(country);
      judge(book, now);
      return routes.map((name) => standingOf(book, name));
    },

    handing(country, name, now, follow) {
      const book = bookOf(country);
      const slot = slotOf(book, country, name, now, 1);
      if (follow !== undefined) {
        const route = book.routes.get(name);
        if (route !== undefined) route.breaker = withProbe(route.breaker, now, settings);
        followed.delete(follow);
        followed.set(follow, { book, slot, until: now + settings.settle, validated: false, receipt: undefined });
        if (followed.size > maxFollowed) followed.delete(followed.keys().next().value!);
      }
      return (outcome, answered) => {
        count(slot, "handOver", outcome === "accepted");
        if (outcome !== "unknown") count(slot, "latency", answered - now <= settings.slowAfter);
        if (outcome === "rejected" && follow !== undefined) followed.delete(follow);
        book.unjudged += 1;
      };
    },

    heard({ name, route, event }, now) {
      settle(now);
      const message = followed.get(name);
      if (message === undefined || message.slot.of.route !== route) return false;
      if (event === "validated") message.validated = true;
      else message.receipt = event;
      return true;
    },

    news(limit) {
      return [...untold].slice(0, limit).map((slot) => {
        const told = { ...slot.of, tallies: slot.untold };
        slot.untold = newCounters();
        untold.delete(slot);
        return told;
      });
    },

    settleUpTo(time) {
      heardUpTo = time;
    },

    learn({ country, route, at, tallies }, now) {
      const book = bookOf(country);
      const known = routeOf(book, route);
      if (at <= now - settings.window || at < known.freshSince) return;
      known.breaker = withForeignProbes(known.breaker, tallies.conversion.all);
      // A clock that is ahead must not set a bucket before those of now.
      const slot = slotOf(book, country, route, Math.min(at, now), tallies.handOver.all);
      for (const signal of signals) {
        slot[signal].good += tallies[signal].good;
        slot[signal].all += tallies[signal].all;
        book.unjudged += tallies[signal].all;
      }
    },

    report(now) {
      settle(now);
      return [...countries].flatMap(([country, book]) => {
        judge(book, now);
        const periods = periodsOf(book);
        return [...book.routes.keys()].map((route) => {
          const { breaker, health } = standingOf(book, route);
          const tallies = Object.fromEntries(signals.map((signal) => [signal, total(periods, [route], signal)])) as Record<Signal, Tally>;
          return { route, ...(country !== undefined && { country }), breaker, health, ...tallies };
        });
      });
    },
  };
}

/** What was counted, by bucket, of messages handed over at `since` or later. */
function periodsOf({ buckets }: CountryBook, since = 0): readonly Period[] {
  return buckets.filter(({ start }) => start >= since).map(({ routes }) => routes);
}

/** Whom a route is compared with: the others whose breakers are closed, or all others when there is none. */
function othersOf({ routes }: CountryBook, name: string): readonly string[] {
  const others = [...routes].filter(([other]) => other !== name);
  const sound = others.filter(([, { breaker }]) => breaker.state === "closed");
  return (sound.length > 0 ? sound : others).map(([other]) => other);
}

/** The first round of probes begins: what the route did before is forgotten, and a new bucket sets the others' part apart. */
function startAfresh({ buckets }: CountryBook, name: string): void {
  for (const { routes } of buckets) routes.delete(name);
  const newest = buckets.at(-1);
  if (newest !== undefined) newest.room = 0;
}

function newCounters(): Counters {
  return { conversion: { good: 0, all: 0 }, handOver: { good: 0, all: 0 }, receipts: { good: 0, all: 0 }, latency: { good: 0, all: 0 } };
}

function add(tally: { good: number; all: number }, good: boolean): void {
  tally.all += 1;
  if (good) tally.good += 1;
}
