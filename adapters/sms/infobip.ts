import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { isRecord, pick } from "../kit/json.js";
import { onlyOptions, requireText } from "../kit/option-error.js";
import { digits } from "../kit/spelling.js";
import { type CarrierOptions, carrierOptions, carrierSender, type Variables } from "./kit/carrier-sender.js";
import { acceptedAs, rejectedWith } from "./kit/outcomes.js";
import { bodyJson, isoTime, malformed, readReports, statusWords } from "./kit/report.js";

export interface InfobipSenderOptions extends CarrierOptions {
  /** The account's own base URL, `https://xxxxx.api.infobip.com`. */
  readonly baseUrl: string;
  readonly apiKey: string;
}

export const infobipVariables: Variables = {
  needs: { baseUrl: "INFOBIP_BASE_URL", apiKey: "INFOBIP_API_KEY", from: "INFOBIP_FROM" },
  may: {},
};

/**
 * Sends through Infobip's SMS API, version 3 ("Send SMS messages", infobip.com/docs/api/channels/sms; "Message status
 * codes", infobip.com/docs/developer-resources/api-fundamentals/message-status-codes): `POST /sms/3/messages`, JSON, an
 * API key.
 * We choose the message id, so it works as idempotency key: Infobip rejects a second message with the same id, and a
 * rejection as duplicate means that the first one was accepted.
 * The receipt URL is sent as `webhooks.delivery.url`, our reference as `webhooks.callbackData` (every report repeats
 * it), the expiry as `options.validityPeriod`, the ids of a registered text as `options.regional.indiaDlt`. With
 * `conversions`, the request asks for `options.conversionTracking`, and entered codes are reported ("Confirm
 * conversion").
 *
 * @throws TypeError for a missing base URL, key or sender, and for invalid options.
 */
export function infobipSender(options: InfobipSenderOptions): SmsSender {
  const name = "infobipSender";
  onlyOptions(name, options, { apiKey: true, ...carrierOptions });
  const url = "https://xxxxx.api.infobip.com";
  requireText(name, "baseUrl", options.baseUrl, `Pass the account's own address of the Infobip portal, ${url}.`);
  const key = requireText(name, "apiKey", options.apiKey, "Pass an API key of the Infobip portal with the scope sms:message:send.");
  return carrierSender(name, options, {
    provider: "infobip",
    url,
    request: (message, { baseUrl, from, extra, ttl }) => ({
      url: `${baseUrl}/sms/3/messages`,
      headers: { authorization: `App ${key}` },
      json: {
        messages: [
          {
            ...extra,
            options: {
              validityPeriod: { amount: ttl, timeUnit: "SECONDS" },
              ...(message.registered?.entity !== undefined && {
                regional: { indiaDlt: { principalEntityId: message.registered.entity, contentTemplateId: message.registered.template } },
              }),
              ...(isRecord(extra["options"]) && extra["options"]),
            },
            sender: from,
            destinations: [{ to: digits(message.to), messageId: message.idempotency_key }],
            content: { text: message.text },
            ...(message.receipt_url !== undefined && {
              webhooks: {
                callbackData: message.receipt_reference,
                contentType: "application/json",
                delivery: { url: message.receipt_url, intermediateReport: true },
              },
            }),
          },
        ],
        ...(options.conversions === true && { options: { conversionTracking: { useConversionTracking: true } } }),
      },
    }),
    accepted({ json }) {
      const message = pick(json, "messages", 0);
      const status = pick(message, "status", "name");
      const isRejected = pick(message, "status", "groupName") === "REJECTED" && status !== "REJECTED_DUPLICATE_MESSAGE_ID";
      return isRejected || status === "UNDELIVERABLE_NOT_SENT" ? rejectedWith(status) : acceptedAs(pick(message, "messageId"));
    },
    errorCode: ({ json }) => pick(json, "errorCode") ?? pick(json, "requestError", "serviceException", "messageId"),
    // "Get account balance", infobip.com/docs/api/platform/account-management: returns 403 if the key has the messages
    // scope only.
    credentials: ({ baseUrl }) => ({ url: `${baseUrl}/account/1/balance`, method: "GET", headers: { authorization: `App ${key}` } }),
    conversion: (messageId, { baseUrl }) => ({
      url: `${baseUrl}/ct/1/log/end/${encodeURIComponent(messageId)}`,
      headers: { authorization: `App ${key}` },
      json: {},
    }),
  });
}

const words = statusWords({
  in_transit: ["pending"],
  delivered: ["delivered"],
  undeliverable: ["undeliverable", "expired", "rejected"],
  unknown: ["unknown"],
});

/** Statuses that mean something else than their group: another report follows, or no report came. */
const exceptions = new Map<unknown, string>([
  ["DELIVERED_TO_OPERATOR", "pending"],
  ["EXPIRED_DLR_UNKNOWN", "unknown"],
]);

/**
 * Reads Infobip's delivery reports ("Message delivery reports", infobip.com/docs/api/channels/sms): JSON, `results`, up
 * to 100 per request. They are unsigned. Our reference authenticates them: each result repeats it as `callbackData`;
 * for a single result, the message's own URL does so too.
 */
export function infobipReceipts(): ReceiptSource {
  return {
    provider: "infobip",
    async read(request) {
      const results = pick(bodyJson(request), "results");
      if (!Array.isArray(results)) return malformed("the body holds no results");
      const reports = results.map((result: unknown) => {
        const error = pick(result, "error", "name");
        return {
          messageId: pick(result, "messageId"),
          status: exceptions.get(pick(result, "status", "name")) ?? pick(result, "status", "groupName"),
          at: isoTime(pick(result, "doneAt")),
          error: error === "NO_ERROR" ? undefined : error,
          reference: pick(result, "callbackData"),
        };
      });
      return readReports(reports, words, false);
    },
  };
}
