import type { StoreDeadline } from "../../core/deadline.js";
import { type Decided, transact, update } from "../../core/records/transact.js";
import {
  type Changed,
  type CustomerKey,
  type CustomerRecord,
  type KeyStatus,
  keyStatus,
  mostUsableKeys,
  withKey,
  withKeyInPlaceOf,
  withoutKey,
} from "../../domain/customers.js";
import { defined } from "../../domain/defined.js";
import type { PolicyOverride } from "../../domain/policy.js";
import { timestamp } from "../../domain/time.js";
import { VerifierError } from "../../errors.js";
import { readCustomerCall } from "../../options/options.js";
import { digestOf, generateApiKey } from "../accounts.js";
import { customerRecordId, keyClaim, lastUseOf, listedCustomers, listing, neverExpires, ownerOf, revocationOf, underCurrentSecret } from "./records.js";
import type { StoredCustomersParts } from "./source.js";

/** A customer in the store. */
export interface StoredCustomer {
  /** Sent as `customer_uuid` in bodies and as the `customer-uuid` header of lookup. */
  readonly customer_uuid: string;
  readonly name?: string;
  readonly status: "active" | "suspended";
  /** `YYYY-MM-DDTHH:MM:SS.sssZ`, like all times here. */
  readonly created_at: string;
  readonly suspended_at?: string;
  /** The customer's changes to the verifier's policy. */
  readonly policy?: PolicyOverride;
  /** How many of its own secrets sign its callbacks; 0: derived ones do. `verifier.webhookSecrets` returns them. */
  readonly webhook_secrets: number;
}

/** A change of a customer. Omitted fields stay unchanged; `null` removes. */
export interface CustomerChange {
  /** For display: 1 to 128 printable characters. */
  readonly name?: string | null | undefined;
  /** Checked like the options, including the guess budget; up to 16 KiB as JSON. */
  readonly policy?: PolicyOverride | null | undefined;
  /** Up to 10 of `whsec_<base64>` of 24 to 64 bytes, current first. Encrypted under the verifier's `secret`. */
  readonly webhookSecrets?: readonly string[] | null | undefined;
}

/** A new customer. Accepts an entry of the option `customers` unchanged. */
export interface NewCustomer extends CustomerChange {
  /** Default: a new UUID. */
  readonly customer_uuid?: string | undefined;
  /** Existing keys or their digests, up to two. Default: none. */
  readonly keys?: readonly string[] | undefined;
  /** Default: false. */
  readonly suspended?: boolean | null | undefined;
}

/** An API key, without the key itself. */
export interface StoredKey {
  /** The first 16 hexadecimal digits of the key's SHA-256: `printf %s "$KEY" | sha256sum | cut -c 1-16`. */
  readonly key_id: string;
  readonly name?: string;
  /** `ending`: usable until `ends_at`. */
  readonly status: KeyStatus;
  readonly created_at: string;
  readonly ends_at?: string;
  readonly revoked_at?: string;
  /** `YYYY-MM-DD`, UTC. Each process writes it in the background, at most once an hour. Absent: never used. */
  readonly last_used_on?: string;
}

/** A new API key. */
export interface IssuedKey extends StoredKey {
  /** For the x-api-key header. Returned only once: the store keeps only its SHA-256. */
  readonly key: string;
}

/** Names the customer of a call. */
export interface OfCustomer {
  readonly customer_uuid: string;
}

/** API keys of the customers in the store, up to two in use per customer. */
export interface StoredKeys {
  /** Adds a key. Rejects with `bad_request` if two are in use. */
  issue(of: OfCustomer & { readonly name?: string | null | undefined }): Promise<IssuedKey>;
  /**
   * Replaces a key, which still works for `overlap` seconds: 0 to a year, default 86,400. `key_id` may be omitted if
   * exactly one key has no end yet. Rejects with `bad_request` if a third key is in use.
   */
  rotate(
    of: OfCustomer & { readonly key_id?: string | undefined; readonly overlap?: number | undefined; readonly name?: string | null | undefined },
  ): Promise<IssuedKey>;
  /** Revokes a key for good: here at once, everywhere within two seconds. Repeatable. `bad_request`: unknown key. */
  revoke(of: OfCustomer & { readonly key_id: string }): Promise<StoredKey>;
  /** Lists the keys in use and the last eight others, newest first. */
  list(of: OfCustomer): Promise<readonly StoredKey[]>;
}

/**
 * The customers of a verifier with `customers: "store"`; otherwise calls reject with `invalid_options`.
 * `account_invalid`: unknown customer. `unavailable`: the store failed, and the change may have been made; check before
 * repeating it.
 */
