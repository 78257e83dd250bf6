import { safeLogger } from "../core/loggers.js";
import { throttledLogger } from "../core/throttled-logger.js";
import { synchronous } from "../domain/promises.js";
import type {
  Channel,
  CodeMessage,
  CredentialCheck,
  Destination,
  Fallback,
  FallbackReason,
  Plan,
  RouteStep,
  SendOutcome,
  SmsSender,
} from "../ports/sms-sender.js";
import { type Candidate, mayFailOver, type Network, type RankedRoute, rankRoutes, routeMatches, timeForTry } from "./choice.js";
import { createCounts, type Tally } from "./counts.js";
import { createExchange, exchangeEvery } from "./exchange.js";
import { highestPrice, isPriced, paidPrice, priceOf } from "./price.js";
import { createRouteHealth, type RouteHealth } from "./route-health.js";
import {
  type FallbackOptions,
  type HealthOptions,
  mayTakeFallback,
  type Route,
  type RouteOptions,
  type RouterOptions,
  readRouterOptions,
} from "./router-options.js";
import { type TryResult, tryRoute } from "./try-route.js";

export type { Fallback, FallbackOptions, FallbackReason, HealthOptions, Network, RouteHealth, RouteOptions, RouterOptions, Tally as RouteTally };

/** A sender made of several senders. */
export interface Router extends SmsSender {
  plan(destination: Destination): Plan | undefined;
  readonly unpriced: readonly string[];
  /** The health of each route in each country that had messages, as this process knows it. */
  health(): readonly RouteHealth[];
}

/**
 * A sender made of several senders. It chooses a route for each message by country, prefix and network, then by
 * priority, health and weight, and fails over when a route is known not to have sent it. Each process keeps the routes'
 * health in memory. With the option `store`, processes exchange counts every two seconds in the background. Otherwise a
 * process may miss codes entered elsewhere, and rarely finds a lower conversion.
 *
 * @throws TypeError that names each invalid option and the fix.
 */
