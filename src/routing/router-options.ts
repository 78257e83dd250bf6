import * as z from "zod";
import type { Network, RouteScope } from "../domain/routing.js";
import type { BreakerRules } from "../domain/routing-breaker.js";
import type { HealthRules } from "../domain/routing-health.js";
import type { Prices } from "../domain/routing-price.js";
import { consoleLogger } from "../engine/console-logger.js";
import { systemClock } from "../engine/system-clock.js";
import type { Clock } from "../ports/clock.js";
import type { Logger } from "../ports/logger.js";
import type { SmsSender } from "../ports/sms-sender.js";
import type { Store } from "../ports/store.js";

/** A way to a carrier. Of the criteria `countries`, `prefixes` and `networks`, each that is given must hold. */
export interface RouteOptions {
  /** Stands in records, steps and `explain`; 1 to 64 letters, digits, `.`, `_`, `:` or `-`, unlike any other route's. */
  readonly name: string;
  readonly sender: SmsSender;
  /** ISO 3166-1 alpha-2 codes. Default `"all"`, numbers without a country included. */
  readonly countries?: readonly string[] | "all" | undefined;
  /** Beginnings of numbers, for example `"+3361"`. Default: all numbers. */
  readonly prefixes?: readonly string[] | undefined;
  /** `MCC` or `MCC-MNC`, for example `"208"` or `"208-01"`; needs the option `network`. Default: all networks, unknown ones included. */
  readonly networks?: readonly string[] | undefined;
  /** Lower goes first; the next priority is for failover, for retries and for when the breakers of this one are open. Default 1. */
  readonly priority?: number | undefined;
  /** Share of the traffic among routes of the same priority. Default 1. */
  readonly weight?: number | undefined;
  /** What a message costs, in the unit of `policy.limits.spend`; or one price for each country, `{ default: 0.08, FR: 0.05 }`. Default: not known. */
  readonly price?: number | Readonly<Record<string, number>> | undefined;
}

/** When the router holds a route for worse than the others of a country. Durations are seconds. */
export interface HealthOptions {
  /** What is older counts no more. Default 3600. */
  readonly window?: number | undefined;
  /** How long a message waits for its code to be typed before it counts as not converted. Default 60. */
  readonly settle?: number | undefined;
  /** A hand-over that takes longer counts as slow. Default 2. */
  readonly slowAfter?: number | undefined;
  /** A signal of fewer events says nothing. Default 20. */
  readonly minSample?: number | undefined;
  /** By how much a route's share of good events may lie below the others' for good; 0.05 is five percentage points. Beyond, its weight falls and its breaker opens as soon as chance cannot explain it. Default `{ conversion: 0.05, handOver: 0.3, receipts: 0.3, latency: 0.5 }`. */
  readonly tolerance?: Partial<Record<"conversion" | "handOver" | "receipts" | "latency", number>> | undefined;
  /** From the opening of a breaker to its first probes; doubles with each round that fails. Default 60. */
  readonly probeAfter?: number | undefined;
  /** Share of a country's messages that go to half-open routes. Default 0.05. */
  readonly probeShare?: number | undefined;
  /** Messages of a round of probes. Default 20. */
  readonly probes?: number | undefined;
}

