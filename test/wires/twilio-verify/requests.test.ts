import { describe, expect, it } from "vitest";
import { fetchHandler } from "../../../adapters/http/fetch.js";
import { memoryStore } from "../../../adapters/store/memory/index.js";
import { createVerifier } from "../../../src/create-verifier.js";
import { VerifierError } from "../../../src/errors.js";
import { lazyVerifier } from "../../../src/lazy-verifier.js";
import { twilioVerify } from "../../../src/wires/twilio-verify/index.js";
import { inbox, logger, numberOf, secret } from "../../support/verifier.js";
import { hexOf, serve } from "./service.js";

const to = numberOf(1);
const sms = { To: to, Channel: "sms" };

describe("wrong fields", () => {
  it("of a create are 400 60200 with the field's name, and nothing is sent", async () => {
    const { raw, box } = await serve();
    const wrong: [message: string, body: Record<string, string>][] = [
      ["Invalid parameter `To`", { Channel: "sms" }],
      ["Invalid parameter `To`", { To: "", Channel: "sms" }],
      ["Invalid parameter `To`: 33612000001", { ...sms, To: "33612000001" }],
      ["Invalid parameter `To`: someone@example.com", { ...sms, To: "someone@example.com" }],
      [`Invalid parameter \`To\`: ${"9".repeat(64)}`, { ...sms, To: "9".repeat(99) }],
      ["Invalid parameter: Channel", { To: to }],
      ["Invalid parameter: Channel", { ...sms, Channel: "SMS" }],
      ["Invalid parameter: Locale", { ...sms, Locale: "not a language" }],
      ["Invalid parameter: AppHash", { ...sms, AppHash: "short" }],
      ["Invalid parameter: DeviceIp", { ...sms, DeviceIp: "localhost" }],
      ["Invalid parameter: Amount", { ...sms, Amount: "39.99" }],
      ["Invalid parameter: Payee", { ...sms, Payee: "Acme" }],
      ["Invalid parameter: RateLimits", { ...sms, RateLimits: "{" }],
    ];
    for (const [message, body] of wrong)
      expect(await raw("POST", "/Verifications", body), message).toMatchObject({
        status: 400,
        json: { code: 60200, message, details: { reason: expect.stringMatching(/\.$/) } },
      });
    expect(box.messages).toEqual([]);
  });

  it("of a check are 400, and do not count as attempts", async () => {
    const { raw, box } = await serve();
    await raw("POST", "/Verifications", sms);
    const wrong: [code: number, message: string, body: Record<string, string>][] = [
      [60200, "Invalid parameter: Code", { To: to }],
      [60200, "Invalid parameter: Code", { To: to, Code: "123" }],
      [60200, "Invalid parameter: Code", { To: to, Code: "12345678901" }],
      [60200, "Invalid parameter: Code", { To: to, Code: "12ab56" }],
      [60200, "Invalid parameter: Code", { To: to, Code: "1".repeat(65) }],
      [60200, "Invalid parameter: Amount", { To: to, Code: "123456", Amount: "1" }],
      [60200, "Invalid parameter `To`: +33", { To: "+33", Code: "123456" }],
      [60221, "Either a 'To' number or 'VerificationSid' must be specified", { Code: "123456" }],
    ];
    for (const [code, message, body] of wrong.flatMap((one) => [one, one]))
      expect(await raw("POST", "/VerificationCheck", body), message).toMatchObject({ status: 400, json: { code, message } });
    expect((await raw("POST", "/VerificationCheck", { To: to, Code: box.code() })).json.status).toBe("approved");
  });
});

