import { createPublicKey, type KeyObject, verify } from "node:crypto";
import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { pick } from "../kit/json.js";
import { onlyOptions, optionFault, requireText } from "../kit/option-fault.js";
import { type CarrierOptions, carrierOptions, carrierSender } from "./kit/carrier-sender.js";
import { acceptedAs, rejectedWith } from "./kit/outcomes.js";
import { badSignature, bodyJson, expired, isoTime, isStale, openSecrets, openTolerance, readReport, type StatusWords } from "./kit/report.js";
import type { Variables } from "./kit/variables.js";

export interface TelnyxSenderOptions extends CarrierOptions {
  readonly apiKey: string;
  /** A messaging profile: chooses the sender from its number pool where `from` names none; needed with alphanumeric senders. One of the two is needed. */
  readonly messagingProfileId?: string;
}

/** Names of the environment's variables for the options, as `phoneproof dev --sender telnyx` reads them. */
export const telnyxVariables: Variables = {
  needs: { apiKey: "TELNYX_API_KEY" },
  needsOneOf: { from: "TELNYX_FROM", messagingProfileId: "TELNYX_MESSAGING_PROFILE_ID" },
  may: { baseUrl: "TELNYX_BASE_URL" },
};

/**
 * Sends by Telnyx' Messaging API ("Send a message", developers.telnyx.com/docs/messaging/messages/send-message): `POST /v2/messages`, JSON, a bearer key.
 * A message's receipt URL goes along as `webhook_url`. Telnyx takes no idempotency key.
 *
 * @throws TypeError for a missing key or sender, and for options that cannot be used.
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
    // "GET /balance is read-only": the first request that Telnyx' own guide makes, developers.telnyx.com/docs/development/api-fundamentals/first-api-request.
    credentials: ({ baseUrl }) => ({ url: `${baseUrl}/v2/balance`, method: "GET", headers: { authorization: `Bearer ${key}` } }),
  });
}

const words: StatusWords = new Map([
  ["queued", "submitted"],
  ["sending", "submitted"],
  ["sent", "in_transit"],
  ["delivered", "delivered"],
  ["sending_failed", "undeliverable"],
  ["delivery_failed", "undeliverable"],
  ["expired", "undeliverable"],
  ["cancelled", "undeliverable"],
  ["failed", "undeliverable"],
  ["gw_reject", "undeliverable"],
  ["delivery_unconfirmed", "unknown"],
  ["dlr_unconfirmed", "unknown"],
  ["gw_timeout", "unknown"],
  ["dlr_timeout", "unknown"],
]);

/** An Ed25519 key's SubjectPublicKeyInfo without its 32 bytes. */
const ed25519Prefix = Buffer.from("302a300506032b6570032100", "hex");

/**
 * Telnyx' message webhooks ("Receiving webhooks for messaging", developers.telnyx.com/docs/messaging/messages/receiving-webhooks):
 * `telnyx-signature-ed25519` over `telnyx-timestamp`, a bar and the body.
 *
 * @param options.publicKey The account's public key, base64; several while it is being changed.
 * @param options.tolerance Seconds between the signed time and now. Default: 300.
 * @throws TypeError when `publicKey` is missing or is no Ed25519 key, and for an option that is none.
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
      // Buffer.from passes over what follows the padding and what is no base64: one signature has one spelling.
      if (time === undefined || signature.length !== 64 || signature.toString("base64") !== given)
        return badSignature("a telnyx signature header is missing or not in its form");
      const signed = Buffer.concat([Buffer.from(`${time}|`), request.body]);
      if (!keys.some((key) => verify(null, signed, key, signature))) return badSignature("the signature is not that of this body under publicKey");
      if (!/^\d{1,12}$/.test(time) || isStale(Number(time) * 1000, now, tolerance)) return expired("the signed time is too old or from the future");
      const data = pick(bodyJson(request), "data");
      const type = pick(data, "event_type");
      // A webhook for incoming messages may share the URL.
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

function readKey(name: string, key: string): KeyObject {
  const bytes = Buffer.from(key, "base64");
  if (bytes.length !== 32)
    throw optionFault(name, "publicKey", "is not an Ed25519 key of 32 bytes in base64", "Copy it from the Telnyx portal (Keys & Credentials).");
  return createPublicKey({ key: Buffer.concat([ed25519Prefix, bytes]), format: "der", type: "spki" });
}
