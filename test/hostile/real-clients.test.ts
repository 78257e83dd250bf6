import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { Prelude } from "@prelude.so/sdk";
import { betterAuth as createAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { phoneNumber } from "better-auth/plugins";
import express from "express";
import { Webhook } from "standardwebhooks";
import twilio from "twilio";
import { describe, expect, it, onTestFinished } from "vitest";
import { nodeHandler } from "../../adapters/http/node.js";
import { africasTalkingReceipts, africasTalkingSender } from "../../adapters/sms/africastalking.js";
import { httpReceipts, httpSender } from "../../adapters/sms/http.js";
import { twilioReceipts, twilioSender } from "../../adapters/sms/twilio.js";
import { createClient } from "../../clients/client/index.js";
import { betterAuth as phoneproof } from "../../src/hooks/better-auth.js";
import { genericHook, hooks } from "../../src/hooks/index.js";
import type { SmsSender } from "../../src/index.js";
import { preludeV2 } from "../../src/wires/prelude-v2/index.js";
import { twilioVerify } from "../../src/wires/twilio-verify/index.js";
import { listening } from "../wires/listen.js";
import { hook, keyOf, numberAt, type Service, service, wide } from "./kit.js";

const root = join(import.meta.dirname, "../..");
const number = numberAt(1);
const target = { type: "phone_number" as const, value: number };

/** What happens to a request: `lost` is served too, but the client never gets the response. */
type Fate = "served" | "lost";

interface Served extends Service {
  readonly url: string;
  readonly seen: { readonly method: string; readonly url: string; readonly headers: IncomingMessage["headers"] }[];
  fate: (request: IncomingMessage) => Fate;
  /** Called when a response was lost. */
  onLost: () => void;
  basic: string;
  serviceSid: string;
}

/** One customer's service over HTTP, with every wire. */
async function serve(options: Parameters<typeof service>[0] = {}): Promise<Served> {
  const made = service({ ...options, policy: { limits: { ...wide, perNumber: [{ limit: 10, window: 86_400 }] }, ...options?.policy } });
  const handle = nodeHandler([made.verifier, preludeV2(made.verifier), twilioVerify(made.verifier)]);
  const seen: Served["seen"] = [];
  const served = { ...made, seen, fate: () => "served", onLost: () => {} } as unknown as Served & { url: string };
  const server = await listening(
    createServer((request: IncomingMessage, response: ServerResponse) => {
      seen.push({ method: request.method ?? "", url: request.url ?? "", headers: request.headers });
      if (served.fate(request) === "lost") {
        response.end = (() => {
          response.socket?.destroy();
          served.onLost();
          return response;
        }) as never;
      }
      handle(request, response);
    }),
  );
  onTestFinished(async () => {
    await server.close();
    await made.verifier.close();
  });
  const digits = made.customer.replaceAll("-", "");
  return Object.assign(served, {
    url: server.url,
    serviceSid: `VA${digits}`,
    basic: `Basic ${Buffer.from(`AC${digits}:${keyOf(made.customer)}`).toString("base64")}`,
  });
}

const codeOf = (of: Service, to = number) => of.sender.messages.filter((one) => one.to === to).at(-1)?.code ?? "none";

const numberOf = (checked: object): unknown => (checked as { phone_number?: unknown }).phone_number;

/** The response to a Twilio form. */
async function form(of: Served, path: string, fields: Record<string, string>, key?: string): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${of.url}/v2/Services/${of.serviceSid}${path}`, {
    method: "POST",
    headers: { authorization: of.basic, ...(key !== undefined && { "idempotency-key": key }) },
    body: new URLSearchParams(fields),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

describe("a check whose first response was lost", () => {
  it("returns the full verified number when it is repeated under its key (docs/contract.md#sealed-number)", async () => {
    const { verifier, customer: customer_uuid, sender } = service();
    onTestFinished(() => verifier.close());
    const { authentication_uuid } = await verifier.verifications.start({ customer_uuid, phone_number: number });
    const request = { customer_uuid, authentication_uuid, check_code: sender.codeOf(authentication_uuid) };
    const first = await verifier.verifications.check(request, { idempotencyKey: "key" });
    const again = await verifier.verifications.check(request, { idempotencyKey: "key" });
    const byId = await verifier.check(request, { idempotencyKey: "key" });
    expect([first, again, byId].map((one) => [one.status, numberOf(one)])).toEqual([
      ["valid", number],
      ["valid", number],
      ["valid", number],
    ]);
  });

  it("never confuses two users: repeated checks of two similar numbers return each number in full (docs/api.md#verify-by-id)", async () => {
    const { verifier, customer: customer_uuid, sender } = service();
    onTestFinished(() => verifier.close());
    const proven: unknown[] = [];
    for (const phone_number of ["+33620001199", "+33620002299"]) {
      const { authentication_uuid } = await verifier.verifications.start({ customer_uuid, phone_number });
      const request = { customer_uuid, authentication_uuid, check_code: sender.codeOf(authentication_uuid) };
      await verifier.check(request, { idempotencyKey: phone_number });
      proven.push(numberOf(await verifier.check(request, { idempotencyKey: phone_number })));
    }
    expect(proven).toEqual(["+33620001199", "+33620002299"]);
  });

  it("is approved with the full number when it is repeated by VerificationSid (docs/migrate/twilio-verify.md)", async () => {
    const of = await serve();
    const { body } = await form(of, "/Verifications", { To: number, Channel: "sms" });
    const check = { VerificationSid: String(body["sid"]), Code: codeOf(of) };
    const first = await form(of, "/VerificationCheck", check, "key");
    const again = await form(of, "/VerificationCheck", check, "key");
    expect(first.body).toMatchObject({ status: "approved", valid: true, to: number });
    expect(again).toEqual(first);
  });

  it("gives phoneproof/client the number when the client repeats it automatically (docs/contract.md#facts)", async () => {
    const of = await serve();
    const { authentication_uuid } = await of.verifier.verifications.start({ customer_uuid: of.customer, phone_number: number });
    const client = createClient({ baseUrl: of.url, apiKey: keyOf(of.customer), customerUuid: of.customer });
    let checks = 0;
    of.fate = (request) => (request.url === "/v1/check" && checks++ === 0 ? "lost" : "served");
    const checked = await client.check({ authentication_uuid, check_code: codeOf(of) });
    expect(checks).toBe(2);
    expect(checked).toMatchObject({ status: "valid", phone_number: number });
  });

  it("is a success for the Prelude SDK, even if a newer verification has begun in the meantime (docs/migrate/prelude-v2.md#what-maps-to-what)", async () => {
    const of = await serve();
    const client = new Prelude({ baseURL: of.url, apiToken: keyOf(of.customer) });
    const other = new Prelude({ baseURL: of.url, apiToken: keyOf(of.customer) });
    await client.verification.create({ target });
    let begun: Promise<unknown> | undefined;
    let checks = 0;
    of.fate = (request) => {
      if (request.url !== "/v2/verification/check" || checks++ > 0) return "served";
      return "lost";
    };
    // The user presses "send again" in another tab, before the SDK's repeat half a second later.
    of.onLost = () => {
      begun = other.verification.create({ target });
    };
    const checked = await client.verification.check({ target, code: codeOf(of) });
    await begun;
    expect(of.sender.messages).toHaveLength(2);
    expect(checks).toBe(2);
    expect(checked.status).toBe("success");
  });

  it("uses up no guess of a newer verification, when it is repeated under its key (docs/contract.md#repeated-starts)", async () => {
    const { verifier, customer: customer_uuid, sender } = service();
    onTestFinished(() => verifier.close());
    const of = { customer_uuid, phone_number: number };
    const { authentication_uuid } = await verifier.verifications.start(of);
    const request = { ...of, check_code: sender.codeOf(authentication_uuid) };
    expect((await verifier.verifications.check(request, { idempotencyKey: "key" })).status).toBe("valid");
    await verifier.verifications.start(of);
    const again = await verifier.verifications.check(request, { idempotencyKey: "key" });
    const open = await verifier.verifications.get(of);
    expect({ status: again.status, left: open?.remaining_checks }).toEqual({ status: "valid", left: 5 });
  });
});

describe("the OpenAPI documents, for generated clients", () => {
  const names = ["openapi.json", "openapi-prelude-v2.json", "openapi-twilio-verify.json"];
  // biome-ignore lint/suspicious/noExplicitAny: documents of any shape.
  const read = (name: string): any => JSON.parse(readFileSync(join(root, name), "utf8"));

  /** Every `pattern` in a document, with the name of its field. */
  function patterns(value: unknown, name = ""): [name: string, pattern: string][] {
    if (typeof value !== "object" || value === null) return [];
    return Object.entries(value).flatMap(([key, inner]) =>
      key === "pattern" && typeof inner === "string" ? [[name, inner] as [string, string]] : patterns(inner, key),
    );
  }

  it("patterns mean the same without the Unicode flag and in Python's re, as generated clients use them (docs/serve.md#call-it)", () => {
    const given: Record<string, string> = {
      device_model: "Pixel 8 Pro",
      os_version: "Tiramisu (API level 33)",
      app_version: "1.2.3-alpha",
      device_id: "lpCZ{}",
    };
    const differing = names.flatMap((name) =>
      patterns(read(name)).filter(([field, pattern]) => {
        const value = given[field];
        return value !== undefined && new RegExp(pattern, "u").test(value) !== new RegExp(pattern).test(value);
      }),
    );
    const unknownToPython = names.flatMap((name) => patterns(read(name)).filter(([, pattern]) => /\\[pP]\{/.test(pattern)));
    expect({ differing, unknownToPython }).toEqual({ differing: [], unknownToPython: [] });
  });

  it("list every status that their calls return, also for a body that is too long", async () => {
    const of = await serve();
    const long = JSON.stringify({ x: "x".repeat(17_000) });
    const bearer = { authorization: `Bearer ${keyOf(of.customer)}`, "content-type": "application/json" };
    const json = { "x-api-key": keyOf(of.customer), "content-type": "application/json" };
    const basic = { authorization: of.basic, "content-type": "application/x-www-form-urlencoded" };
    const calls: [document: string, path: string, template: string, headers: Record<string, string>][] = [
      ["openapi.json", "/v1/authentication", "/v1/authentication", json],
      ["openapi.json", "/v1/retry", "/v1/retry", json],
      ["openapi.json", "/v1/check", "/v1/check", json],
      ["openapi-prelude-v2.json", "/v2/verification", "/v2/verification", bearer],
      ["openapi-prelude-v2.json", "/v2/verification/check", "/v2/verification/check", bearer],
      ["openapi-prelude-v2.json", "/v2/watch/event", "/v2/watch/event", bearer],
      ["openapi-twilio-verify.json", `/v2/Services/${of.serviceSid}/Verifications`, "/v2/Services/{Service}/Verifications", basic],
      ["openapi-twilio-verify.json", `/v2/Services/${of.serviceSid}/VerificationCheck`, "/v2/Services/{Service}/VerificationCheck", basic],
    ];
    const missing: string[] = [];
    for (const [document, path, template, headers] of calls) {
      for (const body of ["", "{", long]) {
        for (const one of [headers, { ...headers, authorization: "Basic eDp5", "x-api-key": "wrong" }]) {
          const { status } = await fetch(of.url + path, { method: "POST", headers: one, body });
          if (read(document).paths[template].post.responses[status] === undefined) missing.push(`${template} ${status}`);
        }
      }
    }
    expect([...new Set(missing)]).toEqual([]);
  });
});

describe("better-auth's own routes", () => {
  it("respond to an empty or overlong code with a documented error whose message names no internal field (docs/behind/better-auth.md#what-the-client-sees)", async () => {
    const { verifier, customer: customer_uuid } = service();
    onTestFinished(() => verifier.close());
    const auth = createAuth({
      secret: "x".repeat(40),
      baseURL: "http://localhost:3000",
      database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
      rateLimit: { enabled: false },
      logger: { disabled: true },
      plugins: [phoneNumber(phoneproof(verifier, { customer_uuid }))],
    });
    const call = async (path: string, body: object) => {
      const headers = { "content-type": "application/json", origin: "http://localhost:3000" };
      const response = await auth.handler(
        new Request(`http://localhost:3000/api/auth/phone-number${path}`, { method: "POST", headers, body: JSON.stringify(body) }),
      );
      return { status: response.status, ...((await response.json()) as { code?: string; message?: string }) };
    };
    expect((await call("/send-otp", { phoneNumber: number })).status).toBe(200);
    for (const code of ["", " ", "1".repeat(65)]) {
      const answers = [
        await call("/verify", { phoneNumber: number, code }),
        await call("/reset-password", { phoneNumber: number, otp: code, newPassword: "a new password" }),
      ];
      for (const answer of answers) {
        expect(answer, JSON.stringify(code)).toMatchObject({ status: 400, code: "INVALID_OTP" });
        expect(answer.message).not.toContain("check_code");
      }
    }
  });
});