describe("fields that are passed on", () => {
  it("a raw + in the form, which decodes to a space", async () => {
    const { raw, box } = await serve();
    expect((await raw("POST", "/Verifications", `To=${to}&Channel=sms`)).json).toMatchObject({ to, status: "pending" });
    expect((await raw("POST", "/VerificationCheck", `To=${to}&Code=${box.code()}`)).json).toMatchObject({ to, status: "approved" });
  });

  it("a number in the path, as %2B too", async () => {
    const { raw } = await serve();
    await raw("POST", "/Verifications", sms);
    for (const path of [to, encodeURIComponent(to)]) expect((await raw("GET", `/Verifications/${path}`)).json).toMatchObject({ to, status: "pending" });
  });

  it("the address, to the rules per address; the app's hash, as the last token; the locale; RiskCheck turns nothing off", async () => {
    const { raw, box } = await serve({
      verifier: { lists: { block: { cidrs: ["2001:db8::/32"] } }, message: { text: { default: "Code: {code}", de: "Kennwort: {code}" } } },
    });
    expect((await raw("POST", "/Verifications", { ...sms, DeviceIp: "2001:db8::1", RiskCheck: "disable" })).json.code).toBe(60410);
    await raw("POST", "/Verifications", { ...sms, AppHash: "FA+9qCX9VSu", Locale: "de-DE", DeviceIp: "192.0.2.1" });
    expect(box.messages.map(({ text }) => text)).toEqual([expect.stringMatching(/^Kennwort: \d{6}[\s\S]*FA\+9qCX9VSu$/)]);
  });

  it("unknown and empty fields are left out; CustomCode is never the code", async () => {
    const { raw, box } = await serve();
    const body = { ...sms, CustomCode: "111111", Locale: "", Amount: "", SendDigits: "1234", CustomFriendlyName: "é".repeat(200), __proto__: "x", New: "y" };
    expect((await raw("POST", "/Verifications", body)).status).toBe(201);
    expect(box.code()).not.toBe("111111");
    expect((await raw("POST", "/VerificationCheck", { To: to, Code: "111111" })).json.status).toBe("pending");
  });

  it("an Idempotency-Key, of a create and of a check", async () => {
    const { raw, box } = await serve();
    const create = () => raw("POST", "/Verifications", sms, { "idempotency-key": "k" });
    expect((await create()).json.sid).toBe((await create()).json.sid);
    expect(box.messages).toHaveLength(1);
    const check = () => raw("POST", "/VerificationCheck", { To: to, Code: box.code() }, { "idempotency-key": "c" });
    for (const { json } of [await check(), await check()]) expect(json).toMatchObject({ status: "approved", valid: true, to });
  });
});

describe("options", () => {
  it("autoChannel sms: auto is sent by SMS", async () => {
    const { raw } = await serve({ wire: { autoChannel: "sms" } });
    expect((await raw("POST", "/Verifications", { ...sms, Channel: "auto" })).json.channel).toBe("sms");
    expect((await raw("POST", "/Verifications", { ...sms, Channel: "call" })).json.code).toBe(60200);
    expect((await raw("POST", "/Verifications", { ...sms, Channel: "email" })).json.details).toEqual({
      reason: "Channel must be one of those that this service has: sms, auto.",
    });
  });

  it("codeLength: digits of the codes, which the service shows", async () => {
    const { raw, box } = await serve({ wire: { codeLength: 8 } });
    await raw("POST", "/Verifications", sms);
    expect(box.code()).toMatch(/^\d{8}$/);
    expect((await raw("GET", "")).json.code_length).toBe(8);
  });

  it("codeLength: that the guess budget forbids one is in the reason of the 400, and in the log once", async () => {
    const { raw, log } = await serve({ wire: { codeLength: 4 } });
    for (let creates = 0; creates < 2; creates++) {
      const reason = expect.stringContaining("CodeLength 4 is not allowed: the guess budget is broken");
      expect((await raw("POST", "/Verifications", sms)).json).toMatchObject({ code: 60200, details: { reason } });
    }
    expect(log.lines.filter(({ message }) => message.includes("guess budget"))).toHaveLength(1);
  });

  it("without baseUrl, URLs contain the request's host", async () => {
    const { raw, url, sids } = await serve();
    expect((await raw("GET", "")).json.url).toBe(`${url.replace("http:", "https:")}/v2/Services/${sids.service}`);
  });

  it("unknown options and invalid values are rejected", () => {
    const verifier = createVerifier({ store: memoryStore(), sender: inbox(), secret, countries: ["FR"], callbacks: { worker: false }, logger: logger() });
    const wrong = () => twilioVerify(verifier, { autoChannel: "call", baseUrl: "otp.example.com/", codeLength: 3, friendlyName: "", name: 1 } as never);
    expect(wrong).toThrow(VerifierError);
    for (const part of [
      'autoChannel must be "sms"',
      "baseUrl must be an address",
      "codeLength must be",
      "friendlyName must not be empty",
      "name is not an option",
    ])
      expect(wrong).toThrow(`twilioVerify.${part}`);
    expect(twilioVerify(verifier).unmountable).toContain("/v2/Services is for customers with API keys");
  });
});

it("a verification that the app itself starts for the number is separate", async () => {
  const { raw, verifier, customer, box } = await serve();
  await verifier.verifications.start({ customer_uuid: customer, phone_number: to });
  expect((await raw("POST", "/VerificationCheck", { To: to, Code: box.code() })).status).toBe(404);
  expect((await raw("GET", `/Verifications/${to}`)).status).toBe(404);
  expect((await verifier.verifications.check({ customer_uuid: customer, phone_number: to, check_code: box.code() })).status).toBe("valid");
});

