import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SendOutcome, SmsSender } from "../../src/ports/sms-sender.js";
import { pick } from "../kit/json.js";
import { onlyOptions } from "../kit/option-error.js";
import type { CarrierResponse } from "../kit/request.js";
import { openTwilioAccount, type TwilioAccount } from "../kit/twilio-account.js";
import { type ByLanguage, openByLanguage } from "./kit/by-language.js";
import { type CarrierOptions, carrierOptions, carrierSender, type SilentOptions, silentOptions, type Variables } from "./kit/carrier-sender.js";
import { acceptedAs, rejectedWith } from "./kit/outcomes.js";
import { openSecrets, readReport, statusWords } from "./kit/report.js";
import { readTwilioRequest } from "./kit/twilio-request.js";

export type { ByLanguage, TwilioAccount };

export interface TwilioSenderOptions extends CarrierOptions<string>, TwilioAccount {
  /** `MG…`: a messaging service that chooses the sender if `from` does not. One of the two is required. */
  readonly messagingServiceSid?: string;
}

export const twilioVariables: Variables = {
  needs: { accountSid: "TWILIO_ACCOUNT_SID", authToken: "TWILIO_AUTH_TOKEN" },
  needsOneOf: { from: "TWILIO_FROM", messagingServiceSid: "TWILIO_MESSAGING_SERVICE_SID" },
  may: { apiKeySid: "TWILIO_API_KEY_SID", baseUrl: "TWILIO_BASE_URL" },
};

/** Final statuses of a message that was not sent. */
const unsent = new Set(["failed", "undelivered", "canceled"]);

/** "The default value is 36000 … between 1 and 36000" seconds. */
const longestValidity = 36_000;

/**
 * Sends through Twilio's Messages API ("Messages resource", twilio.com/docs/messaging/api/message-resource): `POST
 * /2010-04-01/Accounts/{sid}/Messages.json`, a form, basic authentication.
 * The receipt URL is sent as `StatusCallback`, the expiry as `ValidityPeriod`. With `conversions`, entered codes are
 * reported as message feedback ("Feedback subresource", twilio.com/docs/messaging/api/message-feedback-resource). There
 * is no idempotency key for messages.
 *
 * @throws TypeError for missing credentials or senders, and for invalid options.
 */
export function twilioSender(options: TwilioSenderOptions): SmsSender {
  const name = "twilioSender";
  onlyOptions(name, options, { accountSid: true, authToken: true, apiKeySid: true, messagingServiceSid: true, ...carrierOptions });
  const { messagingServiceSid } = options;
  const { headers, accountAt, api } = openTwilioAccount(name, options);
  const messagesAt = (baseUrl: string) => `${accountAt(baseUrl)}/Messages`;
  return carrierSender(name, options, {
    ...api,
    provider: "twilio",
    accepted,
    fromElse: "messagingServiceSid",
    request(message, { baseUrl, from, extra, ttl }) {
      const form = new URLSearchParams({ ValidityPeriod: String(Math.min(ttl, longestValidity)), ...extra, To: message.to, Body: message.text });
      if (from !== undefined) form.set("From", from);
      if (messagingServiceSid !== undefined) form.set("MessagingServiceSid", messagingServiceSid);
      if (message.receipt_url !== undefined) form.set("StatusCallback", message.receipt_url);
      if (options.conversions === true) form.set("ProvideFeedback", "true");
      return { url: `${messagesAt(baseUrl)}.json`, headers, form };
    },
    conversion: (messageId, { baseUrl }) => ({
      url: `${messagesAt(baseUrl)}/${encodeURIComponent(messageId)}/Feedback.json`,
      headers,
      form: new URLSearchParams({ Outcome: "confirmed" }),
    }),
  });
}

export interface TwilioWhatsappSenderOptions extends SilentOptions<string>, TwilioAccount {
  /** `MG…`: a messaging service that chooses the WhatsApp sender if `from` does not. One of the two is required. */
  readonly messagingServiceSid?: string;
  /** `HX…`: approved content of the type `whatsapp/authentication`; or one per language, with `default` for the rest. */
  readonly contentSid: ByLanguage;
}

