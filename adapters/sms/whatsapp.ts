import { createHmac } from "node:crypto";
import type { ReceiptReading, ReceiptRequest, ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { pick } from "../kit/json.js";
import { onlyOptions, optionError, requireText } from "../kit/option-error.js";
import { digits } from "../kit/spelling.js";
import { carrierSender, type FixedOptions, fixedOptions, type Variables } from "./kit/carrier-sender.js";
import { acceptedAs } from "./kit/outcomes.js";
import { badSignature, bodyJson, type CarrierReport, malformed, openSecrets, readReports, statusWords } from "./kit/report.js";
import { sameText } from "./kit/signature.js";
import { openWhatsappTemplate, type WhatsappTemplateOptions } from "./kit/whatsapp-template.js";

export type { ByLanguage } from "./kit/by-language.js";

export interface WhatsappSenderOptions extends FixedOptions, WhatsappTemplateOptions {
  /** A permanent access token of a system user, with the permission `whatsapp_business_messaging`. */
  readonly token: string;
  /** Id of the business phone number (not the number itself). */
  readonly phoneNumberId: string;
  /** Version of the Graph API, which Meta retires after about two years. Default: `v25.0`. */
  readonly version?: string;
}

export const whatsappVariables: Variables = {
  needs: { token: "WHATSAPP_TOKEN", phoneNumberId: "WHATSAPP_PHONE_NUMBER_ID", template: "WHATSAPP_TEMPLATE", languages: "WHATSAPP_LANGUAGE" },
  may: { version: "WHATSAPP_API_VERSION", baseUrl: "WHATSAPP_BASE_URL" },
};

/** "Message undeliverable": the number has no WhatsApp account, or one that cannot receive this message. */
const notOnWhatsapp = new Set(["131026"]);

/**
 * Sends codes by WhatsApp, through Meta's Cloud API ("Authentication templates",
 * developers.facebook.com/documentation/business-messaging/whatsapp/templates/authentication-templates): `POST
 * /{version}/{phoneNumberId}/messages`, JSON, a bearer token. WhatsApp writes the text, in the template's language.
 * Our reference is sent as `biz_opaque_callback_data` (echoed); the message's id is stored as well, because not every
 * webhook echoes it. A message's life is a setting of its template, `message_send_ttl_seconds`. There is no idempotency
 * key.
 *
 * @throws TypeError for missing options and for invalid ones.
 */
export function whatsappSender(options: WhatsappSenderOptions): SmsSender {
  const name = "whatsappSender";
  onlyOptions(name, options, { token: true, phoneNumberId: true, template: true, languages: true, version: true, ...fixedOptions });
  const token = requireText(name, "token", options.token, "Pass an access token of a system user (Meta Business settings).");
  const from = requireText(name, "phoneNumberId", options.phoneNumberId, "Pass the phone number id of WhatsApp Manager (API setup).");
  const templateOf = openWhatsappTemplate(name, options);
  const { version = "v25.0" } = options;
  if (!/^v\d{1,3}\.\d$/.test(version)) throw optionError(name, "version", "is not a version of the Graph API such as v25.0", "Leave it out for the default.");
  const headers = { authorization: `Bearer ${token}` };
  const numberAt = (baseUrl: string) => `${baseUrl}/${version}/${encodeURIComponent(from)}`;
  return carrierSender(name, options, {
    provider: "whatsapp",
    channel: "whatsapp",
    url: "https://graph.facebook.com",
    fromElse: true,
    receiptsById: true,
    request: (message, { baseUrl, extra }) => ({
      url: `${numberAt(baseUrl)}/messages`,
      headers,
      json: {
        ...extra,
        messaging_product: "whatsapp",
        recipient_type: "individual",
        to: digits(message.to),
        type: "template",
        template: templateOf(message),
        ...(message.receipt_reference !== undefined && { biz_opaque_callback_data: message.receipt_reference }),
      },
    }),
    accepted: ({ json }) => acceptedAs(pick(json, "messages", 0, "id")),
    errorCode: ({ json }) => pick(json, "error", "code"),
    unreachable: (code) => notOnWhatsapp.has(code),
    // "Phone numbers", developers.facebook.com/documentation/business-messaging/whatsapp/business-phone-numbers.
    credentials: ({ baseUrl }) => ({ url: `${numberAt(baseUrl)}?fields=id`, method: "GET", headers }),
    // "Access token has expired".
    refusesCredentials: (code) => code === "190",
  });
}

const words = statusWords({
  in_transit: ["sent"],
  delivered: ["delivered", "read", "played"],
  undeliverable: ["failed"],
});

/**
 * Reads the Cloud API's webhooks ("Status messages",
 * developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages/status):
 * `X-Hub-Signature-256` is the hexadecimal HMAC-SHA-256 of the body. Responds to the GET request by which Meta verifies
 * the URL. Incoming messages and other webhooks of the app are accepted and ignored. Meta signs no time: replays are
 * not detected.
 *
 * @param options.appSecret The app's secret; a list allows rotation.
 * @param options.verifyToken The text that you enter with the webhook's URL in the app's dashboard.
 * @throws TypeError if one of them is missing, and for an unknown option.
 */
export function whatsappReceipts(options: { readonly appSecret: string | readonly string[]; readonly verifyToken: string }): ReceiptSource {
  const name = "whatsappReceipts";
  onlyOptions(name, options, { appSecret: true, verifyToken: true });
  const secrets = openSecrets(name, "appSecret", options.appSecret, "Pass the app secret of the Meta app dashboard (App settings, Basic).");
  const verifyToken = requireText(name, "verifyToken", options.verifyToken, "Make one with `openssl rand -hex 24`, and enter it with the webhook's URL.");
  return {
    provider: "whatsapp",
    async read(request) {
      if (request.method === "GET") return verification(request, verifyToken);
      const signature = request.header("x-hub-signature-256");
      if (signature === undefined) return badSignature("there is no X-Hub-Signature-256 header");
      if (!secrets.some((secret) => sameText(`sha256=${createHmac("sha256", secret).update(request.body).digest("hex")}`, signature)))
        return badSignature("X-Hub-Signature-256 does not match this body and appSecret");
      const body = bodyJson(request);
      if (typeof pick(body, "object") !== "string") return malformed("the body is not a webhook of Meta");
      return readReports(statusesIn(body), words);
    },
  };
}

/** Responds to Meta's verification of the URL with its challenge. */
function verification({ url }: ReceiptRequest, verifyToken: string): ReceiptReading {
  const query = new URLSearchParams(URL.canParse(url) ? new URL(url).search : "");
  const challenge = query.get("hub.challenge");
  if (query.get("hub.mode") !== "subscribe" || challenge === null || !/^[\w.~-]{1,256}$/.test(challenge)) return malformed("it is not a verification by Meta");
  if (!sameText(query.get("hub.verify_token") ?? "", verifyToken)) return badSignature("hub.verify_token is not verifyToken");
  return { receipts: [], reply: { status: 200, body: challenge, contentType: "text/plain" } };
}

/** All statuses in a webhook. */
function statusesIn(body: unknown): CarrierReport[] {
  return list(pick(body, "entry"))
    .flatMap((entry) => list(pick(entry, "changes")))
    .flatMap((change) => list(pick(change, "value", "statuses")))
    .map((status) => ({
      messageId: pick(status, "id"),
      idSpace: "whatsapp",
      status: pick(status, "status"),
      at: Number(pick(status, "timestamp")) * 1000,
      error: pick(status, "errors", 0, "code"),
      unreachableBy: notOnWhatsapp,
      reference: pick(status, "biz_opaque_callback_data"),
    }));
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
