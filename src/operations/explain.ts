import type { AuthenticationStatus } from "../contract/authentication.js";
import type { DeliveryStatus } from "../contract/callback.js";
import type { RetryRequest } from "../contract/retry.js";
import type { Account } from "../domain/account.js";
import type { Authentication, SendState } from "../domain/authentication.js";
import type { Decision } from "../domain/decision.js";
import { type Left, leftOf } from "../domain/retry.js";
import { timestamp } from "../domain/time.js";
import { unknownAuthentication } from "../errors.js";
import type { Context } from "./context.js";

/** A message that was, or may have been, handed to a carrier. */
export interface ExplainedSend {
  /** 1 for the first message tried. Rejected messages are not listed; see `decisions`. */
  readonly attempt: number;
  /** ISO 8601. */
  readonly at: string;
  /** `undecided`: in progress, or accepted with no receipt yet. */
  readonly state: SendState;
  readonly route?: string;
  /** The last status in the carrier's receipts. */
  readonly delivery?: DeliveryStatus;
}

/** Why an authentication has its status, and its current state: for the operator, never for the end user. */
export interface Explanation {
  /** The explained authentication. */
  readonly authentication_uuid: string;
  /** As returned by create. */
  readonly status: AuthenticationStatus;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly expires_at: string;
  /** Whether its code was entered correctly. */
  readonly validated: boolean;
  /** Wrong codes so far. */
  readonly wrong_codes: number;
  /** Checks, retries and seconds left. */
  readonly left: Left;
  /** The last three messages that were not rejected, oldest first. */
  readonly sends: readonly ExplainedSend[];
  /**
   * Rules that fired, shadow rules included; and, with `mode` `route`, routes tried and sends that failed. Empty
   * without any. `at`, and `until` (when a blocking cap has room again), are ISO 8601 timestamps.
   */
  readonly decisions: readonly (Omit<Decision, "at" | "until"> & { readonly at: string; readonly until?: string })[];
}

/** "Every decision is recorded with rule, the value counted and the threshold" (docs/contract.md#explain). */
export async function explain(parts: Context, account: Account, request: RetryRequest): Promise<Explanation> {
  const held = await parts.records.find(parts.newDeadline(), account.customer, request.authentication_uuid);
  if (held === undefined) throw unknownAuthentication();
  return explanationOf(parts, account, held.auth);
}

/** An authentication, as operators see it. */
export function explanationOf(parts: Pick<Context, "clock">, account: Account, auth: Authentication): Explanation {
  return {
    authentication_uuid: auth.id,
    status: auth.status,
    created_at: timestamp(auth.createdAt),
    expires_at: timestamp(auth.expiresAt),
    validated: auth.validated,
    wrong_codes: auth.wrongChecks,
    left: leftOf(auth, parts.clock.now(), account.policy),
    sends: auth.sends.map(({ attempt, at, state, route, delivery }) => ({
      attempt,
      at: timestamp(at),
      state,
      ...(route !== undefined && { route }),
      ...(delivery !== undefined && { delivery }),
    })),
    decisions: auth.decisions.map(({ at, until, ...decision }) => ({
      ...decision,
      at: timestamp(at),
      ...(until !== undefined && { until: timestamp(until) }),
    })),
  };
}
