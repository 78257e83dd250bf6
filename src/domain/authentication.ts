import type { AuthenticationStatus, DeviceType } from "../contract/authentication.js";
import type { DeliveryStatus } from "../contract/callback.js";
import type { CheckStatus } from "../contract/check.js";
import type { Decision } from "./decision.js";
import { maskNumber } from "./phone-number.js";
import type { Origin } from "./spam-rules.js";

/**
 * What is known of a send: `undecided` (under way, or accepted without a second write: it reads as "may have been sent"), `accepted`, or `unknown` for good (timed out, crashed).
 * "Unknown counts as sent"; a rejected send is taken out of the record: "that code is dead, earlier ones live on" (docs/contract.md#send-outcome).
 */
export type SendState = "undecided" | "accepted" | "unknown";

/** One of the last codes, known only by its keyed digest. */
export interface Send {
  /** 1 for the first send tried, one more for each. */
  readonly attempt: number;
  /** HMAC-SHA-256 of authentication and code, cut to its first 132 bits (RFC 2104, section 5), base64url; empty once the code is of no more use. */
  readonly digest: string;
  readonly state: SendState;
  /** When it was tried. */
  readonly at: number;
  /** The route that takes it, where the sender names one. */
  readonly route?: string | undefined;
  /** That route is not the one planned: another had surely not sent it. */
  readonly moved?: true | undefined;
  /** The carrier's id of the message, where its sender wants it back with what becomes of the message. */
  readonly messageId?: string | undefined;
  /** What the carrier's receipts said last. */
  readonly delivery?: DeliveryStatus | undefined;
}

/** A check that came with an idempotency key, with what it was answered. */
export interface KeyedCheck {
  /** Digest of the key. */
  readonly key: string;
  /** Digest of the request, to tell another body under the same key. */
  readonly request: string;
  readonly status: CheckStatus;
}

/** A delivery status on its way to `callback_url`. */
export interface OutboxEvent {
  /** 1 for the first event of the authentication; with its id the `webhook-id`, "constant over redeliveries" (docs/contract.md#callback-signature). */
  readonly sequence: number;
  /** The send it is about. */
  readonly attempt: number;
  readonly status: DeliveryStatus;
  /** When that was. */
  readonly at: number;
  /** Rungs of the ladder that are used up; one for each delivery that failed, more where the receiver asked for a longer wait. */
  readonly tries: number;
  /** When the next delivery is due; of one that was given up, when that was. */
  readonly nextAt: number;
  /** Why it was given up (docs/contract.md#dead-letters). */
  readonly dead?: string;
  readonly route?: string;
  readonly error?: string;
}

/** The state of one authentication. All times are milliseconds since the epoch. */
export interface Authentication {
  readonly customer: string;
  readonly id: string;
  /** Canonical E.164 form; masked once it is needed no more. */
  readonly number: string;
  /** The number as its record keeps it: some digits can be read by those who hold a secret alone. Absent once the number is masked. */
  readonly sealed?: string | undefined;
  /** ISO 3166-1 alpha-2; absent for non-geographic numbers. */
  readonly country?: string | undefined;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** The store may forget the record after. */
  readonly keepUntil: number;
  /** The end that the record goes back to once its outbox is empty. */
  readonly endsAt?: number | undefined;
  /** As answered by Create authentication. */
  readonly status: AuthenticationStatus;
  /** Sends tried, rejected ones included; numbers the attempts. */
  readonly attempts: number;
  /** Sends that were or may have been handed to a carrier. */
  readonly sent: number;
  /** Retries used up; a rejected one is given back. */
  readonly retries: number;
  /** When the newest send was tried; the cool-down starts here. */
  readonly lastSendAt: number;
  /** Wrong codes so far; never reset. */
  readonly wrongChecks: number;
  readonly validated: boolean;
  /** The last three that were not rejected, oldest first. */
  readonly sends: readonly Send[];
  /** Why it was refused, or what a shadow rule would have said. */
  readonly decisions: readonly Decision[];
  readonly deviceType?: DeviceType | undefined;
  readonly appRealm?: string | undefined;
  readonly callbackUrl?: string | undefined;
  /** When the newest send should be settled; past it a worker settles it as `unknown`. Only where a callback must tell. */
  readonly settleBy?: number | undefined;
  /** Delivery statuses that were not delivered yet, or were given up, oldest first. */
  readonly outbox: readonly OutboxEvent[];
  /** How many events this authentication has had. */
  readonly events: number;
  /** Where it came from, as far as the anti-spam cells care. */
  readonly origin?: Origin | undefined;
  /** Messages of it that its cells do not hold any more, since its number was unlocked. */
  readonly uncounted: number;
  /** Digest of the create request, when that came with an idempotency key. */
  readonly request?: string | undefined;
  readonly checks: readonly KeyedCheck[];
  /** Carriers' ids of its messages that are kept for receipts, as `idSpace/messageId`. */
  readonly keptIds: readonly string[];
}

/** What a create or a retry decides on what is stored: to send a message for `send`, or to answer what the record alone says. */
export type SendDecision<Status extends string> =
  | { readonly send: Authentication }
  | {
      readonly status: Status;
      readonly auth: Authentication;
      /** Written before the answer. */
      readonly next?: Authentication;
    };

/** The record "keeps its last three codes with the outcome of their sends" (docs/contract.md#live-codes). */
const keptSends = 3;

/** How many decisions a record keeps. */
const keptDecisions = 20;

