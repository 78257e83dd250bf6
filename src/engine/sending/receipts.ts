import { settleReceipt } from "../../domain/send.js";
import { VerifierError } from "../../errors.js";
import type { Receipt } from "../../ports/receipts.js";
import { newBudget, type Parts } from "../parts.js";
import { transition } from "../transition.js";
import { feedBack } from "./feedback.js";
import { findById } from "./kept-ids.js";
import { type ReceiptTarget, readReference } from "./receipt-reference.js";

/** What a request with receipts says beside them. */
export interface ReceiptRound {
  /** The message whose own URL they came to. */
  readonly url?: ReceiptTarget | undefined;
  /** Whether the carrier vouches for them; if not, only our signed reference does. Default true. */
  readonly vouched?: boolean | undefined;
}

/**
 * Settles carriers' receipts, one after another: "one signed reference, carried in whichever field a carrier offers, and an index of message ids only where a carrier offers none". Those of unknown messages are ignored.
 * The URL of one message speaks for one receipt, so that two of one post never settle one message twice. Answers how many were vouched for. Rejects with `unavailable`.
 */
export async function settleReceipts(parts: Parts, receipts: readonly Receipt[], { url, vouched = true }: ReceiptRound = {}): Promise<number> {
  let trusted = 0;
  for (const receipt of receipts) {
    const named = receipt.reference === undefined ? (receipts.length === 1 ? url : undefined) : readReference(parts.codes, receipt.reference);
    if (named === undefined && !vouched) continue;
    trusted += 1;
    const target = named ?? (await targetById(parts, receipt));
    if (target !== undefined) await settleOne(parts, receipt, target);
  }
  return trusted;
}

/** Receipts that the host takes on another way than HTTP. Rejects with `bad_request` for one that names no message. */
export async function settleForeign(parts: Parts, receipts: readonly Receipt[]): Promise<void> {
  for (const { reference, messageId, idSpace } of receipts) {
    if (reference === undefined && (messageId === undefined || idSpace === undefined))
      throw new VerifierError(
        "bad_request",
        "A receipt names no message: give its reference, or messageId and idSpace as the accepted outcome of its send had them.",
      );
  }
  await settleReceipts(parts, receipts);
}

/** Settles one receipt of a message. Rejects with `unavailable`. */
export async function settleOne(parts: Parts, { status, error, at }: Receipt, { customer, id, attempt }: ReceiptTarget): Promise<void> {
  const now = parts.clock.now();
  const settled = await transition(parts.records, newBudget(parts), customer, id, (auth) => {
    const next = settleReceipt(auth, attempt, { status, error, at }, now);
    return { result: next, next };
  });
  if (settled === undefined) return;
  parts.outbox.deliverSoon(settled);
  if (status === "delivered" || status === "undeliverable") feedBack(parts, settled, attempt, status);
}

async function targetById(parts: Parts, receipt: Receipt): Promise<ReceiptTarget | undefined> {
  const { reference, messageId, idSpace } = receipt;
  return reference === undefined && messageId !== undefined && idSpace !== undefined ? findById(parts, { messageId, idSpace }, receipt) : undefined;
}
