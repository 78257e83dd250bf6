/** A mobile network, as far as it is known. */
export interface Network {
  /** Mobile country code, three digits. */
  readonly mcc: string;
  /** Mobile network code, two or three digits; `01` and `001` are two codes. */
  readonly mnc?: string;
}

/** What is known of a message before it is written. */
export interface Destination {
  /** Destination in canonical E.164 form, for example `+14155552671`. */
  readonly to: string;
  readonly authentication_uuid: string;
  readonly customer_uuid: string;
  /** 1 for the first send of an authentication, one more for each send tried. */
  readonly attempt: number;
  /** ISO 3166-1 alpha-2, absent for non-geographic numbers and unknown test numbers. */
  readonly country?: string | undefined;
  /** The number's network, with the option `lookupBeforeSend` and where the lookup knows it. */
  readonly network?: Network | undefined;
  /** Routes that earlier sends of this authentication took, oldest first; absent for the first. */
  readonly routes_tried?: readonly string[] | undefined;
}

/** One text message to hand to a carrier. */
export interface SmsMessage extends Destination {
  /** Of this very send, for carriers that take one: never another's, the same where a sender tries again. At most 64 characters. */
  readonly idempotency_key: string;
  /** The whole text, ready to send. */
  readonly text: string;
  /** The code inside `text`, for carriers that take it apart (templates). Never log it. */
  readonly code: string;
  /** What `plan` answered for it. */
  readonly planned_route?: string | undefined;
  /** What was held for it under a spend ceiling: it must not cost more, on whatever route. Absent: there is no ceiling. */
  readonly max_price?: number | undefined;
  /** When the code ends, in milliseconds since the epoch: after that the message is of no use to anyone. */
  readonly expires_at: number;
  /** Under which ids its text is registered in the destination's country, where `message.registered` names some. */
  readonly registered?: RegisteredIds | undefined;
  /** The signed name of this very message, for carriers that echo a word of ours in their receipts: at most 80 letters, digits, `-` and `_`. Absent when the verifier takes no receipts over HTTP. */
  readonly receipt_reference?: string | undefined;
  /** Public URL where the carrier may post its delivery receipts, with `receipt_reference` in its query, and `{provider}` for the name of the carrier's receipt source; absent with it. */
  readonly receipt_url?: string | undefined;
}

/** The ids of a text that is registered with the operators of its country (India's DLT). */
export interface RegisteredIds {
  /** Of the principal entity, who registered it. */
  readonly entity?: string;
  /** Of the template. */
  readonly template?: string;
}

export interface SendContext {
  /** Aborted when `sendTimeout` has passed; nobody waits for the answer then. */
  readonly signal: AbortSignal;
  /** When `signal` is aborted, by the verifier's clock, in milliseconds since the epoch. */
  readonly deadline: number;
  /** Milliseconds until then, at the call: for a sender that has another clock. */
  readonly timeLeft: number;
}

/**
 * What became of a hand-over to the carrier:
 * - `accepted`: the carrier took the message;
 * - `rejected`: it was surely not sent; the code is dead and no retry is used up;
 * - `unknown`: it may have been sent (a time-out, a cut connection); it counts as sent.
 *
 * `price`: what the message costs after all; absent: what `plan` said.
 */
export type SendOutcome =
  | {
      readonly outcome: "accepted";
      /** The carrier's id of the message. */
      readonly messageId?: string;
      /** What `messageId` is unique in (an account, a connection): says that the receipts of this message name `messageId` and nothing of ours, so that it is kept to find the message by. Receipts bear the same `idSpace`. */
      readonly idSpace?: string;
      /** Keeps `messageId` in the record, for the sender's own `feedback`. */
      readonly keepId?: boolean;
      readonly route?: string;
      readonly price?: number;
      readonly steps?: readonly RouteStep[];
    }
  | { readonly outcome: "rejected"; readonly reason?: string; readonly route?: string; readonly steps?: readonly RouteStep[] }
  | { readonly outcome: "unknown"; readonly reason?: string; readonly route?: string; readonly price?: number; readonly steps?: readonly RouteStep[] };

/** One route that a router tried for a message, for `explain`. */
export interface RouteStep {
  readonly route: string;
  /** Why this route, in words, for example `weight 2 of 3` or `failover`. */
  readonly reason: string;
  readonly outcome: "accepted" | "rejected" | "unknown";
}

/** The route that a message would take. */
export interface Plan {
  readonly route: string;
  /** What the message may cost at most, on whatever route it is sent in the end, in the unit of `policy.limits.spend`. Absent: not known, and a spend ceiling refuses the message. */
  readonly price?: number;
}

/** What became of a message later on: the end user typed its code (`validated`), or the carrier's receipt. */
export interface Feedback {
  /** The route that took the message, where the sender named one. */
  readonly route?: string;
  /** The carrier's id of the message, where its outcome said `keepId`. */
  readonly messageId?: string;
  readonly country?: string | undefined;
  readonly authentication_uuid: string;
  readonly attempt: number;
  readonly event: "validated" | "delivered" | "undeliverable";
  /** When the message was sent, in milliseconds since the epoch. */
  readonly sent_at: number;
  /** The authentication's first message, and by the route that `plan` had named: chance gave it the route, which failovers and retries are not. */
  readonly chosen: boolean;
}

/** Whether a carrier takes the credentials; `unknown`: it did not say. */
export interface CredentialCheck {
  /** Of the route, or of the carrier. */
  readonly name: string;
  readonly credentials: "accepted" | "rejected" | "unknown";
  /** Why, without a secret in it, for example `HTTP 401`. */
  readonly reason?: string;
}

/**
 * Hands messages to a carrier. A sender that throws, or answers anything but a `SendOutcome`, counts as `unknown`;
 * an error with the property `outcome: "rejected"` counts as rejected.
 */
export interface SmsSender {
  send(message: SmsMessage, context: SendContext): Promise<SendOutcome>;
  /** Names the route before the message is written down, so that the record and the spend ceiling know it. Decides from what it holds in memory: no I/O, no throwing. */
  plan?(destination: Destination): Plan | undefined;
  /** Names of routes that are known to have no price for some message: with one of them a verifier that has a spend ceiling is not built. */
  readonly unpriced?: readonly string[];
  /** `false` for a country (ISO 3166-1 alpha-2) that it has nobody to send from in: a verifier that allows it is not built. Default: it reaches all. */
  reaches?(country: string): boolean;
  /** Its routes are chosen by a destination's `network`: a verifier that does not look numbers up before it sends is not built with it. Default: `false`. */
  readonly readsNetwork?: boolean;
  /** Providers whose receipts its messages ask for: a verifier that takes receipts must have a source of each. Default: none. */
  readonly receiptProviders?: readonly string[];
  /** The same for the messages of one route; of a name that is none of its routes, for all. Default: `receiptProviders`. */
  receiptProvidersOf?(route: string): readonly string[] | undefined;
  /** Told once for each event, where the route or the carrier's id is known. Nobody waits for what it answers; a rejection is logged. */
  feedback?(event: Feedback): void | Promise<void>;
  /** For `diagnose`, never for a request: asks the carrier something that sends nothing and costs nothing, to see whether it takes the credentials. Several where it is made of several senders. */
  verify?(context: { readonly signal: AbortSignal }): Promise<readonly CredentialCheck[]>;
  close?(): Promise<void>;
}
