import { createPublicKey, type KeyObject, verify } from "node:crypto";
import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { pick } from "../kit/json.js";
import { onlyOptions, optionError, requireText } from "../kit/option-error.js";
import { type CarrierOptions, carrierOptions, carrierSender, type Variables } from "./kit/carrier-sender.js";
import { acceptedAs, rejectedWith } from "./kit/outcomes.js";
import { badSignature, bodyJson, expired, isoTime, isStale, openSecrets, openTolerance, readReport, statusWords } from "./kit/report.js";

export interface TelnyxSenderOptions extends CarrierOptions {
  readonly apiKey: string;
  /**
   * A messaging profile, which chooses the sender from its number pool if `from` does not; required for alphanumeric
   * senders. One of the two is required.
   */
  readonly messagingProfileId?: string;
}

export const telnyxVariables: Variables = {
  needs: { apiKey: "TELNYX_API_KEY" },
  needsOneOf: { from: "TELNYX_FROM", messagingProfileId: "TELNYX_MESSAGING_PROFILE_ID" },
  may: { baseUrl: "TELNYX_BASE_URL" },
};

/**
 * Sends through Telnyx' Messaging API ("Send a message", developers.telnyx.com/docs/messaging/messages/send-message):
 * `POST /v2/messages`, JSON, a bearer key. The receipt URL is sent as `webhook_url`. There is no idempotency key.
 *
 * @throws TypeError for a missing key or sender, and for invalid options.
 */
export function telnyxSender(options: TelnyxSenderOptions): SmsSender {
  const name = "telnyxSender";
  onlyOptions(name, options, { apiKey: true, messagingProfileId: true, ...carrierOptions });
  const key = requireText(name, "apiKey", options.apiKey, "Pass an API key (KEY…) of the Telnyx portal.");
  const { messagingProfileId } = options;
  return carrierSender(name, options, {
    provider: "telnyx",
    url: "https://api.telnyx.com",
    fromElse: "messagingProfileId",
    request: (message, { baseUrl, from, extra }) => ({
      url: `${baseUrl}/v2/messages`,
      headers: { authorization: `Bearer ${key}` },
      json: {
        ...extra,
        ...(from === undefined ? {} : { from }),
        ...(messagingProfileId === undefined ? {} : { messaging_profile_id: messagingProfileId }),
        to: message.to,
        text: message.text,
        ...(message.receipt_url === undefined ? {} : { webhook_url: message.receipt_url }),
      },
    }),
    accepted({ json }) {
      const status = pick(json, "data", "to", 0, "status");
      return status === "sending_failed" ? rejectedWith(pick(json, "data", "errors", 0, "code")) : acceptedAs(pick(json, "data", "id"));
    },
    errorCode: ({ json }) => pick(json, "errors", 0, "code"),
    // "GET /balance is read-only": the first request in Telnyx' own guide,
    // developers.telnyx.com/docs/development/api-fundamentals/first-api-request.
    credentials: ({ baseUrl }) => ({ url: `${baseUrl}/v2/balance`, method: "GET", headers: { authorization: `Bearer ${key}` } }),
  });
}

const words = statusWords({
  submitted: ["queued", "sending"],
  in_transit: ["sent"],
  delivered: ["delivered"],
  undeliverable: ["sending_failed", "delivery_failed", "expired", "cancelled", "failed", "gw_reject"],
  unknown: ["delivery_unconfirmed", "dlr_unconfirmed", "gw_timeout", "dlr_timeout"],
});

/** SubjectPublicKeyInfo of an Ed25519 key, without its 32 key bytes. */
const ed25519Prefix = Buffer.from("302a300506032b6570032100", "hex");

/**
 * Reads Telnyx' message webhooks ("Receiving webhooks for messaging",
 * developers.telnyx.com/docs/messaging/messages/receiving-webhooks): `telnyx-signature-ed25519` signs
 * `telnyx-timestamp`, a `|` and the body.
 *
 * @param options.publicKey The account's public key, base64; a list allows rotation.
 * @param options.tolerance Maximum seconds between the signed time and now. Default: 300.
 * @throws TypeError if `publicKey` is missing or not an Ed25519 key, and for an unknown option.
 */
export function telnyxReceipts(options: { readonly publicKey: string | readonly string[]; readonly tolerance?: number }): ReceiptSource {
  const name = "telnyxReceipts";
  onlyOptions(name, options, { publicKey: true, tolerance: true });
  const keys = openSecrets(name, "publicKey", options.publicKey, "Pass the public key of the Telnyx portal (Keys & Credentials).").map((key) =>
    readKey(name, key),
  );
  const tolerance = openTolerance(name, options.tolerance, 300);
  return {
    provider: "telnyx",
    async read(request, now) {
      const time = request.header("telnyx-timestamp");
      const given = request.header("telnyx-signature-ed25519") ?? "";
      const signature = Buffer.from(given, "base64");
      // Buffer.from ignores invalid base64 and anything after the padding; comparing the text allows one spelling per
      // signature.
      if (time === undefined || signature.length !== 64 || signature.toString("base64") !== given)
        return badSignature("a telnyx signature header is missing or malformed");
      const signed = Buffer.concat([Buffer.from(`${time}|`), request.body]);
      if (!keys.some((key) => verify(null, signed, key, signature))) return badSignature("the signature does not match this body and publicKey");
      if (!/^\d{1,12}$/.test(time) || isStale(Number(time) * 1000, now, tolerance)) return expired("the signed time is too old or from the future");
      const data = pick(bodyJson(request), "data");
      const type = pick(data, "event_type");
      // The signature covers the URL in the body only: it names the message, so a receipt posted elsewhere is of another.
      const named = referenceIn(request.url);
      if (named !== undefined && named !== referenceIn(pick(data, "payload", "webhook_url")))
        return badSignature("the signed message was sent with another URL");
      // Webhooks for incoming messages may use the same URL.
      if (typeof type === "string" && type !== "message.sent" && type !== "message.finalized") return { receipts: [] };
      return readReport(
        {
          messageId: pick(data, "payload", "id"),
          status: pick(data, "payload", "to", 0, "status"),
          at: isoTime(pick(data, "occurred_at")),
          error: pick(data, "payload", "errors", 0, "code"),
        },
        words,
      );
    },
  };
}

/** Our reference in a receipt URL. */
function referenceIn(url: unknown): string | undefined {
  return typeof url === "string" && URL.canParse(url) ? (new URL(url).searchParams.get("r") ?? undefined) : undefined;
}

function readKey(name: string, key: string): KeyObject {
  const bytes = Buffer.from(key, "base64");
  if (bytes.length !== 32)
    throw optionError(name, "publicKey", "is not an Ed25519 key of 32 bytes in base64", "Copy it from the Telnyx portal (Keys & Credentials).");
  return createPublicKey({ key: Buffer.concat([ed25519Prefix, bytes]), format: "der", type: "spki" });
}
