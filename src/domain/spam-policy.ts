import type { RuleMode } from "./decision.js";

/** A rule, on or off. */
export interface Switched {
  readonly mode: RuleMode;
}

/** "A cell refuses a message when open ≥ seed + k × verified" (docs/contract.md#open). */
export interface Credit extends Switched {
  /** Messages that may be open where nobody has verified yet. */
  readonly seed: number;
  /** Messages more that may be open for each verification: `k`. */
  readonly perVerified: number;
}

/** The spam rules (docs/contract.md#spam-rules), with their numbers. Counts are over 24 hours unless said otherwise. */
export interface SpamPolicy {
  /** Cells of the number without its last 4, 5 and 6 digits. The widest does not refuse where `provenAt` or more verified. */
  readonly range: Switched & {
    readonly seeds: readonly [last4: number, last5: number, last6: number];
    readonly perVerified: number;
    readonly provenAt: number;
  };
  /** At most `messages` to one range of 10,000 numbers however many are verified, or `share` of what its million verified, if that is more. */
  readonly crowd: Switched & { readonly messages: number; readonly share: number };
  /** Does not refuse where `provenAt` or more verified: there it only raises the alarm. */
  readonly country: Credit & { readonly provenAt: number };
  /** One pot for all countries with fewer than `provenAt` verified in 7 days. */
  readonly newCountries: Credit & { readonly provenAt: number };
  /** The ip, IPv6 by /64. */
  readonly address: Credit;
  /** While a country's alarm is on (open + refused within the hour > `base` + `factor` × the week's usual open share × verified): refuses those from a /16 or IPv6 /32 from which nobody verified in that country within 7 days. */
  readonly strangeNetwork: Switched & { readonly base: number; readonly factor: number };
  /** `device_type` against the shape of `device_id`; the ip's country against the number's, where there is a resolver. */
  readonly signals: Switched;
  /** A number that this customer's users verified within 90 days passes all of these but `crowd` while it has fewer than `open` open. 0: never. */
  readonly trust: { readonly open: number };
}

/** The defaults of the spam rules (docs/contract.md#spam-rules). */
export const defaultSpamPolicy: SpamPolicy = {
  range: { mode: "enforce", seeds: [5, 12, 30], perVerified: 2, provenAt: 5 },
  crowd: { mode: "enforce", messages: 25, share: 0.1 },
  country: { mode: "enforce", seed: 30, perVerified: 2, provenAt: 100 },
  newCountries: { mode: "enforce", seed: 30, perVerified: 2, provenAt: 3 },
  address: { mode: "enforce", seed: 8, perVerified: 2 },
  strangeNetwork: { mode: "enforce", base: 20, factor: 2 },
  signals: { mode: "shadow" },
  trust: { open: 3 },
};
