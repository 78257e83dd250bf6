import { afterEach, describe, expect, it } from "vitest";
import { africasTalkingSender } from "../../adapters/sms/africastalking.js";
import { awsSender } from "../../adapters/sms/aws.js";
import { httpSender } from "../../adapters/sms/http.js";
import { infobipSender } from "../../adapters/sms/infobip.js";
import { messageBirdSender } from "../../adapters/sms/messagebird.js";
import { plivoSender } from "../../adapters/sms/plivo.js";
import { sinchSender } from "../../adapters/sms/sinch.js";
import { telnyxSender } from "../../adapters/sms/telnyx.js";
import { twilioSender } from "../../adapters/sms/twilio.js";
import { vonageSender } from "../../adapters/sms/vonage.js";
import type { CodeMessage, SmsSender } from "../../src/ports/sms-sender.js";
import { africasTalkingOptions } from "../support/carriers/africastalking.js";
import { carriers } from "../support/carriers/all.js";
import { awsOptions } from "../support/carriers/aws.js";
import { infobipOptions } from "../support/carriers/infobip.js";
import { messageBirdOptions } from "../support/carriers/messagebird.js";
import { aMessage, inTime, reference } from "../support/carriers/messages.js";
import { plivoOptions } from "../support/carriers/plivo.js";
import { type CarrierScript, type Reply, type RunningCarrier, startCarrier } from "../support/carriers/server.js";
import { sinchOptions } from "../support/carriers/sinch.js";
import { telnyxOptions } from "../support/carriers/telnyx.js";
import { twilioOptions } from "../support/carriers/twilio.js";
import { vonageOptions } from "../support/carriers/vonage.js";

const running: RunningCarrier[] = [];
afterEach(async () => {
  for (const carrier of running.splice(0)) await carrier.close();
});

/** Every carrier over HTTP, with further options. */
const senders: Readonly<Record<string, (more: object) => SmsSender>> = {
  twilio: (more) => twilioSender({ ...twilioOptions, ...more }),
  vonage: (more) => vonageSender({ ...vonageOptions, ...more }),
  aws: (more) => awsSender({ ...awsOptions, ...more }),
  messagebird: (more) => messageBirdSender({ ...messageBirdOptions, ...more }),
  plivo: (more) => plivoSender({ ...plivoOptions, ...more }),
  sinch: (more) => sinchSender({ ...sinchOptions, ...more }),
  infobip: (more) => infobipSender({ baseUrl: "https://x.api.infobip.com", ...infobipOptions, ...more }),
  telnyx: (more) => telnyxSender({ ...telnyxOptions, ...more }),
  africastalking: (more) => africasTalkingSender({ ...africasTalkingOptions, ...more }),
};
const names = Object.keys(senders);
const scriptOf = (name: string) =>
  carriers.find((carrier) =>
    carrier.name
      .toLowerCase()
      .replace(/[^a-z]/g, "")
      .startsWith(name),
  ) as CarrierScript;

/** Sends one message by a carrier that accepts it; returns the outcome, and the request's fields as one record. */
async function asked(name: string, more: object = {}, message: CodeMessage = aMessage()) {
  const carrier = await startCarrier(scriptOf(name), "accepts");
  running.push(carrier);
  const outcome = await senders[name]!({ ...more, baseUrl: carrier.url }).send(message, inTime());
  const body = carrier.requests[0]?.body ?? "{}";
  const fields = body.startsWith("{") ? (JSON.parse(body) as Record<string, unknown>) : Object.fromEntries(new URLSearchParams(body));
  return { outcome, fields, requests: carrier.requests };
}

/** The value at a path of keys. */
const at = (fields: unknown, path: string): unknown => path.split(".").reduce((here, key) => (here as Record<string, unknown> | undefined)?.[key], fields);

