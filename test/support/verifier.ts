import { randomUUID } from "node:crypto";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { type CodeMessage, createVerifier, type Logger, type SendOutcome, type VerifierOptions } from "../../src/index.js";
import { type FixedClock, fixedClock } from "../../src/testing/fixed-clock.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";

/** Valid mobile numbers, as many as a test needs. */
export const numberOf = (index: number): string => `+336${String(12_000_000 + index).padStart(8, "0")}`;

export interface LogLine {
  readonly level: "info" | "warn" | "error";
  readonly fields: Record<string, unknown>;
  readonly message: string;
}

/** A sender that stores its messages and returns what the test sets. */
export interface Inbox {
  readonly messages: CodeMessage[];
  /** The result of the next sends; `accepted` by default. May throw or never settle. */
  answer: (message: CodeMessage, signal: AbortSignal) => Promise<SendOutcome>;
  /** The code of the newest message, or of the one at `index`. */
  code(index?: number): string;
}

export function inbox(): Inbox & { send(message: CodeMessage, context: { signal: AbortSignal }): Promise<SendOutcome> } {
  const messages: CodeMessage[] = [];
  return {
    messages,
    answer: async () => ({ outcome: "accepted" }),
    send(message, { signal }) {
      messages.push(message);
      return this.answer(message, signal);
    },
    code: (index = -1) => messages.at(index)?.code ?? "no message",
  };
}

export function logger(): Logger & { readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at = (level: LogLine["level"]) => (fields: Record<string, unknown>, message: string) => void lines.push({ level, fields, message });
  return { lines, info: at("info"), warn: at("warn"), error: at("error") };
}

export const secret = "qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6";
export const start = Date.parse("2026-03-01T12:00:00.000Z");

/** A policy with which a number soon reaches its cap. */
export const onePerTenMinutes = {
  limits: {
    perNumber: [
      { limit: 1, window: 600 },
      { limit: 10, window: 86_400 },
    ],
  },
};

/** A verifier with its own store, clock, sender and log. */
export function setUp(options: Partial<VerifierOptions> = {}) {
  const clock = (options.clock as FixedClock | undefined) ?? fixedClock(start);
  const box = inbox();
  const log = logger();
  const customer = randomUUID();
  const apiKey = `pp_${randomUUID()}${randomUUID()}`;
  const store = options.store ?? memoryStore({ name: randomUUID() });
  const verifier = createVerifier({
    store,
    sender: box,
    secret,
    countries: "all",
    customers: [{ customer_uuid: customer, keys: [apiKey] }],
    clockSkew: 0,
    logger: log,
    // No callback leaves the process unless the test allows it.
    callbacks: { worker: false },
    // Statistics are written alongside requests, which would disturb tests that count the calls of the store.
    statistics: false,
    ...options,
    policy: { spam: noSpamRules, ...options.policy },
    clock,
  });
  const create = (fields: Record<string, unknown> = {}, call?: { idempotencyKey?: string }) =>
    verifier.createAuthentication({ customer_uuid: customer, phone_number: numberOf(1), ...fields } as never, call);
  const check = (authentication_uuid: string, check_code: string, call?: { idempotencyKey?: string }) =>
    verifier.check({ customer_uuid: customer, authentication_uuid, check_code }, call);
  const retry = (authentication_uuid: string) => verifier.retry({ customer_uuid: customer, authentication_uuid });
  /** A six-digit code that was not sent. */
  const wrong = () => {
    const sent = new Set(box.messages.map((message) => message.code));
    return ["000000", "111111", "222222", "333333", "444444", "555555"].find((code) => !sent.has(code)) as string;
  };
  /** One request through the HTTP interface, with the API key. */
  const http = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const all: Record<string, string> = { "x-api-key": apiKey, ...headers };
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const response = await verifier.http.handle({ method, path, header: (name) => all[name], body: async () => ({ kind: "text", text: text ?? "" }) });
    return { ...response, json: JSON.parse(response.body) as Record<string, unknown> };
  };
  return { verifier, clock, box, log, customer, apiKey, store, create, check, retry, wrong, http };
}

/** The `VerifierError` code a call rejects with. */
export async function errorCode(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    return (error as { code?: string }).code ?? `not a VerifierError: ${String(error)}`;
  }
  return "no error";
}
