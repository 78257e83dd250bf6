import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { isRecord, pick } from "../kit/json.js";
import { onlyOptions, optionError, requireText } from "../kit/option-error.js";
import type { CarrierResponse } from "../kit/request.js";
import { basicAuth, digits } from "../kit/spelling.js";
import type { TransportOptions } from "../kit/transport.js";
import { applicationToken } from "../kit/vonage-token.js";
import { type CarrierOptions, carrierOptions, carrierSender, type SilentOptions, silentOptions, type Variables } from "./kit/carrier-sender.js";
import { acceptedAs } from "./kit/outcomes.js";
import { bodyJson, isoTime, readReport, statusWords } from "./kit/report.js";
import { openWebhooks, refuseVonage, type VonageWebhookOptions } from "./kit/vonage-webhook.js";
import { openWhatsappTemplate, type WhatsappTemplateOptions } from "./kit/whatsapp-template.js";

export type { ByLanguage } from "./kit/by-language.js";
export type { VonageWebhookOptions };

export interface VonageAccount {
  /** With `apiSecret`: basic authentication. Receipts without a message's URL go to the account's status webhook. */
  readonly apiKey?: string;
  readonly apiSecret?: string;
  /** With `privateKey`: a JWT for each request. Receipts without a message's URL go to the application's webhook. */
  readonly applicationId?: string;
  /** PEM. */
  readonly privateKey?: string;
}

export interface VonageSenderOptions extends CarrierOptions, VonageAccount {}

export const vonageVariables: Variables = {
  needs: { apiKey: "VONAGE_API_KEY", apiSecret: "VONAGE_API_SECRET", from: "VONAGE_FROM" },
  may: { baseUrl: "VONAGE_BASE_URL" },
};

/** "1000 Throttled", "1100 Communication Failed - Message was not submitted": not sent, at any status. */
const notSent = new Set(["1000", "1100"]);

/** "1300 Not part of the provider network": the number is not on the channel. */
const notOnChannel = new Set(["1300"]);

/** Limits of `ttl`, in seconds. */
const shortestTtl = 20;
const longestTtl = 604_800;

/**
 * Sends through Vonage's Messages API, channel sms ("Messages API", developer.vonage.com/en/api/messages; errors:
 * developer.vonage.com/en/api-errors/messages): `POST /v1/messages`, JSON. There is no idempotency key.
 * The receipt URL is sent as `webhook_url`, our reference as `client_ref` (echoed), the expiry as `ttl`, the ids of a
 * registered text as `sms.entity_id` and `sms.content_id`.
 * With `conversions` (and `apiKey`), entered codes are reported ("Conversion API",
 * developer.vonage.com/en/api/conversion). Vonage enables this on request and documents it for ids of the SMS API: ask
 * whether it accepts ids of the Messages API.
 *
 * @throws TypeError for missing or conflicting credentials, an invalid private key, and invalid options.
 */
export function vonageSender(options: VonageSenderOptions): SmsSender {
  const name = "vonageSender";
  onlyOptions(name, options, { apiKey: true, apiSecret: true, applicationId: true, privateKey: true, ...carrierOptions });
  const authorization = openAuthorization(name, options);
  if (options.conversions === true && options.apiKey === undefined)
    throw optionError(name, "conversions", "needs apiKey and apiSecret", "Vonage's Conversion API takes nothing else.");
  return carrierSender(name, options, {
    ...messagesApi(options, authorization),
    request: ({ to, text, receipt_url, receipt_reference, registered }, { baseUrl, from, extra, ttl }) => ({
      url: `${baseUrl}/v1/messages`,
      headers: { authorization: authorization() },
      json: {
        ttl: Math.min(Math.max(ttl, shortestTtl), longestTtl),
        ...extra,
        ...(registered !== undefined && {
          sms: {
            ...(registered.entity !== undefined && { entity_id: registered.entity }),
            ...(registered.template !== undefined && { content_id: registered.template }),
            ...(isRecord(extra["sms"]) && extra["sms"]),
          },
        }),
        channel: "sms",
        message_type: "text",
        to: digits(to),
        from: digits(from as string),
        text,
        ...(receipt_url !== undefined && { client_ref: receipt_reference, webhook_url: receipt_url, webhook_version: "v1" }),
      },
    }),
    conversion: (messageId, { baseUrl, now }) => ({
      url: `${baseUrl}/conversions/sms?${new URLSearchParams({ "message-id": messageId, delivered: "true", timestamp: vonageTime(now) })}`,
      headers: { authorization: authorization() },
    }),
  });
}

/** Formats `2024-05-01 12:00:00`, in UTC. */
function vonageTime(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace("T", " ");
}

export interface VonageWhatsappSenderOptions extends SilentOptions, VonageAccount, WhatsappTemplateOptions {}

