import { randomUUID } from "node:crypto";
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import twilio from "twilio";
import { expect, onTestFinished } from "vitest";
import * as z from "zod";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { createVerifier, type Verifier, type VerifierOptions } from "../../src/index.js";
import type { Store } from "../../src/ports/store.js";
import { type FixedClock, fixedClock } from "../../src/testing/index.js";
import { type TwilioVerifyOptions, twilioVerify } from "../../src/wires/twilio-verify/index.js";
import { logger, secret, start } from "../support/verifier.js";
import { type Mount, mounts } from "../wires/listen.js";
import { noSpamRules, type Sender, sender } from "./kit.js";

const sid = (prefix: string) => z.string().regex(new RegExp(`^${prefix}[0-9a-f]{32}$`));
/** Without a fraction, as the vendor's Python client parses it. */
const date = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);

/** Exactly the vendor's fields: decoders know no others; `title`, `type` or a numeric `error_code` breaks two. */
const Failed = z
  .strictObject({
    code: z.number().int(),
    message: z.string().min(1),
    more_info: z.string(),
    status: z.number().int(),
    details: z.record(z.string(), z.unknown()).optional(),
  })
  .refine(({ code, more_info }) => more_info === `https://www.twilio.com/docs/errors/${code}`, "more_info names the code");

const common = { sid: sid("VE"), service_sid: sid("VA"), account_sid: sid("AC"), to: z.string().regex(/^\+/), channel: z.literal("sms") };
export const Verification = z.strictObject({
  ...common,
  status: z.enum(["pending", "canceled", "max_attempts_reached"]),
  valid: z.literal(false),
  date_created: date,
  date_updated: date,
  lookup: z.record(z.string(), z.unknown()),
  amount: z.null(),
  payee: z.null(),
  send_code_attempts: z.array(z.strictObject({ time: z.string(), channel: z.string().regex(/^sms$/i), attempt_sid: sid("VL") })).min(1),
  sna: z.null(),
  url: z.url(),
});
export const Checked = z
  .strictObject({
    ...common,
    status: z.enum(["approved", "pending"]),
    valid: z.boolean(),
    amount: z.null(),
    payee: z.null(),
    date_created: date,
    date_updated: date,
    sna_attempts_error_codes: z.array(z.never()),
  })
  .refine(({ status, valid }) => (status === "approved") === valid, "status and valid agree");

export type Form = Readonly<Record<string, string>> | readonly (readonly [name: string, value: string])[] | string | Uint8Array;

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

/** One customer as its programs see it. */
export interface Caller {
  readonly accountSid: string;
  readonly serviceSid: string;
  readonly token: string;
}

export const callerOf = (customer: string, token: string): Caller => {
  const digits = customer.replaceAll("-", "");
  return { accountSid: `AC${digits}`, serviceSid: `VA${digits}`, token };
};

