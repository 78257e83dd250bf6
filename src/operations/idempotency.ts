import type { CreateAuthenticationRequest } from "../contract/authentication.js";
import type { CheckStatus } from "../contract/check.js";
import type { DeliverRequest } from "../contract/delivery.js";
import type { StartRequest, VerificationOptions } from "../contract/verification.js";
import type { StoreDeadline } from "../core/deadline.js";
import type { UnderEach } from "../core/keyring.js";
import { requireNumber } from "../core/records/records.js";
import { type Authentication, isVoid, type KeyedStart } from "../domain/authentication.js";
import { checksUsedUp, withOtherCode } from "../domain/check.js";
import { idInSlot } from "../domain/ids.js";
import type { Account, Policy } from "../domain/policy.js";
import { VerifierError } from "../errors.js";
import type { Context } from "./context.js";

const otherBody = "The Idempotency-Key was used before with another body; use a new key for a new request.";

const bodyOf = (request: object) => JSON.stringify({ ...request, proof: undefined });

/**
 * "An idempotency key makes the id of the authentication … and a create with a key is the same one commit: the first
 * to commit sends; a duplicate or a repeat finds the record and returns what is stored" (docs/contract.md#keyed-id).
 */
export function keyedCreate({ keyring, records }: Context, { customer }: Account, request: CreateAuthenticationRequest, key: string) {
  const [id, ...others] = keyring.idsFor(customer, key);
  const fingerprints = keyring.fingerprints("create", bodyOf(request));
  /** Returns the record if it is of the same request. Throws `bad_request` otherwise. */
  const same = (auth: Authentication) => {
    if (auth.request !== undefined && fingerprints.includes(auth.request)) return auth;
    throw new VerifierError("bad_request", otherBody);
  };
  return {
    id,
    /** Digest of the request, stored in its record. */
    fingerprint: fingerprints[0],
    same,
    /** Returns what is stored under the key, if that must be known first: under another secret, or to ask others once. */
    async find(deadline: StoreDeadline, askFirst: boolean) {
      for (const one of askFirst ? [id, ...others] : others) {
        const held = await records.find(deadline, customer, one);
        if (held !== undefined && !isVoid(held.auth)) return same(held.auth);
      }
      return undefined;
    },
  };
}

/** A start or delivery with an idempotency key, or a start whose repeats are marked. */
export interface KeyedMessage {
  /** The message of the call that this one repeats. Throws `bad_request` if its body was different. */
  answered(auth: Authentication, now: number): number | undefined;
  /** What the record holds of this call, which sends the message `attempt`. */
  entry(attempt: number): KeyedStart;
}

function keyedMessage(keys: UnderEach<string>, requests: UnderEach<string>, otherBody: string): KeyedMessage {
  return {
    answered(auth) {
      const before = startUnder(keys, auth);
      if (before === undefined || requests.includes(before.request)) return before?.attempt;
      throw new VerifierError("bad_request", otherBody);
    },
    entry: (attempt) => ({ key: keys[0], request: requests[0], attempt }),
  };
}

const startUnder = (keys: readonly string[], { starts }: Authentication) => starts.findLast(({ key }) => keys.includes(key));

/**
 * How long a marked repeat of a start returns the first one's result, and of a check once a newer verification has
 * begun: two timeouts of an SDK, and its waits.
 */
const repeatTime = 130_000;

/**
 * "Under one `idempotencyKey`, `start` returns the same result without a second message"
 * (docs/contract.md#repeated-starts).
 */
export function keyedStart({ keyring }: Context, request: StartRequest, { idempotencyKey, repeat }: VerificationOptions): KeyedMessage | undefined {
  const name = idempotencyKey ?? repeat?.request;
  if (name === undefined) return undefined;
  const keys = keyring.fingerprints(idempotencyKey === undefined ? "start-repeat" : "start-key", `${request.phone_number}\0${name}`);
  const keyed = keyedMessage(keys, keyring.fingerprints("start", bodyOf(request)), otherBody);
  if (idempotencyKey !== undefined) return keyed;
  return {
    entry: keyed.entry,
    answered(auth, now) {
      const before = startUnder(keys, auth);
      return repeat?.isRepeat === true && before?.attempt === auth.attempts && now < auth.lastSendAt + repeatTime ? before.attempt : undefined;
    },
  };
}

