import type { StoreDeadline } from "../../core/deadline.js";
import { type Decided, transact, update } from "../../core/records/transact.js";
import { type Changed, type CustomerKey, type KeptCustomer, type KeyStatus, keyStatus, withKey, withKeyInPlaceOf, withoutKey } from "../../domain/customers.js";
import type { PolicyOverride } from "../../domain/policy.js";
import { timestamp } from "../../domain/time.js";
import { VerifierError } from "../../errors.js";
import { readCustomerCall } from "../../options/options.js";
import type { SmsSender } from "../../ports/sms-sender.js";
import { digestOf, generateApiKey } from "../accounts.js";
import { customerRecord, keptForGood, lastUse, listedCustomers, listing, signpost } from "./records.js";
import type { StoredCustomersParts } from "./source.js";

/** A customer that the store keeps, as it is shown. */
export interface StoredCustomer {
  /** Sent as `customer_uuid` in bodies and as the `customer-uuid` header of lookup. */
  readonly customer_uuid: string;
  readonly name?: string;
  readonly status: "active" | "suspended";
  /** `YYYY-MM-DDTHH:MM:SS.sssZ`, as all times here. */
  readonly created_at: string;
  readonly suspended_at?: string;
  /** What it changes of the verifier's policy. */
  readonly policy?: PolicyOverride;
  /** How many secrets of its own sign its callbacks; 0: those made of the verifier's. `verifier.webhookSecrets` tells them. */
  readonly webhook_secrets: number;
}

/** What can be changed of a customer. Absent: as it is. `null`: taken away. */
export interface CustomerChange {
  /** For people: 1 to 128 printable characters. */
  readonly name?: string | null | undefined;
  /** Held to the same rules as the options, the guess budget included; 16 KiB as JSON at most. */
  readonly policy?: PolicyOverride | null | undefined;
  /** As `whsec_<base64>` of 24 to 64 bytes, the current one first, several while rotating, 10 at most. Kept sealed under the verifier's `secret`. */
  readonly webhookSecrets?: readonly string[] | null | undefined;
}

/** A customer to be made. One of the configuration may be handed over as it is. */
export interface NewCustomer extends CustomerChange {
  /** Default: a new one. */
  readonly customer_uuid?: string | undefined;
  /** Keys that it has already, or their digests, as in the configuration; two at most. Default: none. */
  readonly keys?: readonly string[] | undefined;
  readonly suspended?: boolean | null | undefined;
}

/** An API key, as it is shown ever after. */
export interface StoredKey {
  /** The first 16 hexadecimal digits of the key's SHA-256: `printf %s "$KEY" | sha256sum | cut -c 1-16`. */
  readonly key_id: string;
  readonly name?: string;
  /** `active`; `ending`: until `ends_at`; `ended`; `revoked`. */
  readonly status: KeyStatus;
  readonly created_at: string;
  readonly ends_at?: string;
  readonly revoked_at?: string;
  /** `YYYY-MM-DD`, UTC; written beside requests, at most once an hour by each process. Absent: never used. */
  readonly last_used_on?: string;
}

/** An API key when it was made. */
export interface IssuedKey extends StoredKey {
  /** Goes into the x-api-key header. Shown this once: the store keeps its SHA-256 alone. */
  readonly key: string;
}

/** Who a call is about. */
export interface OfCustomer {
  readonly customer_uuid: string;
}

/** API keys of the customers that the store keeps: two in use at a time. */
export interface StoredKeys {
  /** A key more. `bad_request` where two are in use. */
  issue(of: OfCustomer & { readonly name?: string | null | undefined }): Promise<IssuedKey>;
  /**
   * A key in the place of another one, which still works for `overlap` seconds: 0 to a year, default 86,400. `key_id`: the one to replace; may be left out where one alone has no end yet. `bad_request` where a third key is in use.
   */
  rotate(
    of: OfCustomer & { readonly key_id?: string | undefined; readonly overlap?: number | undefined; readonly name?: string | null | undefined },
  ): Promise<IssuedKey>;
  /** Refuses a key for good: here at once, everywhere within two seconds. May be repeated. `bad_request` where there is no such key. */
  revoke(of: OfCustomer & { readonly key_id: string }): Promise<StoredKey>;
  /** The newest first: those in use, and the last eight of those that are over. */
  list(of: OfCustomer): Promise<readonly StoredKey[]>;
}

