import { telnyxSender } from "../../../adapters/sms/telnyx.js";
import { type CarrierScript, json } from "./server.js";

export const telnyxOptions = { apiKey: "KEY0123", from: "+15005550006" };

const problem = (status: number, code: string, title: string, detail: string) =>
  json(status, { errors: [{ code, title, detail, meta: { url: `https://developers.telnyx.com/docs/overview/errors/${code}` } }] });

/** developers.telnyx.com/docs/messaging/messages/send-message. */
export const telnyxCarrier: CarrierScript = {
  name: "telnyx",
  take({ method, url, headers, body }, index) {
    if (headers["authorization"] !== "Bearer KEY0123")
      return {
        reply: problem(401, "10009", "Authentication failed", "The required authentication headers were either invalid or not included in the request."),
      };
    if (method !== "POST" || url.pathname !== "/v2/messages")
      return { reply: problem(404, "10005", "Resource not found", "The requested resource or URL could not be found.") };
    const asked = JSON.parse(body) as Record<string, string | undefined>;
    if (!/^\+[1-9]\d{6,14}$/.test(asked["to"] ?? ""))
      return { reply: problem(400, "40310", "Invalid 'to' address", "The 'to' address should be in E.164 format.") };
    if (!asked["from"] && !asked["messaging_profile_id"]) return { reply: problem(400, "40305", "Invalid 'from' address", "The 'from' address is missing.") };
    if (!asked["text"]) return { reply: problem(400, "40302", "Message too short", "No text.") };
    return {
      message: { to: asked["to"] ?? "", text: asked["text"], from: asked["from"] ?? asked["messaging_profile_id"], receiptUrl: asked["webhook_url"] },
      reply: json(200, {
        data: {
          record_type: "message",
          direction: "outbound",
          id: `40385f64-5717-4562-b3fc-${String(index).padStart(12, "0")}`,
          type: "SMS",
          to: [{ phone_number: asked["to"], status: "queued" }],
          text: asked["text"],
          errors: [],
        },
      }),
    };
  },
  refusal: problem(422, "40300", "Blocked due to STOP message", "+14155552671 has opted out."),
  throttled: problem(429, "10011", "Too many requests", "You have exceeded the maximum number of allowed requests."),
  failure: problem(500, "10007", "Unexpected error", "An unexpected error occured."),
  sender: (baseUrl) => telnyxSender({ ...telnyxOptions, baseUrl }),
};
