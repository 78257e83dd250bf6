import type { Conversion } from "../../src/contract/conversion.js";

/**
 * Unusual behaviour of the honest world, from the start of the counting. Countries are ISO 3166-1 alpha-2 codes of the
 * simulated world.
 */
export type Strain =
  /** `factor` times the usual visits of one country, falling back to the usual number within `hours`. */
  | { readonly kind: "rush"; readonly country: string; readonly factor: number; readonly hours: number }
  /** Visits from a new country. `share`: of the visits of all other countries together. */
  | { readonly kind: "launch"; readonly country: string; readonly share: number }
  /** Fewer visits end verified, in all countries. `factor`: applied to each country's share. */
  | { readonly kind: "low conversion"; readonly factor: number }
  /** A country's mobile operators put all users behind `addresses` addresses; `always`: since before the counting. */
  | { readonly kind: "carrier NAT"; readonly country: string; readonly addresses: number; readonly always?: boolean }
  /** `share` of the visits come in classes of 30, within ten minutes from one address. */
  | { readonly kind: "classes"; readonly share: number }
  /** Messages are accepted and never arrive: no one verifies, and people request more. */
  | { readonly kind: "outage"; readonly hours: number }
  /** Of deliveries: the codes are entered, and no confirmation comes. */
  | { readonly kind: "no confirmations"; readonly hours: number };

/** The numbers that an attack targets. */
export type AttackNumbers =
  /** In sequence. */
  | { readonly kind: "sequence"; readonly country: string }
  /** Random numbers from `ranges` ranges of 10,000, all of one operator. */
  | { readonly kind: "ranges"; readonly country: string; readonly ranges: number }
  /** Random numbers of the largest operator. */
  | { readonly kind: "operator"; readonly country: string }
  /** Random mobile numbers of the country. */
  | { readonly kind: "country"; readonly country: string }
  /**
   * Random numbers from `countries` countries without honest visits; with `stay`, that many messages to one country
   * before the next.
   */
  | { readonly kind: "countries"; readonly countries: number; readonly stay?: number }
  /** One number. */
  | { readonly kind: "one"; readonly country: string };

/** An attacker who causes messages for money or to do harm, from the start of the counting. */
export interface Attack {
  readonly numbers: AttackNumbers;
  /** Attempted messages: creates and retries. */
  readonly messages: number;
  /** Attempts per hour; `"burst"`: 500 at a time, in parallel, every second. */
  readonly perHour: number | "burst";
  /**
   * Origin of the requests. `country`: any line of the number's country; `world`: any line of any country; `hosting`:
   * 300 addresses of data centres; `{ mobile }`: the network of a mobile operator of that country, shared with its
   * honest users.
   */
  readonly from: "country" | "world" | "hosting" | { readonly mobile: string };
  /** Share of the sent codes that the attacker enters. Default 0. */
  readonly typed?: number;
  /** How often each authentication is retried, as early as possible. Default 0. */
  readonly retries?: number;
  /** Whether `is_returning_user` is claimed. Default false. */
  readonly claimsReturning?: boolean;
  /** Whether another customer of the installation attacks. Default false. */
  readonly otherCustomer?: boolean;
}

/**
 * The codes are those of another server, sent by `deliver`, which needs no cool-down between them. When one is entered,
 * the server calls `confirm`: at once if conversion is `reported`, 1 to 20 hours later if it is `late`, never if it is
 * `unknown`.
 */
export interface Deliveries {
  readonly conversion: Conversion;
  /** Whether the server states which users are `known`: those who got in on another day. Default true. */
  readonly vouches?: boolean;
}

/** The goal of a scenario. */
export interface Goal {
  /** Maximum share of the honest visits that are rejected. */
  readonly refused?: number;
  /** Maximum messages of the attack that are sent. */
  readonly out?: number;
}

/** A scenario: honest people, and what happens to them. */
export interface Scenario {
  readonly name: string;
  /** One sentence about the scenario. */
  readonly about: string;
  /** Honest visits per day. With repeated requests there are about a third more sends. */
  readonly visitsPerDay: number;
  /** Undisturbed days before the counting begins. */
  readonly warmUpDays: number;
  /** Hours that are counted. */
  readonly hours: number;
  /** Absent: codes of `createAuthentication`. */
  readonly deliveries?: Deliveries;
  readonly strain?: Strain;
  readonly attack?: Attack;
  /** Absent: the figures are reported without a goal. */
  readonly goal?: Goal;
}

/** Duration of an attack in hours. */
export function attackHours({ messages, perHour }: Attack): number {
  return perHour === "burst" ? messages / burst / 3600 : messages / perHour;
}

/** Concurrent requests of a burst. */
export const burst = 500;

const day = 24;