describe("a code must not arrive after it expires: every carrier with a validity field gets it", () => {
  const soon = (seconds: number) => aMessage({ expires_at: inTime().deadline - inTime().timeLeft + seconds * 1000 + 500 });

  it.each<[string, string, (seconds: number) => unknown, least: number]>([
    ["twilio", "ValidityPeriod", String, 1],
    ["vonage", "ttl", Number, 20],
    ["aws", "TimeToLive", Number, 5],
    ["messagebird", "validity", Number, 1],
    ["plivo", "message_expiry", Number, 5],
    ["infobip", "messages.0.options.validityPeriod.amount", Number, 1],
  ])("%s: %s, in seconds", async (name, path, put, least) => {
    expect(at((await asked(name, {}, soon(300))).fields, path)).toEqual(put(300));
    expect(at((await asked(name, {}, soon(1))).fields, path), "the carrier's least").toEqual(put(least));
  });

  it("infobip: sets the unit to seconds, which is not its default; sinch: sends the time itself", async () => {
    expect(at((await asked("infobip")).fields, "messages.0.options.validityPeriod.timeUnit")).toBe("SECONDS");
    const message = aMessage();
    expect((await asked("sinch", {}, message)).fields["expire_at"]).toBe(new Date(message.expires_at).toISOString());
  });

  it.each(names)("%s: a message whose code has expired is rejected and not sent", async (name) => {
    const { outcome, requests } = await asked(name, {}, soon(-1));
    expect(outcome).toEqual({ outcome: "rejected", reason: "not sent: its code has ended" });
    expect(requests).toEqual([]);
  });

  it("a validity in `extra` overrides ours", async () => {
    expect((await asked("twilio", { extra: { ValidityPeriod: "60" } })).fields["ValidityPeriod"]).toBe("60");
    const extra = { options: { validityPeriod: { amount: 2, timeUnit: "MINUTES" } } };
    expect(at((await asked("infobip", { extra })).fields, "messages.0.options.validityPeriod")).toEqual(extra.options.validityPeriod);
  });
});

describe("`extra` per country or message", () => {
  it.each<[string, object | ((message: CodeMessage) => object | undefined), string | undefined, unknown]>([
    ["for all", { tag: "a" }, "FR", "a"],
    ["by country", { IN: { tag: "in" }, default: { tag: "rest" } }, "IN", "in"],
    ["by country, the rest", { IN: { tag: "in" }, default: { tag: "rest" } }, "FR", "rest"],
    ["by country, none", { IN: { tag: "in" } }, "FR", undefined],
    ["without a country", { IN: { tag: "in" }, default: { tag: "rest" } }, undefined, "rest"],
    ["by a rule", ({ country }: CodeMessage) => ({ tag: country }), "FR", "FR"],
    ["by a rule that has nothing", () => undefined, "FR", undefined],
    ["no map: a field with another name", { IN: { tag: "in" }, kind: "otp" }, "IN", undefined],
  ])("%s", async (_, extra, country, tag) => {
    const { country: __, ...message } = aMessage();
    expect((await asked("plivo", { extra }, country === undefined ? message : { ...message, country })).fields["tag"]).toBe(tag);
  });

  it("a function that throws gives `rejected` with its cause", async () => {
    const extra = () => {
      throw new TypeError("no template for 493817");
    };
    expect((await asked("plivo", { extra })).outcome).toEqual({
      outcome: "rejected",
      reason: "not sent: option extra failed: TypeError: no template for ******",
    });
  });

  it("an `extra` that is not an object throws at construction", () => {
    for (const extra of ["x", 7, [], null]) expect(() => senders["plivo"]!({ extra })).toThrow(/option extra is not an object of fields/);
  });
});

describe("registered texts: their ids are sent in the carrier's own fields", () => {
  const message = aMessage({ country: "IN", registered: { entity: "1101000000001", template: "1107000000002" } });
  it.each([
    ["plivo", { dlt_entity_id: "1101000000001", dlt_template_id: "1107000000002" }],
    ["aws", { DestinationCountryParameters: { IN_ENTITY_ID: "1101000000001", IN_TEMPLATE_ID: "1107000000002" } }],
    ["vonage", { sms: { entity_id: "1101000000001", content_id: "1107000000002" } }],
  ])("%s", async (name, fields) => {
    expect((await asked(name, { from: "ACME" }, message)).fields).toMatchObject(fields);
  });

  it("infobip", async () => {
    expect(at((await asked("infobip", {}, message)).fields, "messages.0.options.regional.indiaDlt")).toEqual({
      principalEntityId: "1101000000001",
      contentTemplateId: "1107000000002",
    });
  });

  it("no carrier gets such fields for other texts", async () => {
    for (const name of names) expect(JSON.stringify((await asked(name)).fields)).not.toMatch(/dlt|DestinationCountry|entity_|"sms":/i);
  });
});

