import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { isRecord, pick } from "../kit/json.js";
import { onlyOptions, optionFault, requireText } from "../kit/option-fault.js";
import { basicAuth, digits } from "../kit/spelling.js";
import { applicationToken } from "../kit/vonage-token.js";
import { type CarrierOptions, carrierOptions, carrierSender } from "./kit/carrier-sender.js";
import { acceptedAs } from "./kit/outcomes.js";
import { badSignature, bodyJson, expired, isoTime, isStale, openSecrets, openTolerance, readReport, type StatusWords } from "./kit/report.js";
import { claimTime, readJwt, sameText, sha256Hex } from "./kit/signature.js";
import type { Variables } from "./kit/variables.js";

export interface VonageSenderOptions extends CarrierOptions {
  /**
   * With `apiSecret`: basic authentication. Receipts go to the account's status webhook unless a message has its own
   * URL.
   */
  readonly apiKey?: string;
  readonly apiSecret?: string;
  /**
   * With `privateKey`: a JSON Web Token for each request. Receipts go to the application's status webhook unless a
   * message has its own URL.
   */
  readonly applicationId?: string;
  /** PEM. */
  readonly privateKey?: string;
}

/** Environment variables of the options, as read by `phoneproof dev --sender vonage`. */
export const vonageVariables: Variables = {
  needs: { apiKey: "VONAGE_API_KEY", apiSecret: "VONAGE_API_SECRET", from: "VONAGE_FROM" },
  may: { baseUrl: "VONAGE_BASE_URL" },
};

/** "1000 Throttled", "1100 Communication Failed - Message was not submitted": not sent, at any status. */
const notSent = new Set(["1000", "1100"]);

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
    throw optionFault(name, "conversions", "needs apiKey and apiSecret", "Vonage's Conversion API takes nothing else.");
  return carrierSender(name, options, {
    provider: "vonage",
    url: "https://api.nexmo.com",
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
    accepted: ({ json }) => acceptedAs(pick(json, "message_uuid")),
    // The problem's type is a URL with the code as fragment: "https://developer.vonage.com/api-errors/messages#1120".
    errorCode: ({ json }) => String(pick(json, "type") ?? "").split("#")[1],
    notSent: (code) => notSent.has(code),
    // "Get Account Balance", developer.vonage.com/en/api/account: accepts the account's key and secret only, on a
    // separate host.
    ...(options.apiKey !== undefined && {
      credentials: ({ baseUrl }: { readonly baseUrl: string }) => ({
        url: `${options.baseUrl === undefined ? "https://rest.nexmo.com" : baseUrl}/account/get-balance`,
        method: "GET",
        headers: { authorization: authorization() },
      }),
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

/** Returns a function that makes the authorization header for each request. */
function openAuthorization(name: string, options: VonageSenderOptions): () => string {
  const { apiKey, applicationId } = options;
  if ((apiKey === undefined) === (applicationId === undefined)) {
    throw optionFault(
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

const words: StatusWords = new Map([
  ["submitted", "submitted"],
  ["delivered", "delivered"],
  ["read", "delivered"],
  ["rejected", "undeliverable"],
  ["undeliverable", "undeliverable"],
]);

/**
 * Reads status webhooks of Vonage's Messages API ("Signed webhooks",
 * developer.vonage.com/en/getting-started/concepts/webhooks): a JSON Web Token, HS256 with the account's signature
 * secret, whose `payload_hash` is the body's SHA-256.
 *
 * @param options.signatureSecret A list allows rotation.
 * @param options.tolerance Maximum seconds between the token's `iat` and now. Default: 300.
 * @throws TypeError if `signatureSecret` is missing, and for an unknown option.
 */
export function vonageReceipts(options: { readonly signatureSecret: string | readonly string[]; readonly tolerance?: number }): ReceiptSource {
  const name = "vonageReceipts";
  onlyOptions(name, options, { signatureSecret: true, tolerance: true });
  const secrets = openSecrets(
    name,
    "signatureSecret",
    options.signatureSecret,
    "Pass the signature secret of the Vonage dashboard (API settings); it is not the API secret.",
  );
  const tolerance = openTolerance(name, options.tolerance, 300);
  return {
    provider: "vonage",
    async read(request, now) {
      const token = /^bearer\s+(\S+)$/i.exec(request.header("authorization") ?? "")?.[1];
      if (token === undefined) return badSignature("there is no bearer token");
      const claims = secrets.map((secret) => readJwt(token, secret)).find((found) => found !== undefined);
      if (claims === undefined) return badSignature("the token is not signed with signatureSecret");
      const hash = claims["payload_hash"];
      if (typeof hash !== "string" || !sameText(hash.toLowerCase(), sha256Hex(request.body))) return badSignature("the body is not the one that was signed");
      const issuedAt = claimTime(claims["iat"]);
      const expiresAt = claimTime(claims["exp"]);
      if (issuedAt === undefined) return badSignature("the token does not say when it was issued");
      if (isStale(issuedAt, now, tolerance) || (expiresAt !== undefined && now >= expiresAt)) return expired("the token is too old or from the future");
      const body = bodyJson(request);
      return readReport(
        {
          messageId: pick(body, "message_uuid"),
          status: pick(body, "status"),
          at: isoTime(pick(body, "timestamp")),
          error: String(pick(body, "error", "type") ?? "").split("#")[1] ?? pick(body, "error", "title"),
          reference: pick(body, "client_ref"),
        },
        words,
      );
    },
  };
}
