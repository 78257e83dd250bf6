import type { Authentication } from "./authentication.js";
import type { Policy } from "./policy.js";

/** How a send ended, as far as the rules care. */
export type SendResult = "accepted" | "rejected" | "unknown";

/**
 * Settles a send on the record as it then is; `undefined` when there is nothing to write.
 *
 * "Rejected: that code is dead, earlier ones live on, `remaining_retry` is not used up, the cool-down starts again … Unknown counts as sent" (contract.md, send outcome). The cool-down started with the send; `retries` goes back.
 * An accepted send "writes nothing more" (architecture.md, rule 7) unless older codes die by it (`acceptPreviousCode: false`).
 */
export function settleSend(auth: Authentication, attempt: number, result: SendResult, policy: Policy): Authentication | undefined {
  const index = auth.sends.findIndex((send) => send.attempt === attempt && send.state === "undecided");
  if (index === -1 || result === "unknown") return undefined;
  if (result === "rejected") return withoutSend(auth, attempt);
  if (policy.acceptPreviousCode || auth.sends.length === 1) return undefined;
  return { ...auth, sends: auth.sends.map((send, at) => (at === index ? { ...send, state: "accepted" as const } : send)) };
}

/** A retry that a cap refused, on the record as it then is: as if it had never been tried. "A refusal consumes nothing" (contract.md, Limits). `before` is the record that the retry was decided on. */
export function withdrawSend(auth: Authentication, attempt: number, before: Authentication): Authentication {
  const withdrawn = withoutSend(auth, attempt);
  return auth.attempts === attempt ? { ...withdrawn, attempts: before.attempts, lastSendAt: before.lastSendAt } : withdrawn;
}

function withoutSend(auth: Authentication, attempt: number): Authentication {
  return {
    ...auth,
    sent: auth.sent - 1,
    retries: attempt === 1 ? auth.retries : Math.max(0, auth.retries - 1),
    sends: auth.sends.filter((send) => send.attempt !== attempt),
  };
}
