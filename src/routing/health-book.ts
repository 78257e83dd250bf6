import type { Feedback } from "../ports/sms-sender.js";
import { type Breaker, closed, expire, type Round, settleProbes, trip } from "./breaker.js";
import type { Counters, CountryCounters } from "./counters.js";
import { healthFactor, type Period, probesPass, quality, type Signal, signals, strain, type Tally, total } from "./health.js";
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
  /** Of the final receipts of such first messages that came within `settle`: those of delivery. */
  readonly receipts: Tally;
  /** Of the hand-overs that were answered: those answered within `slowAfter`. */
  readonly latency: Tally;
}

/** How routes stand in each country, by what is counted. Times are milliseconds since the epoch. */
export interface HealthBook {
  /** How the routes that could take a message to `country` stand. */
  standings(country: string | undefined, routes: readonly string[], now: number): readonly Standing[];
  /**
   * A message is about to be handed to a route. The function returned takes what came of it, once.
   * `chosen` names the authentication where chance gave its first message to the route: whether its code is typed counts. Messages that come from a failover or a retry are another crowd and would make routes incomparable.
   */
  handing(
    country: string | undefined,
    route: string,
    now: number,
    chosen: string | undefined,
  ): (outcome: "accepted" | "rejected" | "unknown", now: number) => void;
  /** Counts what became of a message that was `chosen`, if it came in time. */
  heard(event: Feedback & { readonly route: string }, now: number): void;
  report(now: number): readonly RouteHealth[];
}

/** Judging takes some 10 µs for each route: not more often than after so many hand-overs, or so many milliseconds, or when a slice is over. */
const judgeAfterHandOvers = 10;
const judgeAfter = 1000;

interface RouteBook {
  breaker: Breaker;
  strained: number;
  /** Messages handed over here and not yet answered. */
  underWay: number;
}

interface CountryBook {
  readonly counters: CountryCounters;
  readonly routes: Map<string, RouteBook>;
  /** What it was judged by last, and when. */
  periods: readonly Period[];
  judgedAt: number;
  /** The slice in which it was judged last, and those that were settled then. */
  slice: number;
  settled: number;
}

