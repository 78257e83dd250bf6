import { getOrPut } from "../core/collections.js";
import type { throttledLogger } from "../core/throttled-logger.js";
import { defined } from "../domain/defined.js";
import type { Feedback } from "../ports/sms-sender.js";
import { type Breaker, closed, endRound, halfOpen, trip } from "./breaker.js";
import type { Candidate } from "./choice.js";
import type { CountryCounts, Counts, Period, Signal, Tally } from "./counts.js";
import { count, countryCounts, discardBefore, periodsOf, settledUpTo, tidy } from "./counts.js";
import { healthFactor, probesPass, quality, strainOf, totals } from "./health.js";
import type { RouterSettings } from "./router-options.js";
import type { TryResult } from "./try-route.js";

/** Health of a route in a country, by what was counted within `window`, and since the breaker was last half-open. */
export interface RouteHealth extends Readonly<Record<Signal, Readonly<Tally>>> {
  readonly route: string;
  /** ISO 3166-1 alpha-2; absent for numbers without a country. */
  readonly country?: string;
  /** `closed`: carries its share; `open`: carries nothing while another route can; `half-open`: carries probes. */
  readonly breaker: Breaker["state"];
  /** The part of its weight that the route keeps while its breaker is closed: above 0, at most 1. */
  readonly health: number;
  /** Of authentications whose first message chance gave to the route: those whose code was entered within `settle`. */
  readonly conversion: Readonly<Tally>;
  /** Of all hand-overs: those that the carrier accepted. */
  readonly handOver: Readonly<Tally>;
  /** Of the final receipts for such first messages that came within `settle`: those that report delivery. */
  readonly receipts: Readonly<Tally>;
  /** Of the hand-overs with a response: those with one within `slowAfter`. */
  readonly latency: Readonly<Tally>;
}

/** An evaluation takes about 10 µs a route. It is due after so many hand-overs or milliseconds, or in a new slice. */
const evaluateAfterHandOvers = 10;
const evaluateAfter = 1000;

interface RouteState {
  breaker: Breaker;
  strain: number;
  /** Hand-overs from here without a response yet. */
  inFlight: number;
  /** The carrier's words on the last message that it did not accept. */
  failure?: { readonly at: number; readonly reason: string | undefined };
}

interface CountryState {
  readonly counts: CountryCounts;
  readonly routes: Map<string, RouteState>;
  /** When it was last evaluated and by which counts; the slice of that time, and the first one that had not settled. */
  evaluated: { readonly at: number; readonly periods: readonly Period[]; readonly slice: number; readonly settled: number };
}