describe("the Lambda of the documentation for Amazon Cognito", () => {
  it("gets a temporary password sent, with the symbols that Cognito's policy requires (docs/behind/index.md#amazon-cognito)", async () => {
    const { verifier, sender } = service({ customers: undefined });
    const server = await listening(
      createServer(nodeHandler(hooks(verifier, [genericHook({ token: "token-of-the-lambda", name: "cognito", conversion: "reported" })]))),
    );
    onTestFinished(async () => {
      await server.close();
      await verifier.close();
    });
    const told: Record<string, unknown> = {};
    for (const [index, [type, secret, given]] of (
      [
        ["CustomSMSSender_SignUp", "482913", { code: "482913" }],
        ["CustomSMSSender_AdminCreateUser", "Zk4!vQ$9x", { text: "Your temporary password is Zk4!vQ$9x" }],
      ] as const
    ).entries()) {
      const response = await fetch(`${server.url}/hooks/cognito`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: "Bearer token-of-the-lambda" },
        body: JSON.stringify({ to: numberAt(40 + index), ...given, type, user_id: "sub", known: false }),
      });
      told[type] = [response.status, sender.messages.at(-1)?.text.includes(secret)];
    }
    expect(told).toEqual({ CustomSMSSender_SignUp: [200, true], CustomSMSSender_AdminCreateUser: [200, true] });
  });
});

