import type { AuthenticationResponse } from "../../src/contract/authentication.js";
import type { Channel } from "../../src/contract/channel.js";
import type { CheckResponse } from "../../src/contract/check.js";
import type { LookupResponse } from "../../src/contract/lookup.js";
import type { RetryResponse } from "../../src/contract/retry.js";

/**
 * What the service reports in its `x-phoneproof-*` headers. A fact is absent if the service did not send it or a proxy
 * removed it.
 */
export interface Facts {
  /** The authentication's number in canonical E.164 form: associate the verified user with this one. */
  readonly phone_number?: string;
  /** Time at which the next retry becomes available, `YYYY-MM-DDTHH:MM:SS.sssZ`. */
  readonly next_retry_at?: string;
  /** Number of retries still available. */
  readonly remaining_retry?: number;
  /** Wrong codes that may still be entered. */
  readonly remaining_checks?: number;
  /** Whole seconds until the limit that rejected the request allows another; absent if no limit did. */
  readonly retry_after?: number;
  /** Present and true if every route rejected the message. */
  readonly carrier_refused?: true;
  /** Of a create or retry: the channel of the newest message; absent if that is an SMS. */
  readonly channel?: Channel;
}

/** One type for each status: with a `switch` on `status`, the compiler reports a missing one. */
type ByStatus<R extends { readonly status: string }> = {
  [S in R["status"]]: { readonly [F in keyof R]: F extends "status" ? S : R[F] } & Omit<Facts, keyof R>;
}[R["status"]];

export type CreateResult = ByStatus<AuthenticationResponse>;
export type RetryResult = ByStatus<RetryResponse>;
/** **Only `valid` proves anything**; never treat `already_validated` as success. */
export type CheckResult = ByStatus<CheckResponse>;
export type LookupResult = LookupResponse;

const facts = ["phone_number", "next_retry_at", "remaining_retry", "remaining_checks", "retry_after", "carrier_refused", "channel"];

/** A fact and its value, by the first letters of the fact. */
const sound = /^(p\w+:\+\d{1,15}|n\w+:[\d:T.-]+Z|r\w+:\d{1,9}|ca\w+:true|ch\w+:[a-z]+)$/;

/** The facts in the headers of a response. Invalid ones are omitted. */
export function factsOf(headers: { get(name: string): string | null }): Facts {
  const found: Record<string, string | number | true> = {};
  for (const fact of facts) {
    const text = headers.get(`x-phoneproof-${fact.replaceAll("_", "-")}`);
    if (text && sound.test(`${fact}:${text}`)) found[fact] = fact > "r" ? +text : fact < "ch" || text;
  }
  return found;
}
