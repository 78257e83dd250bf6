import { timingSafeEqual } from "node:crypto";
import { agedCache } from "../../core/collections.js";
import type { Core } from "../../core/core.js";
import { withTimeout } from "../../core/deadline.js";
import type { RecordsOf } from "../../core/records/records.js";
import { update } from "../../core/records/transact.js";
import type { Seals } from "../../core/seal.js";
import { type CustomerKey, type CustomerRecord, isUsable } from "../../domain/customers.js";
import { day, hour, timestamp } from "../../domain/time.js";
import type { Customer, Customers } from "../../ports/customers.js";
import { decodeCustomer } from "./codec.js";
import { customerRecordId, lastUseOf, neverExpires, ownerOf } from "./records.js";

/** Milliseconds between the starts of two reads: a revoked key stops working within two seconds. */
const freshFor = 1_000;

const mostCached = 4_096;
/** Unknown keys have their own cache, so that they cannot evict known ones. */
const mostUnknownKeys = 1_024;

/**
 * Minimum interval in milliseconds between writes of a key's last use, and between re-encryptions of a customer's
 * secrets.
 */
const writeInterval = hour;

/** A customer as read from the store. */
interface Snapshot {
  /** Identifies the write that was read. */
  readonly token: string | undefined;
  /** The same object until the next write, so that its policy is evaluated only once. */
  readonly customer: Customer;
  readonly keys: readonly CustomerKey[];
}

/** The last read of a customer; a promise while it is in progress. */
interface LastRead {
  readonly startedAt: number;
  snapshot: Snapshot | undefined | Promise<Snapshot | undefined>;
}

/** The customer of a key. */
interface Owner {
  readonly uuid: string;
  /** When this process last wrote the last use of the key. */
  lastUseWrittenAt?: number;
}

export interface StoredCustomers extends Customers {
  /** Drops cached data of a customer that this process changed. */
  invalidate(customerUuid: string): void;
}

export interface StoredCustomersParts extends Omit<Core, "records"> {
  readonly records: RecordsOf<CustomerRecord>;
  readonly seals: Seals;
}

/**
 * The customers in the store. If the store fails, no data older than a second grants access
 * (docs/contract.md#customer-source-fails).
 */
