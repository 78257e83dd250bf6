import type { HttpHandler } from "../../http/message.js";
import type { DeliveryStatus, Receipt, ReceiptSource } from "../../ports/receipts.js";
import type { CodeMessage } from "../../ports/sms-sender.js";

/** What a carrier may report in addition to the status. */
export interface ReceiptDetails {
  /** The carrier's error code or text. */
  readonly error?: string;
  /** When that was, in milliseconds since the epoch. Default: not reported. */
  readonly at?: number;
  /** The number is known not to be on the message's channel. Default: not reported. */
  readonly unreachable?: true;
}

/**
 * A source that accepts receipts in our own format without authentication. `provider`: the last segment of its route.
 */
export function testReceipts(provider = "test"): ReceiptSource {
  return {
    provider,
    read: async ({ body }) => ({ receipts: [JSON.parse(new TextDecoder().decode(body)) as Receipt] }),
  };
}

/** Posts a message's receipt to `/receipts/test`. Rejects if it is not accepted. */
export async function postReceipt({ handle }: HttpHandler, message: CodeMessage, status: DeliveryStatus, details: ReceiptDetails): Promise<void> {
  const receipt: Receipt = { status, ...details, ...(message.receipt_reference !== undefined && { reference: message.receipt_reference }) };
  const answer = await handle({
    method: "POST",
    path: "/receipts/test",
    header: () => undefined,
    body: async () => ({ kind: "text", text: JSON.stringify(receipt) }),
  });
  if (answer.status !== 200) throw new Error(`createTestVerifier: the receipt got ${answer.status}: ${answer.body}`);
}
