import * as z from "zod";
import type { PolicyOverride } from "../domain/policy.js";
import { above0, flag, number, object, partial, seconds, secondsOrNone, secondsUpTo, unlessMilliseconds, whole, wholeIn } from "./fields.js";
import { checkedBy } from "./option-errors.js";

const billion = "must be at most a thousand million";

/** What `policy` changes of the default policy. */
export function policySchema() {
  return partial({
    codeLength: wholeIn(4, 10),
    lifetime: seconds(),
    longLifetime: flag(),
    tombstone: seconds(),
    checks: whole(1, "must be 1 or more: the check budget cannot be switched off"),
    retryCooldowns: z.array(secondsOrNone(), "must be a list of seconds").max(20, "must have at most 20 entries"),
    callCooldown: secondsOrNone(),
    acceptPreviousCode: flag(),
    maxGuessOdds: above0(1, "must be at most 1"),
    limits: limitsSchema(),
    spam: spamSchema(),
  }) satisfies z.ZodType<PolicyOverride>;
}

function limitsSchema() {
  const capsUpTo = (most: number, why: string) => capsOf(object(cap(most, why), "must be { limit, window }"), "{ limit, window }");
  const caps = capsUpTo(1e9, billion);
  const capsOnNumbers = capsUpTo(1000, "must be at most 1000: distinct numbers are counted member by member");
  const ceiling = object({ amount: above0(1e9, billion), per: z.enum(["hour", "day"], 'must be "hour" or "day"') });
  const ceilings = z
    .array(ceiling, 'must be a list of { amount, per }, with per "hour" or "day"')
    .refine((list) => isOnce(list.map(({ per }) => per)), 'must hold at most one ceiling per "hour" and one per "day"');
  return partial({
    perNumber: caps.min(1, "must hold at least one cap: limits per number cannot be switched off"),
    perDevice: caps,
    numbersPerDevice: capsOnNumbers,
    perIp: caps,
    numbersPerIp: capsOnNumbers,
    perCustomer: capsOf(object({ ...cap(1e9, billion), perVerified: earned().optional() }), "{ limit, window, perVerified? }"),
    lookups: caps,
    spend: ceilings,
    callsPerNumber: caps,
    callSpend: ceilings,
  });
}

const isOnce = (values: readonly unknown[]) => new Set(values).size === values.length;

/** Two caps with the same window would be counted in one place, twice. */
const capsOf = <One extends z.ZodType<{ readonly window: number }>>(one: One, words: string) =>
  z
    .array(one, `must be a list of ${words} with the window in seconds`)
    .refine((list) => isOnce(list.map(({ window }) => window)), "must hold at most one cap for each window: keep the smaller limit");

const cap = (most: number, why: string) => ({
  limit: whole(1, "must be 1 or more; switch a rule off with an empty list").max(most, why),
  window: secondsUpTo(31_622_400, "31622400, which are a year").superRefine(checkedBy(windowError)),
});

/** Above a month, windows are whole days. */
function windowError(given: number): string | undefined {
  if (given <= 31 * 86_400 || given % 86_400 === 0) return undefined;
  return `is in seconds: ${given} of them are ${(given / 86_400).toFixed(1)} days; ${unlessMilliseconds(given)}, or whole days`;
}

const earned = () => whole(0).max(1e6, "must be at most a million");

function spamSchema() {
  const mode = z.enum(["enforce", "shadow", "off"], 'must be "enforce", "shadow" or "off"');
  const allowance = number(0, 1e9, "must be 0 or more", billion);
  const seeds = z.tuple([allowance, allowance, allowance], "must be three numbers: for ranges of 10,000, 100,000 and a million");
  const credit = { mode, seed: allowance, perVerified: earned() };
  return partial({
    range: partial({ mode, seeds, perVerified: earned(), provenAt: allowance }),
    crowd: partial({ mode, messages: allowance, share: number(0, 1, "must be 0 to 1") }),
    country: partial({ ...credit, provenAt: allowance }),
    newCountries: partial({ ...credit, provenAt: allowance }),
    address: partial(credit),
    calls: partial(credit),
    strangeNetwork: partial({ mode, base: allowance, factor: allowance }),
    signals: partial({ mode }),
    trust: partial({ open: allowance }),
  });
}
