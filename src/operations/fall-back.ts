import type { Accounts } from "../access/accounts.js";
import { update } from "../core/records/transact.js";
import type { Authentication } from "../domain/authentication.js";
import { type Decision, isEnforced } from "../domain/decision.js";
import { decideFallback, fallbackTime, withoutFallback } from "../domain/fallback.js";
import { VerifierError } from "../errors.js";
import { handOver } from "../messages/hand-over.js";
import { reserve } from "../messages/reserve.js";
import type { Context } from "./context.js";
import { askAboutRetry } from "./outside.js";
import { reportRefusal } from "./refusals.js";

/**
 * Replaces a message that did not arrive by one on another route (docs/contract.md#fallback): rules, caps and ceilings as
 * for a retry, but no retry is used up. Returns the record afterwards; `undefined` if it is gone. Rejects with
 * `unavailable`; the next worker then tries again.
 */
export async function fallBack(context: Context, accounts: Accounts, { id, customer }: Authentication): Promise<Authentication | undefined> {
  const { clock, records } = context;
  const account = await accounts.byUuid(customer).catch(unlessSuspended);
  if (account === undefined) return stopped(context, customer, id, []);
  const deadline = context.newDeadline();
  const held = await records.find(deadline, customer, id);
  const due = held && fallbackTime(held.auth);
  if (held === undefined || due === undefined || due > clock.now()) return held?.auth;
  const outside = await askAboutRetry(context, account, deadline, held.auth);
  const reserved = await reserve(context, account, deadline, {
    id,
    isNew: false,
    outside,
    fallback: true,
    decide: (stored, now) => (stored === undefined ? { status: "none", auth: held.auth } : decideFallback(stored, outside.fired, now, account.policy)),
  });
  if ("commit" in reserved) return (await handOver(context, account, deadline, reserved.commit)).auth;
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

/** A suspended customer is treated as unknown. */
function unlessSuspended(fault: unknown): undefined {
  if (!(fault instanceof VerifierError) || fault.code !== "account_invalid") throw fault;
}
