import type { AuthenticationStatus } from "../contract/authentication.js";
import type { DeliveryStatus } from "../contract/callback.js";
import type { CheckStatus } from "../contract/check.js";
import type { RetryStatus } from "../contract/retry.js";

/** Every event has it. */
interface Told {
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** About one authentication. */
interface OfAuthentication extends Told {
  /** UUID. */
  readonly customer_uuid: string;
  /** UUID. */
  readonly authentication_uuid: string;
  /** Masked: `+33612****08`. */
  readonly phone_number: string;
  /** ISO 3166-1 alpha-2; absent for non-geographic numbers. */
  readonly country?: string;
}

/** A create was let through and is stored; its first message goes now. */
export interface CreatedEvent extends OfAuthentication {
  readonly type: "created";
}

/** A message was handed over, or was not. */
export interface SentEvent extends OfAuthentication {
  readonly type: "sent";
  /** 1 for the first message, one more for each retry that was let through. */
  readonly attempt: number;
  /** `rejected`: surely not sent; `unknown`: it may have been, and counts as sent. */
  readonly outcome: "accepted" | "rejected" | "unknown";
  /** The route that took it, or was tried last, where the sender names one. */
  readonly route?: string;
  /** How long the sender took, in milliseconds. */
  readonly took: number;
  /** Why it was not accepted, in the carrier's or the sender's words, without code and number; at most 500 characters. */
  readonly reason?: string;
}

/** A rule that fired. */
export interface FiredRule {
  /** As `explain` names it, for example `perNumber 5/600s`. */
  readonly rule: string;
  /** `shadow`: it only watches. */
  readonly mode: "enforce" | "shadow";
  /** What was counted. */
  readonly value?: number;
  /** What it is held against. */
  readonly threshold?: number;
  /** In words, where the rule has some. */
  readonly reason?: string;
}

/** A create or a retry was refused by a cap or a rule; nothing was sent. */
export interface RefusedEvent extends OfAuthentication {
  readonly type: "refused";
  readonly operation: "create" | "retry";
  /** What was answered: `rate_limited` or `spam_detected`. */
  readonly status: AuthenticationStatus | RetryStatus;
  /** Those that fired for this message, rules in shadow included. */
  readonly rules: readonly FiredRule[];
}

/** A code was judged. */
export interface CheckedEvent extends OfAuthentication {
  readonly type: "checked";
  readonly status: CheckStatus;
  /** Wrong codes so far, this one included. */
  readonly wrong_codes: number;
}

/** A carrier's receipt told something new. */
export interface ReceiptEvent extends OfAuthentication {
  readonly type: "receipt";
  /** The message it is about. */
  readonly attempt: number;
  readonly status: DeliveryStatus;
  /** The route that had taken the message, where the sender named one. */
  readonly route?: string;
  /** The carrier's error code or text. */
  readonly error?: string;
}

/** A callback was posted to a webhook. */
export interface CallbackEvent extends OfAuthentication {
  readonly type: "callback";
  /** `failed`: it will be tried again; `dead`: it was given up, see `deadLetters`. */
  readonly outcome: "delivered" | "failed" | "dead";
  /** The status that it tells. */
  readonly status: DeliveryStatus;
  /** Numbers the callbacks of the authentication, from 1. */
  readonly sequence: number;
  /** Why it was not delivered. */
  readonly reason?: string;
}

/** What an operator should look at. Each is told at most once an hour for one customer and subject, by each process that sees it. */
export type Alarm =
  /** More messages of a country are open or refused within the hour than its verifications explain. */
  | { readonly alarm: "country"; readonly country: string }
  /** One range of 10,000 numbers got more messages than a crowd there would ask for. `range`: its beginning, masked. */
  | { readonly alarm: "crowd"; readonly range: string }
  /** A cap of all the customer's sends is used to four fifths. */
  | { readonly alarm: "customer_cap"; readonly rule: string }
  /** A spend ceiling is used to four fifths. */
  | { readonly alarm: "spend"; readonly rule: string }
  /** Wrong codes out of all proportion to right ones. `value`: the odds that some code was guessed today, from 0 to 1. */
  | { readonly alarm: "wrong_codes"; readonly wrong: number; readonly right: number }
  /** A rule in shadow would have refused more than a hundredth of the last hour's messages. `value`: that share. */
  | { readonly alarm: "shadow"; readonly rule: string };

/** An alarm was raised. */
export type AlarmEvent = Alarm &
  Told & {
    readonly type: "alarm";
    /** UUID. */
    readonly customer_uuid: string;
    /** What was counted, and what it is held against. */
    readonly value: number;
    readonly threshold: number;
  };

/** What others do for the verifier, and may fail at. `events`: the handler of these events. */
export type OutsidePart = "store" | "sender" | "customers" | "lookup" | "events";

/** Something outside fails: told when that begins, once a minute while it lasts, and when it is over. A store fault is one of `part` `store`. */
export interface OutageEvent extends Told {
  readonly type: "outage";
  readonly part: OutsidePart;
  readonly phase: "began" | "lasts" | "ended";
  /** When it began, in milliseconds since the epoch. */
  readonly since: number;
  /** How often it failed since then. */
  readonly failures: number;
}

/** Something that happened, by its `type`. Numbers are masked, and nothing here holds a code or a key. */
export type VerifierEvent = CreatedEvent | SentEvent | RefusedEvent | CheckedEvent | ReceiptEvent | CallbackEvent | AlarmEvent | OutageEvent;
