import { timingSafeEqual } from "node:crypto";
import { agedCache } from "../../core/collections.js";
import type { Core } from "../../core/core.js";
import { withTimeout } from "../../core/deadline.js";
import type { RecordsOf } from "../../core/records/records.js";
import { type Decided, update } from "../../core/records/transact.js";
import type { Seals } from "../../core/seal.js";
import { throttledLogger } from "../../core/throttled-logger.js";
import { type CustomerKey, type CustomerRecord, isUsable } from "../../domain/customers.js";
import { isPromise } from "../../domain/promises.js";
import { day, hour, minute, timestamp } from "../../domain/time.js";
import type { Customer, Customers } from "../../ports/customers.js";
import type { StoredRecord } from "../../ports/store.js";
import { customerRecordId, decodeCustomer, lastUseOf, neverExpires, ownerOf, underCurrentSecret } from "./records.js";

/** Milliseconds between the starts of two reads: a revoked key stops working within two seconds. */
const freshFor = 1_000;

const mostCached = 4_096;
/** Unknown keys have their own cache, so that they cannot evict known ones. */
const mostUnknownKeys = 1_024;

/** Minimum interval in milliseconds between writes of a key's last use by this process. */
const writeInterval = hour;

/**
 * Minimum interval in milliseconds between re-encryptions of a customer's secrets by any process: in a rotation, some
 * still have the secrets in the old order and would write in turn with the others.
 */
const reencryptionInterval = minute;

/** A customer as read from the store. */
interface Snapshot {
  /** Identifies the write that was read. */
  readonly token: string | undefined;
  /** The same object until the next write, so that its policy is evaluated only once. */
  readonly customer: Customer;
  readonly keys: readonly CustomerKey[];
  /** The record, if its secrets are not encrypted under the current secret. */
  readonly outdated: CustomerRecord | undefined;
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

/** If the store fails, no data older than a second grants access (docs/contract.md#customer-source-fails). */
export function storedCustomers(parts: StoredCustomersParts): StoredCustomers {
  const { store, clock, logger, settings, newDeadline, inBackground, records, seals } = parts;
  const throttledLog = throttledLogger(clock, logger);
  const reads = agedCache<LastRead>(clock, mostCached, day);
  const owners = agedCache<Owner>(clock, mostCached, day);
  const unknownKeys = agedCache<number>(clock, mostUnknownKeys, day);
  /** When this process last failed to re-encrypt a customer's secrets. */
  const failedAt = agedCache<number>(clock, mostCached, day);

  /** Setting the clock back does not extend the time. */
  const isWithin = (ms: number, since = Number.NEGATIVE_INFINITY) => {
    const age = clock.now() - since;
    return age >= 0 && age < ms;
  };

  const writeInBackground = (write: () => Promise<unknown>, failure: string, fields: Record<string, string>) =>
    inBackground(withTimeout(clock, settings.storeTimeout, write).catch((err: unknown) => throttledLog.warn({ err, ...fields }, failure)));

  /** Re-encrypts a customer's secrets under the current secret, so that the previous one can be removed. */
  const reencrypt = ({ uuid, reencryptedAt }: CustomerRecord) => {
    if ([reencryptedAt, failedAt.get(uuid)].some((at) => isWithin(reencryptionInterval, at))) return;
    const decide = (customer: CustomerRecord): Decided<void, CustomerRecord> => {
      const next = underCurrentSecret(seals, customer);
      return { result: undefined, next: next === customer ? undefined : { ...next, reencryptedAt: clock.now() } };
    };
    const write = () =>
      update(records, newDeadline(), uuid, customerRecordId, decide).catch((error) => {
        failedAt.set(uuid, clock.now());
        throw error;
      });
    writeInBackground(write, "webhook secrets could not be re-encrypted; this will be retried", { customer_uuid: uuid });
  };

  const secretsOf = ({ uuid, sealed }: CustomerRecord) => {
    if (sealed === undefined) return { texts: undefined, current: true };
    const opened = seals.open(uuid, sealed);
    if (opened === undefined)
      throw new Error(`the option secret lists no secret that decrypts the webhook secrets of customer ${uuid}: add it, or set them again`);
    return opened;
  };

  const parse = (uuid: string, { tokens: [token], data }: StoredRecord): Snapshot => {
    const record = decodeCustomer(uuid, data);
    const { policy, suspendedAt, keys } = record;
    const { texts, current } = secretsOf(record);
    const customer = { customer_uuid: uuid, policy, webhookSecrets: texts, suspended: suspendedAt !== undefined };
    return { token, keys, customer, outdated: current ? undefined : record };
  };

  const read = async (uuid: string, last: Snapshot | undefined): Promise<Snapshot | undefined> => {
    const stored = await store.find(uuid, customerRecordId);
    if (stored === undefined) return undefined;
    const snapshot = last !== undefined && last.token === stored.tokens[0] ? last : parse(uuid, stored);
    if (snapshot.outdated !== undefined) reencrypt(snapshot.outdated);
    return snapshot;
  };

  /** A customer no older than a second. Concurrent requests share one read. */
  const load = (uuid: string): LastRead["snapshot"] => {
    const before = reads.get(uuid);
    if (before !== undefined && isWithin(freshFor, before.startedAt)) return before.snapshot;
    const startedAt = clock.now();
    const reading = read(uuid, isPromise(before?.snapshot) ? undefined : before?.snapshot);
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
  return isPromise(snapshot) ? snapshot.then(use) : use(snapshot);
}
