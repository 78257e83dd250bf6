import { twilioSender } from "../../../adapters/sms/twilio.js";
import { type CarrierScript, json } from "./server.js";

const accountSid = "AC00000000000000000000000000000001";
export const twilioOptions = { accountSid, authToken: "twilio-auth-token", from: "+15005550006" };

const problem = (status: number, code: number, message: string) =>
  json(status, { code, message, more_info: `https://www.twilio.com/docs/errors/${code}`, status });

/** twilio.com/docs/messaging/api/message-resource, twilio.com/docs/usage/twilios-response. */
export const twilioCarrier: CarrierScript = {
  name: "twilio",
  take({ method, url, headers, body }, index) {
    const [user, password] = Buffer.from((headers["authorization"] ?? "").replace(/^Basic /, ""), "base64")
      .toString()
      .split(":");
    if ((user !== accountSid && user !== "SK1") || password !== "twilio-auth-token") return { reply: problem(401, 20003, "Authenticate") };
    if (method !== "POST" || url.pathname !== `/2010-04-01/Accounts/${accountSid}/Messages.json`)
      return { reply: problem(404, 20404, "The requested resource was not found") };
    if (!headers["content-type"]?.startsWith("application/x-www-form-urlencoded")) return { reply: problem(400, 21604, "A 'To' phone number is required.") };
    const form = new URLSearchParams(body);
    const to = form.get("To") ?? "";
    if (!/^\+\d{7,15}$/.test(to)) return { reply: problem(400, 21211, `The 'To' number ${to} is not a valid phone number.`) };
    if (!form.has("From") && !form.has("MessagingServiceSid")) return { reply: problem(400, 21603, "A 'From' phone number is required.") };
    if (!form.get("Body")) return { reply: problem(400, 21602, "Message body is required.") };
    return {
      message: {
        to,
        text: form.get("Body") ?? "",
        from: form.get("From") ?? form.get("MessagingServiceSid") ?? "",
        receiptUrl: form.get("StatusCallback") ?? undefined,
      },
      reply: json(201, {
        account_sid: accountSid,
        api_version: "2010-04-01",
        body: form.get("Body"),
        direction: "outbound-api",
        error_code: null,
        error_message: null,
        from: form.get("From"),
        num_segments: "1",
        sid: `SM${String(index).padStart(32, "0")}`,
        status: "queued",
        to,
      }),
    };
  },
  refusal: problem(400, 21211, "The 'To' number +14155552671 is not a valid phone number."),
  throttled: problem(429, 20429, "Too Many Requests"),
  failure: problem(500, 20500, "An internal server error has occurred"),
  sender: (baseUrl) => twilioSender({ ...twilioOptions, baseUrl }),
};
