import { type Decided, transact, update } from "../core/records/transact.js";
import type { Account } from "../domain/account.js";
import { type Authentication, isVoid, withDecision } from "../domain/authentication.js";
import { type Decision, isEnforced } from "../domain/decision.js";
import { refusedClaims } from "../domain/quota.js";
import type { Context } from "./context.js";

/**
 * Stores a blocked create and returns what is stored. This happens in the background, within the limit for stored
 * refusals; with an idempotency key before the response, since repeats must return the same.
 */
export async function refuseCreate(context: Context, account: Account, refused: Authentication): Promise<Authentication> {
  const { clock, inBackground, keyring, monitor, records, settings } = context;
  const moment = { now: clock.now(), skew: settings.clockSkew };
  const decide = (held: { readonly auth: Authentication } | undefined): Decided<Authentication> => {
    if (held !== undefined && !isVoid(held.auth)) return { result: held.auth };
    // Beyond that limit the result is the same, but is not stored: blocked creates must not fill a store.
    return { result: refused, next: refused, claims: refusedClaims(refused, moment, keyring.pseudonym) };
  };
  const keep = transact(records, context.newDeadline(), account.customer, refused.id, decide, true);
  if (refused.request !== undefined) {
    const { result: stored } = await keep;
    if (stored === refused) report(context, "create", refused.status, refused, refused.decisions);
    return stored;
  }
  records.pending(refused.id, keep);
  const failed = (err: unknown) =>
    monitor.throttledLog.warn({ err, authentication_uuid: refused.id }, "a refused create could not be kept; `explain` will not find it");
  inBackground(keep.catch(failed));
  report(context, "create", refused.status, refused, refused.decisions);
  return refused;
}

/**
 * "A refusal writes nothing and consumes nothing" (docs/contract.md#refusal-consumes-nothing). The rule that blocked a
 * retry is noted in the record in the background.
 */
export function refuseRetry(context: Context, auth: Authentication, fired: readonly Decision[]): void {
  const { inBackground, monitor, records } = context;
  const { customer, id } = auth;
  const noted = update(records, context.newDeadline(), customer, id, (current): Decided<void> => {
    return { result: undefined, next: fired.reduce(withDecision, current) };
  });
  records.pending(id, noted);
  const failed = (err: unknown) =>
    monitor.throttledLog.warn({ err, authentication_uuid: id }, "why a retry was refused could not be kept; `explain` will not find it");
  inBackground(noted.catch(failed));
  report(context, "retry", "rate_limited", auth, fired);
}

function report(
  { monitor, statistics }: Context,
  operation: "create" | "retry",
  status: Authentication["status"],
  auth: Authentication,
  fired: readonly Decision[],
): void {
  const refusedBy = fired.find(isEnforced)?.rule;
  if (refusedBy !== undefined) statistics.refused(auth.customer, auth.country, refusedBy);
  monitor.refused(operation, status, auth, fired);
}
