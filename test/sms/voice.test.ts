import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { afterEach, describe, expect, it } from "vitest";
import { escapeXml, speechFor, spokenCode } from "../../adapters/sms/kit/spoken.js";
import { twilioVoiceReceipts, twilioVoiceSender } from "../../adapters/sms/twilio-voice.js";
import { vonageVoiceReceipts, vonageVoiceSender } from "../../adapters/sms/vonage-voice.js";
import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { CodeMessage, SmsSender } from "../../src/ports/sms-sender.js";
import { createTestVerifier } from "../../src/testing/test-verifier.js";
import { aMessage, aReceipt, inTime, reference } from "../support/carriers/messages.js";
import { signTwilio, signVonage } from "../support/carriers/receipts.js";
import { type RunningCarrier, startCarrier } from "../support/carriers/server.js";
import {
  actionIn,
  digitsIn,
  pressTwilio,
  pressVonage,
  saidIn,
  twilioVoiceCarrier,
  twilioVoiceOptions,
  vonageVoiceCarrier,
  vonageVoiceOptions,
} from "../support/carriers/voice.js";

const running: RunningCarrier[] = [];
afterEach(async () => {
  for (const carrier of running.splice(0)) await carrier.close();
});

const base = { twilio: "https://otp.example/receipts/twiliovoice", vonage: "https://otp.example/receipts/vonagevoice" };
const receipts = { receipt_reference: reference, receipt_url: `https://otp.example/receipts/{provider}?r=${reference}` };

const carriers = { twilio: twilioVoiceCarrier, vonage: vonageVoiceCarrier } as const;
type Name = keyof typeof carriers;
const names = ["twilio", "vonage"] as const;
const make = (name: Name, more: object = {}): SmsSender =>
  name === "twilio" ? twilioVoiceSender({ ...twilioVoiceOptions, ...more }) : vonageVoiceSender({ ...vonageVoiceOptions, ...more });

/** Makes a call; returns the outcome and the request to the carrier. */
async function call(name: Name, more: object = {}, fields: Partial<CodeMessage> = receipts) {
  const carrier = await startCarrier(carriers[name], "accepts");
  running.push(carrier);
  const outcome = await make(name, { ...more, baseUrl: carrier.url }).send(aMessage(fields), inTime());
  const { body = "{}" } = carrier.requests[0] ?? {};
  const asked: Record<string, unknown> = body.startsWith("{") ? JSON.parse(body) : Object.fromEntries(new URLSearchParams(body));
  return { outcome, asked, body, requests: carrier.requests };
}

/** The URL that the carrier requests once a key is pressed. */
const pressedUrl = (name: Name, asked: Record<string, unknown>): string =>
  name === "twilio" ? (actionIn(String(asked["Twiml"])) ?? "") : ((asked["ncco"] as { eventUrl?: string[] }[])[1]?.eventUrl?.[0] ?? "");

const press = (name: Name, url: string, digits = "5", now = Date.now()) => (name === "twilio" ? pressTwilio(url, digits, now) : pressVonage(url, digits, now));

/** The sentences that a reading makes the carrier speak, each as often as it is spoken. */
function saidBy(name: Name, reading: Awaited<ReturnType<typeof press>>): string[] {
  const body = "reply" in reading ? (reading.reply?.body ?? "") : "";
  if (name === "twilio") return saidIn(body);
  return (JSON.parse(body) as { text: string; loop?: number }[]).flatMap(({ text, loop = 1 }) => Array.from({ length: loop }, () => text));
}

it.each([
  ...(["failed", "canceled", "busy", "no-answer"] as const).map((status) => ["twilio", status] as const),
  ...(["failed", "rejected", "timeout", "busy", "cancelled", "unanswered"] as const).map((status) => ["vonage", status] as const),
])("%s: a response of 201 for a call that is %s already is a rejection (docs/contract.md#send-outcome)", async (name, status) => {
  const fetch = async () => Response.json({ sid: "CA1", uuid: "uuid-1", status }, { status: 201 });
  expect(await make(name, { fetch }).send(aMessage(receipts), inTime())).toEqual({ outcome: "rejected", reason: `rejected by the carrier, code ${status}` });
});

