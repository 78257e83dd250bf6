import { createHmac } from "node:crypto";
import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { openSenderId, openTransport, optionFault, requireText, type SenderId, type TransportOptions } from "./carrier-options.js";
import { acceptedAs, carrierSender, digits, rejectedWith } from "./carrier-send.js";
import { pick } from "./json.js";
import { badSignature, bodyForm, isoTime, malformed, openSecrets, readReport, type StatusWords } from "./receipt-reading.js";
import { sameText } from "./signature.js";

export interface PlivoSenderOptions extends TransportOptions {
  readonly authId: string;
  readonly authToken: string;
  /** Required unless `powerpackUuid` is given. */
  readonly from?: SenderId;
  /** A powerpack that chooses the sender where `from` names none. */
  readonly powerpackUuid?: string;
  /** Further fields of the request, for example `{ dlt_entity_id: "…" }`. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/**
 * Sends by Plivo's Message API ("Send a message" and "API responses", plivo.com/docs/messaging/api): `POST /v1/Account/{auth id}/Message/`, JSON, basic
 * authentication.
 * A message's receipt URL goes along as `url`. Plivo takes no idempotency key.
 *
 * @throws TypeError for missing credentials or senders, and for options that cannot be used.
 */
export function plivoSender(options: PlivoSenderOptions): SmsSender {
  const name = "plivoSender";
  const id = requireText(name, "authId", options.authId, "Pass the Auth ID of the Plivo console.");
  const token = requireText(name, "authToken", options.authToken, "Pass the Auth Token of the Plivo console.");
  const { powerpackUuid } = options;
  if (options.from === undefined && powerpackUuid === undefined) {
    throw optionFault(name, "from", "is missing", "Pass a sender id or number, a map by country, a function, or a powerpackUuid.");
  }
  const transport = openTransport(name, options, "https://api.plivo.com");
  const authorization = `Basic ${Buffer.from(`${id}:${token}`).toString("base64")}`;
  return carrierSender({
    provider: "plivo",
    transport,
    from: options.from === undefined ? () => undefined : openSenderId(name, options.from),
    fromOptional: powerpackUuid !== undefined,
    request: (message, from) => ({
      method: "POST",
      url: `${transport.baseUrl}/v1/Account/${encodeURIComponent(id)}/Message/`,
      headers: { authorization, "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({
        ...options.extra,
        // Plivo takes one of the two.
        ...(from === undefined ? { powerpack_uuid: powerpackUuid } : { src: digits(from) }),
        dst: digits(message.to),
        text: message.text,
        ...(message.receipt_url === undefined ? {} : { url: message.receipt_url, method: "POST" }),
      }),
    }),
    accepted({ json }) {
      const id = pick(json, "message_uuid", 0);
      return id === undefined && Array.isArray(pick(json, "invalid_number")) ? rejectedWith("invalid_number") : acceptedAs(id);
    },
    // Plivo's error is a sentence: it is passed on only where it is a word, such as "authentication_failed".
    errorCode: ({ json }) => pick(json, "error"),
  });
}

const words: StatusWords = new Map([
  ["queued", "submitted"],
  ["sent", "in_transit"],
  ["delivered", "delivered"],
  ["read", "delivered"],
  ["undelivered", "undeliverable"],
  ["failed", "undeliverable"],
  ["rejected", "undeliverable"],
]);

/**
 * Plivo's message callbacks ("Signature validation", plivo.com/docs/messaging/concepts/signature-validation and
 * plivo.com/docs/voice/xml/request/validation; `validateV3Signature` of npm plivo).
 * `X-Plivo-Signature-V3` covers the URL, its query and the parameters. Where that header is missing, `X-Plivo-Signature-V2` counts, which covers the URL
 * without its query and nothing else:
 * such a receipt is Plivo's, but what it says rests on TLS. Plivo signs no time: a repeated receipt cannot be told from the first.
 *
 * @param options.authToken The account's auth token; several while it is being changed.
 * @param options.acceptV2 `false` refuses what bears no V3 signature. Default: `true`, since Plivo's pages promise messaging callbacks V2 only.
 * @throws TypeError when `authToken` is missing.
 */
export function plivoReceipts(options: { readonly authToken: string | readonly string[]; readonly acceptV2?: boolean }): ReceiptSource {
  const tokens = openSecrets("plivoReceipts", "authToken", options.authToken, "Pass the Auth Token of the Plivo console.");
  return {
    provider: "plivo",
    signed: true,
    async read(request) {
      if (!URL.canParse(request.url)) return malformed("the request has no absolute URL");
      const form = bodyForm(request);
      if (form === undefined) return malformed("the body is not UTF-8");
      const v3 = request.header("x-plivo-signature-v3");
      const given = v3 ?? (options.acceptV2 === false ? undefined : request.header("x-plivo-signature-v2"));
      const nonce = request.header(v3 === undefined ? "x-plivo-signature-v2-nonce" : "x-plivo-signature-v3-nonce");
      if (given === undefined || nonce === undefined) return badSignature("there is no X-Plivo-Signature header that counts, or no nonce");
      const signed = v3 === undefined ? bareUrl(request.url) + nonce : `${signedContent(request.url, form)}.${nonce}`;
      const signatures = given.split(",").map((signature) => signature.trim());
      const authentic = tokens.some((token) => {
        const ours = createHmac("sha256", token).update(signed).digest("base64");
        return signatures.some((signature) => sameText(ours, signature));
      });
      if (!authentic) return badSignature("the signature is not that of this URL and body: is the public URL the exact one that Plivo was given?");
      return readReport(
        {
          messageId: form.get("MessageUUID") ?? undefined,
          status: form.get("Status"),
          at: plivoTime(form.get("DeliveryReportTime")) ?? plivoTime(form.get("SentTime")),
          error: form.get("ErrorCode"),
        },
        words,
      );
    },
  };
}

/** The URL up to its query, as it was written. */
function bareUrl(url: string): string {
  return url.replace(/[?#].*$/s, "");
}

/**
 * What V3 signs of a POST: without a query `url?params`, with one `url?sortedquery.params`, without parameters `url` or `url?sortedquery`.
 * The query is put decoded, as `key=value&…`; the parameters as `keyvalue…`; both sorted by key, then value.
 */
function signedContent(url: string, form: URLSearchParams): string {
  const query = sorted(new URL(url).searchParams, "=").join("&");
  const params = sorted(form, "").join("");
  const mark = query === "" && params === "" ? "" : "?";
  return bareUrl(url) + mark + query + (query === "" || params === "" ? "" : ".") + params;
}

function sorted(pairs: URLSearchParams, between: string): string[] {
  return [...new Set(pairs.keys())].sort().flatMap((key) =>
    pairs
      .getAll(key)
      .sort()
      .map((value) => key + between + value),
  );
}

/** `2024-05-01 12:00:00.123456`, in UTC. */
function plivoTime(text: string | null): number | undefined {
  return text === null
    ? undefined
    : isoTime(
        `${text
          .trim()
          .replace(" ", "T")
          .replace(/(\.\d{3})\d+$/, "$1")}Z`,
      );
}