export interface CustomersOfStore {
  /** Rejects with `bad_request` if the UUID is taken, or a key belongs to another customer or was revoked. */
  create(customer?: NewCustomer): Promise<StoredCustomer>;
  get(of: OfCustomer): Promise<StoredCustomer>;
  /** Lists customers, newest first. `limit`: 1 to 1,000; default 100. `after`: the last UUID of the previous page. */
  list(page?: { readonly limit?: number | undefined; readonly after?: string | undefined }): Promise<readonly StoredCustomer[]>;
  update(change: OfCustomer & CustomerChange): Promise<StoredCustomer>;
  /**
   * Rejects the customer's requests until `resume`: here at once, everywhere within two seconds. Its keys are rejected
   * like invalid ones, direct calls with `account_invalid`. Pending callbacks are still delivered.
   */
  suspend(of: OfCustomer): Promise<StoredCustomer>;
  resume(of: OfCustomer): Promise<StoredCustomer>;
  readonly keys: StoredKeys;
}

export interface CustomersParts extends StoredCustomersParts {
  /** Whether the verifier stores its customers. */
  readonly inUse: boolean;
  /** Called after every change, even a failed one. */
  readonly invalidate: (customerUuid: string) => void;
}

/** Records read in parallel. */
const parallel = 32;

