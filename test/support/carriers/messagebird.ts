import { messageBirdSender } from "../../../adapters/sms/messagebird.js";
import { type CarrierScript, json } from "./server.js";

export const messageBirdOptions = { accessKey: "live_key", from: "ACME" };

const problem = (status: number, code: number, description: string, parameter: string | null) => json(status, { errors: [{ code, description, parameter }] });

/** developers.messagebird.com/api/sms-messaging, developers.messagebird.com/api/#api-errors. */
export const messageBirdCarrier: CarrierScript = {
  name: "messagebird",
  take({ method, url, headers, body }, index) {
    if (headers["authorization"] !== "AccessKey live_key") return { reply: problem(401, 2, "Request not allowed (incorrect access_key)", "access_key") };
    if (method !== "POST" || url.pathname !== "/messages") return { reply: problem(404, 20, "message not found", null) };
    const asked = JSON.parse(body) as {
      originator?: string;
      recipients?: string[];
      body?: string;
      reference?: string;
      reportUrl?: string;
      datacoding?: string;
    };
    const to = asked.recipients?.[0] ?? "";
    if (!/^[1-9]\d{6,14}$/.test(to)) return { reply: problem(422, 9, "no (correct) recipients found", "recipients") };
    if (!asked.originator || !asked.body) return { reply: problem(422, 9, "originator is required", "originator") };
    if (asked.reportUrl !== undefined && asked.reference === undefined) return { reply: problem(422, 10, "reference is required with reportUrl", "reference") };
    // The API's default for letters outside GSM-7.
    const text = asked.datacoding === "auto" ? asked.body : asked.body.replace(/[^\x20-\x7e\n]/g, "?");
    return {
      message: { to: `+${to}`, text, from: asked.originator, receiptUrl: asked.reportUrl, reference: asked.reference },
      reply: json(201, {
        id: `e8077d803532c0b5937c639b6${String(index).padStart(7, "0")}`,
        direction: "mt",
        type: "sms",
        originator: asked.originator,
        body: text,
        reference: asked.reference ?? null,
        recipients: {
          totalCount: 1,
          totalSentCount: 1,
          totalDeliveredCount: 0,
          totalDeliveryFailedCount: 0,
          items: [{ recipient: Number(to), status: "sent", statusDatetime: "2026-05-03T14:26:57+00:00" }],
        },
      }),
    };
  },
  refusal: problem(422, 25, "Not enough balance for +14155552671", null),
  throttled: problem(429, 429, "Too many requests", null),
  failure: problem(500, 99, "Internal error", null),
  sender: (baseUrl) => messageBirdSender({ ...messageBirdOptions, baseUrl }),
};
