import { randomUUID } from "node:crypto";
import { createServer, request as httpRequest } from "node:http";
import { onTestFinished } from "vitest";
import { nodeHandler } from "../../adapters/http/node.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import type { CodeMessage, ReceiptSource, SendContext, SendOutcome, SmsSender, VerifierOptions } from "../../src/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { listen, type Network } from "./channel-vendors/server.js";
import { service, wide } from "./kit.js";

export const publicUrl = "https://otp.example";
export const reference = "8PbyWmC3U0sIoRPx8_HzHw5rDyx8HU4Kn1Uvalr0oAEAAg-AbCdEfGhIjKlMnOpQrStUv";

let count = 0;
/** A message to a new number in France. */
export function aCode(fields: Partial<CodeMessage> = {}): CodeMessage {
  count += 1;
  const id = randomUUID();
  return {
    to: `+336${String(12_000_000 + count)}`,
    text: "Votre code : 482913",
    code: "482913",
    authentication_uuid: id,
    customer_uuid: "6f0f6a5e-3d6b-4b0c-8a11-3f1f3f1f3f1f",
    attempt: 1,
    idempotency_key: `${id}/k/1`,
    country: "FR",
    expires_at: Date.now() + 600_500,
    receipt_reference: reference,
    receipt_url: `${publicUrl}/receipts/{provider}?r=${reference}`,
    ...fields,
  };
}

/** The context of a send, with its deadline. */
export function within(ms = 60_000): SendContext {
  return { signal: AbortSignal.timeout(ms), deadline: Date.now() + ms, timeLeft: ms };
}

/** Whether a value reveals the code or the number. */
export function leaks(value: unknown, { code, to }: Pick<CodeMessage, "code" | "to">): boolean {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return new RegExp(`(?<!\\d)${code}(?!\\d)`).test(text) || text.includes(to.slice(1)) || text.replace(/[^\d]+/g, "").includes(to.slice(1));
}

/** A verifier that sends through `sender`, with its receipts on a node:http server behind `publicUrl`. */
export async function mounted(sender: SmsSender, sources: readonly ReceiptSource[], options: Partial<VerifierOptions> & { readonly base?: string } = {}) {
  const { base = publicUrl, ...more } = options;
  const clock = fixedClock(Math.floor(Date.now() / 1000) * 1000);
  const sent: { readonly message: CodeMessage; readonly outcome: Promise<SendOutcome> }[] = [];
  const recorded = {
    ...sender,
    send(message: CodeMessage, context: SendContext) {
      const outcome = sender.send(message, context);
      sent.push({ message, outcome });
      return outcome;
    },
  };
  const one = service({
    store: memoryStore({ name: randomUUID() }),
    clock,
    countries: ["FR", "US", "BR"],
    receipts: { baseUrl: base, sources },
    ...more,
    sender: recorded as never,
    policy: { limits: wide, ...more.policy },
  });
  const address = await listen(createServer(nodeHandler(one.verifier.receipts)));
  onTestFinished(() => one.verifier.close());
  const network: Network = ({ method = "POST", url, headers = {}, body = "" }) =>
    new Promise((resolve, reject) => {
      if (!url.startsWith(`${base}/`)) throw new Error(`the vendor was told to post to ${url}`);
      const asked = httpRequest(
        address + url.slice(base.length),
        { method, headers: { ...headers, ...(method === "POST" && { "content-length": Buffer.byteLength(body) }) } },
        (response) => {
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (chunk) => {
            text += chunk;
          });
          response.on("end", () => resolve({ status: response.statusCode ?? 0, type: response.headers["content-type"] ?? "", text }));
        },
      );
      asked.on("error", reject);
      asked.end(body);
    });
  const explain = async (id: string) => one.verifier.explain({ customer_uuid: one.customer, authentication_uuid: id } as never);
  return {
    ...one,
    clock,
    network,
    sent,
    /** The delivery status of an authentication's newest message. */
    delivery: async (id: string) => (await explain(id)).sends.at(-1)?.delivery,
    explain,
    begin: async (to: string | number = 1, fields: Record<string, unknown> = {}) =>
      (await one.create(to, { callback_url: "https://receiver.example/hook", ...fields })).authentication_uuid,
    /** What the caller's callbacks reported: `attempt:status`, and the error. */
    told: async (id: string) => {
      await one.verifier.flush();
      return one.hook.posted
        .filter(({ event }) => event.data.authentication_uuid === id)
        .map(({ event: { data } }) => `${data.attempt}:${data.status}${data.error === undefined ? "" : ` ${data.error}`}`);
    },
    messageOf: (id: string) => sent.findLast(({ message }) => message.authentication_uuid === id)!.message,
  };
}
export type Mounted = Awaited<ReturnType<typeof mounted>>;
