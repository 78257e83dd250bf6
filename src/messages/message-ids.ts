import type { StoreDeadline } from "../core/deadline.js";
import { isFinal } from "../domain/delivery.js";
import { day, minute } from "../domain/time.js";
import type { Receipt } from "../ports/receipts.js";
import type { Messages } from "./messages.js";
import type { ReceiptTarget } from "./receipt-reference.js";

/** A carrier's id of a message, and what it is unique in: two carriers may both have a message 1001. */
export interface CarrierId {
  readonly messageId: string;
  readonly idSpace: string;
}

/** How long a carrier's id is kept (docs/contract.md#receipt-ids), for the carriers whose receipts name nothing else. Milliseconds. */
const keptIds = 3 * day;

/** How long a receipt waits for a message of its id: it may be here before the answer that tells the id is stored. Milliseconds. */
const keptEarly = 2 * minute;

/** An id as its record lists it. Either part may hold any character. */
export const listedId = ({ messageId, idSpace }: CarrierId) => `${idSpace.length}:${idSpace}/${messageId}`;

const keyOf = (listed: string) => `receipt:${listed}`;

/** A final word has a place of its own: one that came before it cannot take it. */
const earlyKeyOf = (listed: string, final: boolean) => `early:${final ? "final" : "progress"}:${keyOf(listed)}`;

/** What the store keeps under an id that a record lists. */
export function keysOfListedId(listed: string): string[] {
  return [keyOf(listed), earlyKeyOf(listed, true), earlyKeyOf(listed, false)];
}

/** Keeps the id of a message, and answers the receipts that were here before it. Rejects with `unavailable`. */
export async function keepId(parts: Messages, deadline: StoreDeadline, id: CarrierId, target: ReceiptTarget): Promise<readonly Receipt[]> {
  await keep(parts, deadline, keyOf(listedId(id)), target, keptIds);
  // After the id is there: a receipt that did not find it is kept by now, or will look once more.
  const early = await Promise.all([false, true].map((final) => find<Receipt>(parts, deadline, earlyKeyOf(listedId(id), final))));
  return early.filter((receipt) => receipt !== undefined);
}

/** The message that had this id. A receipt of none is kept for a while, for the message that may be on its way here. Rejects with `unavailable`. */
export async function findById(parts: Messages, deadline: StoreDeadline, id: CarrierId, receipt: Receipt): Promise<ReceiptTarget | undefined> {
  const look = () => find<ReceiptTarget>(parts, deadline, keyOf(listedId(id)));
  const found = await look();
  if (found !== undefined) return found;
  await keep(parts, deadline, earlyKeyOf(listedId(id), isFinal(receipt.status)), receipt, keptEarly);
  return look();
}

/** A value and its end: a store forgets when it likes, by a clock of its own. */
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
