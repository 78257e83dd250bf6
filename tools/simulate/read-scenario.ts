import * as z from "zod";
import { conversions } from "../../src/contract/conversion.js";
import { flag, number, object, plain, text, wholeIn } from "../../src/options/fields.js";
import { optionErrors, plainWords } from "../../src/options/option-errors.js";
import { countryRows } from "./countries.js";
import type { Scenario } from "./scenario.js";

/** Throws a `TypeError` that names each field that cannot be played, and the fix. */
export function requireScenario(scenario: Scenario): void {
  check("the scenario", scenarioSchema(), scenario);
}

/** Throws a `TypeError` unless options are an object. `createVerifier` checks what they contain. */
export function requireObject(what: string, options: unknown): void {
  check(what, plain(z.looseObject({}, "must be an object; {} for the defaults")), options);
}

/** Throws a `TypeError` unless the seed is an integer. */
export function requireSeed(seed: number): void {
  check("seed", z.int("must be an integer"), seed);
}

function check(what: string, schema: z.ZodType, value: unknown): void {
  const { error } = schema.safeParse(value, { error: plainWords });
  if (error !== undefined) throw new TypeError(`simulate: ${optionErrors(error, schema, what).join("; ")}`);
}

function scenarioSchema() {
  const upTo = (most: number, least = 0) => number(least, most, `must be ${least} to ${most}`);
  const share = upTo(1);
  const hours = upTo(2_400);
  const country = z.enum(
    countryRows.map(([code]) => code),
    'must be a country of the simulated world, for example "FR" or "UZ"',
  );
  const unused = countryRows.filter(([, , , visits]) => visits === 0).length;
  const strain = ofKinds({
    rush: { country, factor: upTo(1_000), hours },
    launch: { country, share: upTo(1_000) },
    "low conversion": { factor: upTo(1_000) },
    "carrier NAT": { country, addresses: wholeIn(1, 10_000), always: flag().optional() },
    classes: { share },
    outage: { hours },
    "no confirmations": { hours },
  });
  const numbers = ofKinds({
    sequence: { country },
    ranges: { country, ranges: wholeIn(1, 100_000) },
    operator: { country },
    country: { country },
    countries: { countries: wholeIn(1, unused), stay: wholeIn(1, 1_000_000).optional() },
    one: { country },
  });
  const attack = object({
    numbers,
    messages: upTo(10_000_000),
    perHour: z.union([z.literal("burst"), upTo(10_000_000, 0.01)], 'must be 0.01 to 10000000, or "burst"'),
    from: z.union([z.enum(["country", "world", "hosting"]), object({ mobile: country })], 'must be "country", "world", "hosting" or { mobile }'),
    typed: share.optional(),
    retries: wholeIn(0, 1_000).optional(),
    claimsReturning: flag().optional(),
    otherCustomer: flag().optional(),
  });
  return object({
    name: text(),
    about: text(),
    visitsPerDay: upTo(1_000_000),
    warmUpDays: upTo(100),
    hours,
    deliveries: object({ conversion: z.enum(conversions, 'must be "reported", "late" or "unknown"'), vouches: flag().optional() }).optional(),
    strain: strain.optional(),
    attack: attack.optional(),
    // Above 1 in the quick form of few visits.
    goal: object({ refused: upTo(1_000_000).optional(), out: upTo(10_000_000).optional() }).optional(),
  } satisfies Record<keyof Scenario, z.ZodType>);
}

/** Objects that differ by their `kind`. */
function ofKinds(kinds: Readonly<Record<string, z.core.$ZodLooseShape>>) {
  const [first, ...others] = Object.entries(kinds).map(([kind, shape]) => z.strictObject({ kind: z.literal(kind), ...shape }));
  return plain(z.discriminatedUnion("kind", [first as NonNullable<typeof first>, ...others], `must be one of: ${Object.keys(kinds).join(", ")}`));
}
