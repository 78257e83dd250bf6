import type { DeliveryStatus } from "../contract/callback.js";

export type { DeliveryStatus };

/** A carrier's request to the receipts route, unmodified: signatures cover the exact bytes and the exact URL. */
export interface ReceiptRequest {
  /** Upper case. */
  readonly method: string;
  /** The exact public URL that the carrier was given, including its query. */
  readonly url: string;
  /** Returns a header's value by its lower-case name. */
  header(name: string): string | undefined;
  readonly body: Uint8Array;
}

/**
 * One carrier's report on one message. The message is found by `reference`; else by its own URL, if the receipt came
 * to that URL as the only one in the request; else by the `messageId` and `idSpace` of its accepted outcome.
 */
export interface Receipt {
  /** The message's `receipt_reference`, if the carrier echoes it. */
  readonly reference?: string;
  /** The carrier's message id, as in the accepted outcome. */
  readonly messageId?: string;
  /**
   * The scope in which `messageId` is unique, as in the accepted outcome. Omit it if the carrier's receipts carry a
   * reference or come to a message's own URL.
   */
  readonly idSpace?: string;
  readonly status: DeliveryStatus;
  /** When the status was reached, in milliseconds since the epoch, if the carrier reports it. */
  readonly at?: number;
  /** The carrier's error code or text, without codes or full numbers. */
  readonly error?: string;
  /** The number is known not to be on the channel of the message. This is remembered for 7 days. */
  readonly unreachable?: true;
}

export type ReceiptReading =
  /**
   * Well-formed and authentic. `vouched: false`: the request carries no signature or secret of the carrier, so only
   * each message's signed reference counts. Default: authenticated.
   * `ignored`: the references of reports whose status means nothing here. One of ours authenticates the request, so that
   * the carrier gets 2xx. Default: none.
   * `reply`: the response that the carrier expects, if not a plain 200 (an SNS confirmation).
   */
  | {
      readonly receipts: readonly Receipt[];
      readonly vouched?: boolean;
      readonly ignored?: readonly string[];
      readonly reply?: { readonly status: number; readonly body: string; readonly contentType: string };
    }
  /**
   * Not from the carrier, tampered with, too old, or malformed. `unavailable`: what is needed to verify it, such as a
   * certificate, cannot be fetched; the carrier gets 503, so that it tries again. `reason`: for the log, without numbers.
   */
  | { readonly refused: "signature" | "expired" | "malformed" | "unavailable"; readonly reason: string };

/** Reads a carrier's receipts. */
export interface ReceiptSource {
  /** Last segment of its route, in lower-case letters. */
  readonly provider: string;
  /** @param now Milliseconds since the epoch, to detect old signatures. */
  read(request: ReceiptRequest, now: number): Promise<ReceiptReading>;
}