function story(name: string, about: string, more: Partial<Scenario>): Scenario {
  return { name, about, visitsPerDay: 5_000, warmUpDays: 7, hours: 2 * day, ...more };
}

const peaceful: Goal = { refused: 0.001 };
const strained: Goal = { refused: 0.01 };

/** A country without visits, one with many, and one to launch in. */
const unused = "UZ";
const busy = "FR";
const next = "TZ";

const ranges = (country: string, count: number): AttackNumbers => ({ kind: "ranges", country, ranges: count });
const anywhere = (country: string): AttackNumbers => ({ kind: "country", country });

const rush: Strain = { kind: "rush", country: busy, factor: 30, hours: 1 };
const newcomers: Strain = { kind: "launch", country: next, share: 0.1 };

/** Default: 24,000 messages, 2,000 per hour. Another half day is counted, in which honest traffic must recover. */
function attacked(
  name: string,
  about: string,
  goal: Goal | undefined,
  attack: Pick<Attack, "numbers"> & Partial<Attack>,
  more: Partial<Scenario> = {},
): Scenario {
  const whole: Attack = { messages: 24_000, perHour: 2_000, from: "country", ...attack };
  return story(name, about, { hours: Math.ceil(attackHours(whole)) + day / 2, attack: whole, ...(goal !== undefined && { goal }), ...more });
}

const strangers: Goal = { out: 100, refused: 0.01 };
const manyStrangers: Goal = { out: 250, refused: 0.01 };
const crowded: Goal = { out: 1_200, refused: 0.01 };

/** Eight days give an unknown conversion its past. */
const delivered = (conversion: Conversion): Partial<Scenario> => ({ deliveries: { conversion }, warmUpDays: 8 });
const reported = delivered("reported");
const late = delivered("late");
const unknown = delivered("unknown");

const calm: Goal = { refused: 0.005 };
const pumped: Goal = { out: 300 };
const pumpedBusy: Goal = { out: 2_400 };

/**
 * The scenarios that the defaults are tested against. Change one by spreading it: `{ ...scenarios.tvAd, visitsPerDay:
 * 800 }`.
 */
