import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { openSenderId, openTransport, requireText, type SenderId, type TransportOptions } from "./carrier-options.js";
import { acceptedAs, carrierSender, digits, rejectedWith } from "./carrier-send.js";
import { pick } from "./json.js";
import { badSignature, expired, isoTime, malformed, openSecrets, readReport, type StatusWords } from "./receipt-reading.js";
import { readReference, referenceOf } from "./reference.js";
import { claimTime, readJwt, sameText, sha256Hex } from "./signature.js";

export interface MessageBirdSenderOptions extends TransportOptions {
  readonly accessKey: string;
  readonly from: SenderId;
  /** Further fields of the request, for example `{ validity: 600 }`. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/**
 * Sends by MessageBird's (Bird's) SMS API ("SMS API", developers.messagebird.com/api/sms-messaging): `POST /messages`, JSON, an access key.
 * A message's receipt URL goes along as `reportUrl`, which needs the `reference` that names the authentication and attempt and is echoed. MessageBird takes
 * no idempotency key.
 *
 * @throws TypeError for a missing access key or sender, and for options that cannot be used.
 */
export function messageBirdSender(options: MessageBirdSenderOptions): SmsSender {
  const name = "messageBirdSender";
  const key = requireText(name, "accessKey", options.accessKey, "Pass the live access key of the dashboard.");
  const transport = openTransport(name, options, "https://rest.messagebird.com");
  return carrierSender({
    provider: "messagebird",
    transport,
    from: openSenderId(name, options.from),
    request: (message, from) => ({
      method: "POST",
      url: `${transport.baseUrl}/messages`,
      headers: { authorization: `AccessKey ${key}`, "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({
        // "plain", the API's own default, spoils every letter outside GSM-7.
        datacoding: "auto",
        ...options.extra,
        originator: from,
        recipients: [digits(message.to)],
        body: message.text,
        reference: referenceOf(message),
        ...(message.receipt_url === undefined ? {} : { reportUrl: message.receipt_url }),
      }),
    }),
    accepted: ({ json }) => {
      const item = pick(json, "recipients", "items", 0);
      return pick(item, "status") === "delivery_failed" ? rejectedWith(pick(item, "statusErrorCode")) : acceptedAs(pick(json, "id"));
    },
    errorCode: ({ json }) => pick(json, "errors", 0, "code"),
  });
}

const words: StatusWords = new Map([
  ["scheduled", "submitted"],
  ["buffered", "in_transit"],
  ["sent", "in_transit"],
  ["delivered", "delivered"],
  ["expired", "undeliverable"],
  ["delivery_failed", "undeliverable"],
]);

/** Seconds that the two clocks may differ, as in MessageBird's own library. */
const skew = 5;

/**
 * MessageBird's status reports: GET, everything in the query ("Verifying webhooks", developers.messagebird.com/api/#verifying-http-requests;
 * `lib/webhook-signature-jwt.js` of npm messagebird):
 * `MessageBird-Signature-JWT`, HS256 under the signing key, with `url_hash`, `payload_hash` for a body, `nbf` and `exp`.
 *
 * @param options.signingKey Several while it is being changed.
 * @throws TypeError when `signingKey` is missing.
 */
export function messageBirdReceipts(options: { readonly signingKey: string | readonly string[] }): ReceiptSource {
  const keys = openSecrets("messageBirdReceipts", "signingKey", options.signingKey, "Pass the signing key of the dashboard (Developers, API settings).");
  return {
    provider: "messagebird",
    signed: true,
    async read(request, now) {
      const token = request.header("messagebird-signature-jwt");
      if (token === undefined) return badSignature("there is no MessageBird-Signature-JWT header");
      const claims = keys.map((key) => readJwt(token, key)).find((found) => found !== undefined);
      if (claims === undefined || claims["iss"] !== "MessageBird") return badSignature("the token is not MessageBird's under signingKey");
      if (!sameHash(claims["url_hash"], request.url))
        return badSignature("the URL is not the one that was signed: is the public URL the exact one that MessageBird was given?");
      if ((request.body.length > 0 || claims["payload_hash"] !== undefined) && !sameHash(claims["payload_hash"], request.body))
        return badSignature("the body is not the one that was signed");
      const expiresAt = claimTime(claims["exp"]);
      const notBefore = claimTime(claims["nbf"]);
      if (expiresAt === undefined) return badSignature("the token does not say when it ends");
      if (now >= expiresAt + skew * 1000 || (notBefore !== undefined && now < notBefore - skew * 1000))
        return expired("the token's time is over or has not come");
      if (!URL.canParse(request.url)) return malformed("the request has no absolute URL");
      const query = new URL(request.url).searchParams;
      return readReport(
        {
          messageId: query.get("id") ?? undefined,
          status: query.get("status"),
          // A plus sign of the zone reads as a space in a query.
          at: isoTime(query.get("statusDatetime")?.replace(" ", "+")),
          error: query.get("statusErrorCode"),
          reference: readReference(query.get("reference")),
        },
        words,
      );
    },
  };
}

function sameHash(claim: unknown, content: Uint8Array | string): boolean {
  return typeof claim === "string" && sameText(claim.toLowerCase(), sha256Hex(content));
}
