import type { LineType } from "../contract/lookup.js";

/** What is known of a number before the provider is asked. */
export interface LookupRequest {
  /** The number in canonical E.164 form. */
  readonly phone_number: string;
  /** ISO 3166-1 alpha-2, absent for non-geographic numbers. */
  readonly country_code?: string;
  /** From the numbering plan only. */
  readonly line_type: LineType;
}

/** What a provider knows. Omit what is unknown: the numbering plan's value is used instead, and nothing is guessed. */
export interface LookupFacts {
  readonly carrier?: string;
  /** ISO 3166-1 alpha-2; ignored if the number has another country. */
  readonly country_code?: string;
  /** `Unknown` is the same as absent. */
  readonly line_type?: LineType;
  /** Mobile country code, three digits. */
  readonly mcc?: string;
  /** Mobile network code, two or three digits; ignored without `mcc`. */
  readonly mnc?: string;
  readonly number_ported?: boolean;
}

/** The result of a provider's lookup. */
export interface LookupResult extends LookupFacts {
  /**
   * The actual cost, in the unit of `policy.limits.spend`; 0 takes the lookup's place in `policy.limits.lookups` back
   * too. Default: the provider's `price`.
   */
  readonly price?: number;
  /** Errors of further sources that were asked, for the log. Default: no errors. */
  readonly failed?: readonly string[];
  /** A failed source might know more, so the result is cached for ten minutes instead of a day. Default: `false`. */
  readonly incomplete?: boolean;
}

export interface LookupContext {
  /** Aborted when `lookupTimeout` has passed; a later result is ignored. */
  readonly signal: AbortSignal;
  /** Milliseconds left until `signal` is aborted, measured at the call. */
  readonly timeLeft: number;
}

/**
 * A source of carrier and line data. If it throws, exceeds `lookupTimeout` or returns invalid data, the error is logged
 * and lookup uses the numbering plan only.
 *
 * Results, including "unknown", are stored for 24 hours; concurrent lookups of one number share one request. Failures
 * are stored for ten minutes, so that an outage is not paid for with each request.
 */
export interface LookupProvider {
  /**
   * Returns `undefined` if the number is unknown. An error may carry the actual cost in its property `price`, as a
   * result may; default: the provider's `price`.
   */
  lookup(request: LookupRequest, context: LookupContext): Promise<LookupResult | undefined>;
  /**
   * The maximum cost of one lookup, in the unit of `policy.limits.spend`; 0 if lookups are free, at most
   * 1,000,000,000. Absent: unknown, and with a spend ceiling creating the verifier fails.
   */
  readonly price?: number | undefined;
}
