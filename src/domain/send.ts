import type { Authentication, SendState } from "./authentication.js";
import { withEvent } from "./delivery.js";
import type { Policy } from "./policy.js";

/** How a send ended, as far as the rules care. */
export type SendResult = "accepted" | "rejected" | "unknown";

/** What the caller's callback is told of each result. */
const statuses = { accepted: "submitted", rejected: "undeliverable", unknown: "unknown" } as const;

/**
 * Settles a send on the record as it then is; `undefined` when there is nothing to write.
 *
 * "Rejected: that code is dead, earlier ones live on, `remaining_retry` is not used up, the cool-down starts again … Unknown counts as sent" (contract.md, send outcome). The cool-down started with the send; `retries` goes back.
 * An accepted send "writes nothing more, unless there is an event to deliver" (architecture.md, rule 7), or older codes die by it (`acceptPreviousCode: false`).
 */
export function settleSend(auth: Authentication, attempt: number, result: SendResult, policy: Policy, now: number): Authentication | undefined {
  if (!auth.sends.some((send) => send.attempt === attempt && send.state === "undecided")) return undefined;
  const tells = auth.callbackUrl !== undefined;
  if (result === "rejected") return withEvent(withoutSend(auth, attempt), { attempt, status: statuses[result] }, now);
  if (!tells && (result === "unknown" || policy.acceptPreviousCode || auth.sends.length === 1)) return undefined;
  return withEvent(withState(withoutDeadline(auth, attempt), attempt, result), { attempt, status: statuses[result] }, now);
}

/** A retry that a cap refused, on the record as it then is: as if it had never been tried. "A refusal consumes nothing" (contract.md, Limits). `before` is the record that the retry was decided on. */
export function withdrawSend(auth: Authentication, attempt: number, before: Authentication): Authentication {
  const withdrawn = withoutSend(auth, attempt);
  return auth.attempts === attempt ? { ...withdrawn, attempts: before.attempts, lastSendAt: before.lastSendAt } : withdrawn;
}

function withoutSend(auth: Authentication, attempt: number): Authentication {
  return {
    ...withoutDeadline(auth, attempt),
    sent: auth.sent - 1,
    retries: attempt === 1 ? auth.retries : Math.max(0, auth.retries - 1),
    sends: auth.sends.filter((send) => send.attempt !== attempt),
  };
}

/** The deadline is the newest send's. */
function withoutDeadline(auth: Authentication, attempt: number): Authentication {
  if (auth.attempts !== attempt) return auth;
  const { settleBy, ...rest } = auth;
  return rest;
}

function withState(auth: Authentication, attempt: number, state: SendState): Authentication {
  return { ...auth, sends: auth.sends.map((send) => (send.attempt === attempt ? { ...send, state } : send)) };
}
