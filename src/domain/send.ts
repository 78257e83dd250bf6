import type { DeliveryStatus } from "../contract/callback.js";
import { type Authentication, type Send, type SendState, withDecision } from "./authentication.js";
import type { Decision } from "./decision.js";
import { isFinal, withEvent } from "./delivery.js";
import type { Policy } from "./policy.js";

/** How a send ended, as far as the rules care. */
export type SendResult = "accepted" | "rejected" | "unknown";

/** Why a sender's answer of a wrong shape counts as `unknown`. */
export const noOutcome = "the sender's answer has no outcome of accepted, rejected or unknown";

/** What is known of a send when it ends. */
export interface SendReport {
  readonly result: SendResult;
  /** The route that took it, or was tried last, where the sender names one. */
  readonly route?: string | undefined;
  readonly decisions?: readonly Decision[] | undefined;
  /** Something is settled with the write, once: it has to tell, later, that it was made. */
  readonly marks?: boolean | undefined;
  /** The carrier's id of the message, where its sender wants it back with what becomes of the message. */
  readonly keptId?: string | undefined;
}

/** What the caller's callback is told of each result. */
const statuses = { accepted: "submitted", rejected: "undeliverable", unknown: "unknown" } as const;

/**
 * Settles a send on the record as it then is; `undefined` when there is nothing to write.
 *
 * "Rejected: that code is dead, earlier ones live on, `remaining_retry` is not used up, the cool-down starts again … Unknown counts as sent" (docs/contract.md#send-outcome). The cool-down started with the send; `retries` goes back.
 * "an accepted send writes nothing more, unless there is an event to deliver" (docs/contract.md#round-trips), or older codes die by it (`acceptPreviousCode: false`).
 */
export function settleSend(auth: Authentication, attempt: number, report: SendReport, policy: Policy, now: number): Authentication | undefined {
  const { result, route, marks = false, keptId } = report;
  const send = auth.sends.find((one) => one.attempt === attempt);
  if (send === undefined || !isOpen(send.state, result)) return undefined;
  const noted = report.decisions === undefined ? auth : report.decisions.reduce(withDecision, auth);
  const asked = auth.callbackUrl !== undefined;
  const moved = route !== undefined && route !== send.route;
  const kills = result === "accepted" && !policy.acceptPreviousCode && auth.sends.length > 1;
  if (result !== "rejected" && !asked && !moved && noted === auth && !kills && !marks && keptId === undefined) return undefined;
  const event = { attempt, status: statuses[result], ...(route !== undefined && { route }) };
  if (result === "rejected")
    return send.delivery !== undefined && isFinal(send.delivery) ? withoutSend(noted, attempt) : withEvent(withoutSend(noted, attempt), event, now);
  const state = result === "unknown" && !asked && !marks ? "undecided" : result;
  const known = withChange(withoutDeadline(noted, attempt), attempt, {
    state,
    ...(moved && { route, ...(send.route !== undefined && { moved }) }),
    ...(keptId !== undefined && { messageId: keptId }),
  });
  // A receipt that was quicker than the carrier's answer has told more already (docs/contract.md#callback-order).
  return send.delivery === undefined ? withEvent(known, event, now) : known;
}

/** Whether the result is still to be settled. A worker may have taken a slow send for lost; what its own process knows goes before that. */
function isOpen(state: SendState, result: SendResult): boolean {
  return state === "undecided" || (state === "unknown" && result !== "unknown");
}

/** Settles a send that a crash left over, where a callback must tell of it; the record itself when there is none. */
export function settleOverdue(auth: Authentication, policy: Policy, now: number): Authentication {
  if (auth.settleBy === undefined || auth.settleBy > now) return auth;
  return settleSend(auth, auth.attempts, { result: "unknown" }, policy, now) ?? withoutDeadline(auth, auth.attempts);
}

function withoutSend(auth: Authentication, attempt: number): Authentication {
  return {
    ...withoutDeadline(auth, attempt),
    sent: auth.sent - 1,
    uncounted: Math.min(auth.uncounted, auth.sent - 1),
    retries: attempt === 1 ? auth.retries : Math.max(0, auth.retries - 1),
    sends: auth.sends.filter((send) => send.attempt !== attempt),
  };
}

/** The deadline is the newest send's. */
function withoutDeadline(auth: Authentication, attempt: number): Authentication {
  if (auth.attempts !== attempt) return auth;
  return { ...auth, settleBy: undefined };
}

/** Progress of a message; a later status never makes way for an earlier one, and a final one for none. */
const order: readonly DeliveryStatus[] = ["unknown", "submitted", "in_transit", "delivered", "undeliverable"];

/** What a carrier says of a message. */
export interface DeliveryReport {
  readonly status: DeliveryStatus;
  readonly error?: string | undefined;
  /** When that was, where the carrier says. */
  readonly at?: number | undefined;
}

/**
 * Settles a carrier's receipt: "idempotent, out of order tolerated, a final status never left" (docs/contract.md#receipt-order). `undefined` when it tells nothing new. Nothing is gated on it (docs/contract.md#nothing-gated).
 * The event is told with the carrier's time, by the carrier's clock; one that is still to come, or none, is now.
 */
export function settleReceipt(auth: Authentication, attempt: number, { status, error, at }: DeliveryReport, now: number): Authentication | undefined {
  const send = auth.sends.find((one) => one.attempt === attempt);
  const known = send?.delivery;
  if (send === undefined || (known !== undefined && (isFinal(known) || order.indexOf(status) <= order.indexOf(known)))) return undefined;
  const next = withChange(auth, attempt, { delivery: status });
  // The caller heard of it when the carrier took the message.
  if (status === "submitted" && send.state === "accepted") return next;
  const event = { attempt, status, at: toldAt(at, now), ...(send.route !== undefined && { route: send.route }), ...(error !== undefined && { error }) };
  return withEvent(next, event, now);
}

/** A time before the year 2000 is none: a zero, or seconds taken for milliseconds. */
const firstMessages = Date.UTC(2000, 0, 1);

function toldAt(at: number | undefined, now: number): number {
  return typeof at === "number" && at >= firstMessages && at <= now ? Math.trunc(at) : now;
}

function withChange(auth: Authentication, attempt: number, change: Partial<Send>): Authentication {
  return { ...auth, sends: auth.sends.map((send) => (send.attempt === attempt ? { ...send, ...change } : send)) };
}
