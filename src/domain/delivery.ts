import type { DeliveryStatus } from "../contract/callback.js";
import type { Authentication, OutboxEvent } from "./authentication.js";

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** "else 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h" (contract.md, Delivery-status callbacks): the waits after the first, second … failed delivery, in milliseconds. */
export const deliveryLadder: readonly number[] = [5 * second, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour];

/** "15 s timeout" (contract.md, Delivery-status callbacks). */
export const deliveryTimeout = 15 * second;

/** How long a worker holds a record: a delivery, the store calls around it, and clocks that differ. */
const leaseTime = 2 * deliveryTimeout;

/** "while it has undelivered events, until 7 days after the last delivery step" (contract.md, lifetime). */
const keptUndelivered = 7 * day;

/** What a receiver answered. */
export type DeliveryAnswer = { readonly status: number; readonly retryAfter?: number | undefined } | { readonly failed: string };

/** Adds a delivery status in the same write as the change that caused it; nothing where no callback was asked for. */
export function withEvent(auth: Authentication, event: Pick<OutboxEvent, "attempt" | "status" | "route" | "error">, now: number): Authentication {
  if (auth.callbackUrl === undefined) return auth;
  const sequence = auth.events + 1;
  return kept({ ...auth, events: sequence, outbox: [...auth.outbox, { ...event, sequence, at: now, tries: 0, nextAt: now }] }, now);
}

/** A final status is never left. */
export function isFinal(status: DeliveryStatus): boolean {
  return status === "delivered" || status === "undeliverable";
}

/** The event to deliver now, oldest first, unless another worker holds the record. */
export function dueEvent(auth: Authentication, now: number): OutboxEvent | undefined {
  if (auth.lease !== undefined && auth.lease.until > now) return undefined;
  return auth.outbox.find((event) => event.dead === undefined && event.nextAt <= now);
}

/** "A worker takes a record by swapping in a lease" (architecture.md, rule 6). */
export function withLease(auth: Authentication, holder: string, now: number): Authentication {
  return { ...auth, lease: { holder, until: now + leaseTime } };
}

function withoutLease({ lease, ...auth }: Authentication): Authentication {
  return auth;
}

/**
 * Settles a delivery; `undefined` for a worker whose lease is gone: its late answer is fenced off. `jitter` is from 0 up to 1.
 *
 * "2xx is success; 3xx is failure; 410 ends it; 429/503 with `Retry-After` is honoured; else [the ladder] with jitter … what is given up is kept visible" (contract.md, Delivery-status callbacks).
 */
export function settleDelivery(
  auth: Authentication,
  sequence: number,
  holder: string,
  answer: DeliveryAnswer,
  now: number,
  jitter: number,
): Authentication | undefined {
  if (auth.lease?.holder !== holder) return undefined;
  const outbox = auth.outbox.flatMap((event) => (event.sequence === sequence ? settled(event, answer, now, jitter) : [event]));
  return kept(withoutLease({ ...auth, outbox }), now);
}

function settled(event: OutboxEvent, answer: DeliveryAnswer, now: number, jitter: number): OutboxEvent[] {
  if ("status" in answer && answer.status >= 200 && answer.status < 300) return [];
  const why = "status" in answer ? `answered ${answer.status}` : answer.failed;
  const tries = event.tries + 1;
  if ("status" in answer && answer.status === 410) return [{ ...event, tries, dead: "answered 410 Gone" }];
  const wait = deliveryLadder[event.tries];
  if (wait === undefined) return [{ ...event, tries, dead: `${tries} deliveries failed, the last: ${why}` }];
  const asked = "status" in answer && (answer.status === 429 || answer.status === 503) ? answer.retryAfter : undefined;
  return [{ ...event, tries, nextAt: now + (asked === undefined ? wait * (1 + jitter / 5) : Math.min(Math.max(asked, second), day)) }];
}

/** Puts a given-up event back on its way, from the first rung; `undefined` when there is none of that sequence. */
export function redelivered(auth: Authentication, sequence: number, now: number): Authentication | undefined {
  if (!auth.outbox.some((event) => event.sequence === sequence && event.dead !== undefined)) return undefined;
  const outbox = auth.outbox.map((event) => {
    if (event.sequence !== sequence) return event;
    const { dead, ...rest } = event;
    return { ...rest, tries: 0, nextAt: now };
  });
  return kept({ ...auth, outbox }, now);
}

/** Moves a due record out of the way of others, for a receiver that is busy. */
export function postponed(auth: Authentication, until: number): Authentication {
  return { ...auth, outbox: auth.outbox.map((event) => (event.dead === undefined && event.nextAt < until ? { ...event, nextAt: until } : event)) };
}

/** "`wakeAt` is when it next needs work" (architecture.md, rule 6); `undefined` when it needs none. Events that were given up stay in the index, so that they can be listed, until the record's end. */
export function wakeAt(auth: Authentication): number | undefined {
  const times = auth.outbox.map((event) => (event.dead === undefined ? event.nextAt : auth.keepUntil));
  const next = auth.lease !== undefined && times.length > 0 ? Math.max(auth.lease.until, Math.min(...times)) : Math.min(...times);
  const soonest = Math.min(next, auth.settleBy ?? Number.POSITIVE_INFINITY);
  return Number.isFinite(soonest) ? soonest : undefined;
}

function kept(auth: Authentication, now: number): Authentication {
  const { endsAt = auth.keepUntil, ...rest } = auth;
  if (auth.outbox.length === 0) return { ...rest, keepUntil: endsAt };
  return { ...rest, endsAt, keepUntil: Math.max(endsAt, now + keptUndelivered) };
}