/** What `router` takes. */
export interface RouterOptions {
  readonly routes: readonly RouteOptions[];
  /** What is known of a number's network, from memory: called for each message where a route has `networks`. Default: nothing. */
  readonly network?: ((to: string) => Network | undefined) | undefined;
  /** Whether among routes of one priority the cheapest goes first, and `weight` decides among equally cheap ones only. A route without a price goes last. Default false. */
  readonly cheapestFirst?: boolean | undefined;
  readonly failover?:
    | {
        /** Whether the next route is tried when a message may have been sent: the user may get it twice. Default false. */
        readonly afterUnknown?: boolean | undefined;
        /** Routes tried for one message, the first included. Default 3. */
        readonly maxRoutes?: number | undefined;
      }
    | undefined;
  readonly health?: HealthOptions | undefined;
  /** The store that the processes share, to share the routes' health over it too. Default: each process knows its own alone. */
  readonly store?: Store | undefined;
  /** Where the router reports that the store failed. Default `console`, without `info`. */
  readonly logger?: Logger | undefined;
  /** Default: the system's clock. */
  readonly clock?: Clock | undefined;
  /** Chance, from 0 up to, not including, 1; for tests. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** Default of every option of the router. */
export const routerDefaults = {
  priority: 1,
  weight: 1,
  cheapestFirst: false,
  failover: { afterUnknown: false, maxRoutes: 3 },
  health: {
    window: 3600,
    settle: 60,
    slowAfter: 2,
    minSample: 20,
    tolerance: { conversion: 0.05, handOver: 0.3, receipts: 0.3, latency: 0.5 },
    probeAfter: 60,
    probeShare: 0.05,
    probes: 20,
  },
} as const;

/** A route, checked. */
export interface Route extends RouteScope {
  readonly name: string;
  readonly sender: SmsSender;
  readonly priority: number;
  readonly weight: number;
  readonly prices: Prices;
}

/** Health thresholds, checked. Durations are milliseconds. */
export interface HealthSettings extends HealthRules, BreakerRules {
  readonly slowAfter: number;
  readonly probeShare: number;
}

/** The options as the router uses them. */
export interface RouterSettings {
  readonly routes: readonly Route[];
  readonly network: (to: string) => Network | undefined;
  readonly afterUnknown: boolean;
  readonly maxRoutes: number;
  readonly cheapestFirst: boolean;
  readonly health: HealthSettings;
  readonly clock: Clock;
  readonly random: () => number;
  readonly store: Store | undefined;
  readonly logger: Logger;
}

const fn = (what: string) => z.custom<object>((value) => typeof value === "function", `must be ${what}`);
const methods = (what: string, names: readonly string[]) =>
  z.custom<object>(
    (value) => typeof value === "object" && value !== null && names.every((name) => typeof (value as Record<string, unknown>)[name] === "function"),
    `must be ${what}: an object with the methods ${names.join(", ")}`,
  );
const listOf = (pattern: RegExp, mend: string) =>
  z.array(z.string(mend).regex(pattern, mend), "must be a list").min(1, "must not be empty: leave it out for a route that takes all");
const seconds = z.number("must be a number of seconds").positive("must be more than 0 seconds").max(86_400, "must be at most a day, in seconds");
const wholeNumber = z.int("must be a whole number").min(1, "must be 1 or more").max(10_000, "must be at most 10000");
const money = z.number("must be a number").min(0, "must be 0 or more").max(1e9, "must be at most a thousand million");
const above0 = z.number("must be a number").positive("must be more than 0");
const share = above0.max(1, "must be at most 1");

const iso2 = 'must be an ISO 3166-1 alpha-2 code in capitals, for example "FR"';

const RouteSchema = z.strictObject(
  {
    name: z.string("must be a string").regex(/^[\w.:-]{1,64}$/, "must be 1 to 64 letters, digits, dots, colons, hyphens or underscores"),
    sender: methods("an SMS sender", ["send"]),
    countries: z.union([z.literal("all"), listOf(/^[A-Z]{2}$/, iso2)], 'must be "all" or a list of ISO 3166-1 alpha-2 codes, for example ["FR"]').optional(),
    prefixes: listOf(/^\+[1-9]\d{0,14}$/, 'must be the beginning of a number in E.164 form, for example "+3361"').optional(),
    networks: listOf(/^\d{3}(-\d{2,3})?$/, 'must be MCC or MCC-MNC, for example "208" or "208-01"').optional(),
    priority: z.number("must be a number; lower goes first").optional(),
    weight: above0.max(1_000_000, "must be at most 1000000").optional(),
    price: z
      .union(
        [money, z.record(z.string().regex(/^([A-Z]{2}|default)$/), money, 'must name countries by ISO 3166-1 alpha-2 codes, for example "FR", or "default"')],
        "must be a number, or one for each country: { default: 0.08, FR: 0.05 }",
      )
      .optional(),
  },
  "must be { name, sender, … }",
);

const RouterSchema = z.strictObject(
  {
    routes: z.array(RouteSchema, "must be a list of { name, sender, … }").min(1, "must hold at least one route"),
    network: fn("a function from a number to { mcc?, mnc? }").optional(),
    cheapestFirst: z.boolean("must be true or false").optional(),
    failover: z.strictObject({ afterUnknown: z.boolean("must be true or false").optional(), maxRoutes: wholeNumber.optional() }).optional(),
    health: z
      .strictObject({
        window: seconds.optional(),
        settle: seconds.optional(),
        slowAfter: seconds.optional(),
        minSample: wholeNumber.optional(),
        tolerance: z
          .strictObject({ conversion: share.optional(), handOver: share.optional(), receipts: share.optional(), latency: share.optional() })
          .optional(),
        probeAfter: seconds.optional(),
        probeShare: share.optional(),
        probes: wholeNumber.optional(),
      })
      .optional(),
    store: methods("a store, for example redisStore({ client })", ["find", "compareAndSwap"]).optional(),
    logger: methods("a logger", ["info", "warn", "error"]).optional(),
    clock: methods("a clock", ["now", "after"]).optional(),
    random: fn("a function that answers numbers from 0 up to, not including, 1").optional(),
  },
  "must be { routes, … }",
);

/** Checks the options and fills in the defaults. Throws a `TypeError` that names each option's path and the mend. */
export function readRouterOptions(options: RouterOptions): RouterSettings {
  const parsed = RouterSchema.safeParse(options);
  if (!parsed.success) throw fault(parsed.error.issues.flatMap(sentences));
  const faults = crossFaults(options);
  if (faults.length > 0) throw fault(faults);

  const defaults = routerDefaults.health;
  const health: HealthOptions = options.health ?? {};
  const ms = (name: "window" | "settle" | "slowAfter" | "probeAfter") => (health[name] ?? defaults[name]) * 1000;
  const tolerance = (signal: keyof typeof defaults.tolerance) => health.tolerance?.[signal] ?? defaults.tolerance[signal];
  return {
    routes: options.routes.map((route) => ({
      name: route.name,
      sender: route.sender,
      countries: route.countries === undefined || route.countries === "all" ? undefined : new Set(route.countries),
      prefixes: route.prefixes && [...route.prefixes],
      networks: route.networks && [...route.networks],
      priority: route.priority ?? routerDefaults.priority,
      weight: route.weight ?? routerDefaults.weight,
      prices: typeof route.price === "number" ? { default: route.price } : { ...route.price },
    })),
    network: options.network ?? (() => undefined),
    afterUnknown: options.failover?.afterUnknown ?? routerDefaults.failover.afterUnknown,
    maxRoutes: options.failover?.maxRoutes ?? routerDefaults.failover.maxRoutes,
    cheapestFirst: options.cheapestFirst ?? routerDefaults.cheapestFirst,
    health: {
      window: ms("window"),
      settle: ms("settle"),
      slowAfter: ms("slowAfter"),
      minSample: health.minSample ?? defaults.minSample,
      tolerance: {
        conversion: tolerance("conversion"),
        handOver: tolerance("handOver"),
        receipts: tolerance("receipts"),
        latency: tolerance("latency"),
      },
      probeAfter: ms("probeAfter"),
      probeShare: health.probeShare ?? defaults.probeShare,
      probes: health.probes ?? defaults.probes,
    },
    clock: options.clock ?? systemClock(),
    random: options.random ?? Math.random,
    store: options.store,
    logger: options.logger ?? consoleLogger,
  };
}

/** Faults of options that are sound each by itself. */
function crossFaults({ routes, network, health }: RouterOptions): string[] {
  const faults: string[] = [];
  for (const [index, { name, networks }] of routes.entries()) {
    const first = routes.findIndex((other) => other.name === name);
    if (first < index) faults.push(`routes.${index}.name is "${name}", as is routes.${first}.name: give each route a name of its own`);
    if (networks !== undefined && network === undefined) {
      faults.push(`routes.${index}.networks needs the option network, a function that tells a number's { mcc, mnc }: without it the route would take nothing`);
    }
  }
  const { window = routerDefaults.health.window, settle = routerDefaults.health.settle } = health ?? {};
  if (settle * 2 > window) faults.push(`health.settle is ${settle} and must be at most half of health.window, which is ${window}: make the window longer`);
  return faults;
}

function sentences(issue: z.core.$ZodIssue): string[] {
  const at = (path: readonly PropertyKey[], message: string) => `${path.join(".") || "options"} ${message}`;
  if (issue.code === "unrecognized_keys") return issue.keys.map((key) => at([...issue.path, key], "is not an option: remove it or mend its spelling"));
  if (issue.code !== "invalid_union") return [at(issue.path, issue.message)];
  const deeper = issue.errors.flat().filter((inner) => inner.path.length > 0 || inner.code === "too_small");
  return deeper.length === 0 ? [at(issue.path, issue.message)] : deeper.map((inner) => at([...issue.path, ...inner.path], inner.message));
}

function fault(faults: readonly string[]): TypeError {
  return new TypeError(`router: ${faults.join("; ")}`);
}
