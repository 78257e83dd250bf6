import type { ReceiptRequest } from "../../../src/ports/receipts.js";
import type { CodeMessage, SendContext } from "../../../src/ports/sms-sender.js";

export const authentication = "0b9a1f2c-7c1d-4e0a-9f55-2f6a51c2a001";

/** A reference in the form that the service generates. */
export const reference = "8PbyWmC3U0sIoRPx8_HzHw5rDyx8HU4Kn1Uvalr0oAEAAg-AbCdEfGhIjKlMnOpQrStUv";

/** A message to send. */
export function aMessage(fields: Partial<CodeMessage> = {}): CodeMessage {
  return {
    to: "+14155552671",
    text: "Your code is 493817.",
    code: "493817",
    authentication_uuid: authentication,
    customer_uuid: "6f0f6a5e-3d6b-4b0c-8a11-3f1f3f1f3f1f",
    attempt: 2,
    idempotency_key: `${authentication}/k3j1/2`,
    country: "US",
    expires_at: Date.now() + 600_500,
    ...fields,
  };
}

/** A context with time left. */
export function inTime(): SendContext {
  return { signal: new AbortController().signal, deadline: Date.now() + 60_000, timeLeft: 60_000 };
}

/** A carrier's request to our receipts route. */
export function aReceipt(fields: { method?: string; url?: string; headers?: Record<string, string>; body?: string | Uint8Array }): ReceiptRequest {
  const headers = new Map(Object.entries(fields.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]));
  return {
    method: fields.method ?? "POST",
    url: fields.url ?? "https://otp.example/receipts/any",
    header: (name) => headers.get(name),
    body: typeof fields.body === "string" || fields.body === undefined ? Buffer.from(fields.body ?? "") : fields.body,
  };
}
