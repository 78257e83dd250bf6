import type { DeliveryStatus } from "../contract/callback.js";
import type { Channel } from "../contract/channel.js";
import { type Authentication, type Send, type SendState, sendOf, withDecision, withOtherRoutes, withoutSend } from "./authentication.js";
import type { Decision } from "./decision.js";
import { isFinal, withEvent } from "./delivery.js";
import type { Policy } from "./policy.js";

/** The outcome of a send, as needed by the rules. */
export type SendResult = "accepted" | "rejected" | "unknown";

/** Why a malformed sender result counts as `unknown`. */
export const noOutcome = "the sender's result has no outcome of accepted, rejected or unknown";

/** What is known of a send when it ends. */
export interface SendReport {
  readonly result: SendResult;
  /** The route that accepted the message, or was tried last, if the sender names routes. */
  readonly route?: string | undefined;
  /** The channel of that route; absent: `sms`. */
  readonly channel?: Channel | undefined;
  /** When a message on that route falls back. */
  readonly fallbackAt?: number | undefined;
  readonly decisions?: readonly Decision[] | undefined;
  /** Something else is settled once with this write, and must later be able to see that the write was made. */
  readonly marks?: boolean | undefined;
  /** The carrier's message id, if the sender needs it for feedback. */
  readonly keptId?: string | undefined;
}

/** Routes that may have sent the message before it went to its last route. */
export function openRoutes({ route, decisions = [] }: Pick<SendReport, "route" | "decisions">): readonly string[] {
  return route === undefined ? [] : decisions.flatMap(({ rule, outcome }) => (outcome === "unknown" && rule !== route ? rule : []));
}

/** The callback's status for each result. */
const statuses = { accepted: "submitted", rejected: "undeliverable", unknown: "unknown" } as const;

/**
 * Settles a send on the current record; returns `undefined` if there is nothing to write. "Rejected: that code is dead,
 * earlier ones stay live, `remaining_retry` is not used up, the cool-down starts again … Unknown counts as sent"
 * (docs/contract.md#send-outcome). The cool-down started with the send; `retries` is given back. "an accepted send
 * writes nothing more, unless there is an event to deliver" (docs/contract.md#round-trips), or it ends older codes
 * (`acceptPreviousCode: false`).
 */
export function settleSend(auth: Authentication, attempt: number, report: SendReport, policy: Policy, now: number): Authentication | undefined {
  const { result, route, marks = false, keptId } = report;
  const send = sendOf(auth, attempt);
  if (send === undefined || !isOpen(send.state, result)) return undefined;
  const noted = report.decisions === undefined ? auth : report.decisions.reduce(withDecision, auth);
  const asked = auth.callbackUrl !== undefined;
  const moved = route !== undefined && route !== send.route;
  const kills = result === "accepted" && !policy.acceptPreviousCode && auth.sends.length > 1;
  if (result !== "rejected" && !asked && !moved && noted === auth && !kills && !marks && keptId === undefined) return undefined;
  const channel = moved ? report.channel : send.channel;
  const event = { attempt, status: statuses[result], ...(route !== undefined && { route }), ...(channel !== undefined && { channel }) };
  if (result === "rejected") {
    const rest = withoutSend(noted, send);
    // "A repeat of a message that every carrier rejected is a new try" (docs/contract.md#deliver-repeats).
    const next = auth.purpose === undefined ? rest : { ...rest, starts: auth.starts.filter((start) => start.attempt !== attempt) };
    return send.delivery !== undefined && isFinal(send.delivery) ? next : withEvent(next, event, now);
  }
  const state = result === "unknown" && !asked && !marks ? "undecided" : result;
  const isNewest = noted.attempts === attempt;
  const routed = { ...noted, otherRoutes: withOtherRoutes(noted, openRoutes(report)) };
  const timed = moved && isNewest ? { ...routed, fallbackAt: report.fallbackAt } : routed;
  const known = withChange(withoutDeadline(timed, attempt), attempt, {
    state,
    ...(moved && { route, channel: report.channel, ...(send.route !== undefined && { moved }) }),
    ...(keptId !== undefined && { messageId: keptId }),
  });
  // A receipt that arrived before the carrier's response has already reported more (docs/contract.md#callback-order).
  return send.delivery === undefined ? withEvent(known, event, now) : known;
}

/** Whether the result is still to be settled: a worker may have given up a slow send, whose own result counts. */
function isOpen(state: SendState, result: SendResult): boolean {
  return state === "undecided" || (state === "unknown" && result !== "unknown");
}

/** Settles a send that a crash left over, if a callback must report it. Without one, returns the record itself. */
export function settleOverdue(auth: Authentication, policy: Policy, now: number): Authentication {
  if (auth.settleBy === undefined || auth.settleBy > now) return auth;
  return settleSend(auth, auth.attempts, { result: "unknown" }, policy, now) ?? withoutDeadline(auth, auth.attempts);
}

/** Removes the deadline, which belongs to the newest send. */
function withoutDeadline(auth: Authentication, attempt: number): Authentication {
  return auth.attempts === attempt ? { ...auth, settleBy: undefined } : auth;
}

/** The progress of a message. A later status is never replaced by an earlier one, and a final one never changes. */
const order: readonly DeliveryStatus[] = ["unknown", "submitted", "in_transit", "delivered", "undeliverable"];

/** A carrier's report on a message. */
export interface DeliveryReport {
  readonly status: DeliveryStatus;
  readonly error?: string | undefined;
  /** When the status was reached, if the carrier reports it. */
  readonly at?: number | undefined;
}

/**
 * Settles a carrier's receipt: "Receipts are idempotent and may arrive out of order; a final status never changes"
 * (docs/contract.md#receipt-order). Returns `undefined` if nothing is new. Nothing depends on it
 * (docs/contract.md#nothing-gated). The event gets the carrier's time; if that is missing or in the future, it is now.
 */
export function settleReceipt(auth: Authentication, attempt: number, { status, error, at }: DeliveryReport, now: number): Authentication | undefined {
  const send = sendOf(auth, attempt);
  const known = send?.delivery;
  if (send === undefined || (known !== undefined && (isFinal(known) || order.indexOf(status) <= order.indexOf(known)))) return undefined;
  const next = withChange(auth, attempt, { delivery: status });
  // The caller was notified when the carrier accepted the message.
  if (status === "submitted" && send.state === "accepted") return next;
  const { route, channel } = send;
  const event = {
    attempt,
    status,
    at: toldAt(at, now),
    ...(route !== undefined && { route }),
    ...(channel !== undefined && { channel }),
    ...(error !== undefined && { error }),
  };
  return withEvent(next, event, now);
}

/** A time before the year 2000 is invalid: a zero, or seconds instead of milliseconds. */
const firstMessages = Date.UTC(2000, 0, 1);

function toldAt(at: number | undefined, now: number): number {
  return typeof at === "number" && at >= firstMessages && at <= now ? Math.trunc(at) : now;
}

function withChange(auth: Authentication, attempt: number, change: Partial<Send>): Authentication {
  return { ...auth, sends: auth.sends.map((send) => (send.attempt === attempt ? { ...send, ...change } : send)) };
}
