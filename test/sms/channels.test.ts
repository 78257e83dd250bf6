import { afterEach, describe, expect, it } from "vitest";
import { telegramSender } from "../../adapters/sms/telegram.js";
import { twilioWhatsappSender } from "../../adapters/sms/twilio.js";
import { vonageWhatsappSender } from "../../adapters/sms/vonage.js";
import { whatsappReceipts, whatsappSender } from "../../adapters/sms/whatsapp.js";
import type { CodeMessage, SmsSender } from "../../src/ports/sms-sender.js";
import { createTestVerifier } from "../../src/testing/test-verifier.js";
import { aMessage, inTime, reference } from "../support/carriers/messages.js";
import { signWhatsapp, statusWebhook } from "../support/carriers/receipts.js";
import { type CarrierScript, json, type Mood, type Reply, type RunningCarrier, startCarrier } from "../support/carriers/server.js";
import { telegramCarrier, telegramOptions } from "../support/carriers/telegram.js";
import {
  twilioWhatsappCarrier,
  twilioWhatsappOptions,
  vonageWhatsappCarrier,
  vonageWhatsappOptions,
  whatsappCarrier,
  whatsappOptions,
} from "../support/carriers/whatsapp.js";

const running: RunningCarrier[] = [];
afterEach(async () => {
  for (const carrier of running.splice(0)) await carrier.close();
});

async function start(script: CarrierScript, mood: Mood = "accepts"): Promise<RunningCarrier> {
  const carrier = await startCarrier(script, mood);
  running.push(carrier);
  return carrier;
}

const receipts = { receipt_reference: reference, receipt_url: `https://otp.example/receipts/{provider}?r=${reference}` };

/** Sends a message with receipts to a carrier that accepts it, or that has this mood. */
async function send(script: CarrierScript, make: (baseUrl: string) => SmsSender, fields: Partial<CodeMessage> = {}, mood: Mood = "accepts") {
  const { url, requests, taken } = await start(script, mood);
  const outcome = await make(url).send(aMessage({ ...receipts, ...fields }), inTime());
  const body = requests[0]?.body ?? "{}";
  const asked: Record<string, unknown> = body.startsWith("{") ? JSON.parse(body) : Object.fromEntries(new URLSearchParams(body));
  return { outcome, asked, taken, requests };
}

describe("telegram", () => {
  const telegram =
    (more: object = {}) =>
    (baseUrl: string) =>
      telegramSender({ ...telegramOptions, ...more, baseUrl });

  it("passes code, reference and receipt URL, and returns id and price", async () => {
    const { outcome, taken } = await send(telegramCarrier, telegram({ senderUsername: "@acme_codes" }));
    expect(outcome).toEqual({ outcome: "accepted", messageId: "10000001", price: 0.01 });
    expect(taken).toEqual([
      { to: "+14155552671", text: "493817", from: "acme_codes", receiptUrl: `https://otp.example/receipts/telegram?r=${reference}`, reference },
    ]);
  });

  it.each([
    [{}, 600, 600],
    [{}, 7200, 3600],
    [{}, 10, 30],
    [{ ttl: 60 }, 600, 60],
    [{ ttl: 60 }, 45, 45],
  ])("with %j, a code that is valid for %i s gets a ttl of %i s", async (options, life, ttl) => {
    expect((await send(telegramCarrier, telegram(options), { expires_at: Date.now() + life * 1000 + 900 })).asked["ttl"]).toBe(ttl);
  });

  it.each(["123", "123456789", "12345a"])("does not send the code %s, which Telegram would reject, and names the option to change", async (code) => {
    const { outcome, requests } = await send(telegramCarrier, telegram(), { code });
    expect(outcome).toEqual({ outcome: "rejected", reason: expect.stringContaining("codes of 4 to 8 digits only: set policy.codeLength to 8 or less") });
    expect(requests).toEqual([]);
  });

  const error = (error: string, status = 200) => json(status, { ok: false, error });
  it.each<[Reply, object]>([
    [error("PHONE_NUMBER_NOT_FOUND"), { outcome: "rejected", unreachable: true, reason: "rejected by the carrier, code PHONE_NUMBER_NOT_FOUND" }],
    [error("PHONE_NUMBER_NOT_AVAILABLE", 400), { outcome: "rejected", unreachable: true, reason: "rejected by the carrier, code PHONE_NUMBER_NOT_AVAILABLE" }],
    [error("PHONE_NUMBER_INVALID"), { outcome: "rejected", reason: "rejected by the carrier, code PHONE_NUMBER_INVALID" }],
    [error("BALANCE_NOT_ENOUGH"), { outcome: "rejected", reason: "rejected by the carrier, code BALANCE_NOT_ENOUGH" }],
    [error("ACCESS_TOKEN_INVALID", 401), { outcome: "rejected", reason: "rejected by the carrier, code ACCESS_TOKEN_INVALID" }],
    [error("MESSAGE_ALREADY_SENT"), { outcome: "accepted" }],
    [error("INTERNAL", 502), { outcome: "unknown", reason: "HTTP 502, code INTERNAL" }],
    [json(200, { ok: true, result: {} }), { outcome: "unknown", reason: "the carrier's response is not in the expected format" }],
  ])("%j is %j", async (reply, outcome) => {
    expect((await send(telegramCarrier, telegram(), {}, reply)).outcome).toEqual(outcome);
  });

  it.each([29, 3601, 60.5, Number.NaN, "60"])("rejects a ttl of %s", (ttl) => {
    expect(() => telegramSender({ ...telegramOptions, ttl: ttl as number })).toThrow(/option ttl must be a whole number of seconds from 30 to 3600/);
  });
});