/** A receiver or carrier in Express, with the raw body of each request. */
async function inExpress(answer: (request: express.Request, body: string) => { status: number; json?: unknown; text?: string }) {
  const posted: { url: string; headers: IncomingMessage["headers"]; body: string; method: string }[] = [];
  const app = express();
  app.use(express.raw({ type: () => true }));
  app.use((request, response) => {
    const body = Buffer.isBuffer(request.body) ? request.body.toString() : "";
    posted.push({ method: request.method, url: request.url, headers: request.headers, body });
    const { status, json, text } = answer(request, body);
    if (json === undefined) response.status(status).send(text ?? "");
    else response.status(status).json(json);
  });
  const server = await listening(createServer(app));
  onTestFinished(() => server.close());
  return { url: server.url, posted };
}

describe("a receiver in Express, with the raw body", () => {
  it.each([
    ["delivery_status", undefined],
    ["prelude-v2", "prelude-v2"],
  ] as const)("verifies callbacks of the form %s with npm standardwebhooks (docs/callbacks.md#the-receiver)", async (_, callback_form) => {
    const receiver = await inExpress(() => ({ status: 204 }));
    const { verifier, customer: customer_uuid } = service({ callbacks: { sender: undefined as never, allowOrigins: [new URL(receiver.url).origin] } });
    onTestFinished(() => verifier.close());
    await verifier.verifications.start({
      customer_uuid,
      phone_number: number,
      callback_url: `${receiver.url}/hook`,
      ...(callback_form && { callback_form }),
    });
    expect(await verifier.flush()).toMatchObject({ delivered: 1 });
    const [secret = ""] = await verifier.webhookSecrets(customer_uuid);
    const [{ body, headers } = { body: "", headers: {} }] = receiver.posted;
    // The library compares with the system time, and the service's clock stands still in this test.
    const signed = headers as Record<string, string>;
    expect(() => new Webhook(secret).verify(body, signed)).toThrow(/too old/);
    const moved = String(Math.floor(Date.now() / 1000));
    const mine = new Webhook(secret).sign(signed["webhook-id"] ?? "", new Date(Number(signed["webhook-timestamp"]) * 1000), body);
    expect(signed["webhook-signature"]).toBe(mine);
    expect(() => new Webhook(secret).verify(body, { ...signed, "webhook-timestamp": moved })).toThrow(/signature/i);
  });
});

