import type { IncomingMessage } from "node:http";
import * as z from "zod";
import { readText } from "../read-text.js";
import type { FinalStatus, MessageName, Messages } from "./messages.js";

/** Maximum size of a receipt from the page, in bytes. */
const bodyLimit = 1024;

const Receipt = z.object({ authentication_uuid: z.string(), attempt: z.number(), status: z.enum(["delivered", "undeliverable"]) });

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
  const { status, ...name } = receipt;
  const message = messages.find(name);
  if (message === undefined) return [404, "there is no such message\n"];
  if (message.outcome === "unknown" || message.delivery !== undefined)
    return [409, "this message has its receipt, or its outcome is unknown so that none can find it\n"];
  try {
    await settle(name, status);
  } catch (error) {
    return [503, `${(error as Error).message}\n`];
  }
  messages.settle(name, status);
  return [204, ""];
}

function readReceipt(body: string): z.output<typeof Receipt> | undefined {
  try {
    return Receipt.parse(JSON.parse(body));
  } catch {
    return undefined;
  }
}