/** Adds a rule that fired. */
export function withDecision(auth: Authentication, decision: Decision): Authentication {
  return { ...auth, decisions: [...auth.decisions, decision].slice(-keptDecisions) };
}

/**
 * Adds a send that is about to be made; the write that holds it precedes the message. Every send but the first uses up a retry.
 * "With a `callback_url` the first write sets `wakeAt` to the send's deadline, so a crash yields an `unknown` event" (docs/contract.md#outbox): `settleBy`.
 */
export function withSend(auth: Authentication, digest: string, now: number, settleBy: number, route?: string): Authentication {
  const attempt = auth.attempts + 1;
  return {
    ...auth,
    attempts: attempt,
    sent: auth.sent + 1,
    retries: auth.attempts === 0 ? 0 : auth.retries + 1,
    lastSendAt: now,
    sends: auth.sends.slice(1 - keptSends).concat({ attempt, digest, state: "undecided", at: now, route }),
    settleBy: auth.callbackUrl === undefined ? undefined : settleBy,
  };
}

/** Takes back a send that never was, for its write was not answered in time: the record as it now is, without the send and with what the send had pushed out. `before`: the record that it was decided on. */
export function withoutTriedSend(auth: Authentication, attempt: number, before: Authentication): Authentication {
  if (!auth.sends.some((send) => send.attempt === attempt)) return auth;
  const pushedOut = holdsCodes(auth) ? before.sends.slice(0, Math.max(0, before.sends.length + 1 - keptSends)) : [];
  const newest = auth.attempts === attempt;
  return {
    ...auth,
    ...(newest && { attempts: before.attempts, lastSendAt: before.lastSendAt, settleBy: undefined }),
    sent: auth.sent - 1,
    uncounted: Math.min(auth.uncounted, auth.sent - 1),
    retries: attempt === 1 ? auth.retries : Math.max(0, auth.retries - 1),
    sends: [...pushedOut, ...auth.sends.filter((send) => send.attempt !== attempt)],
    outbox: auth.outbox.filter((event) => event.attempt !== attempt),
  };
}

/** A create before its first send. */
export function blankOf(auth: Authentication): Authentication {
  return {
    ...auth,
    attempts: 0,
    sent: 0,
    uncounted: 0,
    retries: 0,
    lastSendAt: auth.createdAt,
    sends: [],
    outbox: [],
    keepUntil: auth.expiresAt,
    settleBy: undefined,
  };
}

/** Nothing was ever tried under it: what is left of a create that was taken back. A create under the same idempotency key takes its place. */
export function isVoid(auth: Authentication): boolean {
  return auth.status === "pending" && auth.attempts === 0;
}

/** An erasure in progress has emptied it: it can no longer be found (docs/contract.md#erase). */
export function isErased(auth: Authentication): boolean {
  return isVoid(auth) && !hasNumber(auth);
}

/** When its messages were sent that its cells hold: of one that is no longer among the last three, when it was created. */
export function countedAt({ sent, uncounted, sends, createdAt }: Authentication): number[] {
  const counted = Math.max(0, sent - uncounted);
  const times = sends.map(({ at }) => at);
  return [...Array<number>(Math.max(0, counted - times.length)).fill(createdAt), ...times.slice(Math.max(0, times.length - counted))];
}

/** "no code was or may have been handed to a carrier" (docs/contract.md#send-under-way). */
export function nothingSent(auth: Authentication): boolean {
  return auth.sent === 0;
}

/** A message was tried, and surely none was sent (docs/contract.md#every-route-rejects). */
export function isCarrierRefused(auth: Authentication): boolean {
  return auth.status === "pending" && auth.attempts > 0 && nothingSent(auth);
}

/** "now ≥ `expires_at`" (docs/contract.md#check-order). */
export function isExpired(auth: Authentication, now: number): boolean {
  return now >= auth.expiresAt;
}

/** A record past its end is gone, whether or not the store has cleared it away yet. */
export function isForgotten(auth: { readonly keepUntil: number }, now: number): boolean {
  return now >= auth.keepUntil;
}

/** "The record stays 24 h more, without its codes" (docs/contract.md#tombstone). */
export function withoutCodes(auth: Authentication): Authentication {
  return { ...auth, sends: auth.sends.map((send) => ({ ...send, digest: "" })) };
}

/**
 * Whether the number is still needed: "kept as short as delivery needs them" (docs/contract.md#sealed-number). A retry sends to it until it was verified or has expired, and callbacks that tell it whole (`fullNumber`) until they are delivered.
 * A check under an idempotency key that was answered `valid` is answered so again, with the number that it proved, for as long as the record lives.
 */
export function needsNumber(auth: Authentication, fullNumber: boolean, now: number): boolean {
  if (auth.status !== "pending") return false;
  if (auth.checks.some(({ status }) => status === "valid")) return true;
  if (fullNumber && auth.callbackUrl !== undefined && (auth.outbox.length > 0 || !isExpired(auth, now))) return true;
  return !auth.validated && !isExpired(auth, now);
}

/** With the number as people may see it: enough to recognise, too little to call. */
export function withoutNumber(auth: Authentication): Authentication {
  return { ...auth, number: maskNumber(auth.number), sealed: undefined };
}

/** Whether the number can be sent to. */
export function hasNumber({ number }: Authentication): boolean {
  return !number.includes("*");
}

/** Whether any code's digest is still held. */
export function holdsCodes(auth: Authentication): boolean {
  return auth.sends.some((send) => send.digest !== "");
}
