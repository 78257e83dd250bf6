import { createHash, createHmac } from "node:crypto";
import { type Hook, jsonOf, type Reply, startVendor, type Vendor } from "./server.js";

export const gatewayToken = "AAG-gateway-token-of-the-tests";

/** A message that the Gateway accepted. */
export interface GatewayMessage {
  readonly request_id: string;
  readonly phone_number: string;
  readonly code: string;
  readonly ttl: number | undefined;
  readonly payload: string | undefined;
  readonly callback_url: string | undefined;
  readonly sender_username: string | undefined;
}

export interface Gateway extends Vendor {
  readonly taken: GatewayMessage[];
  /** The error of the next messages to a number. */
  readonly errors: Map<string, string>;
}

const no = (error: string, status = 200): Reply => ({ status, body: { ok: false, error } });

/** A Gateway with sendVerificationMessage of core.telegram.org/gateway/api. */
export async function startGateway(host?: string): Promise<Gateway> {
  const taken: GatewayMessage[] = [];
  const errors = new Map<string, string>();
  const vendor = await startVendor((asked) => {
    if (asked.headers.authorization !== `Bearer ${gatewayToken}`) return no("ACCESS_TOKEN_INVALID", 401);
    if (asked.method !== "POST" || asked.path !== "/sendVerificationMessage") return no("METHOD_NOT_FOUND", 404);
    const { phone_number, code, ttl, payload, callback_url, sender_username, ...rest } = jsonOf(asked) ?? {};
    if (typeof phone_number !== "string" || !/^\+[1-9]\d{6,14}$/.test(phone_number)) return no("PHONE_NUMBER_INVALID");
    const error = errors.get(phone_number);
    if (error !== undefined) return no(error);
    if (typeof code !== "string" || !/^\d{4,8}$/.test(code)) return no("CODE_INVALID");
    if (ttl !== undefined && !(Number.isInteger(ttl) && Number(ttl) >= 30 && Number(ttl) <= 3600)) return no("TTL_INVALID");
    if (payload !== undefined && (typeof payload !== "string" || Buffer.byteLength(payload) > 128)) return no("PAYLOAD_INVALID");
    // "An HTTPS URL", "0-256 bytes".
    if (callback_url !== undefined && (typeof callback_url !== "string" || !callback_url.startsWith("https://") || Buffer.byteLength(callback_url) > 256))
      return no("CALLBACK_URL_INVALID");
    if (sender_username !== undefined && sender_username !== "acme_codes") return no("SENDER_NOT_VERIFIED");
    if (Object.keys(rest).length > 0) return no("UNKNOWN_FIELD");
    const message = { request_id: String(10_000_000 + taken.length), phone_number, code, ttl, payload, callback_url, sender_username } as GatewayMessage;
    taken.push(message);
    return { status: 200, body: { ok: true, result: { request_id: message.request_id, phone_number, request_cost: 0.01, remaining_balance: 9.5 } } };
  }, host);
  return Object.assign(vendor, { taken, errors });
}

/** `X-Request-Signature`: HMAC-SHA-256 under SHA-256 of the token, over `timestamp + "\n" + body`. */
export const signGateway = (seconds: number | string, body: string, token = gatewayToken): string =>
  createHmac("sha256", createHash("sha256").update(token).digest()).update(`${seconds}\n${body}`).digest("hex");

/** The Gateway's report on a message. */
export function gatewayReport(message: GatewayMessage, status: string | undefined, now: number, more: object = {}): Hook & { readonly body: string } {
  const seconds = Math.floor(now / 1000);
  const body = JSON.stringify({
    request_id: message.request_id,
    phone_number: message.phone_number,
    request_cost: 0.01,
    is_refunded: status === "expired",
    ...(status !== undefined && { delivery_status: { status, updated_at: seconds } }),
    ...(message.payload !== undefined && { payload: message.payload }),
    ...more,
  });
  return {
    url: message.callback_url ?? "no callback_url",
    headers: { "content-type": "application/json", "x-request-timestamp": String(seconds), "x-request-signature": signGateway(seconds, body) },
    body,
  };
}