/** "Under one `idempotency_key`, a repeat sends nothing" (docs/contract.md#deliver-repeats). `identity`: code and purpose. */
export function keyedDelivery({ keyring }: Context, request: DeliverRequest, identity: string): KeyedMessage | undefined {
  const { phone_number, idempotency_key: name, text = "" } = request;
  if (name === undefined) return undefined;
  return keyedMessage(
    keyring.fingerprints("deliver-key", `${phone_number}\0${name}`),
    keyring.fingerprints("deliver", `${identity}\0${text}`),
    "The idempotency_key was used before with another code or text; use a new key for a new message.",
  );
}

/** How a check may be repeated, and what is known of it. */
export interface CheckCall extends Pick<VerificationOptions, "idempotencyKey" | "repeat"> {
  /** As in the request; absent if that has an id. */
  readonly number?: string | undefined;
  /** The verification before, if the request has a number and may repeat a check in it. */
  readonly earlier?: Authentication | undefined;
}

const isRepeatable = ({ idempotencyKey, repeat }: CheckCall) => idempotencyKey !== undefined || repeat?.isRepeat === true;

/** The id of the verification before, if a check by number may repeat one in it. `auth`: the number's verification now. */
export function idOfEarlier(auth: Authentication, call: CheckCall): string | undefined {
  return isRepeatable(call) && auth.earlier !== undefined ? idInSlot(auth.id, auth.earlier) : undefined;
}

interface Answered {
  readonly result: { readonly status: CheckStatus; readonly after: Authentication } | undefined;
  readonly next?: Authentication | undefined;
}

export type KeyedCheck = NonNullable<ReturnType<typeof keyedCheck>>;

/**
 * "the same key and body return the same result without … a second count" (docs/contract.md#idempotency). Results that
 * count nothing are decided again.
 */
export function keyedCheck({ clock, keyring }: Context, code: string, call: CheckCall) {
  const { idempotencyKey, repeat, number, earlier } = call;
  const name = idempotencyKey ?? repeat?.request;
  if (name === undefined) return undefined;
  const keysFor = (id: string) => keyring.fingerprints(idempotencyKey === undefined ? "check-repeat" : "check-key", `${id}\0${name}`);
  const requestsFor = (id: string) => keyring.fingerprints("check", `${id}\0${code}`);
  const madeIn = (after: Authentication) => {
    const keys = keysFor(after.id);
    const made = after.checks.find(({ key }) => keys.includes(key));
    return made && { ...made, after, isSame: requestsFor(after.id).includes(made.request) };
  };
  const madeBefore = () => {
    const made = earlier && madeIn(earlier);
    return made === undefined || clock.now() >= (made.namedAt ?? Number.POSITIVE_INFINITY) + repeatTime ? undefined : made;
  };
  return {
    /** The result that the same key had before; of another code, none: `next` counts it. */
    answered(auth: Authentication, policy: Policy): Answered | undefined {
      if (!isRepeatable(call)) return undefined;
      const made = madeIn(auth) ?? (checksUsedUp(auth, policy) ? undefined : madeBefore());
      if (made === undefined) return undefined;
      const { status, after, isSame } = made;
      if (!isSame) return { result: undefined, next: status === "valid" ? withOtherCode(auth, policy) : undefined };
      if (status === "valid" && number === undefined) requireNumber(after);
      return { result: { status, after } };
    },
    /** Adds the result under the key, in the write that counts it. */
    remember(next: Authentication, status: CheckStatus): Authentication {
      const [[key], [request]] = [keysFor(next.id), requestsFor(next.id)];
      const isNamed = idempotencyKey === undefined && number !== undefined;
      return { ...next, checks: [...next.checks, { key, request, status, ...(isNamed && { namedAt: clock.now() }) }] };
    },
  };
}