/** The stored outcome of one message through a carrier's sender, and its reason. */
async function outcomeOf(sender: SmsSender): Promise<[state: string, reason: string | undefined]> {
  const { verifier, customer: customer_uuid } = service({ sender: sender as never, message: { text: { default: "Your code is {code}" } } });
  const { authentication_uuid } = await verifier.createAuthentication({ customer_uuid, phone_number: number });
  const { sends } = await verifier.explain({ customer_uuid, authentication_uuid });
  await verifier.close();
  return [sends[0]?.state ?? "none", sends[0]?.reason];
}

describe("carriers, with the responses of their documentation", () => {
  it("Africa's Talking: the recipient's statusCode decides, although the HTTP status is 201 (docs/carriers.md#the-senders)", async () => {
    let reply: object = {};
    const carrier = await inExpress(() => ({ status: 201, json: reply }));
    const sender = africasTalkingSender({ username: "acme", apiKey: "key", from: "ACME", baseUrl: carrier.url, receipts: false });
    const recipient = (statusCode: number, status: string) => ({
      SMSMessageData: { Message: "Sent to 0/1 Total Cost: 0", Recipients: [{ statusCode, number, status, cost: "0", messageId: "None" }] },
    });
    const states: Record<string, string> = {};
    for (const [code, word] of [
      [401, "RiskHold"],
      [402, "InvalidSenderId"],
      [403, "InvalidPhoneNumber"],
      [404, "UnsupportedNumberType"],
      [405, "InsufficientBalance"],
      [406, "UserInBlacklist"],
      [407, "CouldNotRoute"],
      [409, "DoNotDisturbRejection"],
      [500, "InternalServerError"],
      [501, "GatewayError"],
      [502, "RejectedByGateway"],
    ] as const) {
      reply = recipient(code, word);
      states[word] = (await outcomeOf(sender))[0];
    }
    reply = { SMSMessageData: { Message: "InvalidSenderId", Recipients: [] } };
    states["no recipient"] = (await outcomeOf(sender))[0];
    const open = ["RiskHold", "InternalServerError", "GatewayError"];
    expect(
      Object.entries(states)
        .filter(([, state]) => state !== "rejected")
        .map(([word]) => word),
    ).toEqual(open);
    const [first] = carrier.posted;
    expect(first?.headers).toMatchObject({ apikey: "key", "content-type": "application/x-www-form-urlencoded" });
    expect(Object.fromEntries(new URLSearchParams(first?.body))).toMatchObject({ username: "acme", to: number, from: "ACME", bulkSMSMode: "1" });
  });

  it("Twilio: one request per message, no redirect is followed, no 429 is retried, and the error code is the reason (docs/carriers.md#the-senders)", async () => {
    const replies: [status: number, json: object, state: string, reason: RegExp][] = [
      [400, { code: 21211, message: `The 'To' number ${number} is not a valid phone number`, status: 400 }, "rejected", /21211/],
      [429, { code: 20429, message: "Too Many Requests", status: 429 }, "rejected", /20429/],
      [401, { code: 20003, message: "Authenticate", status: 401 }, "rejected", /20003/],
      [503, { code: 20503, message: "Service Unavailable", status: 503 }, "undecided", /503/],
      [307, { code: 0 }, "undecided", /307/],
      [201, { status: "queued" }, "undecided", /format/],
    ];
    for (const [status, json, state, reason] of replies) {
      const carrier = await inExpress(() => ({ status, json }));
      const sender = twilioSender({ accountSid: `AC${"a".repeat(32)}`, authToken: "t".repeat(32), from: "ACME", baseUrl: carrier.url, receipts: false });
      const [told, why] = await outcomeOf(sender);
      expect([told, carrier.posted.length], `${status}`).toEqual([state, 1]);
      expect(why).toMatch(reason);
      expect(why).not.toContain(number.slice(1));
    }
  });

  it("Kannel's sendsms: text and receipt URL arrive unchanged through a URL template (docs/carriers.md#the-senders)", async () => {
    const carrier = await inExpress(() => ({ status: 202, text: "0: Accepted for delivery" }));
    const text = "Код {code} & 100% é+ #1";
    const sender = httpSender({
      url: `${carrier.url}/cgi-bin/sendsms?username=u&password=p&to={to}&text={text}&coding={coding}&charset=UTF-8&dlr-url={receipt_url}%26s%3D%25d`,
      accepted: /^0:/,
    });
    const { verifier, customer: customer_uuid } = service({
      sender: sender as never,
      message: { text, maxSegments: 2 },
      receipts: { baseUrl: "https://otp.example/x", sources: [httpReceipts({ status: "s", statuses: { 1: "delivered", 2: "undeliverable" } })] },
    });
    onTestFinished(() => verifier.close());
    expect((await verifier.createAuthentication({ customer_uuid, phone_number: number })).status).toBe("pending");
    const { searchParams } = new URL(`http://kannel${carrier.posted[0]?.url}`);
    expect(searchParams.get("text")).toMatch(/^Код \d{6} & 100% é\+ #1$/);
    expect(searchParams.get("to")).toBe(number);
    expect(searchParams.get("coding")).toBe("2");
    expect(searchParams.get("dlr-url")).toMatch(/^https:\/\/otp\.example\/x\/receipts\/http\?r=[\w-]+&s=%d$/);
  });
});

describe("receipts", () => {
  it("signed by npm twilio are read in every documented status, and unknown ones settle nothing (docs/carriers.md#delivery-receipts)", async () => {
    const authToken = "t".repeat(32);
    const accountSid = `AC${"a".repeat(32)}`;
    const carrier = await inExpress(() => ({ status: 201, json: { sid: `SM${"a".repeat(32)}`, status: "queued" } }));
    const told: Record<string, string[]> = {};
    for (const word of ["accepted", "scheduled", "queued", "sending", "sent", "delivered", "read", "undelivered", "failed", "canceled", "receiving", "news"]) {
      const out = hook();
      const { verifier, customer: customer_uuid } = service({
        sender: twilioSender({ accountSid, authToken, from: "ACME", baseUrl: carrier.url }) as never,
        receipts: { baseUrl: "https://otp.example:8443/base", sources: [twilioReceipts({ authToken })] },
        callbacks: { sender: out },
      });
      const { authentication_uuid } = await verifier.createAuthentication({
        customer_uuid,
        phone_number: number,
        callback_url: "https://receiver.example/hook",
      });
      const url = new URLSearchParams(carrier.posted.at(-1)?.body).get("StatusCallback") ?? "";
      const fields = { MessageSid: `SM${"a".repeat(32)}`, MessageStatus: word, To: number, From: "ACME", AccountSid: accountSid, ApiVersion: "2010-04-01" };
      const { pathname, search } = new URL(url);
      const signature = twilio.getExpectedTwilioSignature(authToken, url, fields);
      const { status } = await verifier.receipts.handle({
        method: "POST",
        path: pathname.replace("/base", ""),
        query: search,
        header: (name) => ({ "x-twilio-signature": signature, "content-type": "application/x-www-form-urlencoded; charset=UTF-8" })[name],
        body: async () => ({ kind: "bytes", bytes: new TextEncoder().encode(new URLSearchParams(fields).toString()) }),
      });
      expect(status, word).toBe(200);
      await verifier.flush();
      told[word] = out.story(authentication_uuid).slice(1);
      await verifier.close();
    }
    const none: string[] = [];
    expect(told).toEqual({
      accepted: none,
      scheduled: none,
      queued: none,
      sending: none,
      sent: ["1:in_transit"],
      delivered: ["1:delivered"],
      read: ["1:delivered"],
      undelivered: ["1:undeliverable"],
      failed: ["1:undeliverable"],
      canceled: ["1:undeliverable"],
      receiving: none,
      news: none,
    });
  });

  it("from Africa's Talking settle by id and the dashboard's secret alone, in every documented status (docs/carriers.md#delivery-receipts)", async () => {
    const secret = "dashboard-secret-of-at";
    const carrier = await inExpress(() => ({
      status: 201,
      json: { SMSMessageData: { Message: "Sent to 1/1", Recipients: [{ statusCode: 101, number, status: "Success", cost: "KES 0.8", messageId: "ATXid_1" }] } },
    }));
    const told: Record<string, string[]> = {};
    for (const word of ["Sent", "Submitted", "Buffered", "Success", "Rejected", "Failed", "AbsentSubscriber", "Expired"]) {
      const out = hook();
      const { verifier, customer: customer_uuid } = service({
        sender: africasTalkingSender({ username: "acme", apiKey: "key", from: "ACME", baseUrl: carrier.url }) as never,
        receipts: { baseUrl: "https://otp.example", sources: [africasTalkingReceipts({ secret })] },
        callbacks: { sender: out },
      });
      const { authentication_uuid } = await verifier.createAuthentication({
        customer_uuid,
        phone_number: number,
        callback_url: "https://receiver.example/hook",
      });
      const post = (query: string) =>
        verifier.receipts.handle({
          method: "POST",
          path: "/receipts/africastalking",
          query,
          header: (name) => ({ "content-type": "application/x-www-form-urlencoded" })[name],
          body: async () => ({
            kind: "bytes",
            bytes: new TextEncoder().encode(new URLSearchParams({ id: "ATXid_1", status: word, phoneNumber: number }).toString()),
          }),
        });
      expect((await post("?key=wrong-secret-of-at")).status).toBe(403);
      expect((await post(`?key=${secret}`)).status).toBe(200);
      await verifier.flush();
      told[word] = out.story(authentication_uuid).slice(1);
      await verifier.close();
    }
    expect(told).toMatchObject({ Success: ["1:delivered"], Rejected: ["1:undeliverable"], Failed: ["1:undeliverable"], Submitted: ["1:in_transit"] });
    expect(
      Object.values(told)
        .flat()
        .filter((one) => one === "1:delivered"),
    ).toHaveLength(1);
  });
});

describe("programs over HTTP, with and without an SDK", () => {
  const run = promisify(execFile);

  it("curl works with the Twilio Verify wire as with Twilio: raw +, chunked, 100-continue, h2c offered (docs/migrate/twilio-verify.md#your-client)", async () => {
    const of = await serve();
    const user = `AC${of.customer.replaceAll("-", "")}:${keyOf(of.customer)}`;
    const curl = async (...more: string[]) => {
      const { stdout } = await run("curl", [
        "-sS",
        "-w",
        "\n%{http_code}",
        "--max-time",
        "20",
        "-u",
        user,
        ...more,
        `${of.url}/v2/Services/${of.serviceSid}/Verifications`,
      ]);
      const [body = "", status = ""] = [stdout.slice(0, stdout.lastIndexOf("\n")), stdout.slice(stdout.lastIndexOf("\n") + 1)];
      return [status, (JSON.parse(body) as { to?: string; message?: string }).to];
    };
    const to = (index: number) => `To=${numberAt(index)}&Channel=sms`;
    expect(await curl("-d", to(11))).toEqual(["201", numberAt(11)]);
    expect(await curl("-H", "transfer-encoding: chunked", "-d", to(12))).toEqual(["201", numberAt(12)]);
    expect(await curl("-H", "expect: 100-continue", "-d", to(13))).toEqual(["201", numberAt(13)]);
    expect(await curl("--http2", "-d", to(14))).toEqual(["201", numberAt(14)]);
    expect(await curl("-F", `To=${numberAt(15)}`, "-F", "Channel=sms")).toEqual(["400", undefined]);
    expect(of.sender.messages).toHaveLength(4);
  });

  it("the Prelude SDK works with every usual form of the base URL, and repeats no 4xx (docs/migrate/prelude-v2.md#your-client)", async () => {
    const of = await serve();
    let index = 20;
    for (const base of ["", "/", "/v2", "/v2/"]) {
      const client = new Prelude({ baseURL: `${of.url}${base}`, apiToken: keyOf(of.customer) });
      const of4 = { type: "phone_number" as const, value: numberAt(index++) };
      expect((await client.verification.create({ target: of4 })).status, base).toBe("success");
      const before = of.seen.length;
      await expect(client.verification.create({ target: of4 })).rejects.toMatchObject({ status: 429, error: { code: "premature_retry" } });
      await expect(client.verification.create({ target: { type: "email_address", value: "a@b.example" } })).rejects.toMatchObject({ status: 400 });
      expect(of.seen.length - before, base).toBe(2);
    }
  });

  it("the twilio client works with a trailing slash in baseUrl, and with an API key's SID (docs/migrate/twilio-verify.md#your-credentials)", async () => {
    const of = await serve();
    const accountSid = of.serviceSid.replace("VA", "AC");
    for (const client of [twilio(accountSid, keyOf(of.customer)), twilio(`SK${"b".repeat(32)}`, keyOf(of.customer), { accountSid })]) {
      client.verify.baseUrl = `${of.url}/`;
      expect((await client.verify.v2.services.list()).map(({ sid }) => sid)).toEqual([of.serviceSid]);
    }
  });
});
