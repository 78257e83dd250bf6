import type { AuthenticationStatus, DeviceType } from "../contract/authentication.js";
import type { CallbackForm, DeliveryStatus } from "../contract/callback.js";
import type { Channel } from "../contract/channel.js";
import type { CheckStatus } from "../contract/check.js";
import type { Decision } from "./decision.js";

/**
 * What is known of a send: `undecided` (in progress, or accepted without a second write: read as "may have been sent"),
 * `accepted`, or finally `unknown` (timed out, crashed). "Unknown counts as sent"; a rejected send is removed from the
 * record: "that code is dead, earlier ones stay live" (docs/contract.md#send-outcome).
 */
export type SendState = "undecided" | "accepted" | "unknown";

/** One of the last codes, stored only as a keyed digest. */
export interface Send {
  /** 1 for the first send tried, plus one for each further send. */
  readonly attempt: number;
  /**
   * HMAC-SHA-256 of authentication and code, truncated to its first 132 bits (RFC 2104, section 5), base64url; empty
   * once the code is no longer needed.
   */
  readonly digest: string;
  readonly state: SendState;
  /** When the send was tried. */
  readonly at: number;
  /** The route of the send, if the sender names one. */
  readonly route?: string | undefined;
  /** Absent: `sms`. */
  readonly channel?: Channel | undefined;
  /** It replaces a message that did not arrive. */
  readonly fallback?: true | undefined;
  /** The route is not the planned one, which is known not to have sent the message. */
  readonly moved?: true | undefined;
  /** The carrier's message id, if the sender needs it for feedback. */
  readonly messageId?: string | undefined;
  /** The status of the carrier's latest receipt. */
  readonly delivery?: DeliveryStatus | undefined;
}

/** A check with an idempotency key, and its result. */
export interface KeyedCheck {
  /** Digest of the key. */
  readonly key: string;
  /** Digest of the request, to detect a different body under the same key. */
  readonly request: string;
  readonly status: CheckStatus;
  /** When it was made, if its repeats are marked and name the number, which need not be stored for them. */
  readonly namedAt?: number;
}

/** A start by number that can be repeated, and its message. */
export interface KeyedStart {
  /** Digest of the idempotency key, or of a request whose repeats are marked. */
  readonly key: string;
  /** Digest of the request, to detect a different body under the same key. */
  readonly request: string;
  readonly attempt: number;
}

/** A message whose code is not ours, kept for a fallback. */
export interface KeptMessage {
  readonly sealed: string;
  /** When it is erased, whatever happens. */
  readonly until: number;
}

/** A delivery status to be posted to `callback_url`. */
export interface OutboxEvent {
  /**
   * 1 for the first event of the authentication; with its id the `webhook-id`, "constant over redeliveries"
   * (docs/contract.md#callback-signature).
   */
  readonly sequence: number;
  /** The attempt number of the send. */
  readonly attempt: number;
  readonly status: DeliveryStatus;
  /** When the event happened. */
  readonly at: number;
  /** Delays used up: one for each failed delivery, more if the receiver asked for a longer wait. */
  readonly tries: number;
  /** When the next delivery is due, or when the event was given up. */
  readonly nextAt: number;
  /** Why it was given up (docs/contract.md#dead-letters). */
  readonly dead?: string;
  readonly route?: string;
  /** Absent: `sms`. */
  readonly channel?: Channel;
  readonly error?: string;
}

/** Short keyed hashes of where a create came from: a retry and a verification count in the same cells. */
export interface Origin {
  /** The address: IPv4 whole, IPv6 by /64. */
  readonly a?: string;
  /** Its network: IPv4 by /16, IPv6 by /32. */
  readonly w?: string;
  /** Cells of the caller's own rules, by rule. */
  readonly u?: Readonly<Record<string, string>>;
  /** Its messages count in the pot of new countries. */
  readonly p?: 1;
  /** It came from a strange network while the alarm of its country was on: its messages count for that rule. */
  readonly t?: 1;
  /** It was on the safe list: its messages are in no cell. */
  readonly s?: 1;
  /** No one reports whether its codes were entered: its cells grow with their own past. */
  readonly g?: 1;
}

