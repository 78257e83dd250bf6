import { timingSafeEqual } from "node:crypto";
import { agedCache } from "../../core/aged-cache.js";
import type { Core } from "../../core/core.js";
import { withTimeout } from "../../core/deadline.js";
import type { RecordsOf } from "../../core/records/records.js";
import { update } from "../../core/records/transact.js";
import { type CustomerKey, isUsable, type KeptCustomer } from "../../domain/customers.js";
import { day, hour } from "../../domain/time.js";
import type { Customer, Customers } from "../../ports/customers.js";
import { decodeCustomer } from "./codec.js";
import { customerRecord, keptForGood, lastUse, signpost } from "./records.js";
import type { Seals } from "./seal.js";

/** A revoked key stops within two seconds (docs/contract.md#key-revocation): what was asked for longer ago than this, in milliseconds, is asked for again. It counts from the question, however long the answer took. */
const fresh = 1_000;

/** Customers, and keys that are theirs, remembered. Strangers' keys have room of their own, so that they drive nobody out. */
const remembered = 4_096;
const strangersRemembered = 1_024;

/** The last use of a key is written at most so often by one process, in milliseconds; and so it is with secrets that are sealed anew. */
const writeEvery = hour;

/** A customer as it was read. */
interface Known {
  /** Token of the write that was read. */
  readonly token: string | undefined;
  /** The same object as long as nothing is written: its policy is judged once. */
  readonly customer: Customer;
  readonly keys: KeptCustomer["keys"];
}

/** What is known of a customer, or about to be. */
interface Entry {
  /** When it was asked for. */
  readonly asked: number;
  found: Known | undefined | Promise<Known | undefined>;
  /** What was known before, which need not be read anew if nothing was written. */
  last: Known | undefined;
}

/** Whom a key was made for. */
interface Owner {
  readonly uuid: string;
  /** When this process wrote its last use down. */
  notedAt: number;
}

export interface StoredCustomers extends Customers {
  /** What is known of a customer counts no longer: it was changed by this process. */
  forget(customerUuid: string): void;
}

export interface StoredCustomersParts extends Omit<Core, "records"> {
  readonly records: RecordsOf<KeptCustomer>;
  readonly seals: Seals;
}

