import { sinchSender } from "../../../adapters/sms/sinch.js";
import { type CarrierScript, json } from "./server.js";

export const sinchOptions = { servicePlanId: "plan1", apiToken: "sinch-token", from: "ACME" };

const problem = (status: number, code: string, text: string) => json(status, { code, text });

/** developers.sinch.com/docs/sms/api-reference/sms/tag/Batches. */
export const sinchCarrier: CarrierScript = {
  name: "sinch",
  take({ method, url, headers, body }, index) {
    if (headers["authorization"] !== "Bearer sinch-token") return { reply: { status: 401, body: "" } };
    if (method !== "POST" || url.pathname !== "/xms/v1/plan1/batches") return { reply: problem(404, "not_found", "Resource not found") };
    const asked = JSON.parse(body) as {
      to?: string[];
      from?: string;
      body?: string;
      type?: string;
      callback_url?: string;
      delivery_report?: string;
      client_reference?: string;
    };
    const to = asked.to?.[0] ?? "";
    if (!/^\+?\d{7,15}$/.test(to) || !asked.body || asked.type !== "mt_text")
      return { reply: problem(400, "syntax_constraint_violation", "The request body is not valid") };
    const receiptUrl = asked.delivery_report === "per_recipient" ? asked.callback_url : undefined;
    return {
      message: { to, text: asked.body, from: asked.from, receiptUrl, reference: asked.client_reference },
      reply: json(201, {
        id: `01FC66621XXXXX119Z8PMV${String(index).padStart(4, "0")}`,
        to: asked.to,
        from: asked.from,
        canceled: false,
        body: asked.body,
        type: "mt_text",
      }),
    };
  },
  refusal: problem(403, "unauthorized", "You are not allowed to send to +14155552671"),
  throttled: problem(429, "too_many_requests", "Rate limit exceeded"),
  failure: problem(500, "internal_error", "Internal error"),
  sender: (baseUrl) => sinchSender({ ...sinchOptions, baseUrl }),
};
