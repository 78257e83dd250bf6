import type { DeliveryStatus } from "../contract/callback.js";
import { type Authentication, type OutboxEvent, sendOf } from "./authentication.js";
import { day, hour, minute, second } from "./time.js";

/**
 * "The delays between attempts are 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h" (docs/contract.md#callback-ladder): the
 * waits after the first, second … failed delivery, in milliseconds.
 */
export const deliveryLadder: readonly number[] = [5 * second, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour];

/** "each attempt has a timeout of 15 s" (docs/contract.md#callback-ladder). */
export const deliveryTimeout = 15 * second;

/** How long a worker holds a record: the queue, one delivery, the store calls around it, and clock differences. */
export const leaseTime = minute;

/** What must remain of a lease to start a delivery: its timeout, and the write that settles it. */
export const deliveryMargin = deliveryTimeout + 5 * second;

/** "while it has undelivered events, until 7 days after the last delivery step" (docs/contract.md#tombstone). */
export const keptUndelivered = 7 * day;

/** A receiver's response; `retryAfter` in milliseconds. */
export type DeliveryResult = { readonly status: number; readonly retryAfter?: number | undefined } | { readonly failed: string };

/**
 * Adds a delivery status in the same write as the change that caused it (docs/contract.md#callback-stored). Adds
 * nothing if no callback was requested, and "none after a final one" (docs/contract.md#callback-order).
 */
export function withEvent(
  auth: Authentication,
  event: Pick<OutboxEvent, "attempt" | "status" | "route" | "channel" | "error"> & { readonly at?: number },
  now: number,
): Authentication {
  if (auth.callbackUrl === undefined || isOver(auth, event)) return auth;
  const sequence = auth.events + 1;
  return kept({ ...auth, events: sequence, outbox: [...auth.outbox, { at: now, ...event, sequence, tries: 0, nextAt: now }] }, now);
}

/** A final status never changes. */
export function isFinal(status: DeliveryStatus): boolean {
  return status === "delivered" || status === "undeliverable";
}

/** Whether the event's send already had a final status. */
function isOver(auth: Authentication, { attempt, status }: Pick<OutboxEvent, "attempt" | "status">): boolean {
  const known = sendOf(auth, attempt)?.delivery;
  return (known !== undefined && isFinal(known) && known !== status) || auth.outbox.some((event) => event.attempt === attempt && isFinal(event.status));
}

/**
 * "the events of one send are reported in their order" (docs/contract.md#callback-order): the first event of each send
 * that is neither delivered nor given up.
 */
function heads({ outbox }: Authentication): readonly OutboxEvent[] {
  const waiting = outbox.filter(({ dead }) => dead === undefined);
  return waiting.filter(({ attempt }, index) => waiting.findIndex((other) => other.attempt === attempt) === index);
}

/** The event to deliver now. */
export function dueEvent(auth: Authentication, now: number): OutboxEvent | undefined {
  return heads(auth).find(({ nextAt }) => nextAt <= now);
}

/** Whether a worker has work on the record: an event or a fallback is due, or a crash left a send to settle. */
export function needsWork(auth: Authentication, now: number): boolean {
  return (wakeAt(auth, now, undefined) ?? Number.POSITIVE_INFINITY) <= now;
}

/**
 * Settles a delivery on the current record. Returns `undefined` if the event is gone or another try has settled it: a
 * worker whose lease has ended is fenced off. `tries`: those of the delivered event. `jitter`: from 0 up to 1.
 * "2xx is success; 3xx is failure; 410 ends it; 429/503 with `Retry-After` is respected if it is longer than the
 * next delay, up to a day, and never shortens the three days" (docs/contract.md#callback-answers).
 */
export function settleDelivery(
  auth: Authentication,
  sequence: number,
  tries: number,
  answer: DeliveryResult,
  now: number,
  jitter: number,
): Authentication | undefined {
  const isIt = (event: OutboxEvent) => event.sequence === sequence && event.tries === tries && event.dead === undefined;
  if (!auth.outbox.some(isIt)) return undefined;
  return kept({ ...auth, outbox: auth.outbox.flatMap((event) => (isIt(event) ? settled(event, answer, now, jitter) : [event])) }, now);
}

