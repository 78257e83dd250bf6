import type { DeliveryStatus } from "../contract/callback.js";

export type { DeliveryStatus };

/** A carrier's request to our receipts route, untouched: signatures are over exact bytes and the exact URL. */
export interface ReceiptRequest {
  /** Upper case. */
  readonly method: string;
  /** The public URL that the carrier was given, with its query, to the letter. */
  readonly url: string;
  /** A header's value by its lower-case name. */
  header(name: string): string | undefined;
  readonly body: Uint8Array;
}

/** One carrier's word on one message. */
export interface Receipt {
  /** The carrier's id of the message, as its `accepted` outcome named it. */
  readonly messageId?: string;
  /** Our own words where the carrier echoes them back. */
  readonly authentication_uuid?: string;
  readonly attempt?: number;
  readonly status: DeliveryStatus;
  /** Milliseconds since the epoch, when the carrier says. */
  readonly at?: number;
  /** The carrier's error code or text, without codes or whole numbers. */
  readonly error?: string;
}

export type ReceiptReading =
  /** Authentic. `reply`: what the carrier wants as an answer when that is not an empty 200 (an SNS confirmation). */
  | { readonly receipts: readonly Receipt[]; readonly reply?: { readonly status: number; readonly body: string; readonly contentType: string } }
  /** Not from the carrier, tampered with, too old, or not in its form. */
  | { readonly refused: "signature" | "expired" | "malformed"; readonly reason: string };

/** Reads a carrier's receipts. A source that carries no signature of its own says so with `signed: false`: then only the signed per-message URL vouches for it. */
export interface ReceiptSource {
  /** Last segment of its route: lower-case letters. */
  readonly provider: string;
  readonly signed: boolean;
  /** `now`: milliseconds since the epoch, to tell old signatures. */
  read(request: ReceiptRequest, now: number): Promise<ReceiptReading>;
}
