import type { ConfirmResult, DeliverResult } from "../../src/contract/delivery.js";
import type { ConfirmRequest, DeliverRequest } from "../../src/contract/direct.js";
import { type Hook, hooks } from "../../src/hooks/index.js";
import type { HttpResponse } from "../../src/http/message.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";

export const now = Date.parse("2026-11-25T12:00:00Z");
export const seconds = String(now / 1000);

/** The verifier's text for a message that it does not send. */
export const sentence = "Too many messages were requested. Try again later.";

/** A stand-in for the verifier, which records the calls of hooks, returns the given results and sends nothing. */
export function standIn(
  answer: DeliverResult | Error = { status: "sent", delivery_uuid: "d-1" },
  confirmation: ConfirmResult | Error = { status: "confirmed" },
) {
  const delivered: DeliverRequest[] = [];
  const confirmed: ConfirmRequest[] = [];
  const warned: string[] = [];
  const clock = fixedClock(now);
  const verifier = {
    async deliver(request: DeliverRequest) {
      delivered.push(present(request));
      if (answer instanceof Error) throw answer;
      return answer;
    },
    async confirm(request: ConfirmRequest) {
      confirmed.push(present(request));
      if (confirmation instanceof Error) throw confirmation;
      return confirmation;
    },
    http: {
      root: "/v1",
      handle: async () => ({ status: 404, headers: { "content-type": "text/plain" }, body: "" }),
      clock,
      warn: (message: string) => void warned.push(message),
    },
  };
  return { verifier, delivered, confirmed, warned, clock };
}

const present = <T extends object>(request: T) => Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined)) as T;

/** A hook on the stand-in, with the requests that its server makes. */
export function served(hook: Hook, answer?: DeliverResult | Error, confirmation?: ConfirmResult | Error) {
  const calls = standIn(answer, confirmation);
  const handler = hooks(calls.verifier, [hook]);
  const send = (path: string, body: unknown, headers: Readonly<Record<string, string>> = {}, method = "POST"): Promise<HttpResponse> => {
    const all: Record<string, string> = { "content-type": "application/json", ...headers };
    const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
    return handler.handle({
      method,
      path: `/hooks/${path}`,
      header: (name) => all[name],
      body: async (limit) => (bytes.length > limit ? { kind: "refused", reason: "too_large" } : { kind: "bytes", bytes }),
    });
  };
  return { ...calls, handler, send };
}