export function createCustomers(parts: CustomersParts): CustomersOfStore {
  const { settings, store, clock, newDeadline, keyring, records, seals, inUse, invalidate } = parts;

  const parse = <Call extends Parameters<typeof readCustomerCall>[1]>(call: Call, given: unknown) => {
    if (!inUse) throw new VerifierError("invalid_options", 'phoneproof: customers are not kept in the store: create the verifier with customers: "store"');
    return readCustomerCall(settings, call, given);
  };

  const find = async (uuid: string, deadline: StoreDeadline): Promise<CustomerRecord> => {
    const found = await records.find(deadline, uuid, customerRecordId);
    if (found === undefined) throw unknownCustomer();
    return found.auth;
  };

  /** Changes a customer in one commit, based on the record that `decide` received. */
  const change = async (uuid: string, deadline: StoreDeadline, decide: (customer: CustomerRecord) => Changed): Promise<CustomerRecord> => {
    try {
      const changed = await update<Changed, CustomerRecord>(records, deadline, uuid, customerRecordId, (customer) => {
        const result = decide(customer);
        if (result.next === undefined) return { result };
        const next = underCurrentSecret(seals, result.next);
        return { result: { next }, next: next === customer ? undefined : next };
      });
      if (changed === undefined) throw unknownCustomer();
      return accepted(changed);
    } finally {
      invalidate(uuid);
    }
  };

  /** Stores the key's owner before the customer has the key: if the call fails here, the key grants no access. */
  const writeOwner = async (uuid: string, digest: string, deadline: StoreDeadline): Promise<void> => {
    const [owner, revoked] = await deadline.call(() => Promise.all([store.get(ownerOf(digest)), store.get(revocationOf(digest))]));
    if (revoked !== undefined) throw refused("keys contains a revoked key: it stays revoked, so issue another.");
    const other = owner === undefined || owner === uuid ? undefined : await records.find(deadline, owner, customerRecordId);
    if (other?.auth.keys.some((key) => key.digest === digest)) throw refused("keys contains a key of another customer: each key belongs to one customer.");
    await deadline.call(() => store.put(ownerOf(digest), uuid, neverExpires(clock.now())));
  };

  const newKey = (digest: string, name?: string | null): CustomerKey => ({ id: digest.slice(0, 16), digest, name: name ?? undefined, createdAt: clock.now() });

  const issue = async (uuid: string, name: string | null | undefined, decide: (customer: CustomerRecord, key: CustomerKey) => Changed): Promise<IssuedKey> => {
    const deadline = newDeadline();
    // Check first: nothing is stored for a key that cannot be issued.
    accepted(decide(await find(uuid, deadline), newKey("")));
    const { key } = generateApiKey();
    const made = newKey(digestOf(key), name);
    await writeOwner(uuid, made.digest, deadline);
    await change(uuid, deadline, (customer) => decide(customer, made));
    return { ...shownKey(made, clock.now()), key };
  };

  const setSuspended = async (given: unknown, suspended: boolean): Promise<StoredCustomer> => {
    const { customer_uuid } = parse("named", given);
    const changed = await change(customer_uuid, newDeadline(), (customer) => {
      if (suspended === (customer.suspendedAt !== undefined)) return { next: customer };
      return { next: { ...customer, suspendedAt: suspended ? clock.now() : undefined } };
    });
    return shown(changed);
  };

  const shown = ({ uuid, name, createdAt, suspendedAt, policy, sealed }: CustomerRecord): StoredCustomer =>
    defined({
      customer_uuid: uuid,
      name,
      status: suspendedAt === undefined ? "active" : "suspended",
      created_at: timestamp(createdAt),
      suspended_at: timestampOrNone(suspendedAt),
      policy,
      // Secrets that can no longer be decrypted count as one.
      webhook_secrets: sealed === undefined ? 0 : (seals.open(uuid, sealed)?.texts.length ?? 1),
    });

  const withChange = (customer: CustomerRecord, { name, policy, webhookSecrets }: CustomerChange): CustomerRecord => ({
    ...customer,
    ...(name !== undefined && { name: name ?? undefined }),
    ...(policy !== undefined && { policy: policy ?? undefined }),
    ...(webhookSecrets !== undefined && { sealed: webhookSecrets === null ? undefined : seals.seal(customer.uuid, webhookSecrets) }),
  });

  return {
    async create(given = {}) {
      const { customer_uuid: uuid = keyring.newId(), keys, suspended, ...change } = parse("create", given);
      const digests = [...new Set(keys.map(digestOf))];
      if (digests.length > mostUsableKeys) throw refused("keys contains more than two keys: a customer can have two in use.");
      const now = clock.now();
      const newest = digests.map((digest) => newKey(digest)).reverse();
      const customer = withChange({ uuid, createdAt: now, suspendedAt: suspended ? now : undefined, keys: newest }, change);
      const taken = () => refused("A customer with this customer_uuid already exists; use update.");
      const deadline = newDeadline();
      if ((await records.find(deadline, uuid, customerRecordId)) !== undefined) throw taken();
      const moment = { now, skew: settings.clockSkew };
      const claims = digests.map((digest) => keyClaim(uuid, digest, moment));
      if (claims.length > 0 && !(await deadline.call(() => store.commit({ claims, counts: [] }))).done)
        throw refused("keys contains a key that another create named within the last minute: each key belongs to one customer.");
      for (const digest of digests) await writeOwner(uuid, digest, deadline);
      const decide = (found: unknown): Decided<boolean, CustomerRecord> =>
        found === undefined ? { result: true, next: customer, claims: [listing(customer)] } : { result: false };
      const created = await transact(records, deadline, uuid, customerRecordId, decide, true).finally(() => invalidate(uuid));
      if (!created.result) throw taken();
      return shown(customer);
    },

    async get(given) {
      const { customer_uuid } = parse("named", given);
      return shown(await find(customer_uuid, newDeadline()));
    },

    async list(given = {}) {
      const { limit, after } = parse("list", given);
      const all = await listedCustomers(store, newDeadline());
      if (after !== undefined && !all.includes(after)) throw refused("after is not a known customer_uuid.");
      const customers: StoredCustomer[] = [];
      for (let at = after === undefined ? 0 : all.indexOf(after) + 1; at < all.length && customers.length < limit; at += parallel) {
        const found = await Promise.all(all.slice(at, at + parallel).map((uuid) => records.find(newDeadline(), uuid, customerRecordId)));
        customers.push(...found.flatMap((one) => (one === undefined ? [] : shown(one.auth))));
      }
      return customers.slice(0, limit);
    },

    async update(given) {
      const { customer_uuid, ...own } = parse("update", given);
      return shown(await change(customer_uuid, newDeadline(), (customer) => ({ next: withChange(customer, own) })));
    },

    suspend: (given) => setSuspended(given, true),
    resume: (given) => setSuspended(given, false),

    keys: {
      async issue(given) {
        const { customer_uuid, name } = parse("issue", given);
        return issue(customer_uuid, name, (customer, key) => withKey(customer, key, clock.now()));
      },

      async rotate(given) {
        const { customer_uuid, key_id, overlap, name } = parse("rotate", given);
        return issue(customer_uuid, name, (customer, key) => withKeyInPlaceOf(customer, key_id, key, overlap, clock.now()));
      },

      async revoke(given) {
        const { customer_uuid, key_id } = parse("revoke", given);
        const deadline = newDeadline();
        const keyIn = ({ keys }: CustomerRecord) => keys.find(({ id }) => id === key_id);
        const key = keyIn(await find(customer_uuid, deadline));
        // Before the record: a key that is revoked there is always known as revoked.
        if (key !== undefined) await deadline.call(() => store.put(revocationOf(key.digest), customer_uuid, neverExpires(clock.now())));
        const changed = await change(customer_uuid, deadline, (customer) => withoutKey(customer, key_id, clock.now()));
        return shownKey(keyIn(changed) as CustomerKey, clock.now());
      },

      async list(given) {
        const { customer_uuid } = parse("named", given);
        const deadline = newDeadline();
        const { keys } = await find(customer_uuid, deadline);
        const days = await deadline.call(() => Promise.all(keys.map(({ digest }) => store.get(lastUseOf(digest)))));
        return keys.map((key, at) => shownKey(key, clock.now(), days[at]));
      },
    },
  };
}

function shownKey(key: CustomerKey, now: number, lastUsedOn?: string): StoredKey {
  const { id, name, createdAt, endsAt, revokedAt } = key;
  return defined({
    key_id: id,
    name,
    status: keyStatus(key, now),
    created_at: timestamp(createdAt),
    ends_at: timestampOrNone(endsAt),
    revoked_at: timestampOrNone(revokedAt),
    last_used_on: lastUsedOn,
  });
}

const timestampOrNone = (ms: number | undefined) => (ms === undefined ? undefined : timestamp(ms));

function accepted({ next, problem }: Changed): CustomerRecord {
  if (problem !== undefined) throw refused(`${problem}.`);
  return next;
}

function refused(message: string): VerifierError {
  return new VerifierError("bad_request", message);
}

function unknownCustomer(): VerifierError {
  return new VerifierError("account_invalid", "customer_uuid is not a customer in the store.");
}
