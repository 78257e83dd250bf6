import { createHash, createHmac } from "node:crypto";
import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SendOutcome, SmsSender } from "../../src/ports/sms-sender.js";
import { pick } from "../kit/json.js";
import { onlyOptions, optionError, requireText } from "../kit/option-error.js";
import { carrierSender, type FixedOptions, fixedOptions, type Variables } from "./kit/carrier-sender.js";
import { acceptedAs, rejectedWith } from "./kit/outcomes.js";
import { badSignature, bodyJson, expired, isStale, openSecrets, openTolerance, readReport, statusWords } from "./kit/report.js";
import { sameText } from "./kit/signature.js";

export interface TelegramSenderOptions extends FixedOptions {
  /** The token of the Gateway account. */
  readonly token: string;
  /** Seconds, 30 to 3600, after which an undelivered message is deleted and refunded. Default: the code's life. */
  readonly ttl?: number;
  /** A verified Telegram channel of the account, which the message comes from. Default: Telegram's own. */
  readonly senderUsername?: string;
}

export const telegramVariables: Variables = {
  needs: { token: "TELEGRAM_GATEWAY_TOKEN" },
  may: { senderUsername: "TELEGRAM_SENDER_USERNAME", baseUrl: "TELEGRAM_BASE_URL" },
};

/** Limits of `ttl`, in seconds. */
const shortestTtl = 30;
const longestTtl = 3600;

/** "Only fully numeric strings between 4 and 8 characters in length are supported." */
const codeForm = /^\d{4,8}$/;

const notOnTelegram = new Set(["PHONE_NUMBER_NOT_FOUND", "PHONE_NUMBER_NOT_AVAILABLE"]);

/**
 * Sends codes as Telegram messages ("Telegram Gateway API", core.telegram.org/gateway/api): `POST
 * /sendVerificationMessage`, JSON, a bearer token. Telegram writes the text. A number that is not on Telegram is
 * rejected at once, as `unreachable`.
 * The receipt URL is sent as `callback_url` (https only), our reference as `payload` (echoed), the expiry as `ttl`. The
 * outcome's `price` is Telegram's `request_cost`. Entered codes are not reported: Telegram's `checkVerificationStatus`
 * needs the code, which is not stored.
 *
 * @throws TypeError for a missing token and for invalid options.
 */
export function telegramSender(options: TelegramSenderOptions): SmsSender {
  const name = "telegramSender";
  onlyOptions(name, options, { token: true, ttl: true, senderUsername: true, ...fixedOptions });
  const token = requireText(name, "token", options.token, "Pass the API token of the Gateway account (gateway.telegram.org/account/api).");
  const { ttl: longest = longestTtl, senderUsername } = options;
  if (!(Number.isInteger(longest) && longest >= shortestTtl && longest <= longestTtl))
    throw optionError(name, "ttl", `must be a whole number of seconds from ${shortestTtl} to ${longestTtl}`, "Leave it out for the life of the code.");
  if (senderUsername !== undefined) requireText(name, "senderUsername", senderUsername, "Leave it out for Telegram's own channel.");
  return carrierSender(name, options, {
    provider: "telegram",
    channel: "telegram",
    url: "https://gatewayapi.telegram.org",
    fromElse: true,
    request({ to, code, receipt_url, receipt_reference }, { baseUrl, extra, ttl }) {
      if (!codeForm.test(code)) throw new Error("Telegram accepts codes of 4 to 8 digits only: set policy.codeLength to 8 or less");
      return {
        url: `${baseUrl}/sendVerificationMessage`,
        headers: { authorization: `Bearer ${token}` },
        json: {
          ttl: Math.max(shortestTtl, Math.min(ttl, longest)),
          ...(senderUsername !== undefined && { sender_username: senderUsername.replace(/^@/, "") }),
          ...extra,
          phone_number: to,
          code,
          ...(receipt_url !== undefined && mayBeCalled(receipt_url) && { callback_url: receipt_url, payload: receipt_reference }),
        },
      };
    },
    // `ok: false` means that nothing was sent, whatever the HTTP status, except for a failure of Telegram's own.
    judgeFirst: ({ status, json }) => (pick(json, "ok") === false && status < 500 ? refused(pick(json, "error")) : undefined),
    accepted({ json }) {
      const outcome = acceptedAs(pick(json, "result", "request_id"));
      const cost = pick(json, "result", "request_cost");
      return outcome.outcome === "accepted" && typeof cost === "number" && cost >= 0 ? { ...outcome, price: cost } : outcome;
    },
    errorCode: ({ json }) => pick(json, "error"),
  });
}

/** "An HTTPS URL where you want to receive delivery reports …, 0-256 bytes": with any other, nothing would be sent. */
function mayBeCalled(url: string): boolean {
  return url.startsWith("https://") && Buffer.byteLength(url) <= 256;
}

function refused(code: unknown): SendOutcome {
  if (code === "MESSAGE_ALREADY_SENT") return { outcome: "accepted" };
  return rejectedWith(code, notOnTelegram);
}

const words = statusWords({
  in_transit: ["sent"],
  delivered: ["delivered", "read"],
  undeliverable: ["expired", "revoked"],
});

/**
 * Reads the Gateway's delivery reports ("Report delivery", core.telegram.org/gateway/api#report-delivery):
 * `X-Request-Signature` is the hexadecimal HMAC-SHA-256, with the token's SHA-256 as its key, of `X-Request-Timestamp`,
 * a line feed and the body.
 *
 * @param options.token The token of the Gateway account; a list allows rotation.
 * @param options.tolerance Maximum seconds between the signed time and now. Default: 300.
 * @throws TypeError if `token` is missing, and for an unknown option.
 */
export function telegramReceipts(options: { readonly token: string | readonly string[]; readonly tolerance?: number }): ReceiptSource {
  const name = "telegramReceipts";
  onlyOptions(name, options, { token: true, tolerance: true });
  const keys = openSecrets(name, "token", options.token, "Pass the API token of the Gateway account.").map((token) =>
    createHash("sha256").update(token).digest(),
  );
  const tolerance = openTolerance(name, options.tolerance, 300);
  return {
    provider: "telegram",
    async read(request, now) {
      const time = request.header("x-request-timestamp");
      const signature = request.header("x-request-signature");
      if (time === undefined || signature === undefined) return badSignature("a header X-Request-Timestamp or X-Request-Signature is missing");
      const authentic = keys.some((key) => sameText(createHmac("sha256", key).update(`${time}\n`).update(request.body).digest("hex"), signature));
      if (!authentic) return badSignature("X-Request-Signature does not match this body and token");
      if (!/^\d{1,12}$/.test(time) || isStale(Number(time) * 1000, now, tolerance)) return expired("the signed time is too old or from the future");
      const body = bodyJson(request);
      const delivery = pick(body, "delivery_status");
      // A report of a code that was entered has no delivery status.
      if (delivery === undefined && pick(body, "request_id") !== undefined) return { receipts: [] };
      const updated = pick(delivery, "updated_at");
      return readReport(
        {
          messageId: pick(body, "request_id"),
          status: pick(delivery, "status"),
          at: typeof updated === "number" ? updated * 1000 : undefined,
          reference: pick(body, "payload"),
        },
        words,
      );
    },
  };
}
