import type { AuthenticationStatus } from "../contract/authentication.js";
import type { DeliveryStatus } from "../contract/callback.js";
import type { Channel } from "../contract/channel.js";
import type { CheckStatus } from "../contract/check.js";
import type { RetryStatus } from "../contract/retry.js";

/** Fields of every event. */
interface Told {
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** Fields of every event about one authentication. */
interface OfAuthentication extends Told {
  /** UUID. */
  readonly customer_uuid: string;
  /** UUID. */
  readonly authentication_uuid: string;
  /** Masked, for example `+33612****08`. */
  readonly phone_number: string;
  /** ISO 3166-1 alpha-2; absent for non-geographic numbers. */
  readonly country?: string;
}

/** A create was accepted and stored. Its first message is sent next. */
export interface CreatedEvent extends OfAuthentication {
  readonly type: "created";
}

/** A message was handed to the carrier, or the attempt failed. */
export interface SentEvent extends OfAuthentication {
  readonly type: "sent";
  /** 1 for the first message, plus one for each approved retry. */
  readonly attempt: number;
  /** `rejected`: known not to have been sent; `unknown`: may have been sent, and counts as sent. */
  readonly outcome: "accepted" | "rejected" | "unknown";
  /** The route that accepted the message, or was tried last, if the sender names routes. */
  readonly route?: string;
  /** Absent: SMS. */
  readonly channel?: Channel;
  /** The message replaces one that did not arrive. */
  readonly fallback?: true;
  /** How long the sender took, in milliseconds. */
  readonly took: number;
  /**
   * Why the message was not accepted, as reported by the carrier or sender, without code or number. At most 500
   * characters.
   */
  readonly reason?: string;
}

/** A rule that fired. */
export interface FiredRule {
  /** The rule's name as `explain` shows it, for example `perNumber 5/600s`. */
  readonly rule: string;
  /** `shadow`: the rule only observes. */
  readonly mode: "enforce" | "shadow";
  /** The measured value. */
  readonly value?: number;
  /** The limit that `value` is compared with. */
  readonly threshold?: number;
  /** A reason in words, if the rule gives one. */
  readonly reason?: string;
}

/** A cap or rule blocked a create, a retry or a fallback. Nothing was sent. */
export interface RefusedEvent extends OfAuthentication {
  readonly type: "refused";
  readonly operation: "create" | "retry" | "fallback";
  /** The status that was returned: `rate_limited` or `spam_detected`. */
  readonly status: AuthenticationStatus | RetryStatus;
  /** Every rule that fired for this message, including rules in shadow mode. */
  readonly rules: readonly FiredRule[];
}

/** A code was checked. */
export interface CheckedEvent extends OfAuthentication {
  readonly type: "checked";
  readonly status: CheckStatus;
  /** Wrong codes so far, including this one. */
  readonly wrong_codes: number;
}

/** A verification by number was canceled. Its codes are no longer accepted. */
export interface CanceledEvent extends OfAuthentication {
  readonly type: "canceled";
}

/** `confirm` reported that the code of a delivery was entered. */
export interface ConfirmedEvent extends OfAuthentication {
  readonly type: "confirmed";
  /** What the code was for, as `deliver` was called. */
  readonly purpose: string;
}

/** A carrier's receipt reported a new status. */
export interface ReceiptEvent extends OfAuthentication {
  readonly type: "receipt";
  /** The message that the receipt is about. */
  readonly attempt: number;
  readonly status: DeliveryStatus;
  /** The route that accepted the message, if the sender named one. */
  readonly route?: string;
  /** Absent: SMS. */
  readonly channel?: Channel;
  /** The carrier's error code or text. */
  readonly error?: string;
}

/** A callback was posted to a webhook. */
export interface CallbackEvent extends OfAuthentication {
  readonly type: "callback";
  /** `failed`: the delivery will be retried; `dead`: it was given up, see `deadLetters`. */
  readonly outcome: "delivered" | "failed" | "dead";
  /** The delivery status that the callback reports. */
  readonly status: DeliveryStatus;
  /** Counts the callbacks of the authentication, from 1. */
  readonly sequence: number;
  /** Why the delivery failed. */
  readonly reason?: string;
}

/** Something an operator should look at. Each process raises an alarm at most once an hour per customer and subject. */
export type Alarm =
  /**
   * Within the hour, a country has more open or blocked messages than its verifications explain. For deliveries whose
   * `conversion` is `late` or `unknown`: the rule `country` or `newCountries` blocked one; then `value` and `threshold`
   * are that rule's.
   */
  | { readonly alarm: "country"; readonly country: string }
  /**
   * A range of 10,000 numbers received more messages than a real crowd would request. `range`: its first digits,
   * masked.
   */
  | { readonly alarm: "crowd"; readonly range: string }
  /** 80 % of a cap on all the customer's sends is used. */
  | { readonly alarm: "customer_cap"; readonly rule: string }
  /** 80 % of a spend ceiling is used. */
  | { readonly alarm: "spend"; readonly rule: string }
  /**
   * Far too many wrong codes compared with right ones. `value`: the probability, from 0 to 1, that a code was guessed
   * today.
   */
  | { readonly alarm: "wrong_codes"; readonly wrong: number; readonly right: number }
  /**
   * Within seven days, `value` deliveries were requested and none was confirmed, although `conversion` is `reported` or
   * `late`. Raised from 50 on.
   */
  | { readonly alarm: "no_conversion" }
  /**
   * A rule in shadow mode would have blocked more than 1 % of this process's messages within an hour; with fewer than 200,
   * within the time that 200 take, up to a day. `value`: that share.
   */
  | { readonly alarm: "shadow"; readonly rule: string };

/** An alarm was raised. */
export type AlarmEvent = Alarm &
  Told & {
    readonly type: "alarm";
    /** UUID. */
    readonly customer_uuid: string;
    /** The measured value, and the limit that it is compared with. */
    readonly value: number;
    readonly threshold: number;
  };

/** External parts that the verifier depends on. `events`: the handler of these events. */
export type OutsidePart = "store" | "sender" | "customers" | "lookup" | "events";

/**
 * An external part is failing. Sent when the outage begins, once a minute while it lasts, and when it ends. Store
 * errors have `part` `store`.
 */
export interface OutageEvent extends Told {
  readonly type: "outage";
  readonly part: OutsidePart;
  readonly phase: "began" | "lasts" | "ended";
  /** When the outage began, in milliseconds since the epoch. */
  readonly since: number;
  /** Failures since then. */
  readonly failures: number;
}

/** Any event, distinguished by its `type`. Numbers are masked, and no event holds a code or a key. */
export type VerifierEvent =
  | CreatedEvent
  | SentEvent
  | RefusedEvent
  | CheckedEvent
  | CanceledEvent
  | ConfirmedEvent
  | ReceiptEvent
  | CallbackEvent
  | AlarmEvent
  | OutageEvent;
