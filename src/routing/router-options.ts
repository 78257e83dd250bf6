import * as z from "zod";
import { systemClock } from "../core/clocks.js";
import { consoleLogger } from "../core/loggers.js";
import { type CountryCode, countryError, countryKeyError } from "../domain/countries.js";
import { endsWithTrunk, prefixForms } from "../domain/phone-number.js";
import { above0, callable, checkedText, flag, number, object, text, whole, wholeIn } from "../options/fields.js";
import { checkedBy, optionErrors, plainWords } from "../options/option-errors.js";
import type { Clock } from "../ports/clock.js";
import type { Logger } from "../ports/logger.js";
import type { FallbackReason, SmsSender } from "../ports/sms-sender.js";
import type { Store } from "../ports/store.js";
import type { Network } from "./choice.js";
import type { Prices } from "./price.js";

/** A route to a carrier. Each of `countries`, `prefixes` and `networks` that is set must match. */
export interface RouteOptions {
  /** Used in records, steps and `explain`: 1 to 64 letters, digits, `.`, `_`, `:` or `-`, unique among the routes. */
  readonly name: string;
  readonly sender: SmsSender;
  /** ISO 3166-1 alpha-2 codes. Default `"all"`, including numbers without a country. */
  readonly countries?: readonly CountryCode[] | "all" | undefined;
  /** Beginnings of numbers, for example `"+3361"`. Default: all numbers. */
  readonly prefixes?: readonly string[] | undefined;
  /** `MCC` or `MCC-MNC`, as `"208-01"`; needs the option `network`. Default: all networks, known or not. */
  readonly networks?: readonly string[] | undefined;
  /** Lower goes first. The next priority is for failover, retries, and when this one's breakers are open. Default 1. */
  readonly priority?: number | undefined;
  /** Share of the traffic among routes of the same priority. Default 1. */
  readonly weight?: number | undefined;
  /** Price of a message, in the unit of `policy.limits.spend`, or `{ default: 0.08, FR: 0.05 }`. Default: unknown. */
  readonly price?: number | { readonly [country in CountryCode | "default"]?: number } | undefined;
  /** Of a route that calls: the lines that it calls. Default `["Mobile", "FixedLine"]`. */
  readonly lines?: readonly ("Mobile" | "FixedLine")[] | undefined;
  /** Whether it may carry a fallback. Default: true, but for calls false, because they cost more and annoy. */
  readonly fallback?: boolean | undefined;
}

/** When a route counts as worse than the others of a country. Durations are seconds. */
export interface HealthOptions {
  /** Older events no longer count. Default 3600. */
  readonly window?: number | undefined;
  /** How long a message waits for its code to be entered before it counts as not converted. Default 60. */
  readonly settle?: number | undefined;
  /** A hand-over that takes longer counts as slow. Default 2. */
  readonly slowAfter?: number | undefined;
  /** A signal with fewer events is ignored. Default 20. */
  readonly minSample?: number | undefined;
  /**
   * How far a route's share of good events may lie below the others'; 0.05 is five percentage points. If chance cannot
   * explain a larger difference, the route's weight falls and its breaker opens. Default `{ conversion: 0.05, handOver:
   * 0.3, receipts: 0.3, latency: 0.5 }`.
   */
  readonly tolerance?: Partial<Record<"conversion" | "handOver" | "receipts" | "latency", number>> | undefined;
  /** Time from the opening of a breaker to its first probes; doubles with each failed round. Default 60. */
  readonly probeAfter?: number | undefined;
  /** Share of a country's first messages that go to half-open routes; half after a `window` without any. Default 0.05. */
  readonly probeShare?: number | undefined;
  /** Messages in a round of probes. Default 20. */
  readonly probes?: number | undefined;
}

/** When a message that did not arrive is followed by a new code on another route. */
export interface FallbackOptions {
  /**
   * Seconds without a receipt of delivery and without the right code, after which a message is silent; only on routes whose
   * receipts confirm every delivery, never on SMS. The worker adds up to `callbacks.pollInterval`. 5 to 600. Default 20.
   */
  readonly after?: number | undefined;
  /**
   * - `unreachable`: a receipt reports that the number is not on the channel. A carrier that reports it at once is always
   * followed by the next route in the same request.
   * - `undeliverable`: a receipt reports that the message was not delivered.
   * - `silent`: nothing was heard for `after` seconds.
   *
   * Default: all three.
   */
  readonly on?: readonly FallbackReason[] | undefined;
  /** Fallbacks for each authentication, 1 to 3. Default 1. */
  readonly most?: number | undefined;
  /**
   * `"elsewhere"`: another process runs the worker, as `phoneproof worker` does, and this one may have `callbacks.worker:
   * false`. Default `"here"`.
   */
  readonly worker?: "here" | "elsewhere" | undefined;
}