describe("the language of a template: the requested one, else the country's, else the default", () => {
  const contents = { fr: `HX${"f".repeat(32)}`, default: `HX${"0".repeat(32)}` };
  it.each([
    [{ locale: "fr-CA", country: "US" }, "fr"],
    [{ locale: "FR", country: "US" }, "fr"],
    [{ country: "FR" }, "fr"],
    [{ locale: "sv", country: "FR" }, "fr"],
    [{ country: "US" }, "default"],
    [{ country: undefined }, "default"],
  ] as const)("%j: %s", async (fields, key) => {
    const meta = await send(whatsappCarrier, (baseUrl) => whatsappSender({ ...whatsappOptions, baseUrl }), fields);
    expect(meta.asked).toMatchObject({ template: { language: { code: key === "fr" ? "fr" : "en_US" } } });
    const twilio = await send(twilioWhatsappCarrier, (baseUrl) => twilioWhatsappSender({ ...twilioWhatsappOptions, contentSid: contents, baseUrl }), fields);
    expect(twilio.asked["ContentSid"]).toBe(contents[key]);
  });

  it("is passed to the sender as requested", async () => {
    await using test = createTestVerifier();
    await test.verifier.verifications.start({ phone_number: "+14155552671", locale: "pt-BR" });
    await test.verifier.createAuthentication({ phone_number: "+14155552672" });
    expect(test.inbox.messages.map(({ locale }) => locale)).toEqual(["pt-BR", undefined]);
  });

  it.each([
    [undefined, /option languages is missing/],
    ["", /option languages must be a non-empty string/],
    [{ fr: "fr" }, /option languages\.default is missing/],
    [{ default: "en_US", french_: "fr" }, /option languages\.french_ is not a language tag/],
    [{ default: "en_US", fr: 7 }, /option languages\.fr must be a non-empty string/],
  ])("rejects languages of %j", (languages, message) => {
    expect(() => whatsappSender({ ...whatsappOptions, languages: languages as never })).toThrow(message);
  });
});