export function router(options: RouterOptions): Router {
  const settings = readRouterOptions(options);
  const { routes, network, failover, fallback, cheapestFirst, health, clock, random, store } = settings;
  const { afterUnknown, maxRoutes } = failover;
  const log = throttledLogger(clock, safeLogger(settings.logger));
  // Counts of other processes arrive after up to two exchanges.
  const counts = createCounts(health, store && 2 * exchangeEvery);
  const routeHealth = createRouteHealth(settings, counts, log);
  const exchange = store && createExchange(store, counts, settings);
  const byName = new Map(routes.map((route) => [route.name, route]));
  const senders = [...new Set(routes.map(({ sender }) => sender))];
  const declared = [...new Set(senders.flatMap(({ receiptProviders = [] }) => receiptProviders))];
  const providers = declared.length === 0 ? undefined : declared;

  const priceFor = (name: string, country: string | undefined) => priceOf(byName.get(name)!.price, country);

  const byNetwork = routes.some(({ networks }) => networks !== undefined);

  const onlyCalls = routes.every(isCall);

  /** If the application's function fails, the network is unknown. */
  const networkOf = (to: string): Network | undefined => {
    try {
      return typeof network === "function" ? synchronous("network", network(to)) : undefined;
    } catch (err) {
      log.error({ err }, "the router's option network failed, so that no route with networks takes the message");
      return undefined;
    }
  };

  /** A call is made only if it is wished for, and carries then no other message; or if there is nothing else. */
  const matching = ({ to, country, network: known, channel, fixed_line, fallback: replaces, routes_tried = [] }: Destination): readonly Route[] => {
    const target = { to, country, network: !byNetwork ? undefined : network === "lookup" ? known : networkOf(to) };
    const line = fixed_line ? "FixedLine" : "Mobile";
    const found = routes.filter((route) => routeMatches(route, target) && (!isCall(route) || callsLine(route, line)));
    if (!replaces) return found.filter((route) => isCall(route) === (channel === "voice" || onlyCalls));
    const left = found.filter((route) => mayTakeFallback(route) && !routes_tried.includes(route.name) && (channel !== "voice" || isCall(route)));
    const messages = left.filter((route) => !isCall(route));
    return messages.length > 0 ? messages : left;
  };

  const rank = (destination: Destination): readonly RankedRoute[] => {
    const found = matching(destination);
    const conditionOf = routeHealth.conditions(destination.country, clock.now());
    const tried = new Set(destination.routes_tried);
    const { channel, unreachable = [] } = destination;
    const candidates = found.map(({ name, priority, weight, sender }): Candidate => {
      const own = channelOf(sender);
      const cost = cheapestFirst ? (priceFor(name, destination.country) ?? Number.MAX_VALUE) : 0;
      return {
        name,
        priority,
        cost,
        weight,
        tried: tried.has(name),
        wished: channel === own,
        unreachable: channel !== own && unreachable.includes(own),
        ...conditionOf(name),
      };
    });
    return rankRoutes(candidates, { order: found.map(() => random()), probe: random(), probeShare: isFirst(destination) ? health.probeShare : 0 });
  };

  return {
    reaches(country) {
      const found = routes.filter((route) => (onlyCalls || !isCall(route)) && (route.countries === undefined || route.countries.has(country)));
      return found.length === 0 || found.some(({ sender }) => synchronous("reaches", sender.reaches?.(country)) !== false);
    },

    serves: (country) => routes.some(({ countries, sender }) => countries?.has(country) !== false && synchronous("serves", sender.serves?.(country)) !== false),

    receiptProvidersOf(name) {
      const route = byName.get(name);
      return route === undefined ? providers : route.sender.receiptProviders;
    },

    channels: [...new Set(senders.map(channelOf))],

    callsFixedLines: (country) =>
      routes.some(
        (route) =>
          callsLine(route, "FixedLine") &&
          (route.countries === undefined || (country !== undefined && route.countries.has(country))) &&
          synchronous("callsFixedLines", route.sender.callsFixedLines?.(country)) === true,
      ),

    ...(fallback !== undefined && {
      fallback: {
        after: fallback.after,
        on: fallback.on,
        most: fallback.most,
        elsewhere: fallback.worker === "elsewhere",
        confirms: (route) => route !== undefined && byName.get(route)?.sender.confirms === true,
      },
    }),

    readsNetwork: byNetwork && network === "lookup",

    ...(providers !== undefined && { receiptProviders: providers }),

    takesReceipts: senders.some(({ takesReceipts }) => takesReceipts === true),

    sendsNothing: routes.flatMap(({ name, sender: { sendsNothing = [] } }) => sendsNothing.map((words) => `route "${name}": ${words}`)),

    unpriced: routes.filter(({ price, countries }) => !isPriced(price, countries)).map(({ name }) => name),

    plan(destination) {
      const [first, ...others] = rank(destination);
      exchange?.poke();
      if (first === undefined) return undefined;
      const { country } = destination;
      const otherPrices = others.map(({ name }) => priceFor(name, country));
      const price = highestPrice(priceFor(first.name, country), otherPrices, maxRoutes, afterUnknown);
      return { route: first.name, ...channelIn(byName.get(first.name)!), ...(price !== undefined && { price }) };
    },

    async send(message, context): Promise<SendOutcome> {
      const ranked = plannedFirst(rank(message), message.planned_route);
      if (ranked.length === 0) {
        const wish = message.channel === "voice" ? "a call to this kind of line in " : "";
        return { outcome: "rejected", reason: `no route for ${wish}${message.country ?? "a number without a country"}` };
      }
      const choices = ranked.slice(0, maxRoutes);
      const calledAt = clock.now();
      const steps: RouteStep[] = [];
      const tries: { price: number | undefined; outcome: RouteStep["outcome"] }[] = [];
      let untried = "timed out";
      let last: Tried | undefined;
      let open: Tried | undefined;
      for (const [index, { name, reason }] of choices.entries()) {
        const route = byName.get(name)!;
        const price = priceOf(route.price, message.country);
        if (message.max_price !== undefined && (paidPrice(tries) ?? 0) + (price ?? Number.POSITIVE_INFINITY) > message.max_price + 1e-9) {
          untried = "no route within the price that was reserved for it";
          continue;
        }
        // Only differences of this clock are used: the verifier may have another clock.
        const now = clock.now();
        const left = context.timeLeft - Math.max(0, now - calledAt);
        const time = context.signal.aborted ? undefined : timeForTry(left, choices.length - index, afterUnknown);
        if (time === undefined) {
          if (last !== undefined) last = { ...last, reason: `${last.reason}; no time was left for route "${name}"` };
          break;
        }
        const chosen = index === 0 && isChosen(message, name) ? message.authentication_uuid : undefined;
        const endHandOver = routeHealth.startHandOver(message.country, name, now, chosen);
        const within = { signal: context.signal, deadline: context.deadline - left + time.timeLeft, ...time };
        const result = await tryRoute(route.sender, message, within, clock);
        const { unreachable, price: actual = price, ...outcome } = result;
        endHandOver(result, clock.now());
        exchange?.poke();
        tries.push({ price: actual, outcome: result.outcome });
        const why = last === undefined ? reason : `failover, ${last.outcome} by ${last.route}`;
        steps.push({
          route: name,
          reason: why,
          outcome: result.outcome,
          ...channelIn(route),
          ...(result.reason !== undefined && { answer: result.reason }),
          ...(unreachable && { unreachable: channelOf(route.sender) }),
        });
        last = { ...outcome, route: name, ...channelIn(route) };
        if (result.outcome === "unknown") open = last;
        if (!mayFailOver(result.outcome, afterUnknown)) break;
      }
      if (last === undefined) return { outcome: "rejected", reason: `not sent: ${untried}`, steps };
      // If one route may have sent the message, a later rejection does not make the outcome certain.
      const final = last.outcome === "rejected" && open !== undefined ? open : last;
      if (final.outcome === "rejected") return { ...final, steps };
      const price = paidPrice(tries);
      return { ...final, ...(price !== undefined && { price: Math.min(price, message.max_price ?? price) }), steps };
    },

    feedback(event) {
      const route = event.route === undefined ? undefined : byName.get(event.route);
      if (route === undefined) return;
      routeHealth.countFeedback({ ...event, route: route.name }, clock.now());
      exchange?.poke();
      return route.sender.feedback?.(event);
    },

    health: () => routeHealth.report(clock.now()),

    async verify(context) {
      const words = await Promise.all(
        routes.map(async ({ name, sender }): Promise<readonly CredentialCheck[]> => {
          if (sender.verify === undefined) return [{ name: `route "${name}"`, credentials: "unknown" }];
          const own = await sender.verify(context).catch((): CredentialCheck[] => [{ name, credentials: "unknown", reason: "the check failed" }]);
          return own.map((word) => ({ ...word, name }));
        }),
      );
      return words.flat();
    },

    async close() {
      const closed = await Promise.allSettled([exchange?.finish(), ...senders.map(async (sender) => sender.close?.())]);
      const failed = closed.find((result) => result.status === "rejected");
      if (failed !== undefined) throw failed.reason;
    },
  };
}

