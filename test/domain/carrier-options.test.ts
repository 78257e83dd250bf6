import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { type CountryCode, createVerifier, type SmsSender, type VerifierOptions } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { numberOf, secret, setUp } from "../support/verifier.js";

const sender = (more: Partial<SmsSender> = {}): SmsSender => ({ send: async () => ({ outcome: "accepted" }), ...more });
const make = (options: Partial<VerifierOptions>) => () =>
  createVerifier({
    store: memoryStore(),
    sender: sender(),
    secret,
    countries: ["FR", "DE"],
    customers: [{ customer_uuid: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f", keys: ["k".repeat(40)] }],
    callbacks: { worker: false },
    ...options,
  });
const onlyIn = (...countries: string[]) => sender({ reaches: (country) => countries.includes(country) });

describe("`from: { FR }` with other countries allowed", () => {
  it("names the allowed countries without a source address", () => {
    expect(make({ sender: onlyIn("FR") })).toThrow(
      "sender has no source address for DE, which countries allows: add them, or a default, to the sender's option from; or take them out of countries",
    );
    expect(make({ sender: onlyIn("FR", "DE") })).not.toThrow();
    expect(make({ sender: onlyIn("FR"), countries: "all" })).toThrow(/no source address for AC, AD, AE, AF, AG and 239 more/);
  });

  it("through a router, a country fails only if none of its routes has a source address", () => {
    const routes = (...all: { name: string; sender: SmsSender; countries?: CountryCode[] }[]) => router({ routes: all });
    expect(make({ sender: routes({ name: "a", sender: onlyIn("FR") }, { name: "b", sender: onlyIn("DE") }) })).not.toThrow();
    expect(make({ sender: routes({ name: "a", sender: onlyIn("FR") }, { name: "b", sender: onlyIn("DE"), countries: ["FR"] }) })).toThrow(
      /no source address for DE,/,
    );
    expect(make({ sender: routes({ name: "a", sender: onlyIn("FR"), countries: ["FR"] }) }), "a country without a route is told at the send").not.toThrow();
  });
});

describe("a sender whose provider has no source in `receipts`", () => {
  const source = (provider: string) => ({ provider, read: async () => ({ receipts: [] }) });
  const receipts = (...providers: string[]) => ({ baseUrl: "https://api.example.com", sources: providers.map(source) });
  const asking = (...providers: string[]) => sender({ receiptProviders: providers });

  it("the error names the provider and the fix", () => {
    expect(make({ sender: asking("twilio"), receipts: receipts("vonage") })).toThrow(
      "receipts.sources has none of twilio, whose receipts the sender asks for: add it (phoneproof/senders/twilio), or give the sender receipts: false",
    );
    expect(make({ sender: asking("twilio"), receipts: receipts("vonage", "twilio") })).not.toThrow();
    expect(make({ sender: asking("twilio") }), "no receipts are taken at all").not.toThrow();
    const both = router({ routes: ["twilio", "plivo"].map((name) => ({ name, sender: asking(name) })) });
    expect(make({ sender: both, receipts: receipts("twilio") })).toThrow(/receipts\.sources has none of plivo/);
  });

  it("two sources of one provider are an error too", () => {
    expect(make({ receipts: receipts("twilio", "twilio", "twilio") })).toThrow(
      /receipts\.sources has more than one source of twilio: give one of them all its secrets/,
    );
  });
});

describe("registered texts: `message.registered: { IN: { text, ids, autofill: false } }`, sent byte for byte (docs/contract.md#registered-texts)", () => {
  const registered = { IN: { text: "{code} is your OTP for ACME. Do not share it.", ids: { entity: "1101", template: "1107" } } };
  const indian = "+919876543210";

  it("are sent in their country with their ids, whatever `text` and the device are", async () => {
    const { create, box } = setUp({ message: { text: ({ code }) => `Hello ${code}`, domain: "example.com", registered } });
    await create({ phone_number: indian, device_type: "WEB" });
    await create({ phone_number: indian, device_type: "ANDROID", app_realm: "FA+9qCX9VSu", app_version: "1" });
    for (const message of box.messages) {
      expect(message.text).toBe(`${message.code} is your OTP for ACME. Do not share it.`);
      expect(message.registered).toEqual({ entity: "1101", template: "1107" });
    }
    expect(box.messages).toHaveLength(2);
  });

  it("in other countries the usual text is sent, without ids", async () => {
    const { create, box } = setUp({ message: { registered } });
    await create();
    expect(box.messages[0]?.text).toBe(`Your verification code is ${box.code()}`);
    expect(box.messages[0]?.registered).toBeUndefined();
  });

  it("with `autofill: true` the last line is added", async () => {
    const { create, box } = setUp({ message: { domain: "example.com", registered: { IN: { text: "{code} is your OTP.", autofill: true } } } });
    await create({ phone_number: indian, device_type: "WEB" });
    expect(box.messages[0]?.text).toBe(`${box.code()} is your OTP.\n\n@example.com #${box.code()}`);
    expect(box.messages[0]?.registered).toBeUndefined();
  });

  it.each<[string, object, RegExp]>([
    ["without a code", { IN: { text: "Hello" } }, /message\.registered\.IN\.text must contain \{code\}/],
    ["of two segments", { IN: { text: `{code} ${"a".repeat(160)}` } }, /message\.registered\.IN\.text costs 2 SMS segments/],
    ["in no country", { India: { text: "{code}" } }, /message\.registered/],
    ["with ids that are none", { IN: { text: "{code}", ids: { entity: "" } } }, /message\.registered\.IN\.ids\.entity/],
  ])("a registered text %s is an error with its path", (_, wrong, message) => {
    expect(make({ message: { registered: wrong } })).toThrow(message);
  });
});

describe("a message carries the end of its code, which a retry does not extend (docs/contract.md#message-end)", () => {
  it("expires_at", async () => {
    const { create, retry, box, clock } = setUp();
    const { authentication_uuid, expires_at } = await create();
    clock.advance(31_000);
    await retry(authentication_uuid);
    expect(box.messages.map((message) => message.expires_at)).toEqual([Date.parse(expires_at), Date.parse(expires_at)]);
    expect(box.messages[1]?.to).toBe(numberOf(1));
  });
});