/**
 * The customers that the store keeps, for a verifier with `customers: "store"`: what the specification calls the API settings.
 *
 * All of it rejects with a `VerifierError`: `bad_request` names what is wrong with the argument and the mend; `account_invalid`: there is no such customer; `invalid_options`: the verifier has its customers from elsewhere; `unavailable`: the store cannot answer, and what was asked for may or may not be done. Then look,
 * and ask again: a key that nobody was shown lets nobody in, and is revoked by its `key_id`.
 */
export interface CustomersOfStore {
  /** `bad_request` where there is one with this UUID, or one of the keys is another customer's. */
  create(customer?: NewCustomer): Promise<StoredCustomer>;
  get(of: OfCustomer): Promise<StoredCustomer>;
  /** The newest first. `limit`: 1 to 1,000; default 100. `after`: the last UUID of the page before. */
  list(page?: { readonly limit?: number | undefined; readonly after?: string | undefined }): Promise<readonly StoredCustomer[]>;
  update(change: OfCustomer & CustomerChange): Promise<StoredCustomer>;
  /** Keeps a customer out, until `resume`: here at once, everywhere within two seconds. Its keys are answered as wrong ones are, direct calls `account_invalid`. Callbacks that it is owed go out. */
  suspend(of: OfCustomer): Promise<StoredCustomer>;
  resume(of: OfCustomer): Promise<StoredCustomer>;
  readonly keys: StoredKeys;
}

export interface CustomersParts extends StoredCustomersParts {
  /** Whether the verifier lets them in at all. */
  readonly inUse: boolean;
  readonly sender: SmsSender;
  /** Told of every customer that was changed, or may have been. */
  readonly changed: (customerUuid: string) => void;
}

/** Records read at a time. */
const parallel = 32;