/** The customers that the store keeps. A store that fails or hangs rejects (docs/contract.md#customer-source-fails): nobody is let in by what was known longer ago than a second. */
export function storedCustomers({
  settings: { storeTimeout },
  store,
  clock,
  logger,
  newDeadline,
  records,
  seals,
  inBackground,
}: StoredCustomersParts): StoredCustomers {
  const known = agedCache<Entry>(clock, remembered, day);
  const owners = agedCache<Owner | undefined>(clock, remembered, day);
  const strangers = agedCache<number>(clock, strangersRemembered, day);
  const sealed = agedCache<number>(clock, remembered, day);

  /** Clocks that are put back make nothing live longer. */
  const isWithin = (ms: number, since: number) => {
    const age = clock.now() - since;
    return age >= 0 && age < ms;
  };

  const quietly = (work: () => Promise<unknown>, failed: string, fields: Record<string, unknown>) =>
    inBackground(withTimeout(clock, storeTimeout, work).catch((err: unknown) => logger.warn({ err, ...fields }, failed)));

  /** Seals a customer's secrets under the current secret, so that the previous one can go. */
  const sealAnew = (uuid: string) =>
    update<void, KeptCustomer>(records, newDeadline(), uuid, customerRecord, (customer) => {
      const opened = customer.sealed === undefined ? undefined : seals.open(uuid, customer.sealed);
      return { result: undefined, next: opened === undefined || opened.current ? undefined : { ...customer, sealed: seals.seal(uuid, opened.texts) } };
    });

  const read = async (uuid: string, last: Known | undefined): Promise<Known | undefined> => {
    const record = await withTimeout(clock, storeTimeout, () => store.find(uuid, customerRecord));
    if (record === undefined) return undefined;
    const [token] = record.tokens;
    if (last !== undefined && last.token === token) return last;
    const { policy, suspendedAt, sealed: secrets, keys } = decodeCustomer(uuid, record.data);
    const opened = secrets === undefined ? undefined : seals.open(uuid, secrets);
    if (opened?.current === false && !isWithin(writeEvery, sealed.get(uuid) ?? Number.NEGATIVE_INFINITY)) {
      sealed.set(uuid, clock.now());
      quietly(() => sealAnew(uuid), "the webhook secrets of a customer could not be sealed under the current secret; it is tried again", {
        customer_uuid: uuid,
      });
    }
    return { token, keys, customer: { customer_uuid: uuid, policy, webhookSecrets: opened?.texts, suspended: suspendedAt !== undefined } };
  };

  /** A customer as it was at most a second ago. Of those who ask at once, one reads. */
  const look = (uuid: string): Entry["found"] => {
    const before = known.get(uuid);
    if (before !== undefined && isWithin(fresh, before.asked)) return before.found;
    const last = before?.last;
    const asked = clock.now();
    const reading = read(uuid, last);
    const entry: Entry = { asked, found: reading, last };
    known.set(uuid, entry);
    return reading.then(
      (found) => {
        entry.found = entry.last = found;
        return found;
      },
      (fault) => {
        if (known.get(uuid) === entry) known.set(uuid, { ...entry, asked: Number.NEGATIVE_INFINITY });
        throw fault;
      },
    );
  };

  /** "compared in constant time" (docs/contract.md#api-keys). */
  const keyIn = (found: Known | undefined, digest: string): CustomerKey | undefined => {
    const key = found?.keys.find(({ id }) => digest.startsWith(id));
    return key !== undefined && timingSafeEqual(Buffer.from(key.digest, "hex"), Buffer.from(digest, "hex")) ? key : undefined;
  };

  const forget = (uuid: string) => {
    const entry = known.get(uuid);
    if (entry !== undefined) known.set(uuid, { ...entry, asked: Number.NEGATIVE_INFINITY });
  };

  /** The customer, if the key is one that lets in. */
  const admitted = (found: Known | undefined, owner: Owner, digest: string, asked: number): Customer | undefined => {
    const key = keyIn(found, digest);
    if (found === undefined || key === undefined) {
      owners.set(digest, undefined);
      strangers.set(digest, asked);
      return undefined;
    }
    owners.set(digest, owner);
    const now = clock.now();
    if (!isUsable(key, now)) return undefined;
    if (!found.customer.suspended && !isWithin(writeEvery, owner.notedAt)) {
      owner.notedAt = now;
      const today = new Date(now).toISOString().slice(0, "2026-01-01".length);
      const fields = { customer_uuid: owner.uuid, key_id: key.id };
      quietly(() => store.put(lastUse(digest), today, keptForGood(now)), "the day of an API key's last use could not be written down", fields);
    }
    return found.customer;
  };

  const askOwner = async (digest: string): Promise<Customer | undefined> => {
    const asked = clock.now();
    const uuid = await withTimeout(clock, storeTimeout, () => store.get(signpost(digest)));
    if (uuid === undefined) {
      strangers.set(digest, asked);
      return undefined;
    }
    let found = await look(uuid);
    if (keyIn(found, digest) === undefined) {
      // What is known of the customer may be older than its key.
      forget(uuid);
      found = await look(uuid);
    }
    return admitted(found, owners.get(digest) ?? { uuid, notedAt: Number.NEGATIVE_INFINITY }, digest, asked);
  };

  return {
    findByKeyDigest(digest) {
      const owner = owners.get(digest);
      if (owner !== undefined) {
        const asked = clock.now();
        const found = look(owner.uuid);
        return found instanceof Promise ? found.then((one) => admitted(one, owner, digest, asked)) : admitted(found, owner, digest, asked);
      }
      return isWithin(fresh, strangers.get(digest) ?? Number.NEGATIVE_INFINITY) ? undefined : askOwner(digest);
    },
    find(customerUuid) {
      const found = look(customerUuid);
      return found instanceof Promise ? found.then((one) => one?.customer) : found?.customer;
    },
    forget,
  };
}
