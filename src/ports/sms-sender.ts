import type { Channel } from "../contract/channel.js";

export type { Channel };

/** A mobile network, as far as known. */
export interface Network {
  /** Mobile country code, three digits. */
  readonly mcc: string;
  /** Mobile network code, two or three digits. `01` and `001` are different codes. */
  readonly mnc?: string;
}

/** What is known of a message before its text is written. */
export interface Destination {
  /** Destination in canonical E.164 form, for example `+14155552671`. */
  readonly to: string;
  readonly authentication_uuid: string;
  readonly customer_uuid: string;
  /** 1 for the first send of an authentication, plus one for each send tried. */
  readonly attempt: number;
  /** ISO 3166-1 alpha-2; absent for non-geographic numbers and unknown test numbers. */
  readonly country?: string | undefined;
  /** The number's network. Set with the option `lookupBeforeSend`, if the lookup knows it. */
  readonly network?: Network | undefined;
  /** Routes that sent, or may have sent, earlier messages of this authentication, the newest last; absent for the first send. */
  readonly routes_tried?: readonly string[] | undefined;
  /** The channel that the request wishes for. With `voice`, only a call may carry the message. */
  readonly channel?: Channel | undefined;
  /** Channels that the number is known not to be on. */
  readonly unreachable?: readonly Channel[] | undefined;
  /** Only calls reach the number. */
  readonly fixed_line?: true | undefined;
  /** The message replaces one that did not arrive: only routes that are not in `routes_tried` may take it. */
  readonly fallback?: true | undefined;
}

/** One message for a carrier. */
export interface CodeMessage extends Destination {
  /**
   * Unique to this send, and unchanged when the sender tries again; for carriers that accept one. At most 64
   * characters.
   */
  readonly idempotency_key: string;
  /** The whole text, ready to send as an SMS. Senders of other channels write their own from `code` and `locale`. */
  readonly text: string;
  /** The code in `text`, for templates and other channels; empty for a text without one. Never log it. */
  readonly code: string;
  /** The language that the request asks for, as a BCP 47 tag in any case. Absent: it asks for none. */
  readonly locale?: string | undefined;
  /** The route that `plan` returned for this message. */
  readonly planned_route?: string | undefined;
  /**
   * The amount reserved under a spend ceiling. The message must not cost more, on any route. Absent if there is no
   * ceiling.
   */
  readonly max_price?: number | undefined;
  /** When the code expires, in milliseconds since the epoch. After that, the message is useless. */
  readonly expires_at: number;
  /**
   * When a message on another route replaces it, unless it is delivered, in milliseconds since the epoch. A carrier that can
   * should not deliver it later.
   */
  readonly replaced_at?: number | undefined;
  /** Ids of the text's registration in the destination's country, if `message.registered` names them. */
  readonly registered?: RegisteredIds | undefined;
  /**
   * Signed reference of this message, for carriers that echo a client reference in their receipts: at most 80 letters,
   * digits, `-` and `_`. Absent if the verifier takes no receipts over HTTP.
   */
  readonly receipt_reference?: string | undefined;
  /**
   * Public URL for the carrier's delivery receipts. Its query holds `receipt_reference`; replace `{provider}` with the
   * name of the receipt source. Absent without `receipt_reference`.
   */
  readonly receipt_url?: string | undefined;
}

/** Ids of a text registered with the operators of its country (India's DLT). */
export interface RegisteredIds {
  /** Id of the principal entity, which registered the text. */
  readonly entity?: string;
  /** Id of the template. */
  readonly template?: string;
}

export interface SendContext {
  /** Aborted when `sendTimeout` has passed; a later result is ignored. */
  readonly signal: AbortSignal;
  /** When `signal` is aborted, in milliseconds since the epoch by the verifier's clock. */
  readonly deadline: number;
  /** Milliseconds until `deadline`, measured at the call; for senders that use another clock. */
  readonly timeLeft: number;
  /**
   * Milliseconds from the call after which a message of which nothing was sent should be `rejected`, so that the router
   * has time for another route. Default: absent, no other route is left; the message may wait until `deadline`.
   */
  readonly rejectAfter?: number | undefined;
}

/**
 * The result of handing a message to the carrier:
 * - `accepted`: the carrier took the message;
 * - `rejected`: known not to have been sent; the code is void and no retry is used up;
 * - `unknown`: possibly sent (a timeout, a broken connection); counts as sent.
 * `price`: the actual cost, in the unit of `policy.limits.spend`. Default: the price that `plan` returned; through a
 * router, the route's.
 */
export type SendOutcome =
  | {
      readonly outcome: "accepted";
      /** The carrier's message id. */
      readonly messageId?: string;
      /**
       * The scope in which `messageId` is unique (an account, a connection). Set it only if receipts carry none of our
       * references: `messageId` is then stored to find the message, and receipts must carry the same `idSpace`.
       */
      readonly idSpace?: string;
      /** Stores `messageId` in the record, for the sender's `feedback`. */
      readonly keepId?: boolean;
      /** The name of the route that took the message. Ignored if it is longer than 256 characters. */
      readonly route?: string;
      /** The channel of `route`. Default: the sender's. */
      readonly channel?: Channel;
      readonly price?: number;
      readonly steps?: readonly RouteStep[];
    }
  | {
      readonly outcome: "rejected";
      readonly reason?: string;
      /** The number is known not to be on the sender's channel. This is remembered for 7 days. */
      readonly unreachable?: true;
      readonly route?: string;
      readonly channel?: Channel;
      readonly steps?: readonly RouteStep[];
    }
  | {
      readonly outcome: "unknown";
      readonly reason?: string;
      readonly route?: string;
      readonly channel?: Channel;
      readonly price?: number;
      readonly steps?: readonly RouteStep[];
    };