export const scenarios = {
  peace500: story("peace, 500 a day", "A week-old installation, low traffic.", { visitsPerDay: 500, hours: 14 * day, goal: peaceful }),
  peace5000: story("peace, 5,000 a day", "A week-old installation.", { hours: 4 * day, goal: peaceful }),
  peace50000: story("peace, 50,000 a day", "A week-old installation, high traffic.", { visitsPerDay: 50_000, goal: peaceful }),
  coldStart500: story("cold start, 500 a day", "The first four days of an installation.", { visitsPerDay: 500, warmUpDays: 0, hours: 4 * day, goal: peaceful }),
  coldStart5000: story("cold start, 5,000 a day", "The first two days of an installation.", { warmUpDays: 0, goal: peaceful }),
  coldStart50000: story("cold start, 50,000 a day", "A service moves here with all its people, from one moment to the next.", {
    visitsPerDay: 50_000,
    warmUpDays: 0,
    hours: day,
    goal: strained,
  }),

  tvAd: story("TV ad", "Thirty times the usual visits of one country, within an hour.", { strain: rush, hours: day, goal: strained }),
  launch: story("launch", "A new country brings 10 % more visits.", { strain: newcomers, goal: strained }),
  lowConversion: story("low conversion", "A quarter fewer visits end verified: 45 to 64 %.", {
    strain: { kind: "low conversion", factor: 0.75 },
    goal: strained,
  }),
  carrierNat: story("carrier NAT", "All mobile people of the busiest country come from one address, 700 a day.", {
    visitsPerDay: 10_000,
    strain: { kind: "carrier NAT", country: "IN", addresses: 1 },
    goal: strained,
  }),
  schools: story("schools and offices", "A third of the visits come by the class, from one address within ten minutes.", {
    strain: { kind: "classes", share: 0.33 },
    goal: strained,
  }),
  outage: story("carrier outage", "For two hours messages are taken and never arrive.", { strain: { kind: "outage", hours: 2 }, hours: day, goal: strained }),

  sequence: attacked("sequence", "Numbers of an unused country, one after the other.", strangers, { numbers: { kind: "sequence", country: unused } }),
  range: attacked("one range", "One range of 10,000 numbers of an unused country.", strangers, { numbers: ranges(unused, 1) }),
  ranges: attacked("200 ranges", "200 ranges of an unused country.", strangers, { numbers: ranges(unused, 200) }),
  operator: attacked("one operator", "Any number of one operator of an unused country.", strangers, { numbers: { kind: "operator", country: unused } }),
  country: attacked("whole country", "Any number of an unused country.", strangers, { numbers: anywhere(unused) }),
  fast: attacked("fast", "20,000 an hour into 200 ranges of an unused country.", strangers, { numbers: ranges(unused, 200), perHour: 20_000 }),
  drip: attacked("drip", "200 an hour into 200 ranges of an unused country, for five days.", strangers, { numbers: ranges(unused, 200), perHour: 200 }),
  burst: attacked("burst", "500 requests at a time into 200 ranges of an unused country.", strangers, { numbers: ranges(unused, 200), perHour: "burst" }),
  retries: attacked("by retries", "Each number of 200 ranges of an unused country four times again.", strangers, { numbers: ranges(unused, 200), retries: 4 }),
  typed10: attacked("10 % typed", "The attacker types every tenth code, of any number of an unused country.", strangers, {
    numbers: anywhere(unused),
    typed: 0.1,
  }),
  typed30: attacked("30 % typed", "The attacker types three of ten codes, of ten ranges of an unused country.", manyStrangers, {
    numbers: ranges(unused, 10),
    typed: 0.3,
  }),
  typed60: attacked("60 % typed", "The attacker types six of ten codes, of ten ranges of an unused country.", manyStrangers, {
    numbers: ranges(unused, 10),
    typed: 0.6,
  }),
  flagAbused: attacked("flag abused", "200 ranges of an unused country, each said to be a returning user.", strangers, {
    numbers: ranges(unused, 200),
    claimsReturning: true,
  }),
  fortyCountries: attacked("forty countries", "Any number of forty unused countries at once.", manyStrangers, {
    numbers: { kind: "countries", countries: 40 },
  }),
  hopping: attacked("hopping", "Forty unused countries one after the other, 200 messages each.", manyStrangers, {
    numbers: { kind: "countries", countries: 40, stay: 200 },
  }),

  sequenceBusy: attacked("sequence, busy country", "Numbers of a busy country, one after the other.", crowded, {
    numbers: { kind: "sequence", country: busy },
  }),
  rangeBusy: attacked("one range, busy country", "One range of 10,000 numbers.", crowded, { numbers: ranges(busy, 1) }),
  rangesBusy: attacked("200 ranges, busy country", "200 ranges, from the country's own networks.", crowded, { numbers: ranges(busy, 200) }),
  burstBusy: attacked("burst, busy country", "500 requests at a time into 200 ranges.", crowded, { numbers: ranges(busy, 200), perHour: "burst" }),
  retriesBusy: attacked("by retries, busy country", "Each number of 200 ranges four times again.", crowded, { numbers: ranges(busy, 200), retries: 4 }),
  typedBusy: attacked("10 % typed, busy country", "The attacker types every tenth code, of 200 ranges.", strained, { numbers: ranges(busy, 200), typed: 0.1 }),
  operatorBusy: attacked("one operator, busy country", "Any number of one operator, from data centres.", crowded, {
    numbers: { kind: "operator", country: busy },
    from: "hosting",
  }),
  worldProxies: attacked("world proxies", "Any number of a busy country, each request from another address of the world.", crowded, {
    numbers: anywhere(busy),
    from: "world",
  }),

  hostileTenant: attacked("hostile tenant", "Another customer of the installation attacks a busy country.", peaceful, {
    numbers: anywhere(busy),
    otherCustomer: true,
  }),
  bombing: attacked("bombing", "One number of a busy country, again and again.", strangers, { numbers: { kind: "one", country: busy }, from: "world" }),
  lockOut: attacked(
    "lock-out",
    "The attacker shares the few addresses of a country's mobile operators with their people.",
    strained,
    { numbers: ranges(unused, 200), from: { mobile: busy } },
    { strain: { kind: "carrier NAT", country: busy, addresses: 4 } },
  ),

  /** Known to be undetectable with only the facts of create; the spend ceiling is the last line of defence. */
  countryBusy: attacked("whole country from within", "Any number of a busy country, from its own networks: known to get through to a part.", undefined, {
    numbers: anywhere(busy),
  }),
  typedManyRanges: attacked(
    "60 % typed, 200 ranges",
    "The attacker holds numbers in 200 ranges and types six of ten codes: known to get through to a part.",
    undefined,
    { numbers: ranges(unused, 200), typed: 0.6 },
  ),

  reportedPeace: story("deliveries, confirmed", "Codes of another server, which confirms them at once.", { ...reported, hours: 4 * day, goal: calm }),
  reportedOutage: story("confirmations stop", "Codes of another server, whose confirmations stop for two days.", {
    ...reported,
    strain: { kind: "no confirmations", hours: 2 * day },
    hours: 3 * day,
    goal: calm,
  }),

  latePeace500: story("late, 500 a day", "Late confirmations, low traffic.", { ...late, visitsPerDay: 500, hours: 14 * day, goal: calm }),
  latePeace5000: story("late, 5,000 a day", "Confirmations come 1 to 20 hours after the code was entered.", { ...late, hours: 4 * day, goal: calm }),
  latePeace50000: story("late, 50,000 a day", "Late confirmations, high traffic.", { ...late, visitsPerDay: 50_000, goal: calm }),
  lateColdStart: story("late, cold start", "The first four days, with late confirmations.", { ...late, warmUpDays: 0, hours: 4 * day, goal: calm }),
  lateTvAd: story("late, TV ad", "Thirty times the usual visits of one country, with late confirmations.", {
    ...late,
    strain: rush,
    hours: day,
    goal: strained,
  }),
  lateLaunch: story("late, launch", "A new country brings 10 % more visits, with late confirmations.", { ...late, strain: newcomers, hours: 4 * day }),
  lateUnused: attacked("late, unused country", "Any number of an unused country, with late confirmations.", pumped, { numbers: anywhere(unused) }, late),
  lateTyped: attacked(
    "late, 60 % typed",
    "The attacker types six of ten codes, of ten ranges of an unused country, with late confirmations.",
    pumped,
    { numbers: ranges(unused, 10), typed: 0.6 },
    late,
  ),
  lateBusy: attacked("late, busy country", "200 ranges of a busy country, with late confirmations.", pumpedBusy, { numbers: ranges(busy, 200) }, late),

  unknownPeace500: story("unknown, 500 a day", "No confirmation ever comes, low traffic.", { ...unknown, visitsPerDay: 500, hours: 14 * day, goal: calm }),
  unknownPeace5000: story("unknown, 5,000 a day", "No confirmation ever comes.", { ...unknown, hours: 4 * day, goal: calm }),
  unknownPeace50000: story("unknown, 50,000 a day", "No confirmation ever comes, high traffic.", { ...unknown, visitsPerDay: 50_000, goal: calm }),
  unknownStrangers: story("unknown, none known", "No confirmation ever comes, and the other server does not state who is known.", {
    ...unknown,
    deliveries: { conversion: "unknown", vouches: false },
    hours: 4 * day,
    goal: calm,
  }),
  unknownColdStart: story("unknown, cold start", "The first eight days of an installation without confirmations.", {
    ...unknown,
    warmUpDays: 0,
    hours: 8 * day,
    goal: calm,
  }),
  unknownTvAd: story("unknown, TV ad", "Thirty times the usual visits of one country, without confirmations.", {
    ...unknown,
    strain: rush,
    hours: day,
    goal: strained,
  }),
  unknownLaunch: story("unknown, launch", "A new country brings 10 % more visits, without confirmations.", { ...unknown, strain: newcomers, hours: 7 * day }),
  unknownNat: story("unknown, carrier NAT", "All mobile people of the busiest country have always come from one address, 350 a day.", {
    ...unknown,
    strain: { kind: "carrier NAT", country: "IN", addresses: 1, always: true },
    goal: strained,
  }),
  unknownNewNat: story("unknown, new carrier NAT", "All mobile people of the busiest country come from one address, 350 a day, from one moment to the next.", {
    ...unknown,
    strain: { kind: "carrier NAT", country: "IN", addresses: 1 },
  }),
  unknownUnused: attacked("unknown, unused country", "Any number of an unused country, without confirmations.", pumped, { numbers: anywhere(unused) }, unknown),
  unknownRanges: attacked("unknown, 200 ranges", "200 ranges of an unused country, without confirmations.", pumped, { numbers: ranges(unused, 200) }, unknown),
  unknownCountries: attacked(
    "unknown, forty countries",
    "Any number of forty unused countries at once, without confirmations.",
    pumped,
    { numbers: { kind: "countries", countries: 40 } },
    unknown,
  ),
  unknownBusy: attacked(
    "unknown, busy country",
    "Any number of a busy country, from its own networks, without confirmations.",
    pumpedBusy,
    { numbers: anywhere(busy) },
    unknown,
  ),
  unknownRangesBusy: attacked(
    "unknown, 200 ranges, busy",
    "200 ranges of a busy country, without confirmations.",
    pumpedBusy,
    { numbers: ranges(busy, 200) },
    unknown,
  ),
  unknownRamp: attacked(
    "unknown, slow ramp",
    "Forty unused countries, all that the rules allow, for ten days: known to get through.",
    undefined,
    { numbers: { kind: "countries", countries: 40 }, messages: 24_000, perHour: 100 },
    unknown,
  ),
} as const satisfies Readonly<Record<string, Scenario>>;

/** The name of one of `scenarios`. */
export type ScenarioName = keyof typeof scenarios;
