import type { PolicyOverride } from "../domain/policy.js";

/** A customer of the service: who calls, with which policy. */
export interface Customer {
  /** UUID; sent as `customer_uuid` in bodies and as the `customer-uuid` header of lookup. */
  readonly customer_uuid: string;
  /** What this customer changes of the verifier's policy. Tested against the guess budget when the customer is first seen. */
  readonly policy?: PolicyOverride;
  /** Secrets that sign this customer's callbacks, as `whsec_<base64>`, the current one first, several while rotating. Default: made of the verifier's `secret`. */
  readonly webhookSecrets?: readonly string[];
}

/** Where customers and their API keys come from. Keys are only ever known by their SHA-256 digest. */
export interface Customers {
  /** The customer that owns the key with this SHA-256 digest (64 lower-case hexadecimal digits), or `undefined`. A revoked key must no longer be found. */
  findByKeyDigest(digest: string): Customer | undefined | Promise<Customer | undefined>;
  /** The customer with this UUID (lower case), or `undefined`. Used by direct calls, which carry no key. */
  find(customerUuid: string): Customer | undefined | Promise<Customer | undefined>;
}