describe.each(names)("%s: calls ask for a key press first", (name) => {
  it("the request contains no code; once a key is pressed, the digits are spoken twice, and the call counts as delivered", async () => {
    const { outcome, asked, body } = await call(name);
    expect(outcome).toEqual({ outcome: "accepted", messageId: expect.stringMatching(/^(CA|63f61863)/) });
    expect(body).not.toContain("493817");
    expect(body).not.toContain(spokenCode(speechFor({}), "493817"));
    const reading = await press(name, pressedUrl(name, asked));
    expect(saidBy(name, reading)).toEqual(Array(2).fill("Your verification code is: 4, 9, 3, 8, 1, 7."));
    expect(reading).toMatchObject({ receipts: [{ status: "delivered", messageId: name === "twilio" ? "CA1" : "uuid-1" }] });
  });

  it("no code is spoken without a key, after the code expires, or for another message, another secret or an invalid seal", async () => {
    const { asked } = await call(name, {}, { ...receipts, expires_at: Date.now() + 60_000 });
    const url = pressedUrl(name, asked);
    expect(saidBy(name, await press(name, url, "5", Date.now() + 59_000))).toHaveLength(2);
    const sealed = new URL(url).searchParams.get("sealed") ?? "";
    const silent: [string, string, number][] = [
      [url, "", Date.now()],
      [url, "5", Date.now() + 60_001],
      [url.replace(reference, reference.replace("8", "9")), "5", Date.now()],
      [url.replace(sealed, `${sealed.slice(0, -8)}AAAAAAAA`), "5", Date.now()],
      [url.replace(sealed, ""), "5", Date.now()],
      [url.replace(sealed, "A".repeat(200)), "5", Date.now()],
    ];
    for (const [changed, digits, now] of silent) {
      const reading = await press(name, changed, digits, now);
      expect(saidBy(name, reading)).toEqual([]);
      expect(reading).toMatchObject({ receipts: [] });
    }
    const other = await call(name, name === "twilio" ? { authToken: "another" } : { signatureSecret: "another" });
    expect(saidBy(name, await press(name, pressedUrl(name, other.asked)))).toEqual([]);
  });

  it("a request without the carrier's signature is rejected", async () => {
    const { asked } = await call(name);
    const url = pressedUrl(name, asked);
    const source: ReceiptSource =
      name === "twilio" ? twilioVoiceReceipts({ authToken: "twilio-auth-token" }) : vonageVoiceReceipts({ signatureSecret: "vonage-signature-secret" });
    for (const request of [
      aReceipt({ url, body: name === "twilio" ? "CallSid=CA1&Digits=5" : '{"uuid":"u","dtmf":{"digits":"5"}}' }),
      await (name === "twilio" ? signTwilio : signVonage)(
        { CallSid: "CA1", Digits: "5", uuid: "u", dtmf: { digits: "5" } },
        { at: Date.now(), url, secret: "x" },
      ),
    ])
      expect(await source.read({ ...request, url }, Date.now())).toMatchObject({ refused: "signature" });
  });

  it("two calls with the same code have different URLs", async () => {
    expect(pressedUrl(name, (await call(name)).asked)).not.toBe(pressedUrl(name, (await call(name)).asked));
  });

  it("without receipts a key press cannot be received: rejected at construction, or at the send", async () => {
    expect(() => make(name, { receipts: false })).toThrow(/option receipts is false, and pressKey needs receipts/);
    const { outcome, requests } = await call(name, {}, {});
    expect(outcome).toMatchObject({
      outcome: "rejected",
      reason: expect.stringContaining("pressKey needs the verifier's option receipts; without it, pass pressKey: false"),
    });
    expect(requests).toEqual([]);
  });

  it("pressKey: false speaks the code at once and turns on machine detection", async () => {
    const { asked } = await call(name, { pressKey: false, ...(name === "vonage" && { signatureSecret: undefined }) }, {});
    const said = name === "twilio" ? saidIn(String(asked["Twiml"])) : [(asked["ncco"] as { text: string }[])[0]?.text ?? ""];
    expect(said.map(digitsIn)).toEqual(name === "twilio" ? ["493817", "493817"] : ["493817"]);
    expect(asked).toMatchObject(name === "twilio" ? { MachineDetection: "Enable" } : { machine_detection: "hangup" });
    expect(asked).not.toHaveProperty(name === "twilio" ? "StatusCallback" : "event_url");
    expect((await call(name)).body).not.toMatch(/machine/i);
  });

  it("rings no longer than the code is valid", async () => {
    const ring = name === "twilio" ? "Timeout" : "ringing_timer";
    expect(Number((await call(name)).asked[ring])).toBe(25);
    expect(Number((await call(name, {}, { ...receipts, expires_at: Date.now() + 10_900 })).asked[ring])).toBe(10);
  });

  it("calls only the countries in its list", async () => {
    expect(["FR", "US", "LV"].map((country) => make(name).reaches?.(country))).toEqual([true, true, false]);
    for (const country of ["LV", undefined]) {
      const { outcome, requests } = await call(name, {}, { ...receipts, country });
      expect(outcome).toEqual({ outcome: "rejected", reason: `not sent: option countries does not list ${country ?? "numbers without a country"}` });
      expect(requests).toEqual([]);
    }
    expect(() => make(name, { countries: undefined })).toThrow(/option countries is missing\. Pass the only countries to call/);
    for (const countries of [[], "FR", {}]) expect(() => make(name, { countries })).toThrow(/option countries is not a list of countries/);
    expect(() => make(name, { countries: ["FR", "france"] })).toThrow(/option countries\.1 /);
  });

  it("names its channel and the source of its receipts", () => {
    expect(make(name)).toMatchObject({ channel: "voice", receiptProviders: [`${name}voice`] });
  });
});

