import { createHmac } from "node:crypto";
import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { pick } from "../kit/json.js";
import { onlyOptions, requireText } from "../kit/option-error.js";
import { basicAuth, digits } from "../kit/spelling.js";
import { type CarrierOptions, carrierOptions, carrierSender, type Variables } from "./kit/carrier-sender.js";
import { acceptedAs, rejectedWith } from "./kit/outcomes.js";
import { badSignature, bodyForm, isoTime, malformed, openSecrets, readReport, statusWords } from "./kit/report.js";
import { sameText, sortedPairs } from "./kit/signature.js";

export interface PlivoSenderOptions extends CarrierOptions {
  readonly authId: string;
  readonly authToken: string;
  /** A powerpack that chooses the sender if `from` does not. One of the two is required. */
  readonly powerpackUuid?: string;
}

export const plivoVariables: Variables = {
  needs: { authId: "PLIVO_AUTH_ID", authToken: "PLIVO_AUTH_TOKEN" },
  needsOneOf: { from: "PLIVO_FROM", powerpackUuid: "PLIVO_POWERPACK_UUID" },
  may: { baseUrl: "PLIVO_BASE_URL" },
};

/** Limits of `message_expiry`, in seconds. */
const shortestExpiry = 5;
const longestExpiry = 10_799;

/**
 * Sends through Plivo's Message API ("Send a message" and "API responses", plivo.com/docs/messaging/api): `POST
 * /v1/Account/{auth id}/Message/`, JSON, basic authentication.
 * The receipt URL is sent as `url`, the expiry as `message_expiry`, the ids of a registered text as `dlt_entity_id` and
 * `dlt_template_id`. There is no idempotency key. With `conversions`, messages are `trackable`, and entered codes are
 * reported ("Conversion Feedback", plivo.com/docs/messaging/concepts/conversion-feedback); Plivo treats trackable
 * messages without a report as not converted.
 *
 * @throws TypeError for missing credentials or senders, and for invalid options.
 */
export function plivoSender(options: PlivoSenderOptions): SmsSender {
  const name = "plivoSender";
  onlyOptions(name, options, { authId: true, authToken: true, powerpackUuid: true, ...carrierOptions });
  const id = requireText(name, "authId", options.authId, "Pass the Auth ID of the Plivo console.");
  const token = requireText(name, "authToken", options.authToken, "Pass the Auth Token of the Plivo console.");
  const { powerpackUuid } = options;
  const authorization = basicAuth(id, token);
  return carrierSender(name, options, {
    provider: "plivo",
    url: "https://api.plivo.com",
    fromElse: "powerpackUuid",
    request: (message, { baseUrl, from, extra, ttl }) => ({
      url: `${baseUrl}/v1/Account/${encodeURIComponent(id)}/Message/`,
      headers: { authorization },
      json: {
        ...(options.conversions === true && { trackable: true }),
        message_expiry: Math.min(Math.max(ttl, shortestExpiry), longestExpiry),
        ...(message.registered?.entity !== undefined && { dlt_entity_id: message.registered.entity }),
        ...(message.registered?.template !== undefined && { dlt_template_id: message.registered.template }),
        ...extra,
        // Plivo takes one of the two.
        ...(from === undefined ? { powerpack_uuid: powerpackUuid } : { src: digits(from) }),
        dst: digits(message.to),
        text: message.text,
        ...(message.receipt_url === undefined ? {} : { url: message.receipt_url, method: "POST" }),
      },
    }),
    accepted({ json }) {
      const id = pick(json, "message_uuid", 0);
      return id === undefined && Array.isArray(pick(json, "invalid_number")) ? rejectedWith("invalid_number") : acceptedAs(id);
    },
    // Plivo's error is a sentence; it is passed on only if it is a word, such as "authentication_failed".
    errorCode: ({ json }) => pick(json, "error"),
    conversion: (messageId, { baseUrl, now }) => ({
      url: `${baseUrl}/v1/account/${encodeURIComponent(id)}/message/${encodeURIComponent(messageId)}/conversion/`,
      headers: { authorization },
      json: { status: "CONVERTED", timestamp: new Date(now).toISOString().replace(/\.\d+/, "") },
    }),
    // "Retrieve account details", plivo.com/docs/account/api/account.
    credentials: ({ baseUrl }) => ({ url: `${baseUrl}/v1/Account/${encodeURIComponent(id)}/`, method: "GET", headers: { authorization } }),
  });
}

