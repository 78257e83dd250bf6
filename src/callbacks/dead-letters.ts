import { chunksOf } from "../core/collections.js";
import type { Core } from "../core/core.js";
import type { StoreDeadline } from "../core/deadline.js";
import type { Authentication, OutboxEvent } from "../domain/authentication.js";
import type { MemberClaim } from "../domain/claim.js";
import { deadEvent, keptUndelivered as listed } from "../domain/delivery.js";

/** A delivery status whose callback was given up. */
export interface DeadLetter {
  readonly customer_uuid: string;
  readonly authentication_uuid: string;
  /** Identifies the event for `redeliver`. */
  readonly sequence: number;
  readonly callback_url: string;
  readonly status: string;
  /** The reason for giving up. */
  readonly reason: string;
}

/**
 * The window that lists all of them: "Events that were given up remain listed" (docs/contract.md#dead-letters).
 * `dead` takes the place of the customer in other window names.
 */
const list = "dead:letters";

/** Records read in parallel. */
const parallel = 32;

/** The claim that adds a given-up event to the list. */
export function listing({ customer, id }: Authentication, { sequence, nextAt: now }: OutboxEvent): MemberClaim {
  return { window: list, member: `${customer}/${id}/${sequence}`, now, since: now - listed, keepUntil: now + listed };
}

/** Counts the list's entries, up to `limit`, including those whose record has ended. */
export async function countDeadLetters({ store }: Core, deadline: StoreDeadline, limit: number): Promise<number> {
  return (await deadline.call(() => store.members(list, limit))).length;
}

/** Returns the newest `limit` entries whose records still exist. Each read has its own deadline. */
export async function readDeadLetters(parts: Core, limit: number): Promise<DeadLetter[]> {
  const { newDeadline, store } = parts;
  const members = await newDeadline().call(() => store.members(list, limit));
  const letters: DeadLetter[] = [];
  for (const some of chunksOf(members, parallel)) {
    const read = await Promise.all(some.map((member) => readLetter(parts, member)));
    letters.push(...read.filter((letter) => letter !== undefined));
  }
  return letters;
}

async function readLetter({ newDeadline, records }: Core, member: string): Promise<DeadLetter | undefined> {
  const [customer = "", id = "", sequence] = member.split("/");
  // An unreadable record was already reported; the others are still returned.
  const held = await records.find(newDeadline(), customer, id).catch(() => undefined);
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