export function createCustomers(parts: CustomersParts): CustomersOfStore {
  const { settings, store, sender, clock, newDeadline, keyring, records, seals } = parts;
  const read = <Call extends Parameters<typeof readCustomerCall>[2]>(call: Call, given: unknown) => {
    if (!parts.inUse) throw new VerifierError("invalid_options", 'phoneproof: customers are not kept in the store: build the verifier with customers: "store"');
    return readCustomerCall(settings, sender, call, given);
  };

  /** Changes a customer. What became of it is told by `show`, of the customer as it then is. */
  const change = async <R>(
    uuid: string,
    deadline: StoreDeadline,
    decide: (customer: KeptCustomer) => Changed,
    show: (customer: KeptCustomer) => R,
  ): Promise<R> => {
    try {
      const changed = await update<Changed, KeptCustomer>(records, deadline, uuid, customerRecord, (customer): Decided<Changed, KeptCustomer> => {
        const result = decide(customer);
        return { result, next: result.next === customer ? undefined : result.next };
      });
      if (changed === undefined) throw unknown();
      if (changed.fault !== undefined) throw new VerifierError("bad_request", `${changed.fault}.`);
      return show(changed.next);
    } finally {
      parts.changed(uuid);
    }
  };

  const find = async (uuid: string, deadline: StoreDeadline): Promise<KeptCustomer> => {
    const held = await records.find(deadline, uuid, customerRecord);
    if (held === undefined) throw unknown();
    return held.auth;
  };

  /** Sets up the signpost of a key, before the customer has it: of what is left of a call that broke off, nobody has the key. */
  const point = async (uuid: string, digest: string, deadline: StoreDeadline): Promise<void> => {
    const taken = await deadline.call(() => store.get(signpost(digest)));
    const holder = taken === undefined || taken === uuid ? undefined : await records.find(deadline, taken, customerRecord);
    if (holder?.auth.keys.some((key) => key.digest === digest))
      throw new VerifierError("bad_request", "keys holds a key of another customer: every key belongs to one.");
    await deadline.call(() => store.put(signpost(digest), uuid, keptForGood(clock.now())));
  };

  const newKey = (digest: string, name: string | null | undefined): CustomerKey => ({
    id: digest.slice(0, 16),
    digest,
    ...(name && { name }),
    createdAt: clock.now(),
  });

  /** Draws a key, and has `decide` give it to the customer. */
  const issue = async (uuid: string, name: string | null | undefined, decide: (customer: KeptCustomer, key: CustomerKey) => Changed): Promise<IssuedKey> => {
    const deadline = newDeadline();
    // First of all: no signpost is set up for a customer that there is not, or that has its keys.
    const { fault } = decide(await find(uuid, deadline), newKey("", name));
    if (fault !== undefined) throw new VerifierError("bad_request", `${fault}.`);
    const { key } = generateApiKey();
    const digest = digestOf(key);
    const made = newKey(digest, name);
    await point(uuid, digest, deadline);
    return change(
      uuid,
      deadline,
      (customer) => decide(customer, made),
      () => ({ ...shownKey(made, clock.now()), key }),
    );
  };

  const suspension = async (given: unknown, suspended: boolean): Promise<StoredCustomer> => {
    const { customer_uuid } = read("named", given);
    return change(
      customer_uuid,
      newDeadline(),
      (customer) => {
        if (suspended === (customer.suspendedAt !== undefined)) return { next: customer };
        const { suspendedAt: _, ...active } = customer;
        return { next: suspended ? { ...active, suspendedAt: clock.now() } : active };
      },
      shown,
    );
  };

  const shown = ({ uuid, name, createdAt, suspendedAt, policy, sealed }: KeptCustomer): StoredCustomer => ({
    customer_uuid: uuid,
    ...(name !== undefined && { name }),
    status: suspendedAt === undefined ? "active" : "suspended",
    created_at: timestamp(createdAt),
    ...(suspendedAt !== undefined && { suspended_at: timestamp(suspendedAt) }),
    ...(policy !== undefined && { policy }),
    webhook_secrets: sealed === undefined ? 0 : countOf(uuid, sealed),
  });

  /** Of secrets that cannot be opened any more the number is not known; that there are some is. */
  const countOf = (uuid: string, sealed: string): number => {
    try {
      return seals.open(uuid, sealed).texts.length;
    } catch {
      return 1;
    }
  };

  /** What a change makes of a customer's own. */
  const withChange = (customer: KeptCustomer, { name, policy, webhookSecrets }: CustomerChange): KeptCustomer => {
    const { name: oldName, policy: oldPolicy, sealed: oldSealed, ...rest } = customer;
    const sealed = webhookSecrets && seals.seal(customer.uuid, webhookSecrets);
    return {
      ...rest,
      ...kept("name", oldName, name),
      ...kept("policy", oldPolicy, policy),
      ...kept("sealed", oldSealed, sealed),
    };
  };

  return {
    async create(given = {}) {
      const { customer_uuid: uuid = keyring.newId(), keys, suspended, ...own } = read("create", given);
      const deadline = newDeadline();
      const now = clock.now();
      const bare: KeptCustomer = { uuid, createdAt: now, ...(suspended && { suspendedAt: now }), keys: [] };
      let customer: Changed = { next: withChange(bare, own) };
      const digests = [...new Set(keys.map(digestOf))];
      for (const digest of digests) customer = customer.next === undefined ? customer : withKey(customer.next, newKey(digest, undefined), now);
      const { next, fault } = customer;
      if (fault !== undefined) throw new VerifierError("bad_request", "keys holds more than two keys: a customer has two in use at a time.");
      if ((await records.find(deadline, uuid, customerRecord)) !== undefined) throw existing();
      for (const digest of digests) await point(uuid, digest, deadline);
      const decide = (held: unknown): Decided<boolean, KeptCustomer> =>
        held === undefined ? { result: true, next, claims: [listing(next)] } : { result: false };
      const created = await transact(records, deadline, uuid, customerRecord, decide, true).finally(() => parts.changed(uuid));
      if (!created.result) throw existing();
      return shown(next);
    },

    async get(given) {
      const { customer_uuid } = read("named", given);
      return shown(await find(customer_uuid, newDeadline()));
    },

    async list(given = {}) {
      const { limit, after } = read("list", given);
      const all = await listedCustomers(store, newDeadline());
      const first = after === undefined ? 0 : all.indexOf(after) + 1;
      if (first === 0 && after !== undefined) throw new VerifierError("bad_request", "after is not a known customer_uuid.");
      const customers: StoredCustomer[] = [];
      for (let at = first; at < all.length && customers.length < limit; at += parallel) {
        const held = await Promise.all(all.slice(at, at + parallel).map((uuid) => records.find(newDeadline(), uuid, customerRecord)));
        customers.push(...held.flatMap((one) => (one === undefined ? [] : shown(one.auth))));
      }
      return customers.slice(0, limit);
    },

    async update(given) {
      const { customer_uuid, ...own } = read("update", given);
      return change(customer_uuid, newDeadline(), (customer) => ({ next: withChange(customer, own) }), shown);
    },

    suspend: (given) => suspension(given, true),
    resume: (given) => suspension(given, false),

    keys: {
      async issue(given) {
        const { customer_uuid, name } = read("issue", given);
        return issue(customer_uuid, name, (customer, key) => withKey(customer, key, clock.now()));
      },

      async rotate(given) {
        const { customer_uuid, key_id, overlap, name } = read("rotate", given);
        return issue(customer_uuid, name, (customer, key) => withKeyInPlaceOf(customer, key_id, key, overlap, clock.now()));
      },

      async revoke(given) {
        const { customer_uuid, key_id } = read("revoke", given);
        return change(
          customer_uuid,
          newDeadline(),
          (customer) => {
            const next = withoutKey(customer, key_id, clock.now());
            return next === undefined ? { fault: `the customer has no key ${key_id}` } : { next };
          },
          ({ keys }) => shownKey(keys.find(({ id }) => id === key_id) as CustomerKey, clock.now()),
        );
      },

      async list(given) {
        const { customer_uuid } = read("named", given);
        const deadline = newDeadline();
        const { keys } = await find(customer_uuid, deadline);
        const days = await deadline.call(() => Promise.all(keys.map(({ digest }) => store.get(lastUse(digest)))));
        return keys.map((key, at) => shownKey(key, clock.now(), days[at]));
      },
    },
  };
}

/** A field after a change: `undefined` leaves it, `null` takes it away. */
function kept<Name extends string, T>(name: Name, old: T | undefined, change: T | null | undefined): { readonly [name in Name]?: T } {
  const value = change === undefined ? old : change;
  return (value === undefined || value === null ? {} : { [name]: value }) as { readonly [name in Name]?: T };
}

function shownKey(key: CustomerKey, now: number, lastUsedOn?: string): StoredKey {
  const { id, name, createdAt, endsAt, revokedAt } = key;
  return {
    key_id: id,
    ...(name !== undefined && { name }),
    status: keyStatus(key, now),
    created_at: timestamp(createdAt),
    ...(endsAt !== undefined && { ends_at: timestamp(endsAt) }),
    ...(revokedAt !== undefined && { revoked_at: timestamp(revokedAt) }),
    ...(lastUsedOn !== undefined && { last_used_on: lastUsedOn }),
  };
}

function unknown(): VerifierError {
  return new VerifierError("account_invalid", "customer_uuid is not a customer that the store keeps.");
}

function existing(): VerifierError {
  return new VerifierError("bad_request", "A customer with this customer_uuid already exists; use update.");
}
