import { createHmac } from "node:crypto";
import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { pick } from "../kit/json.js";
import { onlyOptions, optionError, requireText } from "../kit/option-error.js";
import { type CarrierOptions, carrierOptions, carrierSender, type Variables } from "./kit/carrier-sender.js";
import { acceptedAs } from "./kit/outcomes.js";
import { badSignature, bodyJson, expired, isoTime, isStale, openSecrets, openTolerance, readReport, statusWords } from "./kit/report.js";
import { sameText } from "./kit/signature.js";

export interface SinchSenderOptions extends CarrierOptions {
  readonly servicePlanId: string;
  readonly apiToken: string;
  /** Region of the service plan: `us`, `eu`, `au`, `br` or `ca`. Default: `us`. */
  readonly region?: string;
}

export const sinchVariables: Variables = {
  needs: { servicePlanId: "SINCH_SERVICE_PLAN_ID", apiToken: "SINCH_API_TOKEN" },
  may: { region: "SINCH_REGION", from: "SINCH_FROM", baseUrl: "SINCH_BASE_URL" },
};

/**
 * Sends through Sinch's SMS API ("Batches", developers.sinch.com/docs/sms/api-reference/sms/tag/Batches): `POST
 * /xms/v1/{service plan}/batches`, JSON, a bearer token. Without `from`, the service plan's default originator is used.
 * The receipt URL is sent as `callback_url` with one report per recipient, our reference as `client_reference`
 * (echoed), the expiry as `expire_at`. There is no idempotency key. With `conversions`, entered codes are reported
 * ("Send delivery feedback for a message").
 *
 * @throws TypeError for missing credentials and invalid options.
 */
export function sinchSender(options: SinchSenderOptions): SmsSender {
  const name = "sinchSender";
  onlyOptions(name, options, { servicePlanId: true, apiToken: true, region: true, ...carrierOptions });
  const plan = requireText(name, "servicePlanId", options.servicePlanId, "Pass the service plan ID of the Sinch dashboard.");
  const token = requireText(name, "apiToken", options.apiToken, "Pass the service plan's API token of the Sinch dashboard.");
  const region = options.region ?? "us";
  if (!/^[a-z]{2,10}$/.test(region)) throw optionError(name, "region", "is not a region", 'Pass "us", "eu", "au", "br" or "ca".');
  const headers = { authorization: `Bearer ${token}` };
  const planAt = (baseUrl: string) => `${baseUrl}/xms/v1/${encodeURIComponent(plan)}`;
  return carrierSender(name, options, {
    provider: "sinch",
    url: `https://${region}.sms.api.sinch.com`,
    fromElse: true,
    request: (message, { baseUrl, from, extra }) => ({
      url: `${planAt(baseUrl)}/batches`,
      headers,
      json: {
        expire_at: new Date(message.expires_at).toISOString(),
        ...(options.conversions === true && { feedback_enabled: true }),
        ...extra,
        type: "mt_text",
        ...(from === undefined ? {} : { from }),
        to: [message.to],
        body: message.text,
        ...(message.receipt_url === undefined
          ? {}
          : { client_reference: message.receipt_reference, callback_url: message.receipt_url, delivery_report: "per_recipient" }),
      },
    }),
    // Feedback names the recipient, who is unknown then: an empty list means all of the batch.
    conversion: (batchId, { baseUrl }) => ({
      url: `${planAt(baseUrl)}/batches/${encodeURIComponent(batchId)}/delivery_feedback`,
      headers,
      json: { recipients: [] },
    }),
    accepted: ({ json }) => acceptedAs(pick(json, "id")),
    errorCode: ({ json }) => pick(json, "code"),
    // "List groups", developers.sinch.com/docs/sms/api-reference/sms/groups: contains no phone number.
    credentials: ({ baseUrl }) => ({ url: `${planAt(baseUrl)}/groups?page_size=1`, method: "GET", headers }),
  });
}

const words = statusWords({
  submitted: ["queued"],
  in_transit: ["dispatched"],
  delivered: ["delivered"],
  undeliverable: ["aborted", "cancelled", "rejected", "deleted", "failed", "expired"],
  unknown: ["unknown"],
});

/**
 * Reads Sinch's delivery reports of type `recipient_delivery_report_sms` ("Webhooks" and "Delivery reports",
 * developers.sinch.com/docs/sms/api-reference/sms; `validateWebhookSignature` of npm @sinch/sdk-client).
 * `x-sinch-webhook-signature` is the base64 HMAC-SHA-256, with the service plan's webhook secret, of body, nonce and
 * time joined by dots. Sinch enables signing for a service plan on request.
 *
 * @param options.webhookSecret A list allows rotation.
 * @param options.tolerance Maximum seconds between the signed time and now. Default: 300.
 * @throws TypeError if `webhookSecret` is missing, and for an unknown option.
 */
export function sinchReceipts(options: { readonly webhookSecret: string | readonly string[]; readonly tolerance?: number }): ReceiptSource {
  const name = "sinchReceipts";
  onlyOptions(name, options, { webhookSecret: true, tolerance: true });
  const secrets = openSecrets(name, "webhookSecret", options.webhookSecret, "Pass the webhook secret of the service plan; ask Sinch to turn signing on.");
  const tolerance = openTolerance(name, options.tolerance, 300);
  return {
    provider: "sinch",
    async read(request, now) {
      const signature = request.header("x-sinch-webhook-signature");
      const nonce = request.header("x-sinch-webhook-signature-nonce");
      const time = request.header("x-sinch-webhook-signature-timestamp");
      if (signature === undefined || nonce === undefined || time === undefined) return badSignature("an x-sinch-webhook-signature header is missing");
      const authentic = secrets.some((secret) =>
        sameText(createHmac("sha256", secret).update(request.body).update(`.${nonce}.${time}`).digest("base64"), signature),
      );
      if (!authentic) return badSignature("the signature does not match this body and webhookSecret");
      if (!/^\d{1,12}$/.test(time) || isStale(Number(time) * 1000, now, tolerance)) return expired("the signed time is too old or from the future");
      const body = bodyJson(request);
      // Reports on whole batches are authentic but name no single message.
      if (pick(body, "type") === "delivery_report_sms") return { receipts: [] };
      return readReport(
        {
          messageId: pick(body, "batch_id"),
          status: pick(body, "status"),
          at: isoTime(pick(body, "operator_status_at")) ?? isoTime(pick(body, "at")),
          // For states that are not failures the code only repeats the status.
          error: words.get(String(pick(body, "status")).toLowerCase()) === "undeliverable" ? pick(body, "code") : undefined,
          reference: pick(body, "client_reference"),
        },
        words,
      );
    },
  };
}