describe("vonage", () => {
  it("needs the signature secret for pressKey", () => {
    expect(() => make("vonage", { signatureSecret: undefined })).toThrow(
      /option signatureSecret is missing\. Pass the signature secret .*, or pressKey: false/,
    );
  });
});

describe("the spoken text, in each language", () => {
  const tags = ["en", "fr", "de", "es", "it", "pt", "pt-BR", "nl", "pl", "ru", "tr", "ar", "hi", "zh", "ja", "ko"];
  const types = readFileSync(createRequire(import.meta.url).resolve("twilio/lib/twiml/VoiceResponse.d.ts"), "utf8");

  it.each(tags)("%s has its own sentences and a voice that Twilio offers", (tag) => {
    const speech = speechFor({ locale: tag });
    if (tag !== "en") expect(speech).not.toEqual(speechFor({ locale: "en" }));
    expect(types).toContain(`"Google.${speech.twilio}-Standard-A"`);
    expect(types).toContain(`"${speech.twilio}"`);
    expect(digitsIn(spokenCode(speech, "0493"))).toBe("0493");
    expect(`${speech.press}${speech.code}`).not.toMatch(/\d/);
  });

  it.each([
    [{ country: "BR" }, "pt-BR"],
    [{ country: "PT" }, "pt"],
    [{ country: "TW" }, "zh"],
    [{ locale: "fr-CA", country: "BR" }, "fr"],
    [{ locale: "sv", country: "SE" }, "en"],
    [{}, "en"],
  ])("%j is spoken in %s", (message, tag) => {
    expect(speechFor(message)).toEqual(speechFor({ locale: tag }));
  });

  it("is in the message's language, before and after the key press", async () => {
    for (const name of names) {
      const { asked, body } = await call(name, {}, { ...receipts, locale: "de" });
      expect(decodeURIComponent(body.replaceAll("+", " "))).toContain("Drücken Sie eine beliebige Taste");
      expect(saidBy(name, await press(name, pressedUrl(name, asked)))[0]).toBe("Ihr Bestätigungscode lautet: 4, 9, 3, 8, 1, 7.");
    }
  });

  it("is escaped for XML", () => {
    expect(escapeXml(`<a b="c">&'`)).toBe("&lt;a b=&quot;c&quot;&gt;&amp;&apos;");
  });
});

