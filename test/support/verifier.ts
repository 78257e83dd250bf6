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

/** A sender that keeps its messages and answers as it is told. */
export interface Inbox {
  readonly messages: CodeMessage[];
  /** What the next sends answer; `accepted` unless set. May throw or never settle. */
  answer: (message: CodeMessage, signal: AbortSignal) => Promise<SendOutcome>;
  /** Code of the newest message, or of the one at `index`. */
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

/** A policy under which a number is soon at its cap. */
export const onePerTenMinutes = {
  limits: {
    perNumber: [
      { limit: 1, window: 600 },
      { limit: 10, window: 86_400 },
    ],
  },
};

/** A verifier on a store, clock, sender and log of its own. */
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
    // Nothing leaves the process unless the test says where to.
    callbacks: { worker: false },
    // Told the store beside the requests, which would be in the way of tests that count its calls.
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
  /** A six-digit code that is none of those sent. */
  const wrong = () => {
    const sent = new Set(box.messages.map((message) => message.code));
    return ["000000", "111111", "222222", "333333", "444444", "555555"].find((code) => !sent.has(code)) as string;
  };
  /** One request over the HTTP shape, with the API key. */
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
