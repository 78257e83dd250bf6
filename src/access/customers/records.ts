import type { StoreDeadline } from "../../core/deadline.js";
import type { Keyring } from "../../core/keyring.js";
import { type Held, keptTokens, type RecordsOf } from "../../core/records/records.js";
import type { MemberClaim } from "../../domain/claim.js";
import type { KeptCustomer } from "../../domain/customers.js";
import { day } from "../../domain/time.js";
import type { Clock } from "../../ports/clock.js";
import type { Expiry, Store, StoredRecord } from "../../ports/store.js";
import { decodeCustomer, encodeCustomer } from "./codec.js";

/*
 * How customers lie in a store:
 *
 * - the customer with all its keys is one record, so that of two changes one comes after the other, and a revocation is never undone. No authentication can have its id, which is no UUID
 * - beside it, under the digest of each key, the UUID of the customer that it was made for: a signpost. What it leads to decides; a key that does not stand there lets nobody in
 * - and, under the digest again, the day of its last use, which nothing depends on
 * - all UUIDs are members of sixteen windows, so that they can be listed
 *
 * A record is written after its signposts and with its membership: whatever breaks off in between leaves names that lead nowhere.
 */

/** The id of the record of a customer. */
export const customerRecord = "customer";

/** For good, as far as stores can tell: fifty years from the last write. Milliseconds. */
const forGood = 50 * 365 * day;

export function keptForGood(now: number): Expiry {
  return { now, keepUntil: now + forGood };
}

export const signpost = (digest: string) => `api-key:${digest}`;
export const lastUse = (digest: string) => `api-key-used:${digest}`;

/** "the window may keep its newest 10,000 only" (domain/claim.ts), so that there are sixteen of them. `customers` stands where other windows name a customer. */
const registers = Array.from("0123456789abcdef", (digit) => `customers:${digit}`);
const mostListed = 10_000;

/** Enters a customer into the list of all. */
export function listing({ uuid, createdAt: now }: KeptCustomer): MemberClaim {
  return { window: `customers:${uuid.slice(-1)}`, member: `${now}/${uuid}`, since: 0, ...keptForGood(now) };
}

/** The UUIDs of all customers, the newest first; among them perhaps some that were never written. */
export async function listedCustomers(store: Store, deadline: StoreDeadline): Promise<string[]> {
  const members = await deadline.call(() => Promise.all(registers.map((register) => store.members(register, mostListed))));
  const entries = members.flat().map((member) => member.split("/") as [createdAt: string, uuid: string]);
  const newestFirst = entries.sort(([a, one], [b, other]) => Number(b) - Number(a) || (one < other ? -1 : 1));
  return newestFirst.map(([, uuid]) => uuid);
}

/** Customers in the store. */
export function createCustomerRecords({
  store,
  keyring,
  clock,
}: {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly clock: Clock;
}): RecordsOf<KeptCustomer> {
  return {
    find: (deadline, uuid, id) =>
      deadline.call(async () => {
        const stored = await store.find(uuid, id);
        return stored && heldOf(stored);
      }),

    async commit(deadline, { next, before, claims = [] }) {
      const tokens = [keyring.newToken(), ...(before?.tokens ?? [])].slice(0, keptTokens);
      const record = { customer: next.uuid, id: customerRecord, tokens, data: encodeCustomer(next), ...keptForGood(clock.now()) };
      const result = await deadline.call(() => store.commit({ claims, counts: [], record, expected: before?.tokens[0] ?? null }));
      if (result.done || result.refusedBy !== undefined) return result;
      return { done: false, held: result.current && heldOf(result.current) };
    },

    recall: () => undefined,
  };
}

function heldOf({ customer, data, tokens }: StoredRecord): Held<KeptCustomer> {
  return { auth: decodeCustomer(customer, data), tokens };
}