/** The state of one authentication. All times are milliseconds since the epoch. */
export interface Authentication {
  readonly customer: string;
  readonly id: string;
  /** Canonical E.164 form; masked once it is no longer needed, or if it cannot be decrypted. */
  readonly number: string;
  /** The number as stored: some digits are readable only with a secret. Absent once the number is masked. */
  readonly sealed?: string | undefined;
  /** ISO 3166-1 alpha-2; absent for non-geographic numbers. */
  readonly country?: string | undefined;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** After this time, the store may delete the record. */
  readonly keepUntil: number;
  /** The original end, restored once the outbox is empty. */
  readonly endsAt?: number | undefined;
  /** The status that Create authentication returned. */
  readonly status: AuthenticationStatus;
  /** Sends tried, including rejected ones; numbers the attempts. */
  readonly attempts: number;
  /** Sends that were, or may have been, handed to a carrier. */
  readonly sent: number;
  /** Retries used up; a rejected one is given back. */
  readonly retries: number;
  /** When the newest send was tried; the cool-down starts here. */
  readonly lastSendAt: number;
  /** Wrong codes so far; never reset. */
  readonly wrongChecks: number;
  /** Its checks are used up, whatever a later policy allows. */
  readonly spent?: true | undefined;
  readonly validated: boolean;
  /** The last three sends that were not rejected, oldest first. */
  readonly sends: readonly Send[];
  /** The channel of its first message, once that is no longer in `sends`. */
  readonly firstChannel?: Channel | undefined;
  /**
   * Routes of messages that are no longer in `sends`, and those that may have sent a message before its route took it:
   * up to ten, the newest ones, oldest first.
   */
  readonly otherRoutes: readonly string[];
  /** Why it was rejected, or what a rule in shadow mode would have decided. */
  readonly decisions: readonly Decision[];
  readonly deviceType?: DeviceType | undefined;
  readonly appRealm?: string | undefined;
  readonly callbackUrl?: string | undefined;
  readonly callbackForm?: CallbackForm | undefined;
  /** The caller's own reference. */
  readonly correlationId?: string | undefined;
  /** When a worker settles the newest send as `unknown`. Set only if a callback must report it. */
  readonly settleBy?: number | undefined;
  /** Delivery statuses not yet delivered, or given up; oldest first. */
  readonly outbox: readonly OutboxEvent[];
  /** The number of this authentication's events so far. */
  readonly events: number;
  /** Where the create came from, as needed by the anti-spam cells. */
  readonly origin?: Origin | undefined;
  /** How many of its messages its cells do not hold: their user was vouched for, or the number was unlocked since. */
  readonly uncounted: number;
  /** An unlock removed messages from its cells: its user was not vouched for. */
  readonly unlocked?: true | undefined;
  /** Digest of the create request, if it had an idempotency key. */
  readonly request?: string | undefined;
  readonly checks: readonly KeyedCheck[];
  /** The last digits of the id of the verification before it in its slot, if that one has such checks. */
  readonly earlier?: string | undefined;
  /** Its starts by number that can be repeated. */
  readonly starts: readonly KeyedStart[];
  /** Its codes are no longer accepted, because the caller ended it. */
  readonly canceled?: true | undefined;
  /** The requested language of its messages. */
  readonly locale?: string | undefined;
  /** Digits of its codes. Absent: 6, or in records of earlier versions the policy's. */
  readonly codeLength?: number | undefined;
  /** Carriers' ids of its messages, stored for receipts as `idSpace/messageId`. */
  readonly keptIds: readonly string[];
  /** Its codes are said in calls: the create wished for that, or the number is a fixed line, which nothing else reaches. */
  readonly byCall?: "wished" | "fixed line" | undefined;
  /** When its newest message is followed by one on another route, if its delivery is not confirmed by then. */
  readonly fallbackAt?: number | undefined;
  /** Messages that replaced one that did not arrive. */
  readonly fallbacks: number;
  /** The newest message of a delivery, encrypted: it may have to be sent again on another route. */
  readonly kept?: KeptMessage | undefined;
  /** What its codes are for, if another server made them (docs/contract.md#deliver). Absent: the codes are ours. */
  readonly purpose?: string | undefined;
}

/** What a create or retry decides on the stored record: to send a message, or to return a status from it alone. */
export type SendDecision<Status extends string> =
  | { readonly send: Authentication }
  | {
      readonly status: Status;
      readonly auth: Authentication;
      /** The record to write before the call returns. */
      readonly next?: Authentication;
    };

/**
 * The record "keeps its last three codes with the outcome of their sends" (docs/contract.md#live-codes). A delivery,
 * whose messages may overtake each other because it has no cool-down, keeps all five.
 */
export function keptSends({ purpose }: Pick<Authentication, "purpose">): number {
  return purpose === undefined ? 3 : 5;
}

/** How many decisions a record keeps. */
const keptDecisions = 20;

/** How a message was sent. */
export type Way = Pick<Send, "route" | "channel">;

/** A message that is among those kept. */
export function sendOf({ sends }: Authentication, attempt: number | undefined): Send | undefined {
  return sends.find((send) => send.attempt === attempt);
}

