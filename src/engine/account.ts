import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Policy } from "../domain/policy.js";
import { VerifierError } from "../errors.js";
import { type CustomerConfig, readCustomerPolicy, type Settings } from "../options.js";
import type { Clock } from "../ports/clock.js";
import type { Customer, Customers } from "../ports/customers.js";
import type { Logger } from "../ports/logger.js";
import { unavailable, withTimeout } from "./budget.js";
import { derivedWebhookSecret } from "./webhook.js";

/** A customer that was let in, with the policy that holds for it. */
export interface Account {
  /** Lower case. */
  readonly customer: string;
  readonly policy: Policy;
}

/** Who may call. */
export interface Accounts {
  /** By the value of the x-api-key header. Throws `forbidden`: "Missing or wrong API key: 403" (contract.md, wire rule 6). */
  byKey(apiKey: string | undefined): Promise<Account>;
  /** By UUID, for direct calls. Throws `account_invalid`. */
  byUuid(customerUuid: string): Promise<Account>;
  /** Secrets that sign a customer's callbacks, the current one first: its own, or those made of the verifier's secrets. */
  webhookSecrets(customerUuid: string): Promise<readonly string[]>;
}

/** An API key is shown once; keep only its digest. */
export interface ApiKey {
  /** `pp_` and 32 random bytes in base64url; goes into the x-api-key header. */
  readonly key: string;
  /** What `customers[].keys` takes in the key's place: `sha256:` and 64 hexadecimal digits. */
  readonly digest: string;
}

/** Makes an API key: "32 random bytes with a recognisable prefix, shown once, kept as SHA-256" (contract.md, Customers and keys). */
export function generateApiKey(): ApiKey {
  const key = `pp_${randomBytes(32).toString("base64url")}`;
  return { key, digest: `sha256:${keyDigest(key)}` };
}

export function createAccounts(source: Customers, settings: Settings, clock: Clock, logger: Logger): Accounts {
  const policies = new WeakMap<object, Policy>();

  /** A source that fails, or takes longer than the store may, answers 503 as a store does. */
  const ask = async (work: () => ReturnType<Customers["find"]>): Promise<Customer | undefined> => {
    try {
      const answer = work();
      return answer instanceof Promise ? await withTimeout(clock, settings.storeTimeout, () => answer) : answer;
    } catch (cause) {
      logger.error({ err: cause }, "the customer source failed; the request is answered 503");
      throw unavailable(cause);
    }
  };

  const account = (customer: Customer): Account => {
    const override = customer.policy;
    let policy = override === undefined ? settings.policy : policies.get(override);
    if (policy === undefined) {
      policy = readCustomerPolicy(settings, override as NonNullable<typeof override>);
      policies.set(override as object, policy);
    }
    return { customer: customer.customer_uuid.toLowerCase(), policy };
  };

  return {
    async byKey(apiKey) {
      // Longer than any key: not worth hashing.
      const known = apiKey !== undefined && apiKey !== "" && apiKey.length <= 512 ? await ask(() => source.findByKeyDigest(keyDigest(apiKey))) : undefined;
      if (known === undefined) throw new VerifierError("forbidden", "The x-api-key header is missing or holds no valid API key.");
      return account(known);
    },
    async byUuid(customerUuid) {
      const known = await ask(() => source.find(customerUuid));
      if (known === undefined) throw new VerifierError("account_invalid", "customer_uuid is not a customer of this service.");
      return account(known);
    },
    async webhookSecrets(customerUuid) {
      const known = await ask(() => source.find(customerUuid));
      return known?.webhookSecrets ?? settings.secrets.map((secret) => derivedWebhookSecret(secret, customerUuid));
    },
  };
}

/** Customers from the configuration: "several keys each, digests compared in constant time". Throws `invalid_options` when a UUID or a key stands there twice. */
export function configuredCustomers(configs: readonly CustomerConfig[]): Customers {
  const byUuid = new Map<string, Customer>();
  const byDigest = new Map<string, { readonly digest: Buffer; readonly customer: Customer }>();
  for (const [index, config] of configs.entries()) {
    const uuid = config.customer_uuid.toLowerCase();
    const customer: Customer = {
      customer_uuid: uuid,
      ...(config.policy !== undefined && { policy: config.policy }),
      ...(config.webhookSecrets !== undefined && { webhookSecrets: config.webhookSecrets }),
    };
    if (byUuid.has(uuid))
      throw new VerifierError("invalid_options", `phoneproof: customers.${index}.customer_uuid stands in the list twice; give one entry all keys`);
    byUuid.set(uuid, customer);
    for (const key of new Set(config.keys)) {
      const digest = key.startsWith("sha256:") ? key.slice("sha256:".length).toLowerCase() : keyDigest(key);
      if (byDigest.has(digest))
        throw new VerifierError(
          "invalid_options",
          `phoneproof: customers.${index}.keys holds a key that stands in the list twice; every key belongs to one customer`,
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

function keyDigest(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}
