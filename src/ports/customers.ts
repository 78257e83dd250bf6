import type { PolicyOverride } from "../domain/policy.js";

/** A customer of the service: who calls, with which policy. */
export interface Customer {
  /** UUID; sent as `customer_uuid` in bodies and as the `customer-uuid` header of lookup. */
  readonly customer_uuid: string;
  /** What this customer changes of the verifier's policy. Held to the same rules as the options, the guess budget included, when it is first seen. */
  readonly policy?: PolicyOverride | null | undefined;
  /** Secrets that sign this customer's callbacks, as `whsec_<base64>` of 24 to 64 bytes, the current one first, several while rotating. Default: made of the verifier's `secret`. */
  readonly webhookSecrets?: readonly string[] | null | undefined;
  /** Whether it is kept out for the time being: its keys are answered as wrong ones are (403 `forbidden`), direct calls `account_invalid`. Callbacks that it is still owed go out. Default false. */
  readonly suspended?: boolean | null | undefined;
}

/** A customer; `undefined` or `null`: there is none. */
type Found = Customer | null | undefined;

/**
 * Where customers and their API keys come from. Keys are only ever known by their SHA-256 digest.
 *
 * A source that throws, takes longer than `storeTimeout`, or answers what is no customer (a policy that breaks a rule, another UUID than was asked for) is reported to the logger, and the request is answered 503.
 */
export interface Customers {
  /** The customer that owns the key with this SHA-256 digest (64 lower-case hexadecimal digits), if there is one. A revoked key must no longer be found. */
  findByKeyDigest(digest: string): Found | PromiseLike<Found>;
  /** The customer with this UUID (lower case), if there is one. Used by direct calls, which carry no key, and for the secrets that sign callbacks. */
  find(customerUuid: string): Found | PromiseLike<Found>;
}
