import type { Core } from "../../core/core.js";
import type { StoreDeadline } from "../../core/deadline.js";
import { CorruptRecord } from "../../core/records/codec.js";
import { keptTokens, type RecordsOf } from "../../core/records/records.js";
import type { Seals } from "../../core/seal.js";
import { type MemberClaim, type Moment, sinceOf } from "../../domain/claim.js";
import type { CustomerKey, CustomerRecord } from "../../domain/customers.js";
import { day, minute } from "../../domain/time.js";
import type { Expiry, Store, StoredRecord } from "../../ports/store.js";

// A customer and its keys are one record, so that no change overwrites another. A key's owner is written under its
// digest first: an interrupted write leaves owners without a key, and only keys in the record grant access.

/** The id of a customer's record. It is not a UUID, so no authentication can have it. */
export const customerRecordId = "customer";

/** Fifty years from the last write, in milliseconds: stores require an end, and customers have none. */
const forGood = 50 * 365 * day;

export function neverExpires(now: number): Expiry {
  return { now, keepUntil: now + forGood };
}

/** Where the UUID of a key's customer is stored. */
export const ownerOf = (digest: string) => `api-key:${digest}`;
/** Where it is stored that a key was revoked, since the record forgets old keys. */
export const revocationOf = (digest: string) => `api-key-revoked:${digest}`;
/** Where the day of a key's last use is stored. */
export const lastUseOf = (digest: string) => `api-key-used:${digest}`;

/** "the window may keep its newest 10,000 only" (domain/claim.ts), so all customers are listed in sixteen. */
const listWindows = Array.from("0123456789abcdef", (digit) => `customers:${digit}`);
const mostListed = 10_000;

/** The claim that adds a customer to the list. */
export function listing({ uuid, createdAt: now }: CustomerRecord): MemberClaim {
  return { window: `customers:${uuid.slice(-1)}`, member: `${now}/${uuid}`, since: 0, ...neverExpires(now) };
}

/** Claims a given key for a customer, for a minute: of the creates that race for it, one goes on. */
export function keyClaim(uuid: string, digest: string, moment: Moment): MemberClaim {
  const { now } = moment;
  const since = sinceOf(moment, minute);
  return { window: `customers:key:${digest}`, member: uuid, since, limit: 1, now, keepUntil: now + (now - since) };
}

/** The customer with its secrets encrypted under the current secret: the same object if they are, or nothing decrypts them. */
export function underCurrentSecret(seals: Seals, customer: CustomerRecord): CustomerRecord {
  const { uuid, sealed } = customer;
  const opened = sealed === undefined ? undefined : seals.open(uuid, sealed);
  return opened === undefined || opened.current ? customer : { ...customer, sealed: seals.seal(uuid, opened.texts) };
}

/** The UUIDs of all customers, newest first, and of those created in the same millisecond the smallest first. */
export async function listedCustomers(store: Store, deadline: StoreDeadline): Promise<string[]> {
  const members = await deadline.call(() => Promise.all(listWindows.map((window) => store.members(window, mostListed))));
  const entries = members.flat().map((member) => member.split("/") as [createdAt: string, uuid: string]);
  return entries.sort(([a, one], [b, other]) => Number(b) - Number(a) || (one < other ? -1 : 1)).map(([, uuid]) => uuid);
}

/** Access to the customers' records. */
export function createCustomerRecords({ store, keyring, clock }: Pick<Core, "store" | "keyring" | "clock">): RecordsOf<CustomerRecord> {
  return {
    find: (deadline, uuid, id) =>
      deadline.call(async () => {
        const stored = await store.find(uuid, id);
        return stored && decoded(stored);
      }),

    async commit(deadline, { next, before, claims = [] }) {
      const tokens = [keyring.newToken(), ...(before?.tokens ?? [])].slice(0, keptTokens);
      const record = { customer: next.uuid, id: customerRecordId, tokens, data: encoded(next), ...neverExpires(clock.now()) };
      const result = await deadline.call(() => store.commit({ claims, counts: [], record, expected: before?.tokens[0] ?? null }));
      if (result.done || result.refusedBy !== undefined) return result;
      return { done: false, held: result.current && decoded(result.current) };
    },

    recall: () => undefined,
  };
}

function decoded({ customer, data, tokens }: StoredRecord) {
  return { auth: decodeCustomer(customer, data), tokens };
}

/** Encodes a customer as JSON for the store. Fields must never be renamed. */
function encoded({ uuid: _, ...stored }: CustomerRecord): string {
  return JSON.stringify(stored);
}

/** Throws `CorruptRecord` if the text is invalid: unreadable keys grant no access. */
export function decodeCustomer(uuid: string, data: string): CustomerRecord {
  try {
    const stored = JSON.parse(data) as Omit<CustomerRecord, "uuid">;
    const { name, createdAt, suspendedAt, policy, sealed, reencryptedAt, keys } = stored;
    const areTimes = isTime(createdAt) && [suspendedAt, reencryptedAt].every(isTimeOrNone);
    const isSound = [name, sealed].every(isTextOrNone) && areTimes && isObjectOrNone(policy) && keys.every(isKey);
    if (!isSound) throw new TypeError("a field does not have the form that was written");
    return { ...stored, uuid };
  } catch (cause) {
    throw new CorruptRecord(`the stored customer ${uuid} is corrupt; it was left as it is`, { cause });
  }
}

function isKey({ id, digest, name, createdAt, endsAt, revokedAt }: CustomerKey): boolean {
  const isDigest = /^[0-9a-f]{64}$/.test(digest) && digest.slice(0, 16) === id;
  return isDigest && isTextOrNone(name) && isTime(createdAt) && [endsAt, revokedAt].every(isTimeOrNone);
}

const isTextOrNone = (value: unknown) => value === undefined || typeof value === "string";
const isObjectOrNone = (value: unknown) => value === undefined || (typeof value === "object" && value !== null);
const isTime = (value: unknown) => Number.isSafeInteger(value);
const isTimeOrNone = (value: unknown) => value === undefined || isTime(value);
