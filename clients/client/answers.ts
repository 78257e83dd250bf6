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
  /** Present and true if the message is known not to have been sent: no route took it. */
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

export const number = /^\d{1,9}$/;

/** The form of each fact. */
const forms = {
  phone_number: /^\+\d{1,15}$/,
  next_retry_at: /^[\d:T.-]+Z$/,
  remaining_retry: number,
  remaining_checks: number,
  retry_after: number,
  carrier_refused: /^true$/,
  channel: /^[a-z]+$/,
};

/** The facts in the headers of a response. Invalid ones are omitted. */
export function factsOf(headers: { get(name: string): string | null }): Facts {
  const found: Record<string, string | number | true> = {};
  for (const [fact, form] of Object.entries(forms)) {
    const text = headers.get(`x-phoneproof-${fact.replaceAll("_", "-")}`) ?? "";
    if (form.test(text)) found[fact] = form === number ? Number(text) : text === "true" || text;
  }
  return found;
}
