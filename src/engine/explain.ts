import type { AuthenticationStatus } from "../contract/authentication.js";
import type { RetryRequest } from "../contract/retry.js";
import type { Authentication } from "../domain/authentication.js";
import type { Decision } from "../domain/decision.js";
import { unknownAuthentication } from "./check.js";
import type { Account } from "./door/account.js";
import { newBudget, type Parts, timestamp } from "./parts.js";

/** Why an authentication was answered as it was: for the operator, never for the end user. */
export interface Explanation {
  readonly authentication_uuid: string;
  readonly status: AuthenticationStatus;
  /** Rules that fired, shadow rules included; empty when none did. `at` is an ISO 8601 timestamp. */
  readonly decisions: readonly (Omit<Decision, "at"> & { readonly at: string })[];
}

/** "Every decision is recorded with rule, value and threshold and can be asked for by authentication id (`explain`)" (contract.md, Limits). */
export async function explainAuthentication(parts: Parts, account: Account, request: RetryRequest): Promise<Explanation> {
  const held = await parts.records.find(newBudget(parts), account.customer, request.authentication_uuid);
  if (held === undefined) throw unknownAuthentication();
  return explanationOf(held.auth);
}

export function explanationOf({ id, status, decisions }: Authentication): Explanation {
  return { authentication_uuid: id, status, decisions: decisions.map((decision) => ({ ...decision, at: timestamp(decision.at) })) };
}
