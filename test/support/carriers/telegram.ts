import { telegramSender } from "../../../adapters/sms/telegram.js";
import { type CarrierScript, json } from "./server.js";

export const telegramOptions = { token: "telegram-token" };

const refused = (error: string, status = 200) => json(status, { ok: false, error });

/** core.telegram.org/gateway/api. */
export const telegramCarrier: CarrierScript = {
  name: "telegram",
  take({ method, url, headers, body }, index) {
    if (headers["authorization"] !== "Bearer telegram-token") return { reply: refused("ACCESS_TOKEN_INVALID", 401) };
    if (method !== "POST" || url.pathname !== "/sendVerificationMessage" || headers["content-type"] !== "application/json")
      return { reply: refused("METHOD_INVALID", 404) };
    const asked = JSON.parse(body) as Record<string, unknown>;
    const { phone_number: to, code, ttl, callback_url, payload, sender_username } = asked as Record<string, string | undefined>;
    if (!/^\+[1-9]\d{6,14}$/.test(to ?? "")) return { reply: refused("PHONE_NUMBER_INVALID") };
    if (typeof code !== "string" || !/^\d{4,8}$/.test(code)) return { reply: refused("CODE_INVALID") };
    if (!(Number.isInteger(ttl) && Number(ttl) >= 30 && Number(ttl) <= 3600)) return { reply: refused("TTL_INVALID") };
    if (callback_url !== undefined && (!callback_url.startsWith("https://") || callback_url.length > 256)) return { reply: refused("CALLBACK_URL_INVALID") };
    if (payload !== undefined && Buffer.byteLength(payload) > 128) return { reply: refused("PAYLOAD_INVALID") };
    return {
      message: { to: to as string, text: code, from: sender_username, receiptUrl: callback_url, reference: payload },
      reply: json(200, {
        ok: true,
        result: {
          request_id: `1000000${index}`,
          phone_number: to,
          request_cost: 0.01,
          remaining_balance: 9.99,
          delivery_status: { status: "sent", updated_at: 1_800_000_000 },
          payload,
        },
      }),
    };
  },
  refusal: refused("PHONE_NUMBER_NOT_FOUND"),
  throttled: refused("FLOOD_WAIT_12"),
  failure: json(500, { ok: false, error: "INTERNAL_ERROR" }),
  sender: (baseUrl) => telegramSender({ ...telegramOptions, baseUrl }),
};