/** An empty book over counters. */
export function healthBook(settings: HealthSettings, counters: Counters): HealthBook {
  const books = new Map<string | undefined, CountryBook>();
  const { slice } = counters.calendar;
  const rules = { ...settings, slice };
  // Whoever shares counters hears of codes that were typed for others' messages too. Alone, one must know whose they are.
  const handed = counters.shared ? undefined : lately(settings.settle);

  const bookOf = (country: string | undefined): CountryBook => {
    let book = books.get(country);
    if (book === undefined) {
      book = { counters: counters.of(country), routes: new Map(), periods: [], judgedAt: Number.NEGATIVE_INFINITY, slice: 0, settled: 0 };
      books.set(country, book);
    }
    return book;
  };

  const routeOf = (book: CountryBook, name: string): RouteBook => {
    let route = book.routes.get(name);
    if (route === undefined) book.routes.set(name, (route = { breaker: closed, strained: 0, underWay: 0 }));
    return route;
  };

  const judge = (book: CountryBook, now: number) => {
    const [current, settled] = [Math.floor(now / slice), counters.settledUpTo(book.counters, now)];
    const moved = current !== book.slice || settled !== book.settled;
    if (moved) counters.tidy(book.counters, now);
    const { events } = book.counters;
    const due = moved || events >= judgeAfterHandOvers || (events > 0 && Math.abs(now - book.judgedAt) >= judgeAfter);
    if (due) {
      Object.assign(book, { periods: counters.periods(book.counters, now), judgedAt: now, slice: current, settled });
      book.counters.events = 0;
      for (const { slots } of book.counters.rows) for (const name of slots.keys()) routeOf(book, name);
    }
    for (const [name, route] of book.routes) {
      if (route.breaker.state === "open") {
        route.breaker = expire(route.breaker, now);
        // The first round of probes begins: what the route did before is forgotten.
        if (route.breaker.state === "half-open") counters.forget(book.counters, name, route.breaker.since);
      }
      const { breaker } = route;
      if (breaker.state === "half-open") {
        const pass = () => probesPass(counters.periods(book.counters, now, breaker.since), name, othersOf(book, name), settings);
        route.breaker = settleProbes(breaker, roundOf(book, name, breaker.since), pass, now, rules);
        if (route.breaker.state === "closed") route.strained = 0;
      } else if (due && breaker.state === "closed") {
        route.strained = strain(book.periods, name, othersOf(book, name), settings);
        route.breaker = trip(breaker, route.strained, now, rules);
      }
    }
  };

  /** The hand-overs since the route is half-open, wherever they were made, as far as it takes to fill the round: those before are forgotten. */
  const roundOf = ({ counters: { rows }, settled }: CountryBook, name: string, since: number): Round => {
    let probes = 0;
    let end = Math.ceil(since / slice);
    for (const { first, length, slots } of rows) {
      const handedOver = slots.get(name)?.handOver.all ?? 0;
      if (handedOver === 0) continue;
      probes += handedOver;
      end = first + length;
      if (probes >= settings.probes) break;
    }
    return { probes, settled: end <= settled };
  };

  const standingOf = (book: CountryBook, name: string): Standing => {
    const { breaker, strained, underWay } = routeOf(book, name);
    return {
      health: healthFactor(strained, settings.probeShare),
      breaker: breaker.state,
      mayProbe: breaker.state === "half-open" && roundOf(book, name, breaker.since).probes + underWay < settings.probes,
      quality: breaker.state === "closed" ? 1 : quality(book.periods, name),
    };
  };

  return {
    standings(country, routes, now) {
      const book = bookOf(country);
      book.counters.metAt = now;
      judge(book, now);
      return routes.map((name) => standingOf(book, name));
    },

    handing(country, name, now, chosen) {
      const book = bookOf(country);
      const route = routeOf(book, name);
      const count = (signal: Signal, good: boolean) => counters.count(book.counters, name, now, signal, good ? 1 : 0, 1);
      const converts = chosen !== undefined && (handed === undefined || handed.add(chosen, now));
      route.underWay += 1;
      return (outcome, answered) => {
        route.underWay -= 1;
        count("handOver", outcome === "accepted");
        if (outcome !== "unknown") count("latency", answered - now <= settings.slowAfter);
        if (outcome !== "rejected" && converts) count("conversion", false);
      };
    },

    heard({ country, route, authentication_uuid, event, sent_at, chosen }, now) {
      const at = handed === undefined ? sent_at : handed.at(authentication_uuid);
      if (!chosen || at === undefined || Math.abs(now - at) > settings.settle) return;
      const of = bookOf(country).counters;
      if (event === "validated") counters.count(of, route, at, "conversion", 1, 0);
      else counters.count(of, route, at, "receipts", event === "delivered" ? 1 : 0, 1);
    },

    report(now) {
      return [...books].flatMap(([country, book]) => {
        judge(book, now);
        const periods = counters.periods(book.counters, now);
        return [...book.routes.keys()].map((route) => {
          const { breaker, health } = standingOf(book, route);
          const tallies = Object.fromEntries(signals.map((signal) => [signal, total(periods, [route], signal)])) as Record<Signal, Tally>;
          return { route, ...(country !== undefined && { country }), breaker, health, ...tallies };
        });
      });
    },
  };
}

/** Whom a route is compared with: the others whose breakers are closed, or all others when there is none. */
function othersOf({ routes }: CountryBook, name: string): readonly string[] {
  const others = [...routes].filter(([other]) => other !== name);
  const sound = others.filter(([, { breaker }]) => breaker.state === "closed");
  return (sound.length > 0 ? sound : others).map(([other]) => other);
}

/** Authentications of a generation. */
const mostLately = 50_000;

/** When which authentication's message went out, kept for `ms` at least, two generations at a time; what does not fit is not kept. */
function lately(ms: number) {
  let [young, old] = [new Map<string, number>(), new Map<string, number>()];
  let turnedAt = Number.NEGATIVE_INFINITY;
  return {
    add(id: string, now: number): boolean {
      if (Math.abs(now - turnedAt) >= ms) [young, old, turnedAt] = [new Map(), young, now];
      return young.size < mostLately && young.set(id, now) !== undefined;
    },
    at: (id: string) => young.get(id) ?? old.get(id),
  };
}