/** The options of `router`. */
export interface RouterOptions {
  readonly routes: readonly RouteOptions[];
  /**
   * Source of a number's network: `"lookup"` for the verifier's lookup, which needs its option `lookupBeforeSend`; or a
   * synchronous function, called for each message if a route has `networks`. Default: none.
   */
  readonly network?: "lookup" | ((to: string) => Network | undefined) | undefined;
  /**
   * Whether the cheapest route of a priority goes first; `weight` then decides only among equal prices. A route without
   * a price goes last. Default false.
   */
  readonly cheapestFirst?: boolean | undefined;
  readonly failover?:
    | {
        /** Whether to try the next route if a message may have been sent: the user may get it twice. Default false. */
        readonly afterUnknown?: boolean | undefined;
        /** Routes tried for one message, including the first. Default 3. */
        readonly maxRoutes?: number | undefined;
      }
    | undefined;
  /**
   * Sends a new code on another route if a message did not arrive. Needs the verifier's option `receipts` and its worker.
   * Default: none, except that a route that is known not to have sent it is followed by the next one at once.
   */
  readonly fallback?: FallbackOptions | undefined;
  readonly health?: HealthOptions | undefined;
  /** The store that the processes share, to share the routes' health too. Default: each process uses only its own. */
  readonly store?: Store | undefined;
  /** Where the router logs failures of the store, and breakers that open and close. Default `console`, without `info`. */
  readonly logger?: Logger | undefined;
  /** The verifier's clock: codes are counted at the time at which it sent them. Default: the system's clock. */
  readonly clock?: Clock | undefined;
  /** Random numbers from 0 up to, not including, 1; for tests. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** Objects of the application, passed on unchanged. */
const methods = <T>(what: string, names: readonly (keyof T & string)[]) =>
  z.custom<T>(
    (value) => typeof value === "object" && value !== null && names.every((name) => typeof (value as Record<string, unknown>)[name] === "function"),
    `must be ${what}: an object with the method${names.length > 1 ? "s" : ""} ${names.join(", ")}`,
  );
const listOf = (one: z.ZodType<string>) => z.array(one, "must be a list").min(1, "must not be empty: leave it out for a route that takes every number");
const written = (pattern: RegExp, fix: string) => z.string(fix).regex(pattern, fix);
/** Seconds in, whole milliseconds out. */
const seconds = z
  .number("must be a number of seconds")
  .positive("must be more than 0 seconds")
  .max(86_400, "must be at most a day, in seconds")
  .transform((value) => Math.ceil(value * 1000));
const wholeNumber = whole(1).max(10_000, "must be at most 10000");
const money = number(0, 1e9, "must be 0 or more", "must be at most a thousand million");
const share = above0(1, "must be at most 1");
const countryOrDefault = z.string().superRefine(checkedBy(countryKeyError));

const RouteSchema = object(
  {
    name: text().regex(/^[\w.:-]{1,64}$/, "must be 1 to 64 letters, digits, dots, colons, hyphens or underscores"),
    sender: methods<SmsSender>("an SMS sender", ["send"]),
    countries: z
      .union([z.literal("all"), listOf(checkedText(countryError))], 'must be "all" or a list of ISO 3166-1 alpha-2 codes, for example ["FR"]')
      .transform((countries) => (countries === "all" ? undefined : new Set(countries)))
      .prefault("all"),
    prefixes: listOf(
      written(/^\+[1-9]\d{0,14}$/, 'must be the beginning of a number in E.164 form, for example "+3361"').refine(
        (prefix) => prefixForms(prefix).length > 0,
        endsWithTrunk,
      ),
    )
      .transform((prefixes) => prefixes.flatMap(prefixForms))
      .optional(),
    networks: listOf(written(/^\d{3}(-\d{2,3})?$/, 'must be MCC or MCC-MNC, for example "208" or "208-01"')).optional(),
    priority: z.number("must be a number; lower goes first").default(1),
    weight: above0(1_000_000, "must be at most 1000000").default(1),
    price: z
      .union([money, z.record(countryOrDefault, money)], "must be a number, or one for each country: { default: 0.08, FR: 0.05 }")
      .transform((price): Prices => (typeof price === "number" ? { default: price } : price))
      .prefault({}),
    lines: z
      .array(z.enum(["Mobile", "FixedLine"], 'must be "Mobile" or "FixedLine"'), 'must be a list of "Mobile" and "FixedLine"')
      .min(1, "must not be empty")
      .optional(),
    fallback: flag().optional(),
  },
  "must be { name, sender, … }",
);

const reasons = ["unreachable", "undeliverable", "silent"] as const satisfies readonly FallbackReason[];

const FallbackSchema = object(
  {
    after: z
      .number("must be a number of seconds")
      .min(5, "must be 5 to 600 seconds")
      .max(600, "must be 5 to 600 seconds")
      .default(20)
      .transform((value) => Math.ceil(value * 1000)),
    on: z
      .array(z.enum(reasons, 'must be "unreachable", "undeliverable" or "silent"'), 'must be a list of "unreachable", "undeliverable" and "silent"')
      .min(1, "must not be empty: leave fallback out for none")
      .default([...reasons]),
    most: wholeIn(1, 3).default(1),
    worker: z.enum(["here", "elsewhere"], 'must be "here" or "elsewhere"').default("here"),
  },
  "must be { after, on, most }",
);

const HealthSchema = object({
  window: seconds.prefault(3600),
  settle: seconds.prefault(60),
  slowAfter: seconds.prefault(2),
  minSample: wholeNumber.default(20),
  tolerance: object({ conversion: share.default(0.05), handOver: share.default(0.3), receipts: share.default(0.3), latency: share.default(0.5) }).prefault({}),
  probeAfter: seconds.prefault(60),
  probeShare: share.default(0.05),
  probes: wholeNumber.default(20),
}).superRefine(({ window, settle }, ctx) => {
  if (settle * 2 <= window) return;
  const message = `is ${settle / 1000} and must be at most half of health.window, which is ${window / 1000}: make the window longer`;
  ctx.addIssue({ code: "custom", path: ["settle"], message });
});

const RouterSchema = object(
  {
    routes: z.array(RouteSchema, "must be a list of { name, sender, … }").min(1, "must hold at least one route"),
    network: z
      .union([z.literal("lookup"), callable<(to: string) => Network | undefined>()], 'must be "lookup", or a function from a number to { mcc?, mnc? }')
      .optional(),
    cheapestFirst: flag().default(false),
    failover: object({ afterUnknown: flag().default(false), maxRoutes: wholeNumber.default(3) }).prefault({}),
    fallback: FallbackSchema.optional(),
    health: HealthSchema.prefault({}),
    store: methods<Store>("a store, for example redisStore({ client })", ["tally"]).optional(),
    logger: methods<Logger>("a logger", ["info", "warn", "error"]).default(() => consoleLogger),
    clock: methods<Clock>("a clock", ["now", "after"]).default(systemClock),
    random: z
      .custom<() => number>((value) => typeof value === "function", "must be a function that returns numbers from 0 up to, not including, 1")
      .default(() => Math.random),
  },
  "must be { routes, … }",
).superRefine(({ routes, network, fallback }, ctx) => {
  for (const [path, message] of fallback === undefined ? [] : fallbackErrors(routes, fallback)) ctx.addIssue({ code: "custom", path: [...path], message });
  for (const [index, { name, networks, sender, lines }] of routes.entries()) {
    const first = routes.findIndex((other) => other.name === name);
    const problem = (field: string, message: string) => ctx.addIssue({ code: "custom", path: ["routes", index, field], message });
    if (first < index) problem("name", `is "${name}", as is routes.${first}.name: give each route its own name`);
    if (lines !== undefined && sender.channel !== "voice") problem("lines", "is for routes that call: leave it out");
    if (networks !== undefined && network === undefined) {
      problem("networks", "needs the option network, 'lookup' or a function that returns a number's { mcc, mnc }: without it the route would take no number");
    }
  }
});

/** Why no one could carry out a fallback (docs/contract.md#fallback). */
function fallbackErrors(routes: readonly z.output<typeof RouteSchema>[], { on }: z.output<typeof FallbackSchema>): (readonly [readonly string[], string])[] {
  const problems: (readonly [readonly string[], string])[] = [];
  const taking = routes.filter(mayTakeFallback);
  if (!routes.some((route) => route.sender.channel !== "voice" && taking.some((other) => other !== route)))
    problems.push([["fallback"], "needs a second route, which a message can move to: add one, or leave fallback out"]);
  if (!routes.some(({ sender: { receiptProviders = [], takesReceipts } }) => receiptProviders.length > 0 || takesReceipts === true)) {
    const fix = "leave receipts: false out of the senders' options, set onReceipt of smppSender, or leave fallback out";
    problems.push([["fallback"], `needs receipts, and no sender requests them: ${fix}`]);
  } else if (on.includes("silent") && !routes.some(({ sender }) => sender.confirms === true)) {
    problems.push([
      ["fallback", "on"],
      'has "silent", also by default, but no route confirms deliveries (WhatsApp and Telegram do, SMS does not): set fallback.on: ["undeliverable", "unreachable"]',
    ]);
  }
  return problems;
}

/** Calls carry no fallback by default. */
export function mayTakeFallback({ sender, fallback }: Pick<z.output<typeof RouteSchema>, "sender" | "fallback">): boolean {
  return fallback ?? sender.channel !== "voice";
}

/** The checked options, as the router uses them. Durations are milliseconds. */
export type RouterSettings = z.output<typeof RouterSchema>;
export type Route = RouterSettings["routes"][number];
export type HealthSettings = RouterSettings["health"];

/** Fills in the defaults, also for `undefined`. Throws a `TypeError` that names each invalid option's path and fix. */
export function readRouterOptions(options: RouterOptions): RouterSettings {
  const parsed = RouterSchema.safeParse(options, { error: plainWords });
  if (!parsed.success) throw new TypeError(`router: ${optionErrors(parsed.error, RouterSchema, "options").join("; ")}`);
  return parsed.data;
}
