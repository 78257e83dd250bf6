import type { AuthenticationStatus } from "../contract/authentication.js";
import { type Authentication, isVoid, type SendDecision, withDecision } from "./authentication.js";
import type { Decision } from "./decision.js";
import { milliseconds, type Policy } from "./policy.js";

/** The fields that a create sets on its authentication. */
export type NewAuthentication = Pick<
  Authentication,
  | "customer"
  | "id"
  | "number"
  | "sealed"
  | "country"
  | "decisions"
  | "origin"
  | "request"
  | "deviceType"
  | "appRealm"
  | "callbackUrl"
  | "callbackForm"
  | "correlationId"
  | "locale"
  | "codeLength"
  | "starts"
>;

/** An authentication before its first send. */
export function newAuthentication(fields: NewAuthentication, now: number, policy: Policy): Authentication {
  const blank: Authentication = {
    ...fields,
    createdAt: 0,
    expiresAt: 0,
    keepUntil: 0,
    status: "pending",
    attempts: 0,
    sent: 0,
    retries: 0,
    lastSendAt: 0,
    wrongChecks: 0,
    validated: false,
    sends: [],
    checks: [],
    keptIds: [],
    events: 0,
    outbox: [],
    uncounted: 0,
  };
  return begunAt(blank, now, policy);
}

function begunAt(auth: Authentication, now: number, policy: Policy): Authentication {
  const expiresAt = now + milliseconds(policy.lifetime);
  return { ...auth, createdAt: now, lastSendAt: now, expiresAt, keepUntil: expiresAt + milliseconds(policy.tombstone) };
}

/**
 * Decides a create on the record stored under its id. `fresh`: the authentication to create, for which `replaces` makes
 * room.
 */
export function decideCreate(
  stored: Authentication | undefined,
  fresh: Authentication,
  now: number,
  policy: Policy,
  replaces: (stored: Authentication) => boolean,
): SendDecision<AuthenticationStatus> {
  return stored === undefined || isVoid(stored) || replaces(stored) ? { send: begunAt(fresh, now, policy) } : { status: stored.status, auth: stored };
}

/**
 * "An authentication created as `rate_limited` or `spam_detected` never has a code, and is stored until `expires_at`
 * only" (docs/contract.md#refused-records).
 */
export function refusedAuthentication(fresh: Authentication, status: AuthenticationStatus, decisions: readonly Decision[]): Authentication {
  return decisions.reduce(withDecision, { ...fresh, status, keepUntil: fresh.expiresAt });
}
