import { createHmac } from "node:crypto";
import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { openSenderId, openTransport, optionFault, requireText, type SenderId, type TransportOptions } from "./carrier-options.js";
import { acceptedAs, carrierSender } from "./carrier-send.js";
import { pick } from "./json.js";
import { badSignature, bodyJson, expired, isoTime, isStale, openSecrets, openTolerance, readReport, type StatusWords } from "./receipt-reading.js";
import { readReference, referenceOf } from "./reference.js";
import { sameText } from "./signature.js";

export interface SinchSenderOptions extends TransportOptions {
  readonly servicePlanId: string;
  readonly apiToken: string;
  /** Where the service plan lives: `us`, `eu`, `au`, `br` or `ca`. Default: `us`. */
  readonly region?: string;
  /** Left out: the service plan's automatic default originator. */
  readonly from?: SenderId;
  /** Further fields of the request, for example `{ max_number_of_message_parts: 1 }`. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/**
 * Sends by Sinch's SMS API ("Batches", developers.sinch.com/docs/sms/api-reference/sms/tag/Batches): `POST /xms/v1/{service plan}/batches`, JSON, a bearer
 * token.
 * A message's receipt URL goes along as `callback_url` with a report per recipient; `client_reference` names the authentication and attempt, and is echoed.
 * Sinch takes no idempotency key.
 *
 * @throws TypeError for missing credentials, and for options that cannot be used.
 */
export function sinchSender(options: SinchSenderOptions): SmsSender {
  const name = "sinchSender";
  const plan = requireText(name, "servicePlanId", options.servicePlanId, "Pass the service plan ID of the Sinch dashboard.");
  const token = requireText(name, "apiToken", options.apiToken, "Pass the service plan's API token of the Sinch dashboard.");
  const region = options.region ?? "us";
  if (!/^[a-z]{2,10}$/.test(region)) throw optionFault(name, "region", "is not a region", 'Pass "us", "eu", "au", "br" or "ca".');
  const transport = openTransport(name, options, `https://${region}.sms.api.sinch.com`);
  return carrierSender({
    provider: "sinch",
    transport,
    from: options.from === undefined ? () => undefined : openSenderId(name, options.from),
    fromOptional: options.from === undefined,
    request: (message, from) => ({
      method: "POST",
      url: `${transport.baseUrl}/xms/v1/${encodeURIComponent(plan)}/batches`,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({
        ...options.extra,
        type: "mt_text",
        ...(from === undefined ? {} : { from }),
        to: [message.to],
        body: message.text,
        client_reference: referenceOf(message),
        ...(message.receipt_url === undefined ? {} : { callback_url: message.receipt_url, delivery_report: "per_recipient" }),
      }),
    }),
    accepted: ({ json }) => acceptedAs(pick(json, "id")),
    errorCode: ({ json }) => pick(json, "code"),
  });
}

const words: StatusWords = new Map([
  ["queued", "submitted"],
  ["dispatched", "in_transit"],
  ["delivered", "delivered"],
  ["aborted", "undeliverable"],
  ["cancelled", "undeliverable"],
  ["rejected", "undeliverable"],
  ["deleted", "undeliverable"],
  ["failed", "undeliverable"],
  ["expired", "undeliverable"],
  ["unknown", "unknown"],
]);

/**
 * Sinch's delivery reports of type `recipient_delivery_report_sms` ("Webhooks" and "Delivery reports", developers.sinch.com/docs/sms/api-reference/sms;
 * `validateWebhookSignature` of npm @sinch/sdk-client):
 * `x-sinch-webhook-signature` is the base64 HMAC-SHA-256, under the service plan's webhook secret, of body, nonce and time with dots between. Sinch turns
 * signing on for a service plan on request.
 *
 * @param options.webhookSecret Several while it is being changed.
 * @param options.tolerance Seconds between the signed time and now. Default: 300.
 * @throws TypeError when `webhookSecret` is missing.
 */
export function sinchReceipts(options: { readonly webhookSecret: string | readonly string[]; readonly tolerance?: number }): ReceiptSource {
  const name = "sinchReceipts";
  const secrets = openSecrets(name, "webhookSecret", options.webhookSecret, "Pass the webhook secret of the service plan; ask Sinch to turn signing on.");
  const tolerance = openTolerance(name, options.tolerance, 300);
  return {
    provider: "sinch",
    signed: true,
    async read(request, now) {
      const signature = request.header("x-sinch-webhook-signature");
      const nonce = request.header("x-sinch-webhook-signature-nonce");
      const time = request.header("x-sinch-webhook-signature-timestamp");
      if (signature === undefined || nonce === undefined || time === undefined) return badSignature("an x-sinch-webhook-signature header is missing");
      const authentic = secrets.some((secret) =>
        sameText(createHmac("sha256", secret).update(request.body).update(`.${nonce}.${time}`).digest("base64"), signature),
      );
      if (!authentic) return badSignature("the signature is not that of this body under webhookSecret");
      if (!/^\d{1,12}$/.test(time) || isStale(Number(time) * 1000, now, tolerance)) return expired("the signed time is too old or from the future");
      const body = bodyJson(request);
      // Reports on whole batches name no single message; they are authentic and say nothing here.
      if (pick(body, "type") === "delivery_report_sms") return { receipts: [] };
      return readReport(
        {
          messageId: pick(body, "batch_id"),
          status: pick(body, "status"),
          at: isoTime(pick(body, "operator_status_at")) ?? isoTime(pick(body, "at")),
          // The code repeats the status for the states that are no failure.
          error: words.get(String(pick(body, "status")).toLowerCase()) === "undeliverable" ? pick(body, "code") : undefined,
          reference: readReference(pick(body, "client_reference")),
        },
        words,
      );
    },
  };
}