/** Removes a delivered event, gives it up at `now`, or schedules it again. */
function settled(event: OutboxEvent, answer: DeliveryResult, now: number, jitter: number): OutboxEvent[] {
  if ("status" in answer && answer.status >= 200 && answer.status < 300) return [];
  if ("status" in answer && answer.status === 410) return [{ ...event, nextAt: now, dead: "answered 410 Gone" }];
  const rung = deliveryLadder[event.tries];
  if (rung === undefined)
    return [{ ...event, nextAt: now, dead: `not delivered within three days, at last: ${"status" in answer ? `answered ${answer.status}` : answer.failed}` }];
  const asked = "status" in answer && (answer.status === 429 || answer.status === 503) ? Math.min(answer.retryAfter ?? 0, day) : 0;
  const wait = Math.round(Math.max(rung * (1 + jitter / 5), asked));
  return [{ ...event, tries: event.tries + rungsWithin(wait, event.tries), nextAt: now + wait }];
}

/**
 * A wait uses up the rungs that fit into it: one, or more if the receiver asked for a longer wait. So events are given
 * up after three to four days, and with such waits before five and a half.
 */
function rungsWithin(wait: number, first: number): number {
  let end = first;
  for (let left = wait; (deliveryLadder[end] ?? Number.POSITIVE_INFINITY) <= left; end++) left -= deliveryLadder[end] as number;
  return end - first;
}

/** Queues a given-up event again, from the first attempt; `undefined` if no event has that sequence. */
export function redelivered(auth: Authentication, sequence: number, now: number): Authentication | undefined {
  if (deadEvent(auth, sequence) === undefined) return undefined;
  const outbox = auth.outbox.map((event) => {
    if (event.sequence !== sequence) return event;
    const { dead, ...rest } = event;
    return { ...rest, tries: 0, nextAt: now };
  });
  return kept({ ...auth, outbox }, now);
}

/** The event of that sequence, if it was given up; its `nextAt` is when that happened. */
export function deadEvent(auth: Authentication, sequence: number): OutboxEvent | undefined {
  return auth.outbox.find((event) => event.sequence === sequence && event.dead !== undefined);
}

/** When a record's fallback is due; `undefined` if it has none, or its code was entered. */
export function fallbackTime(auth: Authentication): number | undefined {
  return auth.validated || auth.canceled === true ? undefined : auth.fallbackAt;
}

/** When a record next needs work because of a fallback: it is due, or what was kept for it is to be erased. */
export function fallbackWork(auth: Authentication): number | undefined {
  const due = fallbackTime(auth);
  return due === undefined || auth.kept === undefined ? (due ?? auth.kept?.until) : Math.min(due, auth.kept.until);
}

/** Erases what was kept too long. */
export function withoutOldCode(auth: Authentication, now: number): Authentication {
  return auth.kept !== undefined && auth.kept.until <= now ? { ...auth, kept: undefined, fallbackAt: undefined } : auth;
}

/**
 * "`wakeAt` is when it next needs work" (docs/contract.md#outbox): when the next event or its fallback is due, or a
 * leftover send must be settled; `undefined` if it needs no work. `leaseUntil`: the writer delivers what is due, so no other worker may
 * take it before then.
 */
export function wakeAt(auth: Authentication, now: number, leaseUntil: number | undefined): number | undefined {
  const fallback = fallbackWork(auth);
  if (auth.outbox.length === 0 && fallback === undefined) return auth.settleBy;
  const due = [...heads(auth).map(({ nextAt }) => nextAt), ...(fallback === undefined ? [] : [fallback])];
  const times = due.map((at) => (at <= now && leaseUntil !== undefined ? leaseUntil : at));
  const soonest = Math.min(...times, auth.settleBy ?? Number.POSITIVE_INFINITY);
  return Number.isFinite(soonest) ? soonest : undefined;
}

function kept(auth: Authentication, now: number): Authentication {
  const { endsAt = auth.keepUntil, ...rest } = auth;
  if (auth.outbox.length === 0) return { ...rest, keepUntil: endsAt };
  return { ...rest, endsAt, keepUntil: Math.max(endsAt, now + keptUndelivered) };
}
