import type { PolicyOverride } from "../domain/policy.js";

/** A customer of the service: an API client and its policy. */
export interface Customer {
  /** UUID; sent as `customer_uuid` in bodies and as the `customer-uuid` header of lookup. */
  readonly customer_uuid: string;
  /**
   * Overrides of the verifier's policy. Validated like the options, guess budget included, when the customer is first
   * seen.
   */
  readonly policy?: PolicyOverride | null | undefined;
  /**
   * Secrets that sign this customer's callbacks: `whsec_<base64>` of 24 to 64 bytes, the current one first, several
   * during rotation. Default: derived from the verifier's `secret`.
   */
  readonly webhookSecrets?: readonly string[] | null | undefined;
  /**
   * Suspends the customer. Its keys are rejected like unknown ones (403 `forbidden`), direct calls with
   * `account_invalid`. Pending callbacks are still delivered. Default false.
   */
  readonly suspended?: boolean | null | undefined;
}

/** A customer; `undefined` or `null` if there is no such customer. */
type Found = Customer | null | undefined;

/**
 * A source of customers and API keys. Keys are known only by their SHA-256 digest.
 *
 * If a source throws, takes longer than `storeTimeout`, or returns an invalid customer (an invalid policy, or a
 * different UUID), the error is logged and the request gets a 503.
 *
 * A policy is read once for each object: to change it, return another one.
 */
export interface Customers {
  /**
   * Returns the customer that owns the key with this SHA-256 digest (64 lower-case hexadecimal digits). Revoked keys
   * must not be found.
   */
  findByKeyDigest(digest: string): Found | PromiseLike<Found>;
  /**
   * Returns the customer with this UUID (lower case). Used for direct calls, which carry no key, and for callback
   * secrets.
   */
  find(customerUuid: string): Found | PromiseLike<Found>;
}