it("one customer cannot see or end another's verification", async () => {
  const [mine, other] = [crypto.randomUUID(), crypto.randomUUID()];
  const keyOf = (uuid: string) => `pp_${uuid}${uuid}`;
  const { raw, box } = await serve({ verifier: { customers: [mine, other].map((customer_uuid) => ({ customer_uuid, keys: [keyOf(customer_uuid)] })) } });
  const as = (uuid: string) => ({ authorization: `Basic ${btoa(`AC${hexOf(uuid)}:${keyOf(uuid)}`)}` });
  const { json } = await raw("POST", `/v2/Services/VA${hexOf(mine)}/Verifications`, sms, as(mine));
  const at = (uuid: string) => `/v2/Services/VA${hexOf(uuid)}`;
  for (const service of [at(mine), at(other)]) {
    expect((await raw("GET", `${service}/Verifications/${json.sid}`, undefined, as(other))).status).toBe(404);
    expect((await raw("POST", `${service}/Verifications/${json.sid}`, { Status: "canceled" }, as(other))).status).toBe(404);
    expect((await raw("POST", `${service}/VerificationCheck`, { VerificationSid: String(json.sid), Code: box.code() }, as(other))).status).toBe(404);
  }
  expect((await raw("POST", `${at(mine)}/VerificationCheck`, { To: to, Code: box.code() }, as(mine))).json.status).toBe("approved");
});

describe("transport", () => {
  it("404, 405, 413, 400, 503 and 500 are in the wire's format", async () => {
    const { raw, store, log, verifier } = await serve();
    expect(await raw("GET", "/VerificationChecks")).toMatchObject({ status: 404, json: { code: 20404 } });
    const wrongMethod = await raw("GET", "/Verifications");
    expect([wrongMethod.status, wrongMethod.json.code, wrongMethod.headers.get("allow")]).toEqual([405, 20004, "POST"]);
    expect(await raw("POST", "/Verifications", { ...sms, Tags: "x".repeat(16 * 1024) })).toMatchObject({ status: 413, json: { code: 60200 } });
    const json = { "content-type": "application/json" };
    expect(await raw("POST", "/Verifications", JSON.stringify(sms), json)).toMatchObject({
      status: 400,
      json: { code: 60200, message: "The content-type must be application/x-www-form-urlencoded." },
    });
    (store as { commit: unknown }).commit = async () => Promise.reject(new Error("down"));
    const down = await raw("POST", "/Verifications", sms);
    expect([down.status, down.json.code, down.json.message, down.headers.get("retry-after")]).toEqual([
      503,
      20503,
      "Service is unavailable. Please try again",
      "2",
    ]);
    (verifier.verifications as { start: unknown }).start = () => Promise.reject(new Error("hunter2"));
    const failed = await raw("POST", "/Verifications", sms);
    expect([failed.status, failed.json.code, failed.text.includes("hunter2")]).toEqual([500, 20500, false]);
    expect(log.lines.some(({ message }) => message.includes("hunter2"))).toBe(true);
  });

  it("the 404 of a path that is not its own suggests nothing, and one of its own is named with its prefix", async () => {
    const { verifier } = await serve();
    const messageOf = async (path: string, basePath: string) => {
      const answer = await fetchHandler(twilioVerify(verifier), { basePath })(new Request(`http://localhost${path}`));
      return ((await answer.json()) as { message: string }).message;
    };
    for (const basePath of ["", "/api"])
      for (const path of ["/", "/favicon.ico"]) expect(await messageOf(path, basePath)).toBe(`The requested resource ${path} was not found`);
    expect(await messageOf("/api/v2/Services/VA0", "")).toBe(
      'The requested resource /api/v2/Services/VA0 was not found. The path asked for is /api/v2/Services/{Service}, and the handler is mounted under "": give it { basePath: "/api" }.',
    );
  });

  it("creates no lazy verifier before the first request", async () => {
    let created = 0;
    const [customer_uuid, key] = [crypto.randomUUID(), `pp_${"k".repeat(60)}`];
    const box = inbox();
    const verifier = lazyVerifier(() => {
      created++;
      const options = { store: memoryStore(), sender: box, secret, countries: ["FR" as const], callbacks: { worker: false }, logger: logger() };
      return { ...options, customers: [{ customer_uuid, keys: [key] }] };
    });
    const wire = twilioVerify(verifier);
    expect(created).toBe(0);
    const headers: Record<string, string> = {
      authorization: `Basic ${btoa(`AC${hexOf(customer_uuid)}:${key}`)}`,
      "content-type": "application/x-www-form-urlencoded",
    };
    const request = async (path: string, body: Record<string, string>) => {
      const text = new URLSearchParams(body).toString();
      const whole = `/v2/Services/VA${hexOf(customer_uuid)}${path}`;
      const { body: given } = await wire.handle({ method: "POST", path: whole, header: (name) => headers[name], body: async () => ({ kind: "text", text }) });
      return (JSON.parse(given) as { status: string }).status;
    };
    expect(await request("/Verifications", sms)).toBe("pending");
    expect(await request("/VerificationCheck", { To: to, Code: box.code() })).toBe("approved");
    expect(created).toBe(1);
  });
});
