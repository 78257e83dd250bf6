import type { CreateAuthenticationRequest } from "../contract/authentication.js";
import type { CheckRequest, CheckStatus } from "../contract/check.js";
import type { StoreDeadline } from "../core/deadline.js";
import { requireNumber } from "../core/records/records.js";
import type { Account } from "../domain/account.js";
import { type Authentication, isVoid } from "../domain/authentication.js";
import { VerifierError } from "../errors.js";
import type { Context } from "./context.js";

/** A create with an idempotency key. */
export interface KeyedCreate {
  readonly id: string;
  /** Digest of the request, stored in its record. */
  readonly fingerprint: string;
  /**
   * Returns what is stored under the key if that must be known first: under another secret, or to ask others only once.
   */
  find(deadline: StoreDeadline, askFirst: boolean): Promise<Authentication | undefined>;
  /** Returns the record if it is of the same request. Throws `bad_request` otherwise. */
  same(auth: Authentication): Authentication;
}

/**
 * "An idempotency key makes the id of the authentication … and a create with a key is the same one commit: whoever is
 * done sends, a twin or a repeat finds the record and answers what is stored" (docs/contract.md#keyed-id).
 */
export function keyedCreate({ keyring, records }: Context, { customer }: Account, request: CreateAuthenticationRequest, key: string): KeyedCreate {
  const [id, ...others] = keyring.idsFor(customer, key) as [string, ...string[]];
  const fingerprints = keyring.fingerprints("create", JSON.stringify({ ...request, proof: undefined }));
  const same = (auth: Authentication) => {
    if (auth.request !== undefined && fingerprints.includes(auth.request)) return auth;
    throw new VerifierError("bad_request", "The Idempotency-Key was used before with another body; use a new key for a new request.");
  };
  return {
    id,
    fingerprint: fingerprints[0] as string,
    same,
    async find(deadline, askFirst) {
      for (const one of askFirst ? [id, ...others] : others) {
        const held = await records.find(deadline, customer, one);
        if (held !== undefined && !isVoid(held.auth)) return same(held.auth);
      }
      return undefined;
    },
  };
}

/** A check with an idempotency key. */
export interface KeyedCheck {
  /** The status that the same key returned before. Throws `bad_request` if the code was different. */
  answered(auth: Authentication): CheckStatus | undefined;
  /** Adds the result under the key, in the write that counts it. */
  remember(next: Authentication, status: CheckStatus): Authentication;
}

/**
 * "the same key and body answer the same result without … a second count" (docs/contract.md#idempotency). Results that
 * count nothing are decided again.
 */
export function keyedCheck({ keyring }: Context, { authentication_uuid: id, check_code: code }: CheckRequest, idempotencyKey: string): KeyedCheck {
  const keys = keyring.fingerprints("check-key", `${id}\0${idempotencyKey}`);
  const requests = keyring.fingerprints("check", `${id}\0${code}`);
  return {
    answered(auth) {
      const before = auth.checks.find((check) => keys.includes(check.key));
      if (before === undefined) return undefined;
      if (!requests.includes(before.request))
        throw new VerifierError("bad_request", "The Idempotency-Key was used before with another code; use a new key for a new check.");
      if (before.status === "valid") requireNumber(auth);
      return before.status;
    },
    remember: (next, status) => ({ ...next, checks: [...next.checks, { key: keys[0] as string, request: requests[0] as string, status }] }),
  };
}