describe("checked at construction", () => {
  it.each(names.filter((name) => name !== "aws"))("%s: a sender id with letters has up to 11 characters", (name) => {
    for (const from of ["TwelveLetter", { FR: "TwelveLetter" }])
      expect(() => senders[name]!({ from })).toThrow(/option from(\.FR)? has 12 characters, and phones show 11 of a sender id with letters in it/);
    for (const from of ["ElevenChars", "+15005550006", "123456789012345"]) expect(() => senders[name]!({ from })).not.toThrow();
  });

  it("aws: its own identifiers may be longer", () => {
    expect(() => senders["aws"]!({ from: "arn:aws:sms-voice:eu-west-1:123456789012:pool/pool-0123456789abcdef" })).not.toThrow();
  });

  it.each(names)("%s: reports the countries that it has no sender for, and whose receipts it requests", (name) => {
    const some = senders[name]!({ from: { FR: "ACME" } });
    expect(["FR", "DE"].map((country) => some.reaches?.(country))).toEqual([true, false]);
    for (const from of ["ACME", { FR: "ACME", default: "ACME" }, () => undefined]) expect(senders[name]!({ from }).reaches?.("DE")).toBe(true);
    expect(some.receiptProviders).toEqual([name]);
    expect(senders[name]!({ receipts: false }).receiptProviders).toBeUndefined();
  });

  it("twilio: a sender with a messaging service reaches every country", () => {
    expect(senders["twilio"]!({ from: { FR: "ACME" }, messagingServiceSid: "MG1" }).reaches?.("DE")).toBe(true);
  });

  it("http: requests receipts if its template contains them, or finds them by the carrier's id", () => {
    const url = "https://sms.example/?t={text}";
    expect(httpSender({ url }).receiptProviders).toBeUndefined();
    expect(httpSender({ url: `${url}&cb={receipt_url}`, provider: "kannel" }).receiptProviders).toEqual(["kannel"]);
    expect(httpSender({ url: `${url}&ref={reference}` }).receiptProviders).toEqual(["http"]);
    expect(httpSender({ url, provider: "gupshup", messageId: "id", receiptsById: true }).receiptProviders).toEqual(["gupshup"]);
    expect(() => httpSender({ url, receiptsById: true })).toThrow(/option messageId is missing, and receiptsById finds messages by it/);
  });
});

it.each(names)("%s: with receipts: false a message requests none", async (name) => {
  const message = aMessage({ receipt_reference: reference, receipt_url: `https://otp.example/receipts/{provider}?r=${reference}` });
  const { outcome, requests } = await asked(name, { receipts: false }, message);
  expect(outcome).toMatchObject({ outcome: "accepted" });
  expect(outcome).not.toHaveProperty("idSpace");
  expect(requests[0]?.body).not.toContain(reference);
});

describe("the reason in an outcome contains the cause", () => {
  it("aws: credentials that cannot be loaded", async () => {
    const credentials = async () => {
      throw Object.assign(new Error("Could not load credentials from any providers"), { name: "CredentialsProviderError" });
    };
    expect((await asked("aws", { credentials })).outcome).toEqual({
      outcome: "rejected",
      reason: "not sent: the request could not be made: CredentialsProviderError: Could not load credentials from any providers",
    });
    expect((await asked("aws", { credentials: () => undefined })).outcome).toMatchObject({
      outcome: "rejected",
      reason: expect.stringMatching(/^not sent: the request could not be made: TypeError: awsSender: option credentials is missing\./),
    });
  });

  it.each([
    ["a name that does not exist", "http://carrier.invalid", /^not sent: no connection, code (ENOTFOUND|EAI_AGAIN)$/],
    ["nobody there", "http://127.0.0.1:1023", /^not sent: no connection, code ECONNREFUSED$/],
  ])("%s", async (_, baseUrl, reason) => {
    expect(await senders["twilio"]!({ baseUrl }).send(aMessage(), inTime())).toEqual({ outcome: "rejected", reason: expect.stringMatching(reason) });
  });

  it("an expired certificate and a connection reset carry the system's error code", async () => {
    const failing = (code: string, more: object = {}) =>
      senders["twilio"]!({
        fetch: () => Promise.reject(new TypeError("fetch failed", { cause: Object.assign(new Error("+14155552671"), { code, ...more }) })),
      });
    expect(await failing("CERT_HAS_EXPIRED").send(aMessage(), inTime())).toEqual({
      outcome: "rejected",
      reason: "not sent: no connection, code CERT_HAS_EXPIRED",
    });
    expect(await failing("ECONNRESET", { syscall: "read" }).send(aMessage(), inTime())).toEqual({
      outcome: "unknown",
      reason: "no response, code ECONNRESET",
    });
  });
});

