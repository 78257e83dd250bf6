/** One text message to hand to a carrier. */
export interface SmsMessage {
  /** Destination in canonical E.164 form, for example `+14155552671`. */
  readonly to: string;
  /** The whole text, ready to send. */
  readonly text: string;
  /** The code inside `text`, for carriers that take it apart (templates). Never log it. */
  readonly code: string;
  readonly authentication_uuid: string;
  readonly customer_uuid: string;
  /** 1 for the first send of an authentication, one more for each send tried. With `authentication_uuid` it is the idempotency key for carriers that take one. */
  readonly attempt: number;
  /** ISO 3166-1 alpha-2, absent for non-geographic numbers and unknown test numbers. */
  readonly country?: string;
  /** Public URL, signed for this very message, where the carrier may post its delivery receipts; absent when the verifier takes none. */
  readonly receipt_url?: string;
}

export interface SendContext {
  /** Aborted when `sendTimeout` has passed; nobody waits for the answer then. */
  readonly signal: AbortSignal;
  /** Milliseconds since the epoch at which `signal` is aborted. */
  readonly deadline: number;
}

/**
 * What became of a hand-over to the carrier:
 * - `accepted`: the carrier took the message;
 * - `rejected`: it was surely not sent; the code is dead and no retry is used up;
 * - `unknown`: it may have been sent (a time-out, a cut connection); it counts as sent.
 */
export type SendOutcome =
  | { readonly outcome: "accepted"; readonly messageId?: string }
  | { readonly outcome: "rejected"; readonly reason?: string }
  | { readonly outcome: "unknown"; readonly reason?: string };

/**
 * Hands messages to a carrier. A sender that throws, or answers anything but a `SendOutcome`, counts as `unknown`;
 * an error with the property `outcome: "rejected"` counts as rejected.
 */
export interface SmsSender {
  send(message: SmsMessage, context: SendContext): Promise<SendOutcome>;
  close?(): Promise<void>;
}