/** Keeps the health of routes by country. Times are milliseconds since the epoch. */
export function createRouteHealth({ health: settings }: Pick<RouterSettings, "health">, counts: Counts, log: ReturnType<typeof throttledLogger>) {
  const countries = new Map<string | undefined, CountryState>();
  const rules = { ...settings, slice: counts.slice };
  // A process without shared counts must ignore codes that belong to messages of other processes.
  const ownSends = counts.shared ? undefined : recentSends(settings.settle);

  const countryOf = (country: string | undefined): CountryState => {
    const evaluated = { at: Number.NEGATIVE_INFINITY, periods: [], slice: 0, settled: 0 };
    return getOrPut(countries, country, () => ({ counts: countryCounts(counts, country), routes: new Map(), evaluated }));
  };

  const routeOf = ({ routes }: CountryState, name: string): RouteState => getOrPut(routes, name, () => ({ breaker: closed, strain: 0, inFlight: 0 }));

  const evaluate = (country: CountryState, now: number) => {
    const { counts: own, evaluated: last, routes } = country;
    const [slice, settled] = [Math.floor(now / counts.slice), settledUpTo(counts, own, now)];
    const moved = slice !== last.slice || settled !== last.settled;
    if (moved) tidy(counts, own, now);
    const waited = Math.abs(now - last.at) >= evaluateAfter;
    const due = moved || own.newHandOvers >= (waited ? 1 : evaluateAfterHandOvers);
    if (due) {
      country.evaluated = { at: now, periods: periodsOf(counts, own, now), slice, settled };
      own.newHandOvers = 0;
      for (const row of own.rows) for (const name of row.routes.keys()) routeOf(country, name);
    }
    for (const [name, route] of routes) updateRoute(country, name, route, due, now);
  };

  const updateRoute = (country: CountryState, name: string, route: RouteState, due: boolean, now: number) => {
    const before = route.breaker.state;
    const breaker = halfOpen(route.breaker, now);
    route.breaker = breaker;
    let failing = (_by?: readonly Signal[]) => false;
    if (breaker.state === "half-open") {
      if (before === "open") discardBefore(counts, country.counts, name, breaker.since);
      failing = (by) => !probesPass(periodsOf(counts, country.counts, now, breaker.since), name, othersOf(country, name), settings, by);
      route.breaker = endRound(breaker, roundOf(country, name, breaker.since), () => !failing(), now, rules);
      if (route.breaker.state === "closed") route.strain = 0;
    } else if (due && breaker.state === "closed") {
      const strain = (by?: readonly Signal[]) => strainOf(country.evaluated.periods, name, othersOf(country, name), settings, by);
      failing = (by) => strain(by) >= 1;
      route.strain = strain();
      route.breaker = trip(route.strain, now, rules);
    }
    logChange(country, name, route, before, () => failing(["handOver"]), now);
  };

  /** Logs a breaker that opened, also after failed probes, or closed; the carrier's words only if hand-overs opened it. */
  const logChange = (
    { counts: own }: CountryState,
    name: string,
    { breaker: { state }, failure }: RouteState,
    before: Breaker["state"],
    byHandOvers: () => boolean,
    now: number,
  ) => {
    if (state === before || state === "half-open") return;
    const of = defined({ route: name, country: own.country });
    if (state === "closed") log.warn(of, "the breaker of a route closed: it carries its share of the messages again");
    else {
      const reason = failure !== undefined && now - failure.at < settings.window && byHandOvers() ? failure.reason : undefined;
      log.warn(
        { ...of, ...defined({ reason }), ...totals(periodsOf(counts, own, now), [name]) },
        "the breaker of a route opened: others carry its messages, as far as they can",
      );
    }
  };

  /** Hand-overs of all processes since the route is half-open, up to a full round. Those before were discarded. */
  const roundOf = ({ counts: { rows }, evaluated }: CountryState, name: string, since: number) => {
    let probes = 0;
    let end = Math.ceil(since / counts.slice);
    for (const { first, length, routes } of rows) {
      const handOvers = routes.get(name)?.handOver.all ?? 0;
      if (handOvers > 0) [probes, end] = [probes + handOvers, first + length];
      if (probes >= settings.probes) break;
    }
    return { probes, settled: end <= evaluated.settled };
  };

  const conditionOf = (country: CountryState, name: string, now: number): Pick<Candidate, "health" | "breaker" | "mayProbe" | "overdue" | "quality"> => {
    const { breaker, strain, inFlight } = routeOf(country, name);
    const probes = breaker.state === "half-open" ? roundOf(country, name, breaker.since).probes + inFlight : 0;
    return {
      health: healthFactor(strain, settings.probeShare),
      breaker: breaker.state,
      mayProbe: breaker.state === "half-open" && probes < settings.probes,
      overdue: breaker.state === "half-open" && probes === 0 && now >= breaker.since + settings.window,
      quality: breaker.state === "closed" ? 1 : quality(country.evaluated.periods, name),
    };
  };

  return {
    /** Returns, for the name of a route that matches a message, what the choice among them depends on. */
    conditions(countryCode: string | undefined, now: number) {
      const country = countryOf(countryCode);
      country.counts.usedAt = now;
      evaluate(country, now);
      return (name: string) => conditionOf(country, name, now);
    },

    /**
     * Call it when a hand-over starts, and what it returns once when it ends. `chosen`: the authentication, if chance
     * gave its first message to the route; only then its code counts, as other messages would make routes incomparable.
     */
    startHandOver(countryCode: string | undefined, name: string, now: number, chosen: string | undefined) {
      const country = countryOf(countryCode);
      const route = routeOf(country, name);
      const countOne = (signal: Signal, good: boolean) => count(counts, country.counts, name, now, signal, { good: good ? 1 : 0, all: 1 });
      const converts = chosen !== undefined && (ownSends === undefined || ownSends.add(chosen, now));
      route.inFlight += 1;
      return ({ outcome, reason, unreachable }: TryResult, endedAt: number) => {
        route.inFlight -= 1;
        // A number that is not on a channel says nothing about the route.
        if (unreachable) return;
        if (outcome !== "accepted") route.failure = { at: endedAt, reason };
        countOne("handOver", outcome === "accepted");
        if (outcome !== "unknown") countOne("latency", endedAt - now <= settings.slowAfter);
        if (outcome !== "rejected" && converts) countOne("conversion", false);
      };
    },

    /** Counts a code or a receipt of a chosen message, if it came in time. */
    countFeedback({ country, route, authentication_uuid, event, unreachable, sent_at, chosen }: Feedback & { readonly route: string }, now: number) {
      const at = ownSends === undefined ? sent_at : ownSends.sentAt(authentication_uuid);
      if (!chosen || at === undefined || Math.abs(now - at) > settings.settle) return;
      const own = countryOf(country).counts;
      // A number that is not on a channel says nothing about the route: no code could be entered.
      if (unreachable === true) count(counts, own, route, at, "conversion", { good: 0, all: -1 });
      else if (event === "validated") count(counts, own, route, at, "conversion", { good: 1, all: 0 });
      else count(counts, own, route, at, "receipts", { good: event === "delivered" ? 1 : 0, all: 1 });
    },

    report(now: number): readonly RouteHealth[] {
      return [...countries].flatMap(([code, country]) => {
        evaluate(country, now);
        const periods = periodsOf(counts, country.counts, now);
        return [...country.routes.keys()].map((route) => {
          const { breaker, health } = conditionOf(country, route, now);
          return { route, ...(code !== undefined && { country: code }), breaker, health, ...totals(periods, [route]) };
        });
      });
    },
  };
}

/** What a route is compared with: the other routes whose breakers are closed, or all others if there are none. */
function othersOf({ routes }: CountryState, name: string): readonly string[] {
  const others = [...routes].filter(([other]) => other !== name);
  const closedOnes = others.filter(([, { breaker }]) => breaker.state === "closed");
  return (closedOnes.length > 0 ? closedOnes : others).map(([other]) => other);
}

/** Remembers for at least `ms` when authentications were sent, in two generations, each of up to 50,000. */
function recentSends(ms: number) {
  let [young, old] = [new Map<string, number>(), new Map<string, number>()];
  let startedAt = Number.NEGATIVE_INFINITY;
  return {
    /** Whether there was space left. */
    add(id: string, now: number): boolean {
      if (Math.abs(now - startedAt) >= ms) [young, old, startedAt] = [new Map(), young, now];
      return young.size < 50_000 && young.set(id, now) !== undefined;
    },
    sentAt: (id: string) => young.get(id) ?? old.get(id),
  };
}
