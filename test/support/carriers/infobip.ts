import { infobipSender } from "../../../adapters/sms/infobip.js";
import { type CarrierScript, json } from "./server.js";

export const infobipOptions = { apiKey: "infobip-key", from: "ACME" };

const problem = (status: number, errorCode: string, description: string) =>
  json(status, { errorCode, description, action: "Check the request.", violations: [], resources: [] });
const status = (groupId: number, groupName: string, id: number, name: string) => ({ groupId, groupName, id, name, description: "…" });

interface Asked {
  messages?: {
    sender?: string;
    destinations?: { to?: string; messageId?: string }[];
    content?: { text?: string };
    webhooks?: { callbackData?: string; delivery?: { url?: string } };
  }[];
}

/** infobip.com/docs/api/channels/sms, "Send SMS messages" version 3. */
export const infobipCarrier: CarrierScript = {
  name: "infobip",
  take({ method, url, headers, body }) {
    if (headers["authorization"] !== "App infobip-key") return { reply: problem(401, "E401", "The request lacks valid authentication credentials.") };
    if (method !== "POST" || url.pathname !== "/sms/3/messages") return { reply: problem(404, "E404", "Not found") };
    const message = (JSON.parse(body) as Asked).messages?.[0];
    const destination = message?.destinations?.[0];
    if (!/^\d{7,15}$/.test(destination?.to ?? "") || !message?.content?.text || !message.sender)
      return { reply: problem(400, "E400", "Request cannot be processed.") };
    return {
      message: {
        to: `+${destination?.to}`,
        text: message.content.text,
        from: message.sender,
        receiptUrl: message.webhooks?.delivery?.url,
        reference: message.webhooks?.callbackData,
      },
      reply: json(200, {
        bulkId: "2034072219640523072",
        messages: [
          {
            messageId: destination?.messageId,
            status: status(1, "PENDING", 26, "PENDING_ACCEPTED"),
            destination: destination?.to,
            details: { messageCount: 1 },
          },
        ],
      }),
    };
  },
  refusal: json(200, { messages: [{ messageId: "x", status: status(5, "REJECTED", 12, "REJECTED_NOT_ENOUGH_CREDITS"), destination: "14155552671" }] }),
  throttled: problem(429, "E429", "Too many requests."),
  failure: problem(500, "E500", "Something went wrong."),
  sender: (baseUrl) => infobipSender({ ...infobipOptions, baseUrl }),
};
