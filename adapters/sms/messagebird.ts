import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { pick } from "../kit/json.js";
import { onlyOptions, requireText } from "../kit/option-error.js";
import { digits } from "../kit/spelling.js";
import { type CarrierOptions, carrierOptions, carrierSender, type Variables } from "./kit/carrier-sender.js";
import { acceptedAs, rejectedWith } from "./kit/outcomes.js";
import { badSignature, expired, isoTime, malformed, openSecrets, readReport, statusWords } from "./kit/report.js";
import { claimTime, isSha256Of, readJwt } from "./kit/signature.js";

export interface MessageBirdSenderOptions extends CarrierOptions {
  readonly accessKey: string;
}

export const messageBirdVariables: Variables = {
  needs: { accessKey: "MESSAGEBIRD_ACCESS_KEY", from: "MESSAGEBIRD_FROM" },
  may: { baseUrl: "MESSAGEBIRD_BASE_URL" },
};

/**
 * Sends through the SMS API of MessageBird, now Bird ("SMS API", developers.messagebird.com/api/sms-messaging): `POST
 * /messages`, JSON, an access key. For accounts of the old dashboard; Bird's newer accounts use another API.
 * The receipt URL is sent as `reportUrl`, which requires a `reference` (ours, echoed), and the expiry as `validity`.
 * There is no idempotency key.
 *
 * @throws TypeError for a missing access key or sender, and for invalid options.
 */
export function messageBirdSender(options: MessageBirdSenderOptions): SmsSender {
  const name = "messageBirdSender";
  onlyOptions(name, options, { accessKey: true, ...carrierOptions });
  const key = requireText(name, "accessKey", options.accessKey, "Pass the live access key of the dashboard.");
  return carrierSender(name, options, {
    provider: "messagebird",
    url: "https://rest.messagebird.com",
    request: (message, { baseUrl, from, extra, ttl }) => ({
      url: `${baseUrl}/messages`,
      headers: { authorization: `AccessKey ${key}` },
      json: {
        // "plain", the API's own default, corrupts all characters outside GSM-7.
        datacoding: "auto",
        validity: ttl,
        ...extra,
        originator: from,
        recipients: [digits(message.to)],
        body: message.text,
        ...(message.receipt_url === undefined ? {} : { reference: message.receipt_reference, reportUrl: message.receipt_url }),
      },
    }),
    accepted: ({ json }) => {
      const item = pick(json, "recipients", "items", 0);
      return pick(item, "status") === "delivery_failed" ? rejectedWith(pick(item, "statusErrorCode")) : acceptedAs(pick(json, "id"));
    },
    errorCode: ({ json }) => pick(json, "errors", 0, "code"),
    // "Balance API", developers.messagebird.com/api/balance.
    credentials: ({ baseUrl }) => ({ url: `${baseUrl}/balance`, method: "GET", headers: { authorization: `AccessKey ${key}` } }),
  });
}

const words = statusWords({
  submitted: ["scheduled"],
  in_transit: ["buffered", "sent"],
  delivered: ["delivered"],
  undeliverable: ["expired", "delivery_failed"],
});

/** Seconds of clock skew allowed, as in MessageBird's own library. */
const skew = 5;

/**
 * Reads MessageBird's status reports: GET, all in the query ("Verifying webhooks",
 * developers.messagebird.com/api/#verifying-http-requests; `lib/webhook-signature-jwt.js` of npm messagebird).
 * Signed by `MessageBird-Signature-JWT`: HS256 with the signing key; claims `url_hash`, `payload_hash` (with a body),
 * `nbf`, `exp`.
 *
 * @param options.signingKey A list allows rotation.
 * @throws TypeError if `signingKey` is missing, and for an unknown option.
 */
export function messageBirdReceipts(options: { readonly signingKey: string | readonly string[] }): ReceiptSource {
  onlyOptions("messageBirdReceipts", options, { signingKey: true });
  const keys = openSecrets("messageBirdReceipts", "signingKey", options.signingKey, "Pass the signing key of the dashboard (Developers, API settings).");
  return {
    provider: "messagebird",
    async read(request, now) {
      const token = request.header("messagebird-signature-jwt");
      if (token === undefined) return badSignature("there is no MessageBird-Signature-JWT header");
      const claims = keys.map((key) => readJwt(token, key)).find((found) => found !== undefined);
      if (claims === undefined || claims["iss"] !== "MessageBird") return badSignature("the token is not signed by MessageBird with signingKey");
      if (!isSha256Of(request.url, claims["url_hash"]))
        return badSignature("the URL is not the one that was signed: is the public URL the exact one that MessageBird was given?");
      if ((request.body.length > 0 || claims["payload_hash"] !== undefined) && !isSha256Of(request.body, claims["payload_hash"]))
        return badSignature("the body is not the one that was signed");
      const expiresAt = claimTime(claims["exp"]);
      const notBefore = claimTime(claims["nbf"]);
      if (expiresAt === undefined) return badSignature("the token does not say when it expires");
      if (now >= expiresAt + skew * 1000 || (notBefore !== undefined && now < notBefore - skew * 1000))
        return expired("the token has expired or is not valid yet");
      if (!URL.canParse(request.url)) return malformed("the request has no absolute URL");
      const query = new URL(request.url).searchParams;
      return readReport(
        {
          messageId: query.get("id") ?? undefined,
          status: query.get("status"),
          // The plus sign of the UTC offset reads as a space in a query.
          at: isoTime(query.get("statusDatetime")?.replace(" ", "+")),
          error: query.get("statusErrorCode"),
          reference: query.get("reference"),
        },
        words,
      );
    },
  };
}
