import type { StoreDeadline } from "../core/deadline.js";
import type { Records } from "../core/records/records.js";
import type { Authentication, OutboxEvent } from "../domain/authentication.js";
import type { MemberClaim } from "../domain/claim.js";
import { deadEvent } from "../domain/delivery.js";
import { day } from "../domain/time.js";
import type { Store } from "../ports/store.js";

/** A delivery status that was given up. */
export interface DeadLetter {
  readonly customer_uuid: string;
  readonly authentication_uuid: string;
  /** For `redeliver`. */
  readonly sequence: number;
  readonly callback_url: string;
  readonly status: string;
  /** Why it was given up. */
  readonly reason: string;
}

/** The list of all of them: "what is given up is kept visible" (docs/contract.md#dead-letters). `dead` stands where other windows name a customer. */
const list = "dead:letters";

/** Longer than the records that it names stay. Milliseconds. */
const listed = 8 * day;

/** Records read at a time. */
const parallel = 32;

/** Enters an event that was given up into the list. */
export function listing({ customer, id }: Authentication, { sequence, nextAt: now }: OutboxEvent): MemberClaim {
  return { window: list, member: `${customer}/${id}/${sequence}`, now, since: now - listed, keepUntil: now + listed };
}

/** How many the list names, up to `limit`; those whose record is gone by now included. */
export async function countDeadLetters(store: Store, deadline: () => StoreDeadline, limit: number): Promise<number> {
  return (await deadline().call(() => store.members(list, limit))).length;
}

/** The newest `limit` of the list, as far as they are still there. Every read has a deadline of its own. */
export async function readDeadLetters(store: Store, records: Records, deadline: () => StoreDeadline, limit: number): Promise<DeadLetter[]> {
  const members = await deadline().call(() => store.members(list, limit));
  const letters: DeadLetter[] = [];
  for (let at = 0; at < members.length; at += parallel) {
    const read = await Promise.all(members.slice(at, at + parallel).map((member) => readLetter(records, deadline(), member)));
    letters.push(...read.filter((letter) => letter !== undefined));
  }
  return letters;
}

async function readLetter(records: Records, deadline: StoreDeadline, member: string): Promise<DeadLetter | undefined> {
  const [customer = "", id = "", sequence] = member.split("/");
  // A record that cannot be read was reported; it hides no other.
  const held = await records.find(deadline, customer, id).catch(() => undefined);
  const event = held && deadEvent(held.auth, Number(sequence));
  if (held === undefined || event?.dead === undefined) return undefined;
  return {
    customer_uuid: customer,
    authentication_uuid: id,
    sequence: event.sequence,
    callback_url: held.auth.callbackUrl as string,
    status: event.status,
    reason: event.dead,
  };
}
