import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { pick } from "../kit/json.js";
import { onlyOptions, requireText } from "../kit/option-error.js";
import { type CarrierOptions, carrierOptions, carrierSender, type Variables } from "./kit/carrier-sender.js";
import { acceptedAs, rejectedWith } from "./kit/outcomes.js";
import { badSignature, bodyForm, malformed, openUrlSecret, readReport, statusWords } from "./kit/report.js";

export interface AfricasTalkingSenderOptions extends CarrierOptions<string> {
  /** The app's username; `sandbox` sends to the sandbox. */
  readonly username: string;
  readonly apiKey: string;
}

export const africasTalkingVariables: Variables = {
  needs: { username: "AFRICASTALKING_USERNAME", apiKey: "AFRICASTALKING_API_KEY" },
  may: { from: "AFRICASTALKING_FROM", baseUrl: "AFRICASTALKING_BASE_URL" },
};

/** "100: Processed, 101: Sent, 102: Queued". */
const taken = new Set([100, 101, 102]);
/**
 * 402 InvalidSenderId, 403 InvalidPhoneNumber, 404 UnsupportedNumberType, 405 InsufficientBalance,
 * 406 UserInBlacklist, 407 CouldNotRoute, 409 DoNotDisturbRejection, 502 RejectedByGateway.
 */
const refused = new Set([402, 403, 404, 405, 406, 407, 409, 502]);

/** The name of carrier, route and the space of its message ids. */
const provider = "africastalking";

/**
 * Sends through Africa's Talking's messaging API ("Sending SMS", developers.africastalking.com/docs/sms/sending/bulk):
 * `POST /version1/messaging`, a form, an API key. Without `from`, the account's default is used, a shared short code.
 * The recipient's `statusCode` decides; 401 RiskHold, 500 InternalServerError and 501 GatewayError are unknown.
 * Receipts go to the URL set in the dashboard and name the carrier's id. There is no idempotency key.
 *
 * @throws TypeError for missing credentials and invalid options.
 */
export function africasTalkingSender(options: AfricasTalkingSenderOptions): SmsSender {
  const name = "africasTalkingSender";
  onlyOptions(name, options, { username: true, apiKey: true, ...carrierOptions });
  const username = requireText(name, "username", options.username, "Pass the app's username, or sandbox.");
  const apiKey = requireText(name, "apiKey", options.apiKey, "Pass the app's API key of the dashboard.");
  return carrierSender(name, options, {
    provider,
    url: username === "sandbox" ? "https://api.sandbox.africastalking.com" : "https://api.africastalking.com",
    fromElse: true,
    receiptsById: true,
    // "Application data", developers.africastalking.com/docs/application.
    credentials: ({ baseUrl }) => ({
      url: `${baseUrl}/version1/user?${new URLSearchParams({ username })}`,
      method: "GET",
      headers: { apikey: apiKey },
    }),
    request(message, { baseUrl, from, extra }) {
      const form = new URLSearchParams({ ...extra, username, to: message.to, message: message.text, bulkSMSMode: "1" });
      if (from !== undefined) form.set("from", from);
      return { url: `${baseUrl}/version1/messaging`, headers: { apikey: apiKey }, form };
    },
    accepted({ json }) {
      const recipients = pick(json, "SMSMessageData", "Recipients");
      const code = pick(recipients, 0, "statusCode");
      if (typeof code === "number" && taken.has(code)) return acceptedAs(pick(recipients, 0, "messageId"));
      if (typeof code === "number" && refused.has(code)) return rejectedWith(code);
      // No recipients: the whole message was rejected, and `Message` gives the reason ("InvalidSenderId").
      if (Array.isArray(recipients) && recipients.length === 0) return rejectedWith(pick(json, "SMSMessageData", "Message"));
      return {
        outcome: "unknown",
        reason: typeof code === "number" ? `the carrier holds it back, code ${code}` : "the carrier's response is not in the expected format",
      };
    },
  });
}

const words = statusWords({
  submitted: ["sent"],
  in_transit: ["submitted", "buffered"],
  delivered: ["success"],
  undeliverable: ["rejected", "failed", "absentsubscriber", "expired"],
});

/**
 * Reads Africa's Talking's delivery reports ("Delivery reports", docs.africastalking.com/sms/notifications): a form
 * with `id` and `status`, sent to the one URL set in the dashboard. They are unsigned; a secret in that URL
 * authenticates them: `https://…/receipts/africastalking?key=<secret>`.
 *
 * @param options.secret 16 or more letters, digits, `-`, `.`, `_` or `~`; a list allows rotation.
 * @throws TypeError if `secret` is missing or guessable, and for an unknown option.
 */
export function africasTalkingReceipts(options: { readonly secret: string | readonly string[] }): ReceiptSource {
  onlyOptions("africasTalkingReceipts", options, { secret: true });
  const bearsSecret = openUrlSecret("africasTalkingReceipts", options.secret);
  return {
    provider,
    async read(request) {
      if (!bearsSecret(request)) return badSignature("the URL does not contain the secret: set the dashboard's callback URL to end in ?key=<secret>");
      const form = bodyForm(request);
      if (form === undefined) return malformed("the body is not UTF-8");
      const report = { messageId: form.get("id") ?? undefined, idSpace: provider, status: form.get("status"), error: form.get("failureReason") };
      return readReport(report, words);
    },
  };
}
