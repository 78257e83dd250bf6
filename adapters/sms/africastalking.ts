import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { openSenderId, openTransport, requireText, type SenderId, type TransportOptions } from "./carrier-options.js";
import { acceptedAs, carrierSender, rejectedWith } from "./carrier-send.js";
import { pick } from "./json.js";
import { bodyForm, malformed, readReport, type StatusWords } from "./receipt-reading.js";

export interface AfricasTalkingSenderOptions extends TransportOptions {
  /** The app's username; `sandbox` sends to the sandbox's address. */
  readonly username: string;
  readonly apiKey: string;
  /** Left out: the account's default, a shared short code. */
  readonly from?: SenderId;
  /** Further fields of the request. */
  readonly extra?: Readonly<Record<string, string>>;
}

/** "100: Processed, 101: Sent, 102: Queued". */
const taken = new Set([100, 101, 102]);
/**
 * 402 InvalidSenderId, 403 InvalidPhoneNumber, 404 UnsupportedNumberType, 405 InsufficientBalance, 406 UserInBlacklist, 407 CouldNotRoute, 409
 * DoNotDisturbRejection, 502 RejectedByGateway.
 */
const refused = new Set([402, 403, 404, 405, 406, 407, 409, 502]);

/**
 * Sends by Africa's Talking's messaging API ("Sending SMS", developers.africastalking.com/docs/sms/sending/bulk): `POST /version1/messaging`, a form, an
 * API key.
 * The recipient's `statusCode` decides; 401 RiskHold, 500 InternalServerError and 501 GatewayError leave it open. Its receipts go to the URL set in the
 * dashboard, and it takes no idempotency key.
 *
 * @throws TypeError for missing credentials, and for options that cannot be used.
 */
export function africasTalkingSender(options: AfricasTalkingSenderOptions): SmsSender {
  const name = "africasTalkingSender";
  const username = requireText(name, "username", options.username, "Pass the app's username, or sandbox.");
  const apiKey = requireText(name, "apiKey", options.apiKey, "Pass the app's API key of the dashboard.");
  const transport = openTransport(name, options, username === "sandbox" ? "https://api.sandbox.africastalking.com" : "https://api.africastalking.com");
  return carrierSender({
    provider: "africastalking",
    transport,
    from: options.from === undefined ? () => undefined : openSenderId(name, options.from),
    fromOptional: options.from === undefined,
    request(message, from) {
      const form = new URLSearchParams({ ...options.extra, username, to: message.to, message: message.text, bulkSMSMode: "1" });
      if (from !== undefined) form.set("from", from);
      return {
        method: "POST",
        url: `${transport.baseUrl}/version1/messaging`,
        headers: { apiKey, "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
        body: form.toString(),
      };
    },
    accepted({ json }) {
      const recipients = pick(json, "SMSMessageData", "Recipients");
      const code = pick(recipients, 0, "statusCode");
      if (typeof code === "number" && taken.has(code)) return acceptedAs(pick(recipients, 0, "messageId"));
      if (typeof code === "number" && refused.has(code)) return rejectedWith(code);
      // No recipient at all: the message was turned down as a whole, and `Message` says why ("InvalidSenderId").
      if (Array.isArray(recipients) && recipients.length === 0) return rejectedWith(pick(json, "SMSMessageData", "Message"));
      return { outcome: "unknown", reason: typeof code === "number" ? `the carrier holds it back, code ${code}` : "the carrier's answer is not in its form" };
    },
    errorCode: () => undefined,
  });
}

const words: StatusWords = new Map([
  ["sent", "submitted"],
  ["submitted", "in_transit"],
  ["buffered", "in_transit"],
  ["success", "delivered"],
  ["rejected", "undeliverable"],
  ["failed", "undeliverable"],
  ["absentsubscriber", "undeliverable"],
  ["expired", "undeliverable"],
]);

/**
 * Africa's Talking's delivery reports ("Delivery reports", docs.africastalking.com/sms/notifications): a form with `id` and `status`, to the one
 * URL set in the dashboard.
 * They bear no signature.
 */
export function africasTalkingReceipts(): ReceiptSource {
  return {
    provider: "africastalking",
    signed: false,
    async read(request) {
      const form = bodyForm(request);
      if (form === undefined) return malformed("the body is not UTF-8");
      return readReport({ messageId: form.get("id") ?? undefined, status: form.get("status"), error: form.get("failureReason") }, words);
    },
  };
}
