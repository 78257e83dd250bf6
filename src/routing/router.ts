import { type Candidate, mayFailOver, type Network, type RankedRoute, rankRoutes, routeMatches, timeForTry } from "../domain/routing.js";
import { highestPrice, isPriced, paidPrice, priceOf } from "../domain/routing-price.js";
import type { Destination, Plan, RouteStep, SendOutcome, SmsSender } from "../ports/sms-sender.js";
import { createExchange, exchangeEvery } from "./exchange.js";
import { healthBook, type RouteHealth } from "./health-book.js";
import { type HealthOptions, type Route, type RouteOptions, type RouterOptions, readRouterOptions } from "./router-options.js";
import { type TryResult, tryRoute } from "./try-route.js";

export type { HealthOptions, Network, RouteHealth, RouteOptions, RouterOptions };

/** A sender made of senders. */
export interface Router extends SmsSender {
  plan(destination: Destination): Plan | undefined;
  readonly unpriced: readonly string[];
  /** How each route stands in each country that had messages, as this process knows it. */
  health(): readonly RouteHealth[];
}

/**
 * A sender made of senders: chooses a route for each message by country, prefix and network, by priority, health and weight, and goes on to another when a route surely did not send it.
 *
 * What it knows of the routes' health is kept in the memory of this process. With the option `store` the processes that share it tell each other every two seconds what they counted, and which codes were typed where another
 * process had sent: each then judges by the traffic of all. Without it each judges by its own messages, of which it sees but a part of the codes typed where checks reach any process: no route is wronged, but one that converts
 * less is then hardly found.
 *
 * @throws TypeError that names each faulty option and its mend.
 */
export function router(options: RouterOptions): Router {
  const { routes, network, afterUnknown, maxRoutes, cheapestFirst, health: own, clock, random, store, logger } = readRouterOptions(options);
  // News of a code that was typed elsewhere takes up to two exchanges.
  const health = store === undefined ? own : { ...own, settle: own.settle + 2 * exchangeEvery };
  const book = healthBook(health, store !== undefined);
  const exchange = store && createExchange({ store, clock, logger, routes: routes.map(({ name }) => name), book, life: health.window });
  const byName = new Map(routes.map((route) => [route.name, route]));
  const senders = [...new Set(routes.map(({ sender }) => sender))];

  const priceFor = (name: string, country: string | undefined) => priceOf(byName.get(name)!.prices, country);

  const matching = ({ to, country }: Destination): readonly Route[] => {
    const target = { to, country, network: routes.some(({ networks }) => networks !== undefined) ? networkOf(network, to) : undefined };
    return routes.filter((route) => routeMatches(route, target));
  };

  const rank = (destination: Destination): readonly RankedRoute[] => {
    const found = matching(destination);
    const names = found.map(({ name }) => name);
    const standings = book.standings(destination.country, names, clock.now());
    const tried = new Set(destination.routes_tried);
    const candidates = found.map(({ name, priority, weight }, index): Candidate => {
      const cost = cheapestFirst ? (priceFor(name, destination.country) ?? Number.MAX_VALUE) : 0;
      return { name, priority, cost, weight, tried: tried.has(name), ...standings[index]! };
    });
    return rankRoutes(candidates, { order: names.map(() => random()), probe: random(), probeShare: isFirst(destination) ? health.probeShare : 0 });
  };

  return {
    unpriced: routes.filter(({ prices, countries }) => !isPriced(prices, countries)).map(({ name }) => name),

    plan(destination) {
      exchange?.poke();
      const [first, ...others] = rank(destination);
      if (first === undefined) return undefined;
      const { country } = destination;
      const price = highestPrice(
        priceFor(first.name, country),
        others.map(({ name }) => priceFor(name, country)),
        maxRoutes,
        afterUnknown,
      );
      return { route: first.name, ...(price !== undefined && { price }) };
    },

    async send(message, context): Promise<SendOutcome> {
      const ranked = plannedFirst(rank(message), message.planned_route);
      if (ranked.length === 0) return { outcome: "rejected", reason: `no route for ${message.country ?? "a number without a country"}` };
      const choices = ranked.slice(0, maxRoutes);
      const steps: RouteStep[] = [];
      const tries: { price: number | undefined; outcome: RouteStep["outcome"] }[] = [];
      let untried = "the time for it was over";
      let last: (TryResult & { readonly route: string }) | undefined;
      let open: (TryResult & { readonly route: string }) | undefined;
      for (const [index, { name, reason }] of choices.entries()) {
        const price = priceFor(name, message.country);
        if (message.max_price !== undefined && (paidPrice(tries) ?? 0) + (price ?? Number.POSITIVE_INFINITY) > message.max_price + 1e-9) {
          untried = "no route for the price that was held for it";
          continue;
        }
        const ms = context.signal.aborted ? undefined : timeForTry(context.deadline - clock.now(), choices.length - index, afterUnknown);
        if (ms === undefined) break;
        const done = book.handing(message.country, name, clock.now(), index === 0 && isFirst(message) ? nameOf(message) : undefined);
        const result = await tryRoute(byName.get(name)!.sender, message, ms, context, clock);
        done(result.outcome, clock.now());
        tries.push({ price, outcome: result.outcome });
        steps.push({ route: name, reason: last === undefined ? reason : `failover, ${last.outcome} by ${last.route}`, outcome: result.outcome });
        last = { ...result, route: name };
        if (result.outcome === "unknown") open = last;
        if (!mayFailOver(result.outcome, afterUnknown)) break;
      }
      if (last === undefined) return { outcome: "rejected", reason: `not sent: ${untried}`, steps };
      // A message that one route may have sent is not surely unsent, whatever the routes after it say.
      const final = last.outcome === "rejected" && open !== undefined ? open : last;
      if (final.outcome === "rejected") return { ...final, steps };
      const price = paidPrice(tries);
      return { ...final, ...(price !== undefined && { price }), steps };
    },

    feedback(event) {
      const { route, event: what } = event;
      const heard = { name: nameOf(event), route, event: what };
      if (!book.heard(heard, clock.now()) && event.attempt === 1) exchange?.pass(heard);
      exchange?.poke();
      byName.get(event.route)?.sender.feedback?.(event);
    },

    health: () => book.report(clock.now()),

    async close() {
      const closed = await Promise.allSettled(senders.map(async (sender) => sender.close?.()));
      const failed = closed.find((result) => result.status === "rejected");
      if (failed !== undefined) throw failed.reason;
    },
  };
}

/** The first message of an authentication, whose route chance gives. */
function isFirst({ attempt, routes_tried }: Destination): boolean {
  return attempt === 1 && (routes_tried === undefined || routes_tried.length === 0);
}

/** Of the id's 122 random bits 48 are kept: there are never so many messages on the way at a time. */
function nameOf({ authentication_uuid, attempt }: { readonly authentication_uuid: string; readonly attempt: number }): string {
  return `${authentication_uuid.slice(0, 13)}/${attempt}`;
}

/** "What the record says is what happens": the planned route goes first where it still matches. */
function plannedFirst(ranked: readonly RankedRoute[], planned: string | undefined): readonly RankedRoute[] {
  const first = ranked.find(({ name }) => name === planned);
  return first === undefined ? ranked : [{ ...first, reason: `planned, ${first.reason}` }, ...ranked.filter((other) => other !== first)];
}

/** A host's function that fails knows nothing. */
function networkOf(network: (to: string) => Network | undefined, to: string): Network | undefined {
  try {
    return network(to);
  } catch {
    return undefined;
  }
}
