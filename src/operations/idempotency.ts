import type { CreateAuthenticationRequest } from "../contract/authentication.js";
import type { CheckRequest, CheckStatus } from "../contract/check.js";
import type { DeliverRequest } from "../contract/delivery.js";
import type { StartRequest, VerificationOptions } from "../contract/verification.js";
import type { StoreDeadline } from "../core/deadline.js";
import { requireNumber } from "../core/records/records.js";
import type { Account } from "../domain/account.js";
import { type Authentication, isVoid, type KeyedStart as StoredStart } from "../domain/authentication.js";
import { isInSlot } from "../domain/slot.js";
import { VerifierError } from "../errors.js";
import type { Context } from "./context.js";

/** Identifies a request of a client that marks its repeats. */
export type Repeat = NonNullable<VerificationOptions["repeat"]>;

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
 * "An idempotency key makes the id of the authentication … and a create with a key is the same one commit: the first
 * to commit sends; a duplicate or a repeat finds the record and returns what is stored" (docs/contract.md#keyed-id).
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

/** A start with an idempotency key, or one whose repeats are marked. */
export interface KeyedStart {
  /** The message of the start that this one repeats. Throws `bad_request` if its body was different. */
  answered(auth: Authentication, now: number): number | undefined;
  /** What the record holds of this start, which sends the message `attempt`. */
  entry(attempt: number): StoredStart;
}

/** How long a marked repeat of a start returns the first one's result: two timeouts of an SDK, and its waits. */
const repeatTime = 130_000;

/**
 * "Under one `idempotencyKey`, `start` returns the same result without a second message"
 * (docs/contract.md#repeated-starts).
 */
export function keyedStart({ keyring }: Context, request: StartRequest, { idempotencyKey, repeat }: VerificationOptions): KeyedStart | undefined {
  const name = idempotencyKey ?? repeat?.request;
  if (name === undefined) return undefined;
  const keys = keyring.fingerprints(idempotencyKey === undefined ? "start-repeat" : "start-key", `${request.phone_number}\0${name}`);
  const requests = keyring.fingerprints("start", JSON.stringify({ ...request, proof: undefined }));
  return {
    answered(auth, now) {
      const before = auth.starts.findLast(({ key }) => keys.includes(key));
      if (before === undefined) return undefined;
      if (idempotencyKey === undefined)
        return repeat?.isRepeat === true && before.attempt === auth.attempts && now < auth.lastSendAt + repeatTime ? before.attempt : undefined;
      if (requests.includes(before.request)) return before.attempt;
      throw new VerifierError("bad_request", "The Idempotency-Key was used before with another body; use a new key for a new request.");
    },
    entry: (attempt) => ({ key: keys[0] as string, request: requests[0] as string, attempt }),
  };
}

/** A delivery with an idempotency key. */
export interface KeyedDelivery {
  /** The message of the call that this one repeats. Throws `bad_request` if its body was different. */
  answered(auth: Authentication): number | undefined;
  /** What the record holds of this call, which sends the message `attempt`. */
  entry(attempt: number): StoredStart;
}

/** "Under one `idempotency_key`, a repeat sends nothing" (docs/contract.md#deliver-repeats). `identity`: code and purpose. */
export function keyedDelivery(
  { keyring }: Context,
  { phone_number, idempotency_key: name, text }: DeliverRequest,
  identity: string,
): KeyedDelivery | undefined {
  if (name === undefined) return undefined;
  const keys = keyring.fingerprints("deliver-key", `${phone_number}\0${name}`);
  const requests = keyring.fingerprints("deliver", `${identity}\0${text ?? ""}`);
  return {
    answered(auth) {
      const before = auth.starts.findLast(({ key }) => keys.includes(key));
      if (before === undefined) return undefined;
      if (requests.includes(before.request)) return before.attempt;
      throw new VerifierError("bad_request", "The idempotency_key was used before with another code or text; use a new key for a new message.");
    },
    entry: (attempt) => ({ key: keys[0] as string, request: requests[0] as string, attempt }),
  };
}

/** A check with an idempotency key, or one whose repeats are marked. */
export interface KeyedCheck {
  /** The status that the same key returned before. Throws `bad_request` if the code was different. */
  answered(auth: Authentication): CheckStatus | undefined;
  /** Adds the result under the key, in the write that counts it. */
  remember(next: Authentication, status: CheckStatus): Authentication;
}

/**
 * "the same key and body return the same result without … a second count" (docs/contract.md#idempotency). Results that
 * count nothing are decided again.
 */
export function keyedCheck(
  { keyring }: Context,
  { authentication_uuid: id, check_code: code }: CheckRequest,
  idempotencyKey: string | undefined,
  repeat?: Repeat,
): KeyedCheck | undefined {
  const name = idempotencyKey ?? repeat?.request;
  if (name === undefined) return undefined;
  const isRepeatable = idempotencyKey !== undefined || repeat?.isRepeat === true;
  const keys = keyring.fingerprints(idempotencyKey === undefined ? "check-repeat" : "check-key", `${id}\0${name}`);
  const requests = keyring.fingerprints("check", `${id}\0${code}`);
  return {
    answered(auth) {
      const before = isRepeatable ? auth.checks.find((check) => keys.includes(check.key)) : undefined;
      if (before === undefined) return undefined;
      if (!requests.includes(before.request))
        throw new VerifierError("bad_request", "The Idempotency-Key was used before with another code; use a new key for a new check.");
      if (before.status === "valid" && !isInSlot(auth.id)) requireNumber(auth);
      return before.status;
    },
    remember: (next, status) => ({ ...next, checks: [...next.checks, { key: keys[0] as string, request: requests[0] as string, status }] }),
  };
}