export const twilioWhatsappVariables: Variables = {
  needs: { accountSid: "TWILIO_ACCOUNT_SID", authToken: "TWILIO_AUTH_TOKEN", contentSid: "TWILIO_CONTENT_SID" },
  needsOneOf: { from: "TWILIO_WHATSAPP_FROM", messagingServiceSid: "TWILIO_MESSAGING_SERVICE_SID" },
  may: { apiKeySid: "TWILIO_API_KEY_SID", baseUrl: "TWILIO_BASE_URL" },
};

/** Twilio's names for WhatsApp's errors 1013, 1006 and 1026, 1002 ("not a valid WhatsApp recipient"). */
const notOnWhatsapp = new Set(["63003", "63024"]);

/**
 * Sends codes by WhatsApp through Twilio, as content of the type `whatsapp/authentication`
 * (twilio.com/docs/content/whatsappauthentication): the same request as for an SMS, with `ContentSid` and
 * `ContentVariables`. `from` is the number of the WhatsApp sender. WhatsApp writes the text, in the content's language.
 * `twilioReceipts` reads its receipts.
 *
 * @throws TypeError for missing options and for invalid ones.
 */
export function twilioWhatsappSender(options: TwilioWhatsappSenderOptions): SmsSender {
  const name = "twilioWhatsappSender";
  onlyOptions(name, options, { accountSid: true, authToken: true, apiKeySid: true, messagingServiceSid: true, contentSid: true, ...silentOptions });
  const { messagingServiceSid } = options;
  const contentOf = openByLanguage(name, "contentSid", options.contentSid, 'Pass the content\'s SID (HX…), or { fr: "HX…", default: "HX…" }.');
  const { headers, accountAt, api } = openTwilioAccount(name, options);
  return carrierSender(name, options, {
    ...api,
    provider: "twilio",
    accepted: (answer) => accepted(answer, notOnWhatsapp),
    channel: "whatsapp",
    fromElse: "messagingServiceSid",
    request(message, { baseUrl, from, extra }) {
      const form = new URLSearchParams({ ...extra, To: `whatsapp:${message.to}`, ContentSid: contentOf(message) });
      form.set("ContentVariables", JSON.stringify({ 1: message.code }));
      if (from !== undefined) form.set("From", `whatsapp:${from}`);
      if (messagingServiceSid !== undefined) form.set("MessagingServiceSid", messagingServiceSid);
      if (message.receipt_url !== undefined) form.set("StatusCallback", message.receipt_url);
      return { url: `${accountAt(baseUrl)}/Messages.json`, headers, form };
    },
    unreachable: (code) => notOnWhatsapp.has(code),
  });
}

function accepted({ json }: CarrierResponse, unreachableBy?: ReadonlySet<string>): SendOutcome {
  const status = pick(json, "status");
  return typeof status === "string" && unsent.has(status) ? rejectedWith(pick(json, "error_code"), unreachableBy) : acceptedAs(pick(json, "sid"));
}

const words = statusWords({
  submitted: ["accepted", "scheduled", "queued", "sending"],
  in_transit: ["sent"],
  delivered: ["delivered", "partially_delivered", "read"],
  undeliverable: ["undelivered", "failed", "canceled"],
});

/**
 * Reads Twilio's status callbacks ("Webhooks security", twilio.com/docs/usage/webhooks/webhooks-security):
 * `X-Twilio-Signature` is the base64 HMAC-SHA-1, with the account's auth token, of the exact URL and the sorted
 * parameters. For a JSON body the URL carries its hash, `bodySHA256`. Twilio signs no time: replays are not detected.
 *
 * @param options.authToken The account's primary auth token (never an API key's secret); a list allows rotation.
 * @throws TypeError if `authToken` is missing, and for an unknown option.
 */
export function twilioReceipts(options: { readonly authToken: string | readonly string[] }): ReceiptSource {
  onlyOptions("twilioReceipts", options, { authToken: true });
  const tokens = openSecrets("twilioReceipts", "authToken", options.authToken, "Pass the auth token of the Twilio console; an API key's secret signs nothing.");
  return {
    provider: "twilio",
    async read(request) {
      const form = readTwilioRequest(request, tokens);
      if (!(form instanceof URLSearchParams)) return form;
      return readReport(
        { messageId: form.get("MessageSid") ?? undefined, status: form.get("MessageStatus"), error: form.get("ErrorCode"), unreachableBy: notOnWhatsapp },
        words,
      );
    },
  };
}