export const basic = (user: string, password: string): string => `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;

/** Sends one request unchanged: any path, headers and bytes. */
export function raw(url: string, method: string, path: string, body: Form = "", headers: Record<string, string> = {}): Promise<Answer> {
  const given =
    typeof body === "string" || body instanceof Uint8Array ? body : new URLSearchParams(Array.isArray(body) ? body : Object.entries(body)).toString();
  const type = given.length > 0 ? { "content-type": "application/x-www-form-urlencoded" } : {};
  return new Promise((resolve, reject) => {
    const { hostname, port, pathname } = new URL(url);
    const all = { "content-length": String(Buffer.byteLength(given)), ...type, ...headers };
    const sent = httpRequest({ hostname, port, method, path: pathname.replace(/\/$/, "") + path, headers: all, agent: false }, (response) => {
      let text = "";
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("error", reject);
      response.on("end", () => {
        const isJson = (response.headers["content-type"] ?? "").startsWith("application/json");
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: isJson && text !== "" ? JSON.parse(text) : {} });
      });
    });
    sent.on("error", reject);
    sent.end(given);
  });
}

export interface Service extends Caller {
  readonly url: string;
  readonly customer: string;
  readonly verifier: Verifier;
  readonly clock: FixedClock;
  readonly box: Sender;
  readonly store: Store;
  readonly log: readonly { readonly message: string; readonly fields: Record<string, unknown> }[];
  /** The requests that reached the server: `POST /v2/…`. */
  readonly seen: readonly string[];
  /** `path`: what follows the service. */
  ask(method: string, path: string, form?: Form, headers?: Record<string, string>): Promise<Answer>;
  begin(to?: string, more?: Record<string, string>): Promise<Answer>;
  check(by: string, code: string): Promise<Answer>;
  cancel(name: string): Promise<Answer>;
  fetch(name: string): Promise<Answer>;
  client(options?: object, url?: string): ReturnType<ReturnType<typeof twilio>["verify"]["v2"]["services"]>;
  /** A code that was not sent. */
  wrong(): string;
}

export const to = "+33612000001";
/** The newest code sent to a number. */
export const codeOf = (box: Sender, number = to): string => box.messages.filter((one) => one.to === number).at(-1)?.code ?? "no message";

export interface ServiceOptions {
  readonly verifier?: Partial<VerifierOptions>;
  readonly wire?: TwilioVerifyOptions;
  readonly mount?: Mount;
  readonly basePath?: string;
  readonly customer?: string;
  readonly token?: string;
}

/** A real server on the loopback interface; it ends with the test. */
export async function serve(options: ServiceOptions = {}): Promise<Service> {
  const { customer = randomUUID(), token = "k".repeat(40), basePath = "" } = options;
  const clock = (options.verifier?.clock as FixedClock | undefined) ?? fixedClock(start);
  const box = (options.verifier?.sender as Sender | undefined) ?? sender();
  const store = options.verifier?.store ?? memoryStore({ name: randomUUID() });
  const log = logger();
  const verifier = createVerifier({
    secret,
    countries: ["FR", "GB", "US"],
    customers: [{ customer_uuid: customer, keys: [token] }],
    clockSkew: 0,
    callbacks: { worker: false },
    statistics: false,
    logger: log,
    ...options.verifier,
    policy: { spam: noSpamRules, ...options.verifier?.policy },
    store,
    sender: box,
    clock,
  });
  const seen: string[] = [];
  const mount = options.mount ?? (mounts[0]?.[1] as Mount);
  const server = await mount(twilioVerify(verifier, options.wire), basePath, ({ method, url }) => void seen.push(`${method} ${url}`));
  onTestFinished(async () => {
    await server.close();
    await verifier.close();
  });
  const url = server.url + basePath;
  const caller = callerOf(customer, token);
  const ask: Service["ask"] = (method, path, form, headers) =>
    raw(url, method, `/v2/Services/${caller.serviceSid}${path}`, form, { authorization: basic(caller.accountSid, token), ...headers });
  return {
    ...caller,
    url,
    customer,
    verifier,
    clock,
    box,
    store,
    log: log.lines,
    seen,
    ask,
    begin: (number = to, more = {}) => ask("POST", "/Verifications", { To: number, Channel: "sms", ...more }),
    check: (by, code) => ask("POST", "/VerificationCheck", { [by.startsWith("VE") ? "VerificationSid" : "To"]: by, Code: code }),
    cancel: (name) => ask("POST", `/Verifications/${name}`, { Status: "canceled" }),
    fetch: (name) => ask("GET", `/Verifications/${name}`),
    client(more = {}, base = url) {
      const client = twilio(caller.accountSid, token, more);
      client.verify.baseUrl = base;
      return client.verify.v2.services(caller.serviceSid);
    },
    wrong: () => {
      const sent = new Set(box.messages.map(({ code }) => code));
      return ["000000", "111111", "222222", "333333", "444444", "555555"].find((code) => !sent.has(code)) as string;
    },
  };
}

/** `status code`, or `status word` of a 2xx. */
export const outcome = ({ status, json }: Answer): string => `${status} ${json["code"] ?? json["status"]}`;

/** Expects the vendor's error, with its status in the body; returns its code. */
export function failed(answer: Answer, name: string): number {
  const parsed = Failed.safeParse(answer.json);
  expect(parsed.success, `${name}: ${answer.status} ${answer.text.slice(0, 300)}`).toBe(true);
  expect(parsed.data?.status, name).toBe(answer.status);
  return parsed.data?.code as number;
}

/** A 4xx that no client repeats. */
export function rejected(answer: Answer, name: string): number {
  expect(answer.status, `${name}: ${answer.text.slice(0, 300)}`).toBeGreaterThanOrEqual(400);
  expect(answer.status, `${name}: ${answer.text.slice(0, 300)}`).toBeLessThan(500);
  expect([408, 409, 429], name).not.toContain(answer.status);
  expect(answer.headers["retry-after"], name).toBeUndefined();
  return failed(answer, name);
}

export const show = (form: Form) =>
  form instanceof Uint8Array ? `bytes ${Buffer.from(form).toString("hex").slice(0, 40)}` : JSON.stringify(form).slice(0, 80);
