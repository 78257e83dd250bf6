import type { AuthenticationResponse } from "../../src/contract/authentication.js";
import type { CheckResponse } from "../../src/contract/check.js";
import type { LookupResponse } from "../../src/contract/lookup.js";
import type { RetryResponse } from "../../src/contract/retry.js";

/** What the service tells beside the body, in its `x-phoneproof-*` headers. A fact that it did not tell, or a proxy took away, is absent. */
export interface Facts {
  /** The number of the authentication in canonical E.164 form: what to bind a proven user to. */
  readonly phone_number?: string;
  /** Time at which the next retry becomes available, `YYYY-MM-DDTHH:MM:SS.sssZ`. */
  readonly next_retry_at?: string;
  /** Number of retries still available. */
  readonly remaining_retry?: number;
  /** Wrong codes that may still be typed. */
  readonly remaining_checks?: number;
  /** Whole seconds until a limit that refused would let through; only where one did. */
  readonly retry_after?: number;
  /** Present and true where every route refused the message. */
  readonly carrier_refused?: true;
}

/** One type for each status: `switch` on `status`, and the compiler tells which one was forgotten. */
type ByStatus<R extends { readonly status: string }> = {
  [S in R["status"]]: { readonly [F in keyof R]: F extends "status" ? S : R[F] } & Omit<Facts, keyof R>;
}[R["status"]];

export type CreateAnswer = ByStatus<AuthenticationResponse>;
export type RetryAnswer = ByStatus<RetryResponse>;
/** **Only `valid` proves anything**; `already_validated` must never be taken for success. */
export type CheckAnswer = ByStatus<CheckResponse>;
export type LookupAnswer = LookupResponse;

const facts = ["phone_number", "next_retry_at", "remaining_retry", "remaining_checks", "retry_after", "carrier_refused"];

/** A fact and its value, by the first letter of the fact. */
const sound = /^(p\w+:\+\d{1,15}|n\w+:[\d:T.-]+Z|r\w+:\d{1,9}|c\w+:true)$/;

/** The facts among the headers of an answer. One that is not of its form was not told. */
export function factsOf(headers: { get(name: string): string | null }): Facts {
  const told: Record<string, string | number | true> = {};
  for (const fact of facts) {
    const text = headers.get(`x-phoneproof-${fact.replaceAll("_", "-")}`) as string;
    if (sound.test(`${fact}:${text}`)) told[fact] = fact > "r" ? +text : text === "true" || text;
  }
  return told;
}
