import type { IncomingMessage } from "node:http";
import { readText } from "../read-text.js";
import type { FinalStatus, MessageName, Messages } from "./messages.js";

/** Maximum size of a receipt from the page, in bytes. */
const bodyLimit = 1024;

/** Records a receipt in the service. */
export type SettleReceipt = (name: MessageName, status: FinalStatus) => Promise<void>;

/**
 * Reads `{ authentication_uuid, attempt, status }` from the page's phone, where `status` is `delivered` or
 * `undeliverable`. Returns the HTTP status and a short text.
 *
 * Accepts only `application/json`: browsers send that to another origin only after a preflight, which the demo rejects.
 */
export async function takeReceipt(request: IncomingMessage, messages: Messages, settle: SettleReceipt): Promise<readonly [status: number, text: string]> {
  if (!/^application\/json\s*(;|$)/i.test(request.headers["content-type"] ?? "")) return [415, "send it as application/json\n"];
  const body = await readText(request, bodyLimit);
  if (body === undefined) return [413, `at most ${bodyLimit} bytes\n`];
  const receipt = readReceipt(body);
  if (receipt === undefined) return [400, 'send { "authentication_uuid", "attempt", "status": "delivered" or "undeliverable" }\n'];
  const awaited = messages.awaits(receipt);
  if (awaited === "unknown") return [404, "there is no such message\n"];
  if (awaited === "settled") return [409, "this message has its receipt, or its outcome is unknown so that none can find it\n"];
  const { status, ...name } = receipt;
  try {
    await settle(name, status);
  } catch (error) {
    return [503, `${(error as Error).message}\n`];
  }
  messages.settle(name, status);
  return [204, ""];
}

function readReceipt(body: string): (MessageName & { readonly status: FinalStatus }) | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  const { authentication_uuid, attempt, status } = (value ?? {}) as Record<string, unknown>;
  if (typeof authentication_uuid !== "string" || typeof attempt !== "number" || (status !== "delivered" && status !== "undeliverable")) return undefined;
  return { authentication_uuid, attempt, status };
}