describe("whatsapp", () => {
  const whatsapp =
    (more: object = {}) =>
    (baseUrl: string) =>
      whatsappSender({ ...whatsappOptions, ...more, baseUrl });

  it("passes code and reference, and has the id stored, because not every webhook echoes the reference", async () => {
    const { outcome, taken } = await send(whatsappCarrier, whatsapp());
    expect(outcome).toEqual({ outcome: "accepted", messageId: expect.stringMatching(/^wamid\./), idSpace: "whatsapp" });
    expect(taken).toEqual([{ to: "+14155552671", text: "493817", reference }]);
    expect((await send(whatsappCarrier, whatsapp({ receipts: false }))).outcome).not.toHaveProperty("idSpace");
  });

  const error = (status: number, code: number) => json(status, { error: { message: "(#1) 14155552671", code } });
  it.each<[Reply, object]>([
    [error(400, 131026), { outcome: "rejected", unreachable: true, reason: "HTTP 400, code 131026" }],
    [error(400, 131030), { outcome: "rejected", reason: "HTTP 400, code 131030" }],
    [error(401, 190), { outcome: "rejected", reason: "HTTP 401, code 190" }],
    [error(403, 10), { outcome: "rejected", reason: "HTTP 403, code 10" }],
    [error(500, 131000), { outcome: "unknown", reason: "HTTP 500, code 131000" }],
    [error(503, 131016), { outcome: "unknown", reason: "HTTP 503, code 131016" }],
    [json(200, { messages: [] }), { outcome: "unknown", reason: "the carrier's response is not in the expected format" }],
  ])("%j is %j", async (reply, outcome) => {
    expect((await send(whatsappCarrier, whatsapp(), {}, reply)).outcome).toEqual(outcome);
  });

  it("calls the API version in its options", async () => {
    expect((await send(whatsappCarrier, whatsapp({ version: "v26.0" }))).requests[0]?.url.pathname).toBe("/v26.0/106540352242922/messages");
    expect(() => whatsappSender({ ...whatsappOptions, version: "25" })).toThrow(/option version is not a version of the Graph API such as v25\.0/);
  });

  it("in a service: finds a failed message by its id alone and a read one by its reference alone, and returns Meta's challenge", async () => {
    const { url, taken } = await start(whatsappCarrier);
    const source = whatsappReceipts({ appSecret: "meta-app-secret", verifyToken: "verify-token" });
    await using test = createTestVerifier({ sender: whatsappSender({ ...whatsappOptions, baseUrl: url }), receipts: { sources: [source] } as never });
    const { verifier, clock } = test;
    const post = async (status: object) => {
      const { body, header } = await signWhatsapp(statusWebhook(status), { at: clock.now() });
      return verifier.receipts.handle({ method: "POST", path: "/receipts/whatsapp", query: "", header, body: async () => ({ kind: "bytes", bytes: body }) });
    };
    const callback_url = "https://callbacks.example/otp";
    const ask = (phone_number: string) => verifier.createAuthentication({ phone_number, callback_url });
    await ask("+14155552671");
    await ask("+14155552672");
    const failed = { status: "failed", timestamp: String(clock.now() / 1000), errors: [{ code: 131026 }] };
    expect(await post({ id: "wamid.HBgLMTQxNTU1NTI2NzEVAgARGBI00000001==", ...failed })).toMatchObject({ status: 200 });
    expect(await post({ id: "wamid.unknown", biz_opaque_callback_data: taken[1]?.reference, status: "read", timestamp: failed.timestamp })).toMatchObject({
      status: 200,
    });
    await test.flush();
    const told = test.callbacks.map(({ event }) => event.data.status);
    expect(told.filter((status) => status === "undeliverable")).toHaveLength(1);
    expect(told.filter((status) => status === "delivered")).toHaveLength(1);
    const verification = await verifier.receipts.handle({
      method: "GET",
      path: "/receipts/whatsapp",
      query: "?hub.mode=subscribe&hub.verify_token=verify-token&hub.challenge=42",
      header: () => undefined,
      body: async () => ({ kind: "bytes", bytes: new Uint8Array() }),
    });
    expect(verification).toMatchObject({ status: 200, body: "42", headers: { "content-type": "text/plain" } });
  });
});

describe("whatsapp through carriers", () => {
  it("twilio: sends content instead of a text; a number that is not on WhatsApp is unreachable", async () => {
    const make = (baseUrl: string) => twilioWhatsappSender({ ...twilioWhatsappOptions, baseUrl });
    const { asked, outcome } = await send(twilioWhatsappCarrier, make);
    expect(outcome).toEqual({ outcome: "accepted", messageId: expect.stringMatching(/^SM/) });
    expect(asked).toEqual({
      To: "whatsapp:+14155552671",
      From: "whatsapp:+15005550006",
      ContentSid: `HX${"0".repeat(32)}`,
      ContentVariables: '{"1":"493817"}',
      StatusCallback: `https://otp.example/receipts/twilio?r=${reference}`,
    });
    const refused = (code: number) => send(twilioWhatsappCarrier, make, {}, json(400, { code }));
    for (const code of [63003, 63024])
      expect((await refused(code)).outcome).toEqual({ outcome: "rejected", reason: `HTTP 400, code ${code}`, unreachable: true });
    expect((await refused(63016)).outcome).toEqual({ outcome: "rejected", reason: "HTTP 400, code 63016" });
    const failed = (error_code: number) => send(twilioWhatsappCarrier, make, {}, json(201, { sid: "MM1", status: "failed", error_code }));
    expect((await failed(63024)).outcome).toEqual({ outcome: "rejected", reason: "rejected by the carrier, code 63024", unreachable: true });
    expect((await failed(63016)).outcome).toEqual({ outcome: "rejected", reason: "rejected by the carrier, code 63016" });
  });

  it("vonage: sends a custom message with the template", async () => {
    const { asked, outcome } = await send(vonageWhatsappCarrier, (baseUrl) => vonageWhatsappSender({ ...vonageWhatsappOptions, baseUrl }));
    expect(outcome).toMatchObject({ outcome: "accepted" });
    expect(asked).toMatchObject({ channel: "whatsapp", message_type: "custom", client_ref: reference, webhook_version: "v1" });
    expect(asked).not.toHaveProperty("text");
  });
});

it.each<[SmsSender, string, string]>([
  [telegramCarrier.sender("https://x.example"), "telegram", "telegram"],
  [whatsappCarrier.sender("https://x.example"), "whatsapp", "whatsapp"],
  [twilioWhatsappCarrier.sender("https://x.example"), "whatsapp", "twilio"],
  [vonageWhatsappCarrier.sender("https://x.example"), "whatsapp", "vonage"],
])("$channel: names its channel and the source of its receipts", (sender, channel, provider) => {
  expect(sender).toMatchObject({ channel, receiptProviders: [provider] });
  expect(sender.reaches?.("DE")).toBe(true);
});
