import { africasTalkingSender } from "../../../adapters/sms/africastalking.js";
import { type CarrierScript, json } from "./server.js";

export const africasTalkingOptions = { username: "acme", apiKey: "at-key", from: "ACME" };

export const recipients = (statusCode: number, status: string, messageId: string) =>
  json(201, {
    SMSMessageData: {
      Message: "Sent to 1/1 Total Cost: KES 0.8000",
      Recipients: [{ statusCode, number: "+14155552671", status, cost: "KES 0.8000", messageId }],
    },
  });

/** developers.africastalking.com/docs/sms/sending/bulk. */
export const africasTalkingCarrier: CarrierScript = {
  name: "africastalking",
  take({ method, url, headers, body }, index) {
    if (headers["apikey"] !== "at-key") return { reply: { status: 401, body: "The supplied authentication is invalid", contentType: "text/plain" } };
    if (method !== "POST" || url.pathname !== "/version1/messaging") return { reply: { status: 404, body: "", contentType: "text/plain" } };
    const form = new URLSearchParams(body);
    const to = form.get("to") ?? "";
    if (form.get("username") !== "acme" || !form.get("message") || !/^\+\d{7,15}$/.test(to))
      return { reply: { status: 400, body: "Request is missing required form field 'to'", contentType: "text/plain" } };
    return { message: { to, text: form.get("message") ?? "", from: form.get("from") ?? undefined }, reply: recipients(101, "Success", `ATXid_${index}`) };
  },
  refusal: recipients(405, "InsufficientBalance", "None"),
  throttled: { status: 429, body: "Too many requests", contentType: "text/plain" },
  failure: recipients(500, "InternalServerError", "None"),
  sender: (baseUrl) => africasTalkingSender({ ...africasTalkingOptions, baseUrl }),
};