export function storedCustomers(parts: StoredCustomersParts): StoredCustomers {
  const { store, clock, logger, settings, newDeadline, inBackground, records, seals } = parts;
  const reads = agedCache<LastRead>(clock, mostCached, day);
  const owners = agedCache<Owner>(clock, mostCached, day);
  const unknownKeys = agedCache<number>(clock, mostUnknownKeys, day);
  const reencryptedAt = agedCache<number>(clock, mostCached, day);

  /** Setting the clock back does not extend the time. */
  const isWithin = (ms: number, since = Number.NEGATIVE_INFINITY) => {
    const age = clock.now() - since;
    return age >= 0 && age < ms;
  };

  const writeInBackground = (write: () => Promise<unknown>, failure: string, fields: Record<string, string>) =>
    inBackground(withTimeout(clock, settings.storeTimeout, write).catch((err: unknown) => logger.warn({ err, ...fields }, failure)));

  /** Re-encrypts a customer's secrets under the current secret, so that the previous one can be removed. */
  const reencrypt = (uuid: string) =>
    update<void, CustomerRecord>(records, newDeadline(), uuid, customerRecordId, (customer) => {
      const opened = customer.sealed && seals.open(uuid, customer.sealed);
      return { result: undefined, next: opened && !opened.current ? { ...customer, sealed: seals.seal(uuid, opened.texts) } : undefined };
    });

  const secretsOf = ({ uuid, sealed }: CustomerRecord): readonly string[] | undefined => {
    if (sealed === undefined) return undefined;
    const opened = seals.open(uuid, sealed);
    if (opened === undefined)
      throw new Error(`the option secret lists no secret that decrypts the webhook secrets of customer ${uuid}: add it, or set them again`);
    if (!opened.current && !isWithin(writeInterval, reencryptedAt.get(uuid))) {
      reencryptedAt.set(uuid, clock.now());
      writeInBackground(() => reencrypt(uuid), "webhook secrets could not be re-encrypted; this will be retried", { customer_uuid: uuid });
    }
    return opened.texts;
  };

  const read = async (uuid: string, last: Snapshot | undefined): Promise<Snapshot | undefined> => {
    const stored = await store.find(uuid, customerRecordId);
    if (stored === undefined) return undefined;
    const [token] = stored.tokens;
    if (last !== undefined && last.token === token) return last;
    const record = decodeCustomer(uuid, stored.data);
    const { policy, suspendedAt, keys } = record;
    return { token, keys, customer: { customer_uuid: uuid, policy, webhookSecrets: secretsOf(record), suspended: suspendedAt !== undefined } };
  };

  /** A customer no older than a second. Concurrent requests share one read. */
  const load = (uuid: string): LastRead["snapshot"] => {
    const before = reads.get(uuid);
    if (before !== undefined && isWithin(freshFor, before.startedAt)) return before.snapshot;
    const startedAt = clock.now();
    const reading = read(uuid, before?.snapshot instanceof Promise ? undefined : before?.snapshot);
    const current: LastRead = { startedAt, snapshot: reading };
    reads.set(uuid, current);
    reading.then(
      (snapshot) => (current.snapshot = snapshot),
      () => reads.get(uuid) === current && reads.delete(uuid),
    );
    return reading;
  };

  /** "compared in constant time" (docs/contract.md#api-keys). */
  const keyIn = (snapshot: Snapshot | undefined, digest: string): CustomerKey | undefined => {
    const key = snapshot?.keys.find(({ id }) => digest.startsWith(id));
    return key !== undefined && timingSafeEqual(Buffer.from(key.digest, "hex"), Buffer.from(digest, "hex")) ? key : undefined;
  };

  const unknownKey = (digest: string, askedAt: number): undefined => {
    owners.delete(digest);
    unknownKeys.set(digest, askedAt);
  };

  /** Returns the customer if the key is usable. */
  const admit = (digest: string, owner: Owner, snapshot: Snapshot | undefined, askedAt: number): Customer | undefined => {
    const key = keyIn(snapshot, digest);
    if (snapshot === undefined || key === undefined) return unknownKey(digest, askedAt);
    owners.set(digest, owner);
    const now = clock.now();
    if (!isUsable(key, now)) return undefined;
    if (!snapshot.customer.suspended && !isWithin(writeInterval, owner.lastUseWrittenAt)) {
      owner.lastUseWrittenAt = now;
      const today = timestamp(now).slice(0, "2026-01-01".length);
      const fields = { customer_uuid: owner.uuid, key_id: key.id };
      writeInBackground(() => store.put(lastUseOf(digest), today, neverExpires(now)), "the last use of an API key could not be written", fields);
    }
    return snapshot.customer;
  };

  /** Looks up a key that is not cached. */
  const findOwner = async (digest: string): Promise<Customer | undefined> => {
    const askedAt = clock.now();
    const uuid = await store.get(ownerOf(digest));
    if (uuid === undefined) return unknownKey(digest, askedAt);
    // The cached customer may be older than its key.
    if (keyIn(await load(uuid), digest) === undefined) reads.delete(uuid);
    return admit(digest, owners.get(digest) ?? { uuid }, await load(uuid), askedAt);
  };

  return {
    findByKeyDigest(digest) {
      const owner = owners.get(digest);
      if (owner === undefined) return isWithin(freshFor, unknownKeys.get(digest)) ? undefined : findOwner(digest);
      const askedAt = clock.now();
      return whenLoaded(load(owner.uuid), (snapshot) => admit(digest, owner, snapshot, askedAt));
    },
    find: (customerUuid) => whenLoaded(load(customerUuid), (snapshot) => snapshot?.customer),
    invalidate: (customerUuid) => reads.delete(customerUuid),
  };
}

/** Synchronous for a cached snapshot. */
function whenLoaded<R>(snapshot: LastRead["snapshot"], use: (snapshot: Snapshot | undefined) => R): R | Promise<R> {
  return snapshot instanceof Promise ? snapshot.then(use) : use(snapshot);
}