describe("conversions reported back to the carriers that accept them", () => {
  const told = { event: "validated", authentication_uuid: "a", attempt: 1, sent_at: 0, chosen: true } as const;
  const ok: Reply = { status: 200, body: "{}" };

  it.each<[string, object, string, RegExp]>([
    ["twilio", {}, "SM1", /^POST \/2010-04-01\/Accounts\/\w+\/Messages\/SM1\/Feedback\.json Outcome=confirmed$/],
    ["vonage", {}, "uuid-1", /^POST \/conversions\/sms\?message-id=uuid-1&delivered=true&timestamp=\d{4}-\d\d-\d\d\+\d\d%3A\d\d%3A\d\d $/],
    ["infobip", {}, "a/b/1", /^POST \/ct\/1\/log\/end\/a%2Fb%2F1 \{\}$/],
    ["sinch", {}, "01BATCH", /^POST \/xms\/v1\/[\w%-]+\/batches\/01BATCH\/delivery_feedback \{"recipients":\[\]\}$/],
    ["plivo", {}, "db3c/1", /^POST \/v1\/account\/MAX+\/message\/db3c%2F1\/conversion\/ \{"status":"CONVERTED","timestamp":"\d{4}-\d\d-\d\dT[\d:]{8}Z"\}$/],
    ["aws", {}, "m-1", /^POST \/ \{"MessageId":"m-1","MessageFeedbackStatus":"RECEIVED"\}$/],
  ])("%s: reports a code that was entered, and nothing else", async (name, more, messageId, expected) => {
    const script: CarrierScript = { ...scriptOf(name), take: () => ({ reply: ok }) };
    const carrier = await startCarrier(script, "accepts");
    running.push(carrier);
    const sender = senders[name]!({ ...more, conversions: true, baseUrl: carrier.url });
    await sender.feedback?.({ ...told, messageId, event: "delivered" });
    await sender.feedback?.(told);
    expect(carrier.requests).toEqual([]);
    await sender.feedback?.({ ...told, messageId });
    expect(carrier.requests.map(({ method, url, body }) => `${method} ${url.pathname}${url.search} ${body}`)).toEqual([expect.stringMatching(expected)]);
    expect(carrier.requests[0]?.headers["authorization"]).toMatch(/^(AWS4-HMAC-SHA256|Basic|App|Bearer) /);
  });

  it.each(["twilio", "vonage", "aws", "infobip", "sinch", "plivo"])("%s: requests tracking in the send and has the id stored, if turned on", async (name) => {
    const asks = /"MessageFeedbackEnabled":true|ProvideFeedback|"useConversionTracking":true|"(feedback_enabled|trackable)":true/;
    const [on, off] = [await asked(name, { conversions: true }), await asked(name)];
    expect(on.outcome).toMatchObject({ outcome: "accepted", keepId: true });
    expect(off.outcome).not.toHaveProperty("keepId");
    if (name !== "vonage") expect(JSON.stringify(on.fields)).toMatch(asks);
    expect(JSON.stringify(off.fields)).not.toMatch(asks);
    expect(senders[name]!({}).feedback).toBeUndefined();
  });

  it("a response outside 200 to 299 rejects the call, for the log; beyond a hundred in progress none is reported", async () => {
    const script: CarrierScript = { ...scriptOf("twilio"), take: () => ({ reply: { status: 404, body: "{}" } }) };
    const carrier = await startCarrier(script, "accepts");
    running.push(carrier);
    const sender = senders["twilio"]!({ conversions: true, baseUrl: carrier.url });
    await expect(sender.feedback?.({ ...told, messageId: "SM1" })).rejects.toThrow("twilio responded with HTTP 404 to a conversion");
    const many = await Promise.allSettled(Array.from({ length: 150 }, () => sender.feedback?.({ ...told, messageId: "SM1" })));
    expect(many.filter(({ status }) => status === "fulfilled")).toHaveLength(50);
    expect(carrier.requests).toHaveLength(101);
  });

  it("infobip: requests tracking in the options of the whole request, because a message's options have no such field", async () => {
    const { fields } = await asked("infobip", { conversions: true, extra: { options: { flash: false } } });
    expect(fields).toMatchObject({ options: { conversionTracking: { useConversionTracking: true } }, messages: [{ options: { flash: false } }] });
    expect(JSON.stringify((fields as { messages: unknown }).messages)).not.toContain("conversionTracking");
  });

  it.each(names.filter((name) => !["twilio", "vonage", "aws", "infobip", "sinch", "plivo"].includes(name)))(
    "%s: accepts no conversions, so the option throws at construction",
    (name) => {
      expect(() => senders[name]!({ conversions: true })).toThrow(/option conversions has no effect: this carrier takes no conversions/);
    },
  );

  it("vonage: needs the API key", () => {
    expect(() => vonageSender({ from: "x", applicationId: "a", privateKey: "x", conversions: true } as never)).toThrow();
  });
});
