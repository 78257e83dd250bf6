import type { RuleMode } from "./decision.js";

/** A rule with its mode. */
export interface SpamRuleSettings {
  readonly mode: RuleMode;
}

/** "A cell blocks a message when open ≥ seed + k × verified" (docs/contract.md#open). */
export interface CreditRule extends SpamRuleSettings {
  /** Messages that may be open before anyone has verified. */
  readonly seed: number;
  /** Additional messages that may be open per verification: `k`. */
  readonly perVerified: number;
}

/** The spam rules (docs/contract.md#spam-rules) and their values. Counts cover 24 hours unless stated otherwise. */
export interface SpamPolicy {
  /** Cells of the number without its last 4, 5 and 6 digits. The widest stops blocking once `provenAt` have verified. */
  readonly range: SpamRuleSettings & {
    readonly seeds: readonly [last4: number, last5: number, last6: number];
    readonly perVerified: number;
    readonly provenAt: number;
  };
  /**
   * Limits messages to one range of 10,000 numbers, regardless of verifications: to `messages`, or to `share` of the
   * verifications in its million if that is more.
   */
  readonly crowd: SpamRuleSettings & { readonly messages: number; readonly share: number };
  /** Does not block once `provenAt` or more have verified: then it only raises the alarm. */
  readonly country: CreditRule & { readonly provenAt: number };
  /** One pot for all countries with fewer than `provenAt` verified in 7 days. */
  readonly newCountries: CreditRule & { readonly provenAt: number };
  /** By ip; IPv6 by /64. */
  readonly address: CreditRule;
  /** Calls to a country, in addition to all other rules: they cost more than messages, and attackers earn more by them. */
  readonly calls: CreditRule;
  /**
   * While a country's alarm is on (open + blocked within the hour > `base` + `factor` × the week's usual open share ×
   * verified): requests from an IPv4 /16 or IPv6 /32 without a verification in that country within 7 days share a cell,
   * which blocks when open ≥ half of `base` + 2 × verified.
   */
  readonly strangeNetwork: SpamRuleSettings & { readonly base: number; readonly factor: number };
  /** Compares `device_type` with the form of `device_id`, and the country of the ip, if known, with the number's. */
  readonly signals: SpamRuleSettings;
  /**
   * A number that this customer's users verified within 90 days is exempt from all of these but `crowd` while it has
   * fewer than `open` open messages; from `crowd` too if it verified more than a day ago, while it had fewer than two
   * messages within 24 hours. 0: never exempt.
   */
  readonly trust: { readonly open: number };
}

/**
 * Without confirmations, a cell of deliveries grows with its own past instead: it blocks at seed + `factor` × the
 * messages of a usual day (docs/contract.md#growth-rules).
 */
export const growth = {
  factor: 3,
  /** The same for all new countries together. */
  newCountriesFactor: 2,
  /** Days of the past. */
  days: 7,
  /** The built-in cells but the crowd only observe until messages were sent on so many of those days. */
  enoughDays: 5,
  /** The same with late confirmations, whose credits take their places a day later. */
  enoughLateDays: 2,
  /** A country is new with fewer messages in those days. */
  newCountry: 21,
  /** The seed of an address is so many times the usual one. */
  addressSeed: 5,
} as const;

/** The defaults of the spam rules (docs/contract.md#spam-rules). */
export const defaultSpamPolicy: SpamPolicy = {
  range: { mode: "enforce", seeds: [5, 12, 30], perVerified: 2, provenAt: 5 },
  crowd: { mode: "enforce", messages: 25, share: 0.1 },
  country: { mode: "enforce", seed: 30, perVerified: 2, provenAt: 100 },
  newCountries: { mode: "enforce", seed: 30, perVerified: 2, provenAt: 3 },
  address: { mode: "enforce", seed: 8, perVerified: 2 },
  calls: { mode: "enforce", seed: 10, perVerified: 2 },
  strangeNetwork: { mode: "enforce", base: 20, factor: 2 },
  signals: { mode: "shadow" },
  trust: { open: 3 },
};