/** The channel of a message. Of a rejected one, it is that of the last route that was tried. */
export function channelOfAttempt(auth: Authentication, attempt: number): Channel {
  const send = sendOf(auth, attempt);
  if (send !== undefined) return send.channel ?? "sms";
  const first = attempt === 1 ? auth.firstChannel : undefined;
  return first ?? auth.decisions.findLast((one) => one.attempt === attempt && one.outcome !== undefined)?.channel ?? "sms";
}

/** How many routes a record keeps besides those of its sends, and their longest name. */
const keptRoutes = { most: 10, longest: 256 };

/** `otherRoutes` with those added. */
export function withOtherRoutes({ otherRoutes }: Pick<Authentication, "otherRoutes">, added: readonly string[]): readonly string[] {
  const sound = added.filter((route) => route.length <= keptRoutes.longest);
  return sound.length === 0 ? otherRoutes : [...new Set([...otherRoutes, ...sound])].slice(-keptRoutes.most);
}

/** Routes that sent, or may have sent, a message. `sends`: those of the record that count. */
export function usedRoutes({ otherRoutes }: Authentication, sends: readonly Send[]): readonly string[] {
  return [...otherRoutes, ...routesOf(sends)];
}

const routesOf = (sends: readonly Send[]): readonly string[] => sends.flatMap(({ route }) => route ?? []);

/** Adds a rule that fired. */
export function withDecision(auth: Authentication, decision: Decision): Authentication {
  return { ...auth, decisions: [...auth.decisions, decision].slice(-keptDecisions) };
}

/** What a send has besides its code. */
export interface NewSend extends Pick<Send, "route" | "channel" | "fallback"> {
  /** When the message falls back. */
  readonly fallbackAt?: number | undefined;
  readonly kept?: KeptMessage | undefined;
}

/**
 * Adds a send that is about to be made; it is written before the message is sent. Every send but the first, and but a
 * fallback, uses up a retry. "With a `callback_url` the first write sets `wakeAt` to the send's deadline, so a crash yields an `unknown`
 * event" (docs/contract.md#outbox): `settleBy`.
 */
export function withSend(auth: Authentication, digest: string, now: number, settleBy: number, { fallbackAt, kept, ...made }: NewSend): Authentication {
  const attempt = auth.attempts + 1;
  const isFree = auth.attempts === 0 || made.fallback === true;
  const dropped = auth.sends.slice(0, 1 - keptSends(auth));
  const first = dropped.find((send) => send.attempt === 1);
  return {
    ...auth,
    attempts: attempt,
    sent: auth.sent + 1,
    retries: isFree ? auth.retries : auth.retries + 1,
    fallbacks: made.fallback === true ? auth.fallbacks + 1 : auth.fallbacks,
    fallbackAt,
    kept,
    lastSendAt: now,
    firstChannel: first === undefined ? auth.firstChannel : (first.channel ?? "sms"),
    otherRoutes: withOtherRoutes(auth, routesOf(dropped)),
    sends: auth.sends.slice(1 - keptSends(auth)).concat({ attempt, digest, state: "undecided", at: now, ...made }),
    settleBy: auth.callbackUrl === undefined ? undefined : settleBy,
  };
}

/**
 * Removes a send that was not made, because its write was not confirmed in time. Returns the current record without the
 * send, with what the send had displaced restored. `before`: the record that the send was decided on.
 */
export function withoutTriedSend(auth: Authentication, attempt: number, before: Authentication): Authentication {
  const send = sendOf(auth, attempt);
  if (send === undefined) return auth;
  const pushedOut = holdsCodes(auth) ? before.sends.slice(0, Math.max(0, before.sends.length + 1 - keptSends(auth))) : [];
  const rest = withoutSend(auth, send);
  return {
    ...rest,
    ...(auth.attempts === attempt && { attempts: before.attempts, lastSendAt: before.lastSendAt, fallbackAt: before.fallbackAt, kept: before.kept }),
    fallbacks: send.fallback === true ? auth.fallbacks - 1 : auth.fallbacks,
    sends: [...pushedOut, ...rest.sends],
    outbox: auth.outbox.filter((event) => event.attempt !== attempt),
    starts: auth.starts.filter((start) => start.attempt !== attempt),
  };
}

