import type { Accounts } from "../access/accounts.js";
import { update } from "../core/records/transact.js";
import type { Authentication } from "../domain/authentication.js";
import { type Decision, isEnforced } from "../domain/decision.js";
import { deliveryPolicy } from "../domain/deliver.js";
import { fallbackTime } from "../domain/delivery.js";
import { decideFallback, withoutFallback } from "../domain/retry.js";
import { pastOf } from "../domain/spam-rules.js";
import { undefinedFor } from "../errors.js";
import { handOver } from "../messages/hand-over.js";
import { openKept } from "../messages/plan.js";
import { reserve } from "../messages/reserve.js";
import type { Context } from "./context.js";
import { askAboutRetry } from "./outside.js";
import { reportRefusal } from "./refusals.js";

/**
 * Replaces a message that did not arrive by one on another route (docs/contract.md#fallback): rules, caps and ceilings as
 * for a retry, but no retry is used up. Returns the record afterwards; `undefined` if it is gone. Rejects with
 * `unavailable`, and with `account_invalid` if the customer is unknown here; the next worker then tries again.
 */
export async function fallBack(context: Context, accounts: Accounts, { id, customer, expiresAt }: Authentication): Promise<Authentication | undefined> {
  const { clock, keyring, past, records } = context;
  // A suspended customer is treated as unknown.
  const account = await accounts.byUuid(customer).catch(undefinedFor("account_invalid"));
  if (account === undefined) {
    // Rejects if the customer is unknown, not suspended: during a roll-out, another process may know it.
    if (clock.now() < expiresAt) await accounts.byUuid(customer, true);
    return stopped(context, customer, id, []);
  }
  const deadline = context.newDeadline();
  const held = await records.find(deadline, customer, id);
  const due = held && fallbackTime(held.auth);
  if (held === undefined || due === undefined || due > clock.now()) return held?.auth;
  const isDelivery = held.auth.purpose !== undefined;
  const given = isDelivery ? openKept(context, held.auth) : undefined;
  if (isDelivery && given === undefined) return stopped(context, customer, id, []);
  // How soon a delivery is confirmed is not stored. Its first message has raised the alarm, if there was one to raise.
  const quiet = { ...account, isLate: isDelivery };
  const outside = await askAboutRetry(context, quiet, deadline, held.auth);
  const weighing = isDelivery ? await past.weighing(deadline, account, held.auth.origin?.g === 1 ? "unknown" : "reported") : undefined;
  const policy = weighing === undefined ? account.policy : deliveryPolicy(account.policy, weighing);
  const sending = { ...quiet, policy };
  const reserved = await reserve(context, sending, {
    id,
    deadline,
    isNew: false,
    outside,
    given,
    fallback: true,
    decide: (stored, now) =>
      stored === undefined || stored.id !== held.auth.id ? { status: "none", auth: held.auth } : decideFallback(stored, outside.fired, now, policy),
  });
  if ("commit" in reserved) {
    const { auth, result } = await handOver(context, deadline, reserved.commit);
    if (isDelivery && result !== "rejected") past.sent(customer, auth.origin?.s === 1 ? [] : pastOf(auth, keyring.pseudonym));
    return auth;
  }
  if (!("refusal" in reserved)) {
    if (outside.fired.some(isEnforced)) reportRefusal(context, "fallback", "rate_limited", reserved.auth, outside.fired);
    return reserved.auth;
  }
  const { decision, auth } = reserved.refusal;
  reportRefusal(context, "fallback", "rate_limited", auth, [decision]);
  return stopped(context, customer, id, [decision]);
}

/** Stores that the fallback will not be sent. One that has moved to a later time since belongs to another message. */
function stopped({ clock, records, newDeadline }: Context, customer: string, id: string, decisions: readonly Decision[]): Promise<Authentication | undefined> {
  return update<Authentication>(records, newDeadline(), customer, id, (current) => {
    const due = fallbackTime(current);
    const next = due !== undefined && due <= clock.now() ? withoutFallback(current, decisions) : undefined;
    return { result: next ?? current, next };
  });
}
