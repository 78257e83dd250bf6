import type { LineType } from "../contract/lookup.js";

/** What is known of a number before a provider is asked. */
export interface LookupRequest {
  /** Canonical E.164 form. */
  readonly phone_number: string;
  /** ISO 3166-1 alpha-2, absent for non-geographic numbers. */
  readonly country_code?: string;
  /** From the numbering plan alone. */
  readonly line_type: LineType;
}

/** What a provider knows. Leave out what it does not know: the numbering plan's answer stands, and nothing is guessed. */
export interface LookupFacts {
  readonly carrier?: string;
  readonly country_code?: string;
  /** `Unknown` is as good as absent. */
  readonly line_type?: LineType;
  /** Mobile country code, three digits. */
  readonly mcc?: string;
  /** Mobile network code, two or three digits; means nothing without `mcc`. */
  readonly mnc?: string;
  readonly number_ported?: boolean;
}

/** What a provider answers. */
export interface LookupAnswer extends LookupFacts {
  /** What it cost after all, in the unit of `policy.limits.spend`. Default: the provider's `price`. */
  readonly price?: number;
  /** What sources that were asked too failed with, for the log. Default: none failed. */
  readonly failed?: readonly string[];
  /** A source that failed may know more: the answer is kept for ten minutes rather than for a day. Default: `false`. */
  readonly incomplete?: boolean;
}

export interface LookupContext {
  /** Aborted when `lookupTimeout` has passed; nobody waits for the answer then. */
  readonly signal: AbortSignal;
  /** Milliseconds until then, at the call. */
  readonly timeLeft: number;
}

/**
 * A source of carrier and line data. One that throws, hangs past `lookupTimeout` or answers nonsense is reported and left out of the answer: lookup then answers from the numbering plan.
 *
 * The verifier keeps what it answers in the store for 24 hours, that it knows nothing too, and asks it once for all who ask for a number at a time. A failure is kept for ten minutes, so that an outage is not paid for anew with each request.
 */
export interface LookupProvider {
  /** `undefined`: it knows nothing of the number. An error may say in its property `price` what it cost all the same; default: the provider's `price`. */
  lookup(request: LookupRequest, context: LookupContext): Promise<LookupAnswer | undefined>;
  /** What one lookup costs at most, in the unit of `policy.limits.spend`; 0 for one that costs nothing. Absent: not known, and with a spend ceiling a verifier is not built. */
  readonly price?: number | undefined;
}
