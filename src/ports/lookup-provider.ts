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
  readonly line_type?: LineType;
  /** Mobile country code, three digits. */
  readonly mcc?: string;
  /** Mobile network code, two or three digits. */
  readonly mnc?: string;
  readonly number_ported?: boolean;
}

/**
 * A source of carrier and line data. One that throws, hangs past `lookupTimeout` or answers nonsense is reported and left out of the answer: lookup then answers from the numbering plan.
 */
export interface LookupProvider {
  lookup(request: LookupRequest, context: { readonly signal: AbortSignal }): Promise<LookupFacts | undefined>;
}
