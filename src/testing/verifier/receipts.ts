import type { HttpHandler } from "../../http/message.js";
import type { DeliveryStatus, Receipt, ReceiptSource } from "../../ports/receipts.js";
import type { SmsMessage } from "../../ports/sms-sender.js";

/** What a carrier may say beside the status. */
export interface ReceiptDetails {
  /** The carrier's error code or text. */
  readonly error?: string;
  /** When that was, in milliseconds since the epoch. Default: the carrier does not say. */
  readonly at?: number;
}

/** A source that takes receipts in our own form, and every one for the carrier's word. `provider`: last segment of its route. */
export function testReceipts(provider = "test"): ReceiptSource {
  return {
    provider,
    read: async ({ body }) => ({ receipts: [JSON.parse(new TextDecoder().decode(body)) as Receipt] }),
  };
}

/** Posts a receipt of a message to `/receipts/test`. Rejects where it is not taken. */
export async function postReceipt({ handle }: HttpHandler, message: SmsMessage, status: DeliveryStatus, details: ReceiptDetails): Promise<void> {
  const receipt: Receipt = { status, ...details, ...(message.receipt_reference !== undefined && { reference: message.receipt_reference }) };
  const answer = await handle({
    method: "POST",
    path: "/receipts/test",
    header: () => undefined,
    body: async () => ({ kind: "text", text: JSON.stringify(receipt) }),
  });
  if (answer.status !== 200) throw new Error(`createTestVerifier: the receipt was answered ${answer.status}: ${answer.body}`);
}