/** Removes a send that is known not to have been made. The first one, and a fallback, used up no retry. */
export function withoutSend(auth: Authentication, { attempt, fallback }: Send): Authentication {
  return {
    ...auth,
    ...(auth.attempts === attempt && { settleBy: undefined, fallbackAt: undefined, kept: undefined }),
    sent: auth.sent - 1,
    uncounted: Math.min(auth.uncounted, auth.sent - 1),
    retries: attempt === 1 || fallback === true ? auth.retries : Math.max(0, auth.retries - 1),
    sends: auth.sends.filter((send) => send.attempt !== attempt),
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
    otherRoutes: [],
    starts: [],
    outbox: [],
    keepUntil: auth.expiresAt,
    settleBy: undefined,
    fallbackAt: undefined,
    fallbacks: 0,
    kept: undefined,
  };
}

/** Whether nothing was tried under it: a create was taken back. A repeat with its idempotency key replaces it. */
export function isVoid(auth: Authentication): boolean {
  return auth.status === "pending" && auth.attempts === 0;
}

/** A record that only occupies its id: nothing of its request is left, and retry and check do not find it. */
export function emptyOf(auth: Authentication): Authentication {
  return { ...blankOf(auth), status: "pending", number: "*", sealed: undefined, callbackUrl: undefined, decisions: [], checks: [], earlier: undefined };
}

/** Whether it only occupies its id: it is being erased, or it keeps a late write out (docs/contract.md#take-back). */
export function isErased(auth: Authentication): boolean {
  return isVoid(auth) && !hasNumber(auth);
}

/** When the messages in its cells were sent. For one that is no longer kept, the creation time. */
export function countedAt({ sent, uncounted, sends, createdAt }: Authentication): number[] {
  const counted = Math.max(0, sent - uncounted);
  const times = sends.map(({ at }) => at);
  return [...Array<number>(Math.max(0, counted - times.length)).fill(createdAt), ...times.slice(Math.max(0, times.length - counted))];
}

/** When the calls that its cells hold were made; `undefined` if it has none. */
export function callsAt({ sent, uncounted, sends }: Authentication): number[] | undefined {
  const counted = sends.slice(Math.max(0, sends.length - Math.max(0, sent - uncounted)));
  const calls = counted.flatMap(({ channel, at }) => (channel === "voice" ? at : []));
  return calls.length === 0 ? undefined : calls;
}

/** Whether it is a verification of ours; otherwise a delivery, which check and retry do not find. */
export function isVerification(auth: Authentication): boolean {
  return !isErased(auth) && auth.purpose === undefined;
}

/** "no code was or may have been handed to a carrier" (docs/contract.md#send-under-way). */
export function nothingSent(auth: Authentication): boolean {
  return auth.sent === 0;
}

/** Whether messages were tried, and none was sent for certain (docs/contract.md#every-route-rejects). */
export function isCarrierRefused(auth: Authentication): boolean {
  return auth.status === "pending" && auth.attempts > 0 && nothingSent(auth);
}

/** "now ≥ `expires_at`" (docs/contract.md#check-order), or canceled (docs/contract.md#cancel). */
export function isExpired(auth: Authentication, now: number): boolean {
  return auth.canceled === true || now >= auth.expiresAt;
}

/** Whether a record is past its end: it is then gone, even if the store has not deleted it yet. */
export function isForgotten(auth: { readonly keepUntil: number }, now: number): boolean {
  return now >= auth.keepUntil;
}

/** "The record stays 24 h more, without its codes" (docs/contract.md#tombstone). */
export function withoutCodes(auth: Authentication): Authentication {
  return { ...auth, sends: auth.sends.map((send) => ({ ...send, digest: "" })) };
}

/**
 * Whether the number is still needed: "stored only as long as delivery needs them" (docs/contract.md#sealed-number).
 * Retries need it until verification or expiry, and callbacks with the full number (`fullNumber`) until they are
 * delivered. A `valid` check that can be repeated needs it while the record lives, because the repeat returns it; not
 * if its repeats are marked and name the number. A delivery needs it until it is confirmed.
 */
export function needsNumber(auth: Authentication, fullNumber: boolean, now: number): boolean {
  if (auth.status !== "pending") return false;
  if (auth.purpose !== undefined && !auth.validated) return true;
  if (auth.checks.some(({ status, namedAt }) => status === "valid" && namedAt === undefined)) return true;
  if (fullNumber && auth.callbackUrl !== undefined && (auth.outbox.length > 0 || !isExpired(auth, now))) return true;
  return !auth.validated && !isExpired(auth, now);
}

/** Whether messages can be sent to the number. */
export function hasNumber({ number }: Pick<Authentication, "number">): boolean {
  return !number.includes("*");
}

/** Whether the digest of any code is still stored. */
export function holdsCodes(auth: Authentication): boolean {
  return auth.sends.some((send) => send.digest !== "");
}