/** One route that a router tried, for `explain` and the metrics. */
export interface RouteStep {
  readonly route: string;
  /** Why this route was chosen, for example `weight 2 of 3` or `failover`. */
  readonly reason: string;
  readonly outcome: "accepted" | "rejected" | "unknown";
  /** The channel of the route. Default: the sender's. */
  readonly channel?: Channel | undefined;
  /** Why the route did not accept the message, in the carrier's words, for example `HTTP 400, code 21211`. */
  readonly answer?: string | undefined;
  /** The channel of the route, if the number is known not to be on it. */
  readonly unreachable?: Channel | undefined;
}

/** The route planned for a message. */
export interface Plan {
  readonly route: string;
  /**
   * The maximum cost of the message on any route, in the unit of `policy.limits.spend`. Absent: unknown, and a spend
   * ceiling blocks the message.
   */
  readonly price?: number;
  /** The channel of the route. Default: the sender's. */
  readonly channel?: Channel;
}

/** Why a message is followed by another one on another route. */
export type FallbackReason = "unreachable" | "undeliverable" | "silent";

/** When a message that did not arrive is followed by another one on another route. */
export interface Fallback {
  /** Milliseconds without a receipt of delivery and without a right code, after which a message is `silent`. */
  readonly after: number;
  readonly on: readonly FallbackReason[];
  /** Fallbacks for each authentication. */
  readonly most: number;
  /** Another process runs the worker that sends them. */
  readonly elsewhere: boolean;
  /** Whether the receipts of a route confirm each delivery, so that silence means something. */
  confirms(route: string | undefined): boolean;
}

/** What happened to a message later: the user entered its code (`validated`), or a receipt arrived. */
export interface Feedback {
  /** The route that accepted the message, if the sender named one. */
  readonly route?: string;
  /** The carrier's message id, if the outcome set `keepId`. */
  readonly messageId?: string;
  readonly country?: string | undefined;
  readonly authentication_uuid: string;
  readonly attempt: number;
  readonly event: "validated" | "delivered" | "undeliverable";
  /** With `undeliverable`: the number is not on the channel of the message. */
  readonly unreachable?: true;
  /** When the message was sent, in milliseconds since the epoch. */
  readonly sent_at: number;
  /**
   * True for an authentication's first message, sent on the route that `plan` named. The choice was random, unlike that
   * of failovers and retries.
   */
  readonly chosen: boolean;
}

/** Whether a carrier accepts the credentials; `unknown`: the carrier did not say. */
export interface CredentialCheck {
  /** Name of the route or carrier. */
  readonly name: string;
  readonly credentials: "accepted" | "rejected" | "unknown";
  /** The reason, without secrets, for example `HTTP 401`. Absent with `unknown`: no call checks them without sending. */
  readonly reason?: string;
}

/**
 * Hands messages to a carrier. If it throws or returns anything but a `SendOutcome`, the outcome is `unknown`; an error
 * with the property `outcome: "rejected"` counts as rejected.
 */
export interface SmsSender {
  /** Default: `"sms"`. */
  readonly channel?: Channel;
  /** The channels of a sender made of several. Default: `channel` alone. */
  readonly channels?: readonly Channel[];
  /** Its receipts confirm each delivery, so that a message without one did not arrive. Default: `false`. */
  readonly confirms?: boolean;
  /** Fixed lines are called, in this country (ISO 3166-1 alpha-2). Default: no fixed line gets anything. */
  callsFixedLines?(country: string | undefined): boolean;
  /** When messages that did not arrive are sent again on another route. Needs `plan`. Default: never. */
  readonly fallback?: Fallback;
  send(message: CodeMessage, context: SendContext): Promise<SendOutcome>;
  /**
   * Chooses the route before the message is recorded, so that the record and the spend ceiling know it. Uses data in
   * memory only: no I/O, and it must not throw.
   */
  plan?(destination: Destination): Plan | undefined;
  /**
   * Names of routes that lack a price for some messages. With one of them, creating a verifier with a spend ceiling
   * fails.
   */
  readonly unpriced?: readonly string[];
  /**
   * `false` for a country (ISO 3166-1 alpha-2) without a route. Creating a verifier that allows that country fails.
   * Default: every country is reachable.
   */
  reaches?(country: string): boolean;
  /** For `diagnose`: `false` for a country (ISO 3166-1 alpha-2) that no route serves. Default: every country is served. */
  serves?(country: string): boolean;
  /**
   * Routes depend on a destination's `network`. Creating a verifier without lookup before sends fails. Default:
   * `false`.
   */
  readonly readsNetwork?: boolean;
  /**
   * Providers that its messages request receipts from. A verifier that takes receipts needs a source for each. Default:
   * no providers.
   */
  readonly receiptProviders?: readonly string[];
  /** The same for the messages of one route; for an unknown route, of all. Default: `receiptProviders`. */
  receiptProvidersOf?(route: string): readonly string[] | undefined;
  /**
   * Its receipts come over its own connection, and reach the verifier through `settleReceipts`: a `fallback` then does
   * not need the verifier's option `receipts`. Default: `false`.
   */
  readonly takesReceipts?: boolean;
  /** For `diagnose`: what a sender for development does instead of sending. Default: it sends. */
  readonly sendsNothing?: readonly string[];
  /**
   * Called once for each event, if the route or the carrier's id is known. The result is not awaited; a rejection is
   * logged.
   */
  feedback?(event: Feedback): void | Promise<void>;
  /**
   * For `diagnose`, never during a request: makes a free call that sends nothing, to check the credentials. Returns one
   * result per sender if it combines several.
   */
  verify?(context: { readonly signal: AbortSignal }): Promise<readonly CredentialCheck[]>;
  close?(): Promise<void>;
}
