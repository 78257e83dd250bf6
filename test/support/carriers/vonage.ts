import { vonageSender } from "../../../adapters/sms/vonage.js";
import { type CarrierScript, json, type SeenRequest } from "./server.js";

const problem = (status: number, code: string, title: string, detail: string) =>
  json(status, { type: `https://developer.vonage.com/api-errors/messages#${code}`, title, detail, instance: "bf0ca0bf927b3b52e3cb03217e1a1ddf" });

/**
 * The Messages API; `authenticated` checks the authorization header. developer.vonage.com/en/api/messages,
 * developer.vonage.com/en/api-errors/messages.
 */
export function vonageScript(authenticated: (request: SeenRequest) => boolean): Omit<CarrierScript, "sender"> {
  return {
    name: "vonage",
    take(request, index) {
      const { method, url, headers, body } = request;
      if (!authenticated(request)) return { reply: problem(401, "unauthorized", "Unauthorized", "You did not provide correct credentials.") };
      if (method !== "POST" || url.pathname !== "/v1/messages" || headers["content-type"] !== "application/json")
        return { reply: problem(404, "not-found", "Not found", "No such resource") };
      const asked = JSON.parse(body) as Record<string, string>;
      const fit = asked["channel"] === "sms" && asked["message_type"] === "text" && /^[1-9]\d{6,14}$/.test(asked["to"] ?? "") && asked["from"] && asked["text"];
      if (!fit) return { reply: problem(422, "1020", "Invalid params", "The value of one or more parameters is invalid.") };
      return {
        message: { to: `+${asked["to"]}`, text: asked["text"] ?? "", from: asked["from"], receiptUrl: asked["webhook_url"], reference: asked["client_ref"] },
        reply: json(202, { message_uuid: `aaaaaaaa-bbbb-4ccc-8ddd-${String(index).padStart(12, "0")}` }),
      };
    },
    refusal: problem(422, "1120", "Illegal Sender Address - rejected", "The sender for +14155552671 was not accepted."),
    throttled: problem(429, "1000", "Throttled", "You have exceeded the submission capacity allowed on this account."),
    failure: problem(500, "1030", "Internal error", "There was an error processing your request in the Platform."),
  };
}

export const vonageOptions = { apiKey: "abcd1234", apiSecret: "vonage-api-secret", from: "ACME" };

export const vonageCarrier: CarrierScript = {
  ...vonageScript(({ headers }) => headers["authorization"] === `Basic ${Buffer.from("abcd1234:vonage-api-secret").toString("base64")}`),
  sender: (baseUrl) => vonageSender({ ...vonageOptions, baseUrl }),
};
