import { plivoSender } from "../../../adapters/sms/plivo.js";
import { type CarrierScript, json } from "./server.js";

export const plivoOptions = { authId: "MAXXXXXXXXXXXXXXXXXX", authToken: "plivo-auth-token", from: "+14155550100" };

const apiId = "97ceeb52-58b6-11e1-86da-77300b68f8bb";
const problem = (status: number, error: string) => json(status, { api_id: apiId, error });

/** plivo.com/docs/messaging/api/message/send-a-message, plivo.com/docs/messaging/api/response. */
export const plivoCarrier: CarrierScript = {
  name: "plivo",
  take({ method, url, headers, body }, index) {
    const basic = `Basic ${Buffer.from("MAXXXXXXXXXXXXXXXXXX:plivo-auth-token").toString("base64")}`;
    if (headers["authorization"] !== basic) return { reply: problem(401, "authentication_failed") };
    if (method !== "POST" || url.pathname !== "/v1/Account/MAXXXXXXXXXXXXXXXXXX/Message/") return { reply: problem(404, "not_found") };
    const asked = JSON.parse(body) as Record<string, string | undefined>;
    if ((asked["src"] === undefined) === (asked["powerpack_uuid"] === undefined))
      return { reply: problem(400, "Specify either powerpack_uuid or src in request params to send a message.") };
    if (!/^\d{7,15}$/.test(asked["dst"] ?? "") || !asked["text"]) return { reply: problem(400, "invalid_parameter") };
    return {
      message: {
        to: `+${asked["dst"]}`,
        text: asked["text"],
        from: asked["src"] ?? asked["powerpack_uuid"],
        receiptUrl: asked["method"] === "POST" ? asked["url"] : undefined,
      },
      reply: json(202, { api_id: apiId, message: "message(s) queued", message_uuid: [`db3ce55a-7f1d-11e1-8ea7-${String(index).padStart(12, "0")}`] }),
    };
  },
  refusal: problem(400, "14155552671 is not a valid phone number"),
  throttled: problem(429, "rate_limit_exceeded"),
  failure: problem(500, "server error"),
  sender: (baseUrl) => plivoSender({ ...plivoOptions, baseUrl }),
};
