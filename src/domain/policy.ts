import { defined } from "./defined.js";
import { defaultSpamPolicy, type SpamPolicy } from "./spam-policy.js";

/** Allows at most `limit` in every window of `window` seconds. */
export interface Cap {
  /** An integer of 1 or more. */
  readonly limit: number;
  /** Seconds, up to a year. */
  readonly window: number;
}

/** A cap that grows with verified users (docs/contract.md#growing-cap): an attack would fill a fixed one for all. */
export interface GrowingCap extends Cap {
  /** How much the limit grows for each user verified within the window. A whole number. Default 0. */
  readonly perVerified?: number | undefined;
}

/** Limits the cost of the messages of every hour or day to `amount`, in the unit of the routes' prices. */
export interface SpendCeiling {
  /** More than 0, up to 1,000,000,000; counted in millionths. */
  readonly amount: number;
  readonly per: "hour" | "day";
}

/** The caps (docs/contract.md#caps), all per customer. An empty list disables a rule, but `perNumber` needs a cap. */
export interface Limits {
  /** Sends to one number, retries included. */
  readonly perNumber: readonly Cap[];
  /** Creates with one device_id. */
  readonly perDevice: readonly Cap[];
  /** Distinct numbers with one device_id. */
  readonly numbersPerDevice: readonly Cap[];
  /**
   * Creates from one ip; IPv6 is counted by /64. Default: no caps, because offices, schools and carriers share
   * addresses. The spam rule `address` tells these apart from attackers by their verifications.
   */
  readonly perIp: readonly Cap[];
  /** Distinct numbers from one ip. Default: no caps. */
  readonly numbersPerIp: readonly Cap[];
  /** All sends of the customer. */
  readonly perCustomer: readonly GrowingCap[];
  /** The customer's lookups that may call the provider, also before a send. Beyond: only the numbering plan. */
  readonly lookups: readonly Cap[];
  /**
   * Cost of the customer's messages (by the route's price) and lookups (by the provider's price). Requires a sender
   * that reports prices, such as `router`. Default: no ceiling.
   */
  readonly spend: readonly SpendCeiling[];
  /** Calls to one number. A call also counts as a message everywhere else. Default: 3 a day. */
  readonly callsPerNumber: readonly Cap[];
  /** Cost of the customer's calls, which `spend` also counts. Default: no ceiling. */
  readonly callSpend: readonly SpendCeiling[];
}

/** The numbers behind the rules of docs/contract.md. All durations are in seconds. */
export interface Policy {
  /** Digits of a code, 4 to 10. */
  readonly codeLength: number;
  /** Lifetime from creation; a retry does not extend it. Up to a day, unless `longLifetime` is set. */
  readonly lifetime: number;
  /** Allows a lifetime of more than a day. Otherwise such a value is rejected: it is usually in milliseconds. */
  readonly longLifetime: boolean;
  /** How long a record is retained after its expiry, so that results stay exact. */
  readonly tombstone: number;
  /** Wrong codes per authentication. */
  readonly checks: number;
  /** The cool-down after each send. The length of the list is the number of retries. */
  readonly retryCooldowns: readonly number[];
  /** The cool-down before each call that a retry requests, after a message of any kind. */
  readonly callCooldown: number;
  /** Whether the previous code is accepted too, for messages that arrive late. */
  readonly acceptPreviousCode: boolean;
  /** Upper bound on the odds of guessing a code of one number within a day. */
  readonly maxGuessOdds: number;
  readonly limits: Limits;
  /** The anti-spam rules. */
  readonly spam: SpamPolicy;
}

type Change<T> = { readonly [Key in keyof T]?: T[Key] | undefined };

/** Changes to the default policy by a customer or the verifier's options. `undefined` leaves a value unchanged. */
export type PolicyOverride = Change<Omit<Policy, "limits" | "spam">> & {
  readonly limits?: Change<Limits> | undefined;
  readonly spam?: SpamOverride | undefined;
};

/** Changes to single values of single spam rules. */
export type SpamOverride = { readonly [Rule in keyof SpamPolicy]?: Change<SpamPolicy[Rule]> | undefined };

/** Converts seconds to whole milliseconds, the unit of the store's interface. */
export function milliseconds(seconds: number): number {
  return Math.round(seconds * 1000);
}

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

/** Every default of docs/contract.md except those of the spam rules. */
export const defaultPolicy: Policy = {
  codeLength: 6,
  lifetime: 10 * minute,
  longLifetime: false,
  tombstone: day,
  checks: 5,
  retryCooldowns: [30, 60, 90, 120],
  callCooldown: 60,
  acceptPreviousCode: true,
  maxGuessOdds: 1e-4,
  limits: {
    perNumber: [
      { limit: 5, window: 10 * minute },
      { limit: 10, window: day },
    ],
    perDevice: [{ limit: 5, window: hour }],
    numbersPerDevice: [{ limit: 3, window: day }],
    perIp: [],
    numbersPerIp: [],
    perCustomer: [{ limit: 10_000, window: day, perVerified: 3 }],
    lookups: [{ limit: 1_000, window: hour }],
    spend: [],
    callsPerNumber: [{ limit: 3, window: day }],
    callSpend: [],
  },
  spam: defaultSpamPolicy,
};