const words = statusWords({
  submitted: ["queued"],
  in_transit: ["sent"],
  delivered: ["delivered", "read"],
  undeliverable: ["undelivered", "failed", "rejected"],
});

/**
 * Reads Plivo's message callbacks ("Signature validation", plivo.com/docs/messaging/concepts/signature-validation and
 * plivo.com/docs/voice/xml/request/validation; `validateV3Signature` of npm plivo).
 * `X-Plivo-Signature-V3` covers the URL, its query and the parameters. Without it `X-Plivo-Signature-V2` is checked,
 * which covers only the URL without its query: once observed, it fits every later message. So with V2 only our
 * reference in the query authenticates a receipt. Plivo signs no time: replays are not detected.
 *
 * @param options.authToken The account's auth token; a list allows rotation.
 * @param options.acceptV2 `false` rejects receipts without a V3 signature. Default: `true`, since Plivo documents only
 * V2 for messaging callbacks.
 * @throws TypeError if `authToken` is missing, and for an unknown option.
 */
export function plivoReceipts(options: { readonly authToken: string | readonly string[]; readonly acceptV2?: boolean }): ReceiptSource {
  onlyOptions("plivoReceipts", options, { authToken: true, acceptV2: true });
  const tokens = openSecrets("plivoReceipts", "authToken", options.authToken, "Pass the Auth Token of the Plivo console.");
  return {
    provider: "plivo",
    async read(request) {
      if (!URL.canParse(request.url)) return malformed("the request has no absolute URL");
      const form = bodyForm(request);
      if (form === undefined) return malformed("the body is not UTF-8");
      // The second is made with the main account's token if a subaccount sent the message.
      const made = (version: string) => ["", "ma-"].flatMap((account) => request.header(`x-plivo-signature-${account}${version}`) ?? []).join(",");
      const v3 = made("v3");
      const isV3 = v3 !== "";
      const given = isV3 ? v3 : options.acceptV2 === false ? "" : made("v2");
      const nonce = request.header(isV3 ? "x-plivo-signature-v3-nonce" : "x-plivo-signature-v2-nonce");
      if (given === "" || nonce === undefined) return badSignature("there is no X-Plivo-Signature header that counts, or no nonce");
      const signed = isV3 ? `${signedContent(request.url, form)}.${nonce}` : bareUrl(request.url) + nonce;
      const signatures = given.split(",").map((signature) => signature.trim());
      const authentic = tokens.some((token) => {
        const ours = createHmac("sha256", token).update(signed).digest("base64");
        return signatures.some((signature) => sameText(ours, signature));
      });
      if (!authentic) return badSignature("the signature does not match this URL and body: is the public URL the exact one that Plivo was given?");
      return readReport(
        {
          messageId: form.get("MessageUUID") ?? undefined,
          status: form.get("Status"),
          at: plivoTime(form.get("DeliveryReportTime")) ?? plivoTime(form.get("SentTime")),
          error: form.get("ErrorCode"),
        },
        words,
        isV3,
      );
    },
  };
}

/** The URL up to its query, unchanged. */
function bareUrl(url: string): string {
  return url.replace(/[?#].*$/s, "");
}

/**
 * What V3 signs of a POST: `url?params` without a query, `url?sortedquery.params` with one; without parameters `url` or
 * `url?sortedquery`. The decoded query is written as `key=value&…`, the parameters as `keyvalue…`; both are sorted by
 * key, then value.
 */
function signedContent(url: string, form: URLSearchParams): string {
  const query = sorted(new URL(url).searchParams, "=").join("&");
  const params = sorted(form, "").join("");
  const mark = query === "" && params === "" ? "" : "?";
  return bareUrl(url) + mark + query + (query === "" || params === "" ? "" : ".") + params;
}

function sorted(form: URLSearchParams, between: string): string[] {
  return sortedPairs(form).map(([key, value]) => key + between + value);
}

/** Parses `2024-05-01 12:00:00.123456`, in UTC. */
function plivoTime(text: string | null): number | undefined {
  if (text === null) return undefined;
  const day = text.trim().replace(" ", "T");
  return isoTime(`${day.replace(/(\.\d{3})\d+$/, "$1")}Z`);
}
