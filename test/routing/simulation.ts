import type { Store } from "../../src/ports/store.js";
import { router } from "../../src/routing/router.js";
import type { RouterOptions } from "../../src/routing/router-options.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";

/** Random numbers from 0 to below 1, the same for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export interface Scenario {
  readonly seed: number;
  readonly routes: readonly { readonly name: string; readonly weight?: number; readonly priority?: number }[];
  readonly countries: readonly string[];
  /** First messages for each country. */
  readonly sends: number;
  /** Milliseconds between two first messages to the same country. */
  readonly every: number;
  /** Probability that a code sent by a route is entered; `send` is the number of the message in its country. */
  readonly conversion: (route: string, country: string, send: number) => number;
  /** Number of processes; a user's check arrives at any of them. Default 1. */
  readonly processes?: number;
  /** The store through which the processes share health. Default: none. */
  readonly store?: Store;
  readonly health?: RouterOptions["health"];
}

/** One first message of an authentication, and whether its code was entered. */
export interface FirstSend {
  readonly country: string;
  readonly send: number;
  readonly route: string;
  readonly converted: boolean;
}

export interface Run {
  readonly records: readonly FirstSend[];
  /** Breaker changes in the first process, with the number of the message in its country when they were seen. */
  readonly changes: readonly { readonly country: string; readonly route: string; readonly breaker: string; readonly send: number }[];
}

/**
 * Users request a code, enter it within seconds if it arrives, and some retry after 30 s if it does not.
 * Uses the router's public interface only, on a clock that stands still between events.
 */
export async function simulate(scenario: Scenario): Promise<Run> {
  const clock = fixedClock();
  const random = seeded(scenario.seed);
  const sender = { send: async () => ({ outcome: "accepted" as const }) };
  const make = () => router({ routes: scenario.routes.map((route) => ({ ...route, sender })), clock, random, health: scenario.health, store: scenario.store });
  const processes = Array.from({ length: scenario.processes ?? 1 }, make);
  const any = () => processes[Math.floor(random() * processes.length)]!;
  const records: FirstSend[] = [];
  const changes: Run["changes"][number][] = [];
  const states = new Map<string, string>();

  const hand = async (country: string, send: number, attempt: number, tried: readonly string[]): Promise<string> => {
    const authentication_uuid = `${country}-${send}`;
    const mine = any();
    const to = { to: "+4915112345678", authentication_uuid, customer_uuid: "c", attempt, country, ...(tried.length > 0 && { routes_tried: tried }) };
    const plan = mine.plan(to);
    const outcome = await mine.send(
      {
        ...to,
        text: "Your code is 493817.",
        code: "493817",
        idempotency_key: `${authentication_uuid}/${attempt}`,
        expires_at: clock.now() + 600_000,
        ...(plan && { planned_route: plan.route }),
      },
      { signal: new AbortController().signal, deadline: clock.now() + 5000, timeLeft: 5000 },
    );
    const route = outcome.route!;
    const sent_at = clock.now();
    const chosen = attempt === 1 && route === plan?.route;
    const converted = random() < scenario.conversion(route, country, send);
    if (converted) {
      // Most users enter it within 20 seconds, few take a minute.
      clock.after(4000 - 9000 * Math.log(1 - random()), () => {
        any().feedback!({ route, country, authentication_uuid, attempt, event: "validated", sent_at, chosen });
      });
    } else if (attempt === 1 && random() < 0.4) {
      clock.after(30_000, () => void hand(country, send, 2, [route]));
    }
    if (attempt === 1) records.push({ country, send, route, converted });
    return route;
  };

  for (let send = 1; send <= scenario.sends; send++) {
    for (const country of scenario.countries) {
      // Store calls take no time on this clock, so it advances in small steps, in which they can finish.
      const steps = scenario.store === undefined ? 1 : 20;
      for (let step = 0; step < steps; step++) {
        clock.advance(scenario.every / scenario.countries.length / steps);
        if (scenario.store !== undefined) await new Promise(setImmediate);
      }
      await hand(country, send, 1, []);
    }
    // Reading health takes as long as a send, and breakers stay open for a minute or more.
    if (send % 10 > 0) continue;
    for (const { country = "", route, breaker } of processes[0]!.health()) {
      const key = `${country} ${route}`;
      if ((states.get(key) ?? "closed") !== breaker) changes.push({ country, route, breaker, send });
      states.set(key, breaker);
    }
  }
  return { records, changes };
}

/** The share of a country's messages number `from` to `to` that a route took. */
export function shareOf({ records }: Run, country: string, route: string, from: number, to: number): number {
  const part = records.filter((record) => record.country === country && record.send >= from && record.send <= to);
  return part.filter((record) => record.route === route).length / part.length;
}
