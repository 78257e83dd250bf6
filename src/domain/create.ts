import type { AuthenticationStatus } from "../contract/authentication.js";
import { type Authentication, isVoid, type SendDecision, withDecision } from "./authentication.js";
import type { Decision } from "./decision.js";
import { digitsInSlot } from "./ids.js";
import { defaultPolicy, milliseconds, type Policy } from "./policy.js";

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
  | "purpose"
  | "byCall"
> & {
  /** Milliseconds until its codes expire. Default: the policy's. */
  readonly lifetime?: number | undefined;
};

/** Has every field, also those that are `undefined`. */
type WithEveryField<T> = { readonly [K in keyof Required<T>]: T[K] };

/**
 * An authentication before its first send. Every field is in one literal: a copy that gets a field added costs V8 ten
 * times as much, and each step of a message copies it. One missing field took an eighth of the CPU of a flow.
 */
export function newAuthentication(fields: NewAuthentication, now: number, policy: Policy): WithEveryField<Authentication> {
  const expiresAt = now + (fields.lifetime ?? milliseconds(policy.lifetime));
  return {
    customer: fields.customer,
    id: fields.id,
    number: fields.number,
    sealed: fields.sealed,
    country: fields.country,
    createdAt: now,
    expiresAt,
    keepUntil: expiresAt + milliseconds(policy.tombstone),
    endsAt: undefined,
    status: "pending",
    attempts: 0,
    sent: 0,
    retries: 0,
    lastSendAt: now,
    wrongChecks: 0,
    validated: false,
    sends: [],
    decisions: fields.decisions,
    deviceType: fields.deviceType,
    appRealm: fields.appRealm,
    callbackUrl: fields.callbackUrl,
    callbackForm: fields.callbackForm,
    correlationId: fields.correlationId,
    settleBy: undefined,
    outbox: [],
    events: 0,
    origin: fields.origin,
    uncounted: 0,
    request: fields.request,
    checks: [],
    earlier: undefined,
    starts: fields.starts,
    canceled: undefined,
    locale: fields.locale,
    codeLength: fields.codeLength ?? (policy.codeLength === defaultPolicy.codeLength ? undefined : policy.codeLength),
    firstChannel: undefined,
    otherRoutes: [],
    unlocked: undefined,
    spent: undefined,
    keptIds: [],
    purpose: fields.purpose,
    byCall: fields.byCall,
    fallbackAt: undefined,
    fallbacks: 0,
    kept: undefined,
  };
}

/** Decides a create on the record under its id. `fresh`: what to create, where `replaces` makes room for it. */
export function decideCreate(
  stored: Authentication | undefined,
  fresh: Authentication,
  now: number,
  replaces: (stored: Authentication) => boolean,
): SendDecision<AuthenticationStatus> {
  if (stored !== undefined && !isVoid(stored) && !replaces(stored)) return { status: stored.status, auth: stored };
  const later = now - fresh.createdAt;
  const earlier = stored === undefined || stored.checks.length === 0 ? undefined : digitsInSlot(stored.id);
  return { send: { ...fresh, createdAt: now, lastSendAt: now, expiresAt: fresh.expiresAt + later, keepUntil: fresh.keepUntil + later, earlier } };
}

/**
 * "An authentication created as `rate_limited` or `spam_detected` never has a code, and is stored until `expires_at`
 * only" (docs/contract.md#refused-records).
 */
export function refusedAuthentication(fresh: Authentication, status: AuthenticationStatus, decisions: readonly Decision[]): Authentication {
  return decisions.reduce(withDecision, { ...fresh, status, keepUntil: fresh.expiresAt });
}
