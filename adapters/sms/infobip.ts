import type { Receipt, ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { openSenderId, openTransport, requireText, type SenderId, type TransportOptions } from "./carrier-options.js";
import { acceptedAs, carrierSender, digits, rejectedWith } from "./carrier-send.js";
import { pick } from "./json.js";
import { bodyJson, isoTime, malformed, type StatusWords, toReceipts } from "./receipt-reading.js";
import { readReference, referenceOf } from "./reference.js";

export interface InfobipSenderOptions extends TransportOptions {
  /** The account's own address, `https://xxxxx.api.infobip.com`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly from: SenderId;
  /** Further fields of the message, for example `{ options: { validityPeriod: { amount: 10, timeUnit: "MINUTES" } } }`. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/**
 * Sends by Infobip's SMS API, version 3 ("Send SMS messages", infobip.com/docs/api/channels/sms; "Message status codes",
 * infobip.com/docs/developer-resources/api-fundamentals/message-status-codes): `POST /sms/3/messages`, JSON, an API key.
 * The message id is ours, the idempotency key: Infobip refuses a second message under one id, so it is the idempotency key, and a refusal as
 * duplicate means that the first one was taken.
 * A message's receipt URL goes along as `webhooks.delivery.url`.
 *
 * @throws TypeError for a missing address, key or sender, and for options that cannot be used.
 */
export function infobipSender(options: InfobipSenderOptions): SmsSender {
  const name = "infobipSender";
  const baseUrl = requireText(name, "baseUrl", options.baseUrl, "Pass the account's own address of the Infobip portal, https://xxxxx.api.infobip.com.");
  const key = requireText(name, "apiKey", options.apiKey, "Pass an API key of the Infobip portal with the scope sms:message:send.");
  const transport = openTransport(name, options, baseUrl);
  return carrierSender({
    provider: "infobip",
    transport,
    from: openSenderId(name, options.from),
    request: (message, sender) => ({
      method: "POST",
      url: `${transport.baseUrl}/sms/3/messages`,
      headers: { authorization: `App ${key}`, "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({
        messages: [
          {
            ...options.extra,
            sender,
            destinations: [{ to: digits(message.to), messageId: message.idempotency_key }],
            content: { text: message.text },
            webhooks: {
              callbackData: referenceOf(message),
              ...(message.receipt_url === undefined
                ? {}
                : { contentType: "application/json", delivery: { url: message.receipt_url, intermediateReport: true } }),
            },
          },
        ],
      }),
    }),
    accepted({ json }) {
      const message = pick(json, "messages", 0);
      const status = pick(message, "status", "name");
      const refused = pick(message, "status", "groupName") === "REJECTED" && status !== "REJECTED_DUPLICATE_MESSAGE_ID";
      return refused ? rejectedWith(status) : acceptedAs(pick(message, "messageId"));
    },
    errorCode: ({ json }) => pick(json, "errorCode") ?? pick(json, "requestError", "serviceException", "messageId"),
  });
}

const words: StatusWords = new Map([
  ["pending", "in_transit"],
  ["delivered", "delivered"],
  ["undeliverable", "undeliverable"],
  ["expired", "undeliverable"],
  ["rejected", "undeliverable"],
]);

/** "Intermediate": these bear the name of a final group, but another report follows. */
const intermediate = new Set(["DELIVERED_TO_OPERATOR"]);

/**
 * Infobip's delivery reports ("Message delivery reports", infobip.com/docs/api/channels/sms): JSON, `results`, up to 100 in one request. By themselves they
 * bear no signature:
 * only the signed URL of each message vouches for them.
 */
export function infobipReceipts(): ReceiptSource {
  return {
    provider: "infobip",
    signed: false,
    async read(request) {
      const results = pick(bodyJson(request), "results");
      if (!Array.isArray(results)) return malformed("the body holds no results");
      const receipts: Receipt[] = [];
      for (const result of results) {
        const name = pick(result, "status", "name");
        const error = pick(result, "error", "name");
        const found = toReceipts(
          {
            messageId: pick(result, "messageId"),
            status: typeof name === "string" && intermediate.has(name) ? "pending" : pick(result, "status", "groupName"),
            at: isoTime(pick(result, "doneAt")),
            error: error === "NO_ERROR" ? undefined : error,
            reference: readReference(pick(result, "callbackData")),
          },
          words,
        );
        if (found === undefined) return malformed("a result names no message or no status");
        receipts.push(...found);
      }
      return { receipts };
    },
  };
}