export const vonageWhatsappVariables: Variables = {
  needs: {
    apiKey: "VONAGE_API_KEY",
    apiSecret: "VONAGE_API_SECRET",
    from: "VONAGE_WHATSAPP_FROM",
    template: "WHATSAPP_TEMPLATE",
    languages: "WHATSAPP_LANGUAGE",
  },
  may: { baseUrl: "VONAGE_BASE_URL" },
};

/**
 * Sends codes by WhatsApp through Vonage's Messages API, channel whatsapp ("Send a WhatsApp Authentication Template",
 * developer.vonage.com/en/messages/code-snippets/whatsapp/send-authentication-template): a custom message with the
 * template. `from` is the number of the WhatsApp sender. WhatsApp writes the text, in the template's language.
 * `vonageReceipts` reads its receipts.
 *
 * @throws TypeError for missing options and for invalid ones.
 */
export function vonageWhatsappSender(options: VonageWhatsappSenderOptions): SmsSender {
  const name = "vonageWhatsappSender";
  onlyOptions(name, options, {
    apiKey: true,
    apiSecret: true,
    applicationId: true,
    privateKey: true,
    template: true,
    languages: true,
    ...silentOptions,
  });
  const authorization = openAuthorization(name, options);
  const templateOf = openWhatsappTemplate(name, options);
  return carrierSender(name, options, {
    ...messagesApi(options, authorization),
    channel: "whatsapp",
    request: (message, { baseUrl, from, extra }) => ({
      url: `${baseUrl}/v1/messages`,
      headers: { authorization: authorization() },
      json: {
        ...extra,
        channel: "whatsapp",
        message_type: "custom",
        to: digits(message.to),
        from: digits(from as string),
        custom: { type: "template", template: templateOf(message) },
        ...(message.receipt_url !== undefined && { client_ref: message.receipt_reference, webhook_url: message.receipt_url, webhook_version: "v1" }),
      },
    }),
  });
}

/** What both senders have in common. */
function messagesApi(options: VonageAccount & TransportOptions, authorization: () => string) {
  return {
    provider: "vonage",
    url: "https://api.nexmo.com",
    accepted: ({ json }: CarrierResponse) => acceptedAs(pick(json, "message_uuid")),
    // The problem's type is a URL with the code as fragment: "https://developer.vonage.com/api-errors/messages#1120".
    errorCode: ({ json }: CarrierResponse) => String(pick(json, "type") ?? "").split("#")[1],
    notSent: (code: string) => notSent.has(code),
    unreachable: (code: string) => notOnChannel.has(code),
    // "Get Account Balance", developer.vonage.com/en/api/account: accepts the account's key and secret only, on a
    // separate host.
    ...(options.apiKey !== undefined && {
      credentials: ({ baseUrl }: { readonly baseUrl: string }) => ({
        url: `${options.baseUrl === undefined ? "https://rest.nexmo.com" : baseUrl}/account/get-balance`,
        method: "GET",
        headers: { authorization: authorization() },
      }),
    }),
  };
}

/** Returns a function that makes the authorization header for each request. */
function openAuthorization(name: string, options: VonageAccount): () => string {
  const { apiKey, applicationId } = options;
  if ((apiKey === undefined) === (applicationId === undefined)) {
    throw optionError(
      name,
      "apiKey",
      apiKey === undefined ? "is missing" : "and applicationId exclude each other",
      "Pass either apiKey and apiSecret or applicationId and privateKey.",
    );
  }
  if (apiKey !== undefined) {
    const secret = requireText(name, "apiSecret", options.apiSecret, "Pass the API secret of the Vonage dashboard.");
    const basic = basicAuth(requireText(name, "apiKey", apiKey, "Pass the API key of the Vonage dashboard."), secret);
    return () => basic;
  }
  return applicationToken(name, applicationId as string, options.privateKey);
}

const words = statusWords({
  submitted: ["submitted"],
  delivered: ["delivered", "read"],
  undeliverable: ["rejected", "undeliverable"],
});

/**
 * Reads status webhooks of Vonage's Messages API ("Signed webhooks",
 * developer.vonage.com/en/getting-started/concepts/webhooks): a JSON Web Token, HS256 with the account's signature
 * secret, whose `payload_hash` is the body's SHA-256.
 *
 * @throws TypeError if `signatureSecret` is missing, and for an unknown option.
 */
export function vonageReceipts(options: VonageWebhookOptions): ReceiptSource {
  const name = "vonageReceipts";
  onlyOptions(name, options, { signatureSecret: true, tolerance: true });
  const webhooks = openWebhooks(name, options);
  return {
    provider: "vonage",
    async read(request, now) {
      const refused = refuseVonage(request, now, webhooks);
      if (refused !== undefined) return refused;
      const body = bodyJson(request);
      return readReport(
        {
          messageId: pick(body, "message_uuid"),
          status: pick(body, "status"),
          at: isoTime(pick(body, "timestamp")),
          error: String(pick(body, "error", "type") ?? "").split("#")[1] ?? pick(body, "error", "title"),
          reference: pick(body, "client_ref"),
          unreachableBy: notOnChannel,
        },
        words,
      );
    },
  };
}