describe("how a call ended", () => {
  const now = Date.UTC(2027, 0, 1, 12);
  const twilio = async (content: Record<string, unknown>, query = "") => {
    const url = `${base.twilio}?r=${reference}${query}`;
    return twilioVoiceReceipts({ authToken: "twilio-auth-token" }).read(await signTwilio({ CallSid: "CA1", ...content }, { at: now, url }), now);
  };
  const vonage = async (content: Record<string, unknown>, query = "") => {
    const signed = await signVonage({ uuid: "u1", timestamp: "2027-01-01T11:59:59.000Z", ...content }, { at: now });
    return vonageVoiceReceipts({ signatureSecret: "vonage-signature-secret" }).read({ ...signed, url: `${base.vonage}?r=${reference}${query}` }, now);
  };

  it.each<[Record<string, unknown>, string, string, string | undefined]>([
    [{ CallStatus: "completed", CallDuration: "30" }, "&press=1", "undeliverable", "no-key"],
    [{ CallStatus: "completed", CallDuration: "30" }, "", "delivered", undefined],
    [{ CallStatus: "completed", CallDuration: "4" }, "", "undeliverable", "hung-up"],
    [{ CallStatus: "completed", CallDuration: "30", AnsweredBy: "human" }, "", "delivered", undefined],
    [{ CallStatus: "completed", CallDuration: "30", AnsweredBy: "machine_start" }, "", "undeliverable", "machine_start"],
    [{ CallStatus: "completed", CallDuration: "30", AnsweredBy: "fax" }, "", "undeliverable", "fax"],
    [{ CallStatus: "completed" }, "", "undeliverable", "hung-up"],
    [{ CallStatus: "busy" }, "&press=1", "undeliverable", "busy"],
    [{ CallStatus: "no-answer" }, "&press=1", "undeliverable", "no-answer"],
    [{ CallStatus: "failed" }, "", "undeliverable", "failed"],
    [{ CallStatus: "canceled" }, "", "undeliverable", "canceled"],
    [{ CallStatus: "ringing" }, "", "in_transit", undefined],
  ])("twilio: %j with query %s gives %s", async (content, query, status, error) => {
    expect(await twilio(content, query)).toEqual({ receipts: [{ messageId: "CA1", status, ...(error !== undefined && { error }) }] });
  });

  it.each<[Record<string, unknown>, string, string, string | undefined]>([
    [{ status: "started" }, "&press=1", "submitted", undefined],
    [{ status: "ringing" }, "", "in_transit", undefined],
    [{ status: "answered" }, "", "in_transit", undefined],
    [{ status: "completed", duration: "30" }, "&press=1", "undeliverable", "no-key"],
    [{ status: "completed", duration: "30" }, "", "delivered", undefined],
    [{ status: "completed", duration: "2" }, "", "undeliverable", "hung-up"],
    [{ status: "machine", uuid: undefined, call_uuid: "u1" }, "", "undeliverable", "machine"],
    [{ status: "busy" }, "&press=1", "undeliverable", "busy"],
    [{ status: "cancelled" }, "", "undeliverable", "cancelled"],
    [{ status: "failed" }, "", "undeliverable", "failed"],
    [{ status: "rejected" }, "", "undeliverable", "rejected"],
    [{ status: "timeout" }, "", "undeliverable", "timeout"],
    [{ status: "unanswered" }, "", "undeliverable", "unanswered"],
  ])("vonage: %j with query %s gives %s", async (content, query, status, error) => {
    const at = Date.UTC(2027, 0, 1, 11, 59, 59);
    expect(await vonage(content, query)).toEqual({ receipts: [{ messageId: "u1", status, at, ...(error !== undefined && { error }) }] });
  });

  it("other events give no receipts, and events without a call id are malformed", async () => {
    expect(await vonage({ status: "human" })).toEqual({ receipts: [] });
    expect(await vonage({ recording_url: "https://x.example" })).toEqual({ receipts: [] });
    expect(await vonage({ uuid: undefined, reason: "Unable to play the audio", conversation_uuid: "CON-1" })).toEqual({ receipts: [] });
    expect(await vonage({ uuid: "", status: "busy" })).toMatchObject({ refused: "malformed" });
    expect(await twilio({ CallStatus: "invented" })).toEqual({ receipts: [] });
    expect(await twilio({ CallSid: "", CallStatus: "busy" })).toMatchObject({ refused: "malformed" });
    expect(await twilio({ MessageSid: "SM1", MessageStatus: "sent" })).toMatchObject({ refused: "malformed" });
  });
});