/** The result of the last try, with its route. */
interface Tried extends Omit<TryResult, "unreachable"> {
  readonly route: string;
  readonly channel?: Channel;
}

const channelOf = ({ channel = "sms" }: SmsSender): Channel => channel;

/** A sender's channel is SMS by default. */
const channelIn = ({ sender: { channel } }: Route): { readonly channel?: Channel } => (channel === undefined || channel === "sms" ? {} : { channel });

const isCall = ({ sender }: Route): boolean => sender.channel === "voice";

const callsLine = ({ sender, lines }: Route, line: "Mobile" | "FixedLine"): boolean =>
  sender.channel === "voice" && (lines === undefined || lines.includes(line));

/** Whether it is the first message of an authentication, whose route is chosen at random. */
function isFirst({ attempt, routes_tried }: Destination): boolean {
  return attempt === 1 && (routes_tried === undefined || routes_tried.length === 0);
}

/** Whether the message got this route at random. */
function isChosen(message: CodeMessage, route: string): boolean {
  return isFirst(message) && (message.planned_route ?? route) === route;
}

/** The planned route goes first if it still matches, so that the record is accurate. */
function plannedFirst(ranked: readonly RankedRoute[], planned: string | undefined): readonly RankedRoute[] {
  const first = ranked.find(({ name }) => name === planned);
  return first === undefined ? ranked : [{ ...first, reason: `planned, ${first.reason}` }, ...ranked.filter((other) => other !== first)];
}