export function withOverride(policy: Policy, override: PolicyOverride): Policy {
  const spam = Object.fromEntries(
    Object.entries(policy.spam).map(([rule, numbers]) => [rule, changed(numbers, override.spam?.[rule as keyof SpamPolicy] ?? {})]),
  );
  return changed(policy, { ...override, limits: changed(policy.limits, override.limits ?? {}), spam: spam as unknown as SpamPolicy });
}

function changed<T extends object>(value: T, change: Change<T>): T {
  return { ...value, ...defined(change) };
}

/** Returns what is wrong with a lifetime: a value above a day is usually in milliseconds. */
export function lifetimeError({ lifetime, longLifetime }: Policy): string | undefined {
  if (lifetime <= day || longLifetime) return undefined;
  return `lifetime is in seconds: ${lifetime} of them are ${(lifetime / day).toFixed(1)} days; say ${lifetime / 1000} if you meant milliseconds, or also set longLifetime: true if codes are to live for more than a day`;
}

/** What is wrong with a cool-down as long as the lifetime, which leaves no time to retry: it may be milliseconds. */
export function cooldownError({ retryCooldowns, lifetime }: Policy): string | undefined {
  const at = retryCooldowns.findIndex((seconds) => seconds >= lifetime && seconds % 1000 === 0 && seconds / 1000 < lifetime);
  const seconds = retryCooldowns[at];
  if (seconds === undefined) return undefined;
  return `retryCooldowns.${at} is in seconds: after ${seconds} of them no retry is possible, since codes end after ${lifetime} (lifetime); say ${seconds / 1000} if you meant milliseconds`;
}

/** The most sends that a number can get in 24 hours: of its tightest cap, as often as its window fits into a day. */
export function sendsPerDay(policy: Policy): number {
  return Math.min(...policy.limits.perNumber.map((cap) => cap.limit * Math.max(1, Math.ceil(day / cap.window))));
}

/**
 * "sends per number per day × checks × 10^-length must stay ≤ `maxGuessOdds`" (docs/contract.md#guess-budget). Returns
 * `undefined`, or the calculation and values that would pass.
 */
export function guessBudgetError(policy: Policy): string | undefined {
  const sends = sendsPerDay(policy);
  const odds = (sends * policy.checks) / 10 ** policy.codeLength;
  // Products of small integers and powers of ten: the tolerance only absorbs the rounding of the division.
  if (odds <= policy.maxGuessOdds * (1 + 1e-9)) return undefined;
  const guesses = mostGuesses(policy, policy.codeLength);
  const length = Math.ceil(Math.log10((sends * policy.checks) / policy.maxGuessOdds) - 1e-9);
  const mends = [
    length <= 10 ? `codeLength ${length}` : undefined,
    guesses >= sends ? `checks ${Math.floor(guesses / sends)}` : undefined,
    guesses >= policy.checks ? `limits.perNumber with at most ${Math.floor(guesses / policy.checks)} sends a day` : undefined,
  ].filter((fix) => fix !== undefined);
  return (
    `the guess budget is broken: ${sends} sends per number per day × ${policy.checks} checks × 10^-${policy.codeLength} = ${odds.toExponential(1)}, ` +
    `more than maxGuessOdds ${policy.maxGuessOdds.toExponential(1)}; ${mends.length > 0 ? `${mends.join(", or ")} would pass` : "lower all three"}`
  );
}

/** The most guesses of codes of this length that `maxGuessOdds` allows within a day. */
function mostGuesses({ maxGuessOdds }: Policy, codeLength: number): number {
  return Math.floor(maxGuessOdds * 10 ** codeLength * (1 + 1e-9));
}

/**
 * Wrong codes for an authentication whose codes have this length: under an earlier policy it may have been shorter than
 * now, and allows fewer (docs/contract.md#guess-budget). At least one. Default: 6, as records leave it out.
 */
export function checksFor(policy: Policy, codeLength = defaultPolicy.codeLength): number {
  if (codeLength >= policy.codeLength) return policy.checks;
  return Math.min(policy.checks, Math.max(1, Math.floor(mostGuesses(policy, codeLength) / sendsPerDay(policy))));
}

/** An admitted customer and its effective policy. */
export interface Account {
  /** Lower case. */
  readonly customer: string;
  readonly policy: Policy;
  /** A delivery that is confirmed late: open messages alone raise no alarm (docs/contract.md#unknown-conversion). */
  readonly isLate?: boolean;
}