describe.each(names)("%s: in a service", (name) => {
  it("the code is spoken once a key is pressed and stays delivered when the call ends; without a key press it is undeliverable", async () => {
    const carrier = await startCarrier(carriers[name], "accepts");
    running.push(carrier);
    const source =
      name === "twilio" ? twilioVoiceReceipts({ authToken: "twilio-auth-token" }) : vonageVoiceReceipts({ signatureSecret: "vonage-signature-secret" });
    const sender = make(name, { baseUrl: carrier.url });
    await using test = createTestVerifier({ sender, countries: ["US"], receipts: { baseUrl: "https://otp.example", sources: [source] } });
    const { verifier, clock } = test;
    const post = async (url: string, content: Record<string, unknown>) => {
      const request = await (name === "twilio" ? signTwilio : signVonage)(content, { at: clock.now(), url });
      const { pathname, search } = new URL(url);
      return verifier.receipts.handle({
        method: "POST",
        path: pathname,
        query: search,
        header: request.header,
        body: async () => ({ kind: "bytes", bytes: request.body }),
      });
    };
    const ended = name === "twilio" ? { CallSid: "CA1", CallStatus: "completed", CallDuration: "20" } : { uuid: "u1", status: "completed", duration: "20" };
    const key = name === "twilio" ? { CallSid: "CA1", Digits: "#" } : { uuid: "u1", dtmf: { digits: "#", timed_out: false } };
    const asked = (index: number): Record<string, unknown> => {
      const { body } = carrier.requests[index] ?? { body: "{}" };
      return body.startsWith("{") ? JSON.parse(body) : Object.fromEntries(new URLSearchParams(body));
    };
    const eventsUrl = (index: number) => String(name === "twilio" ? asked(index)["StatusCallback"] : (asked(index)["event_url"] as string[])[0]);
    const create = (phone_number: string) => verifier.createAuthentication({ phone_number, callback_url: "https://callbacks.example/otp" });

    const { authentication_uuid } = await create("+14155552671");
    const heard = await post(pressedUrl(name, asked(0)), key);
    expect(heard).toMatchObject({ status: 200, headers: { "content-type": name === "twilio" ? "text/xml" : "application/json" } });
    const { code } = test.inbox.messages[0] as CodeMessage;
    expect(digitsIn(String(heard.body))).toBe(code);
    expect(await post(eventsUrl(0), ended)).toMatchObject({ status: 200 });
    await create("+14155552672");
    expect(await post(eventsUrl(1), ended)).toMatchObject({ status: 200 });
    await test.flush();
    const told = test.callbacks.map(({ event }) => event.data.status).filter((status) => status !== "submitted");
    expect(told).toEqual(["delivered", "undeliverable"]);
    expect(await verifier.check({ authentication_uuid: authentication_uuid as string, check_code: code })).toMatchObject({ status: "valid" });
  });
});
