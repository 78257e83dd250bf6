import type { StoreDeadline } from "../core/deadline.js";
import { isFinal } from "../domain/delivery.js";
import { day, minute } from "../domain/time.js";
import type { Receipt } from "../ports/receipts.js";
import type { Messages } from "./messages.js";
import type { ReceiptTarget } from "./receipt-reference.js";

/** A carrier's message id and the space it is unique in: two carriers may both have a message 1001. */
export interface CarrierId {
  readonly messageId: string;
  readonly idSpace: string;
}

/**
 * How long a carrier's id is stored (docs/contract.md#receipt-ids), for carriers whose receipts contain no other
 * reference. Milliseconds.
 */
const keptIds = 3 * day;

/**
 * How long an early receipt is stored: it may arrive before the send's response with the id is stored. Milliseconds.
 */
const keptEarly = 2 * minute;

/** An id as listed in its record. Both parts may contain any character. */
export const listedId = ({ messageId, idSpace }: CarrierId) => `${idSpace.length}:${idSpace}/${messageId}`;

const keyOf = (listed: string) => `receipt:${listed}`;

/** Final receipts have their own key, so that one of progress cannot displace them. */
const earlyKeyOf = (listed: string, final: boolean) => `early:${final ? "final" : "progress"}:${keyOf(listed)}`;

/** The store's keys for an id that a record lists. */
export function keysOfListedId(listed: string): string[] {
  return [keyOf(listed), earlyKeyOf(listed, true), earlyKeyOf(listed, false)];
}

/** Stores the id of a message and returns the receipts that arrived before it. Rejects with `unavailable`. */
export async function keepId(parts: Messages, deadline: StoreDeadline, id: CarrierId, target: ReceiptTarget): Promise<readonly Receipt[]> {
  await keep(parts, deadline, keyOf(listedId(id)), target, keptIds);
  // After the id is stored: a receipt that missed it is stored by now, or will look once more.
  const early = await Promise.all([false, true].map((final) => find<Receipt>(parts, deadline, earlyKeyOf(listedId(id), final))));
  return early.filter((receipt) => receipt !== undefined);
}

/**
 * Finds the message with this id. A receipt without one is stored for a while, as the message may not be stored yet.
 * Rejects with `unavailable`.
 */
export async function findById(parts: Messages, deadline: StoreDeadline, id: CarrierId, receipt: Receipt): Promise<ReceiptTarget | undefined> {
  const look = () => find<ReceiptTarget>(parts, deadline, keyOf(listedId(id)));
  const found = await look();
  if (found !== undefined) return found;
  const final = isFinal(receipt.status);
  const key = earlyKeyOf(listedId(id), final);
  // A final status never changes (docs/contract.md#receipt-order): the first one is settled once the id is stored.
  if (final && (await find<Receipt>(parts, deadline, key)) !== undefined) return undefined;
  await keep(parts, deadline, key, receipt, keptEarly);
  return look();
}

/** A value and its end: stores delete at times of their own, by their own clock. */
interface Kept<T> {
  readonly value: T;
  readonly until: number;
}

function keep(parts: Messages, deadline: StoreDeadline, key: string, value: unknown, life: number): Promise<void> {
  const now = parts.clock.now();
  const kept: Kept<unknown> = { value, until: now + life };
  return deadline.call(() => parts.store.put(key, JSON.stringify(kept), { now, keepUntil: kept.until }));
}

async function find<T>(parts: Messages, deadline: StoreDeadline, key: string): Promise<T | undefined> {
  const text = await deadline.call(() => parts.store.get(key));
  if (text === undefined) return undefined;
  const { value, until } = JSON.parse(text) as Kept<T>;
  return parts.clock.now() < until ? value : undefined;
}
