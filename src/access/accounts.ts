import { randomBytes, timingSafeEqual } from "node:crypto";
import { derivedWebhookSecret } from "../callbacks/webhook.js";
import { unavailable, withTimeout } from "../core/deadline.js";
import { sha256 } from "../core/hash.js";
import type { Account, Policy } from "../domain/policy.js";
import { isPromise } from "../domain/promises.js";
import { VerifierError } from "../errors.js";
import type { Outage } from "../observability/outages.js";
import { apiKeyOf, isMistyped, keyNamed, longestKey } from "../options/api-key.js";
import { readCustomer, readCustomerPolicy, type Settings } from "../options/options.js";
import type { CustomerConfig } from "../options/types.js";
import type { Clock } from "../ports/clock.js";
import type { Customer, Customers } from "../ports/customers.js";

/** The only customer of a verifier without `customers`. */
export const implicitCustomer = "00000000-0000-0000-0000-000000000000";

/** Why `/v1` of a verifier without customers cannot be mounted, and how to fix it. */
export const noApiKeys =
  "phoneproof: /v1 is for customers with API keys, and this verifier has none. Give createVerifier the option customers, or leave /v1 unmounted and call verifier.createAuthentication, retry and check in a route of your own";

/** The customers that may call. */
export type Accounts = ReturnType<typeof createAccounts>;

/** An API key is shown once; store only its digest. */
export interface ApiKey {
  /** `pp_`, 32 random bytes as 43 letters and digits, and a six-character checksum. For the x-api-key header. */
  readonly key: string;
  /** Accepted in `customers[].keys` instead of the key: `sha256:` and 64 hexadecimal digits. */
  readonly digest: string;
}

/** "32 random bytes with a recognizable prefix … shown once, stored as SHA-256" (docs/contract.md#api-keys). */
export function generateApiKey(): ApiKey {
  const key = apiKeyOf(randomBytes(32));
  return { key, digest: `sha256:${sha256(key)}` };
}

/** `customers` absent: one implicit customer, without a key. `implicit`: the customer of calls that name none. */
export function createAccounts(
  customers: Customers | undefined,
  settings: Settings,
  clock: Clock,
  outage: Outage,
  implicit = customers === undefined ? implicitCustomer : undefined,
) {
  const source = customers ?? configuredCustomers([{ customer_uuid: implicitCustomer, keys: [] }]);
  /** Reading a customer's policy takes 40 µs; a flow has at least two requests. */
  const policies = new WeakMap<object, Policy>();

  /**
   * Asks the source and passes the customer to `read`. If the source fails, times out or returns an invalid customer,
   * the request fails with 503, as after a store failure.
   */
  const ask = async <T>(question: "find" | "findByKeyDigest", text: string, read: (customer: Customer) => T): Promise<T | undefined> => {
    const uuid = question === "find" ? text : undefined;
    try {
      const answer = source[question](text);
      const found = isPromise(answer) ? await withTimeout(clock, settings.storeTimeout, () => answer) : answer;
      const customer = found === undefined || found === null ? undefined : configured.has(found) ? found : readCustomer(found);
      if (outage.on) outage.worked();
      if (customer !== undefined && uuid !== undefined && customer.customer_uuid !== uuid)
        throw new Error("the customer source was asked for one customer and returned another");
      return customer && read(customer);
    } catch (cause) {
      outage.failed({ err: cause, ...(uuid !== undefined && { customer_uuid: uuid }) });
      throw unavailable(cause);
    }
  };

  /** A suspended customer is treated as unknown, unless `orSuspended`. */
  const accountOf = ({ customer_uuid, policy: change, suspended }: Customer, orSuspended = false): Account | undefined => {
    if (suspended && !orSuspended) return undefined;
    if (change === undefined || change === null) return { customer: customer_uuid, policy: settings.policy };
    const policy = policies.get(change) ?? readCustomerPolicy(settings, change);
    policies.set(change, policy);
    return { customer: customer_uuid, policy };
  };

  return {
    /** Returns the account for an x-api-key header. Throws `forbidden` (docs/contract.md#key-before-body). */
    async byKey(apiKey: string | undefined): Promise<Account> {
      if (customers === undefined) throw new Error(noApiKeys);
      // Too long, or mistyped: do not hash it or ask the source.
      const sound = typeof apiKey === "string" && apiKey !== "" && apiKey.length <= longestKey && !isMistyped(apiKey);
      const known = sound ? await ask("findByKeyDigest", sha256(keyNamed(apiKey)), accountOf) : undefined;
      if (known === undefined) throw new VerifierError("forbidden", "The x-api-key header is missing or holds no valid API key.");
      return known;
    },
    /** Returns the account for a UUID, in direct calls. `orSuspended`: a suspended one too. Throws `account_invalid`. */
    async byUuid(customerUuid: string, orSuspended = false): Promise<Account> {
      const known = await ask("find", customerUuid, (customer) => accountOf(customer, orSuspended));
      if (known === undefined) throw new VerifierError("account_invalid", "customer_uuid is not a customer of this service, or is suspended.");
      return known;
    },
    /** The customer of a direct call without `customer_uuid`. Throws `bad_request` if the verifier has customers. */
    unnamed(): string {
      if (implicit !== undefined) return implicit;
      throw new VerifierError("bad_request", "customer_uuid is required: this verifier has customers.");
    },
    /** Secrets that sign a customer's callbacks, current first: its own, or derived from the verifier's secrets. */
    async webhookSecrets(customerUuid: string): Promise<readonly string[]> {
      const own = await ask("find", customerUuid, ({ webhookSecrets }) => webhookSecrets ?? undefined);
      return own ?? settings.secrets.map((secret) => derivedWebhookSecret(secret, customerUuid));
    },
  };
}

/** Customers parsed when the verifier was built; they cannot change. */
const configured = new WeakSet<Customer>();

/** Customers of the options (docs/contract.md#customers). Throws `invalid_options` for a duplicate UUID or key. */
export function configuredCustomers(configs: readonly CustomerConfig[]): Customers {
  const byUuid = new Map<string, Customer>();
  const byDigest = new Map<string, { readonly digest: Buffer; readonly customer: Customer }>();
  for (const [index, config] of configs.entries()) {
    const uuid = config.customer_uuid.toLowerCase();
    const customer = readCustomer({ customer_uuid: uuid, policy: config.policy, webhookSecrets: config.webhookSecrets, suspended: config.suspended });
    if (byUuid.has(uuid))
      throw new VerifierError("invalid_options", `phoneproof: customers.${index}.customer_uuid is in the list twice; give one entry all keys`);
    configured.add(customer);
    byUuid.set(uuid, customer);
    for (const digest of new Set(config.keys.map(digestOf))) {
      if (byDigest.has(digest))
        throw new VerifierError(
          "invalid_options",
          `phoneproof: customers.${index}.keys holds a key that is in the list twice; every key belongs to one customer`,
        );
      byDigest.set(digest, { digest: Buffer.from(digest, "hex"), customer });
    }
  }
  return {
    findByKeyDigest(digest) {
      const entry = byDigest.get(digest);
      return entry !== undefined && timingSafeEqual(entry.digest, Buffer.from(digest, "hex")) ? entry.customer : undefined;
    },
    find: (customerUuid) => byUuid.get(customerUuid),
  };
}

/** Returns the digest of a key, which may be given as `sha256:` and its digest. */
export function digestOf(key: string): string {
  return key.startsWith("sha256:") ? key.slice("sha256:".length).toLowerCase() : sha256(keyNamed(key));
}
