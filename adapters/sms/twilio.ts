import { createHmac } from "node:crypto";
import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { pick } from "../kit/json.js";
import { onlyOptions, requireText } from "../kit/option-fault.js";
import { basicAuth } from "../kit/spelling.js";
import { type CarrierOptions, carrierOptions, carrierSender } from "./kit/carrier-sender.js";
import { acceptedAs, rejectedWith } from "./kit/outcomes.js";
import { badSignature, bodyForm, malformed, openSecrets, readReport, type StatusWords } from "./kit/report.js";
import { sameText, sha256Hex } from "./kit/signature.js";
import type { Variables } from "./kit/variables.js";

export interface TwilioSenderOptions extends CarrierOptions<string> {
  /** `AC…`. */
  readonly accountSid: string;
  /** The account's auth token, or the secret of `apiKeySid`. */
  readonly authToken: string;
  /** `SK…`: an API key to use instead of the account's auth token; `authToken` is then its secret. */
  readonly apiKeySid?: string;
  /** `MG…`: a messaging service that chooses the sender if `from` does not. One of the two is required. */
  readonly messagingServiceSid?: string;
}

/** Environment variables of the options, as read by `phoneproof dev --sender twilio`. */
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
  const sid = requireText(name, "accountSid", options.accountSid, "Pass the Account SID (AC…) of the Twilio console.");
  const token = requireText(name, "authToken", options.authToken, "Pass the auth token of the Twilio console, or the secret of apiKeySid.");
  const { messagingServiceSid } = options;
  const authorization = basicAuth(options.apiKeySid ?? sid, token);
  const messagesAt = (baseUrl: string) => `${baseUrl}/2010-04-01/Accounts/${encodeURIComponent(sid)}/Messages`;
  return carrierSender(name, options, {
    provider: "twilio",
    url: "https://api.twilio.com",
    fromElse: "messagingServiceSid",
    request(message, { baseUrl, from, extra, ttl }) {
      const form = new URLSearchParams({ ValidityPeriod: String(Math.min(ttl, longestValidity)), ...extra, To: message.to, Body: message.text });
      if (from !== undefined) form.set("From", from);
      if (messagingServiceSid !== undefined) form.set("MessagingServiceSid", messagingServiceSid);
      if (message.receipt_url !== undefined) form.set("StatusCallback", message.receipt_url);
      if (options.conversions === true) form.set("ProvideFeedback", "true");
      return { url: `${messagesAt(baseUrl)}.json`, headers: { authorization }, form };
    },
    accepted({ json }) {
      const status = pick(json, "status");
      return typeof status === "string" && unsent.has(status) ? rejectedWith(pick(json, "error_code")) : acceptedAs(pick(json, "sid"));
    },
    errorCode: ({ json }) => pick(json, "code"),
    // "Fetch an Account resource", twilio.com/docs/iam/api/account.
    credentials: ({ baseUrl }) => ({ url: `${baseUrl}/2010-04-01/Accounts/${encodeURIComponent(sid)}.json`, method: "GET", headers: { authorization } }),
    conversion: (messageId, { baseUrl }) => ({
      url: `${messagesAt(baseUrl)}/${encodeURIComponent(messageId)}/Feedback.json`,
      headers: { authorization },
      form: new URLSearchParams({ Outcome: "confirmed" }),
    }),
  });
}

const words: StatusWords = new Map([
  ["accepted", "submitted"],
  ["scheduled", "submitted"],
  ["queued", "submitted"],
  ["sending", "submitted"],
  ["sent", "in_transit"],
  ["delivered", "delivered"],
  ["partially_delivered", "delivered"],
  ["read", "delivered"],
  ["undelivered", "undeliverable"],
  ["failed", "undeliverable"],
  ["canceled", "undeliverable"],
]);

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
      const signature = request.header("x-twilio-signature");
      if (signature === undefined) return badSignature("there is no X-Twilio-Signature header");
      if (!URL.canParse(request.url)) return malformed("the request has no absolute URL");
      const form = bodyForm(request);
      if (form === undefined) return malformed("the body is not UTF-8");
      const bodyHash = new URL(request.url).searchParams.get("bodySHA256");
      const signed = bodyHash === null ? joined(form) : "";
      const authentic = tokens.some((token) =>
        urlSpellings(request.url).some((url) =>
          sameText(
            createHmac("sha1", token)
              .update(url + signed)
              .digest("base64"),
            signature,
          ),
        ),
      );
      if (!authentic)
        return badSignature(
          "X-Twilio-Signature is not that of this URL and body: is the public URL the exact one that Twilio was given, and authToken the primary one?",
        );
      if (bodyHash !== null && !sameText(bodyHash.toLowerCase(), sha256Hex(request.body))) return badSignature("the body is not the one that was signed");
      return readReport({ messageId: form.get("MessageSid") ?? undefined, status: form.get("MessageStatus"), error: form.get("ErrorCode") }, words);
    },
  };
}

/** Joins sorted parameters: names and values without separators; a repeated value counts once. */
function joined(form: URLSearchParams): string {
  return [...new Set(form.keys())]
    .sort()
    .map((key) =>
      [...new Set(form.getAll(key))]
        .sort()
        .map((value) => key + value)
        .join(""),
    )
    .join("");
}

/** The URL as received, and with the scheme's default port added or removed: Twilio signs one or the other. */
function urlSpellings(url: string): string[] {
  const parts = /^(https?):\/\/([^/?#:]+|\[[^\]]+\])(:\d+)?(.*)$/is.exec(url);
  if (parts === null) return [url];
  const [, scheme = "", host = "", , rest = ""] = parts;
  return [url, `${scheme}://${host}:${scheme.toLowerCase() === "https" ? 443 : 80}${rest}`, `${scheme}://${host}${rest}`];
}
