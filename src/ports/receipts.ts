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

/** One carrier's word on one message: of the message that `reference` names; else of the one whose URL it came to, alone; else of the one whose accepted outcome had this `messageId` and `idSpace`. */
export interface Receipt {
  /** The message's `receipt_reference`, where the carrier echoes it. */
  readonly reference?: string;
  /** The carrier's id of the message, as its accepted outcome named it. */
  readonly messageId?: string;
  /** What `messageId` is unique in, as the accepted outcome named it; left out where the carrier's receipts name a reference or come to a message's own URL. */
  readonly idSpace?: string;
  readonly status: DeliveryStatus;
  /** When that was, in milliseconds since the epoch, when the carrier says. */
  readonly at?: number;
  /** The carrier's error code or text, without codes or whole numbers. */
  readonly error?: string;
}

export type ReceiptReading =
  /**
   * In the carrier's form, and authentic. `vouched: false`: nothing in the request says that it is the carrier's, as a signature or a secret would; then only the signed reference of each message counts. Default: it is vouched for.
   * `reply`: what the carrier wants as an answer when that is not a plain 200 (an SNS confirmation).
   */
  | {
      readonly receipts: readonly Receipt[];
      readonly vouched?: boolean;
      readonly reply?: { readonly status: number; readonly body: string; readonly contentType: string };
    }
  /** Not from the carrier, tampered with, too old, or not in its form. */
  | { readonly refused: "signature" | "expired" | "malformed"; readonly reason: string };

/** Reads a carrier's receipts. */
export interface ReceiptSource {
  /** Last segment of its route: lower-case letters. */
  readonly provider: string;
  /** `now`: milliseconds since the epoch, to tell old signatures. */
  read(request: ReceiptRequest, now: number): Promise<ReceiptReading>;
}
