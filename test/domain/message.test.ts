import { describe, expect, it } from "vitest";
import { segmentsOf } from "../../src/domain/gsm.js";
import { messageText, withoutCodeAndNumber } from "../../src/domain/message.js";
import { setUp } from "../support/verifier.js";

const boom = (): never => {
  throw new Error("boom");
};

describe("messages (docs/contract.md#messages)", () => {
  const template = { text: "Your code is {code}", domain: "example.com", maxSegments: 1, registered: {} };

  it("ANDROID with `app_realm`: the hash is the last token", () => {
    expect(messageText(template, "123456", { deviceType: "ANDROID", appRealm: "FA+9qCX9VSu" })).toBe("Your code is 123456\n\nFA+9qCX9VSu");
  });

  it("WEB (and IOS) with a configured domain: last line `@domain #code`", () => {
    for (const deviceType of ["WEB", "IOS"] as const)
      expect(messageText(template, "123456", { deviceType })).toBe("Your code is 123456\n\n@example.com #123456");
    expect(messageText({ text: template.text, maxSegments: 1, registered: {} }, "123456", { deviceType: "WEB" })).toBe("Your code is 123456");
    expect(messageText(template, "123456", {})).toBe("Your code is 123456");
  });

  it.each([
    ["", 1],
    ["a".repeat(160), 1],
    ["a".repeat(161), 2],
    ["a".repeat(306), 2],
    ["a".repeat(307), 3],
    ["€".repeat(80), 1],
    ["€".repeat(81), 2],
    ["ш".repeat(70), 1],
    ["ш".repeat(71), 2],
    ["😀".repeat(35), 1],
    ["😀".repeat(36), 2],
    ["ç", 1],
    [`${"a".repeat(152)}€${"a".repeat(152)}`, 3],
    [`${"ш".repeat(66)}😀${"ш".repeat(66)}`, 3],
  ])("one GSM-7 segment is 160 septets, one UCS-2 segment 70 units, and no character is split: %j", (text, segments) => {
    expect(segmentsOf(text)).toHaveLength(segments);
  });

  it.each([
    ["no route to +33612345678", "no route to +33612****78"],
    ["no route to 33612345678", "no route to 33612****78"],
    ["no route to %2B33612345678", "no route to %2B33612****78"],
    ["no route to 0612345678", "no route to 0612****78"],
    ["no route to 06 12 34 56 78", "no route to 06 12 ****78"],
    ["no route to +33 (0)6.12.34.56.78", "no route to +33 (0)6.12.****78"],
    ["no route to 612-345-678", "no route to 612-****78"],
    ["no route to (612) 345\u00a0678", "no route to (612) ****78"],
    ["code 389002 is spam", "code ****** is spam"],
    ["the digits 3, 8, 9, 0, 0, 2", "the digits ******"],
    ["389-002 and 389 002", "****** and ******"],
    ["38 … 9002, 😀 389😀002 and 38  --  9002", "******, 😀 ****** and 38  --  9002"],
    ["HTTP 400, code 21211 at 2026-11-28 18:27:22, id 38900", "HTTP 400, code 21211 at 2026-11-28 18:27:22, id 38900"],
  ])("a carrier's text is shown without the code and the number: %s (docs/contract.md#logs)", (said, shown) => {
    expect(withoutCodeAndNumber(said, { code: "389002", text: "Code 389002", to: "+33612345678" })).toBe(shown);
  });

  it("a text that would cost a second segment is a configuration error, and so is one without the code", () => {
    expect(() => setUp({ message: { text: `{code} ${"a".repeat(160)}` } })).toThrow("message.text costs 2 SMS segments");
    expect(() => setUp({ message: { text: `Ваш код подтверждения: {code}. Никому его не сообщайте, даже нам.` } })).toThrow(
      "message.text costs 2 SMS segments",
    );
    expect(() => setUp({ message: { text: `{code} ${"a".repeat(130)}`, domain: "a-long-name-of-a-domain.example.com" } })).toThrow(
      "message.text costs 2 SMS segments with a code of 6 digits and its last line; shorten it",
    );
    expect(() => setUp({ message: { registered: { IN: { text: `{code} ${"a".repeat(160)}` } } } })).toThrow(
      "message.registered.IN.text costs 2 SMS segments with a code of 6 digits; shorten it",
    );
    expect(() => setUp({ message: { text: "Hello" } })).toThrow("message.text must contain {code}");
    expect(() => setUp({ message: { text: "Ваш код: {code}" } })).not.toThrow();
  });

  describe("templates and languages (docs/contract.md#message-text)", () => {
    const texts = { default: "Your code is {code}", fr: "Votre code est {code}", "pt-BR": "Seu código é {code}" };
    const sent = async (message: object, phone_number: string) => {
      const set = setUp({ message });
      await set.create({ phone_number });
      return set.box.messages[0]?.text.replace(set.box.code(), "#");
    };

    it.each([
      ["+33612345678", "Votre code est #"],
      ["+2250707123456", "Votre code est #"],
      ["+447400123456", "Your code is #"],
      ["+819012345678", "Your code is #"],
    ])("a map by language: uses the one most spoken in the number's country, else the default: %s", async (number, text) => {
      expect(await sent({ text: texts }, number)).toBe(text);
    });

    const chinese = { default: "{code}", ZH: "zh {code}", "zh-hant": "hant {code}", "zh-HK": "hk {code}" };
    it.each([
      ["+8613812345678", "zh #"],
      ["+886912345678", "hant #"],
      ["+85251234567", "hk #"],
    ])("a map by language: prefers the country's tag, then its script's, then the language, in any case: %s", async (number, text) => {
      expect(await sent({ text: chinese }, number)).toBe(text);
    });

    it.each([
      ["zh", "hans"],
      ["sh", "latin"],
    ])("the language %s alone finds the text in its usual script", (locale, chosen) => {
      const text = { default: "{code}", "zh-Hans": "hans", "zh-Hant": "hant", sr: "cyrillic", "sr-Latn": "latin" };
      expect(messageText({ ...template, text }, "123456", { locale, country: "FR" })).toBe(chosen);
    });

    it.each(["zh-HK", "zh_TW", "ZH-hant-MO"])("a tag with a country finds the text in the script of that country: %s", async (language) => {
      expect(await sent({ text: { default: "{code}", zh: "zh {code}", "zh-Hant": "hant {code}" }, locale: () => language }, "+33612345678")).toBe("hant #");
    });

    it.each([
      ["in", "id"],
      ["in-ID", "id"],
      ["iw_IL", "he"],
      ["zh-Hans-CN", "zh-CN"],
      ["zh-Hans", "zh-CN"],
      ["zh-Hant", "zh-TW"],
      ["zh-Hant-TW", "zh-TW"],
    ])("the tag %s, as phones write it, chooses the text %s (docs/contract.md#locale)", (locale, language) => {
      const text = { default: "{code}", "zh-CN": "simplified", "zh-TW": "traditional", zh: "any", [language]: "right" };
      expect(messageText({ ...template, text }, "123456", { locale })).toBe("right");
    });

    it.each([
      ["zh-Hans-HK", "any"],
      ["sr-Latn-RS", "123456"],
      ["pt", "Portugal"],
    ])("the tag %s does not choose a text of its country in another script, or of a country that it does not name", (locale, chosen) => {
      const text = { default: "{code}", "zh-HK": "Hong Kong", zh: "any", "sr-RS": "Cyrillic", "pt-BR": "Brazil", "pt-PT": "Portugal" };
      expect(messageText({ ...template, text }, "123456", { locale, country: locale === "pt" ? "PT" : "FR" })).toBe(chosen);
    });

    it.each(["FR", "Fr-fr", "fr-FR", "fr"])("the case of a language tag does not matter: %s", async (language) => {
      for (const locale of [undefined, () => "FR-fr", () => "fr_FR"])
        expect(await sent({ text: { default: "{code}", [language]: "Voici {code}" }, locale }, "+33612345678")).toBe("Voici #");
    });

    it("a locale function may return any key of the map, even if it is not a language tag", async () => {
      for (const language of ["fr_FR", "french", "français", "constructor"])
        expect(await sent({ text: { default: "{code}", [language]: "Voici {code}" }, locale: () => language }, "+33612345678")).toBe("Voici #");
      expect(await sent({ text: texts, locale: () => "constructor" }, "+33612345678")).toBe("Your code is #");
    });

    it("a locale function chooses the language; a tag falls back to its language", async () => {
      expect(await sent({ text: texts, locale: () => "pt-BR" }, "+33612345678")).toBe("Seu código é #");
      expect(await sent({ text: texts, locale: () => "fr-CA" }, "+447400123456")).toBe("Votre code est #");
      expect(await sent({ text: texts, locale: () => "xx" }, "+33612345678")).toBe("Your code is #");
    });

    it("a text function writes the whole text, and receives the country and the device type", async () => {
      expect(await sent({ text: ({ code, country, deviceType }: Record<string, string>) => `${code} for ${country} ${deviceType}` }, "+33612345678")).toBe(
        "# for FR undefined",
      );
    });

    it.each([
      [
        "throws",
        ({ country }: { country?: string }) => {
          if (country !== undefined) throw new Error("no text");
          return "000000";
        },
      ],
      ["leaves the code out", ({ code, country }: { code: string; country?: string }) => (country === undefined ? code : "hello")],
      ["shows another code", ({ code, country }: { code: string; country?: string }) => (country === undefined ? code : `1${code}2`)],
      ["contains U+0000", ({ code, country }: { code: string; country?: string }) => (country === undefined ? code : `${code}\0`)],
      ["costs a second segment", ({ code, country }: { code: string; country?: string }) => (country === undefined ? code : `${code}${"x".repeat(160)}`)],
    ])("a text function that %s is logged, and the default text is sent", async (_what, text) => {
      const set = setUp({ message: { text } as never });
      await set.create();
      expect(set.box.messages[0]?.text).toBe(`Your verification code is ${set.box.code()}`);
      expect(set.log.lines).toContainEqual(expect.objectContaining({ level: "error", message: expect.stringContaining("message.text") }));
    });

    it.each([
      ["throws", boom],
      ["returns a number", () => 5],
      ["is async", async () => "fr"],
      ["is async and rejects", async () => Promise.reject(new Error("no language"))],
    ])("a locale function that %s is logged, and the text is sent as if it had chosen no language", async (_what, locale) => {
      const set = setUp({ message: { text: texts, locale } as never });
      await set.create();
      expect(set.box.messages[0]?.text).toBe(`Your code is ${set.box.code()}`);
      expect(set.log.lines).toContainEqual(expect.objectContaining({ level: "error", message: expect.stringContaining("message.locale") }));
    });

    it("a map needs a default, every text needs the code, and more segments need `maxSegments`", () => {
      expect(() => setUp({ message: { text: { fr: "{code}" } } })).toThrow("message.text.default is required");
      expect(() => setUp({ message: { text: { default: "{code}", fr: "bonjour" } } })).toThrow("message.text.fr must contain {code}");
      expect(() => setUp({ message: { text: () => "hello" } })).toThrow("message.text must contain {code}");
      expect(() =>
        setUp({
          message: {
            text: () => {
              throw new Error("no");
            },
          },
        }),
      ).toThrow("message.text is not a string");
      expect(() => setUp({ message: { text: `{code} ${"a".repeat(160)}`, maxSegments: 2 } })).not.toThrow();
    });
  });
});

describe("testNumbers with fixed codes and outcomes", () => {
  const number = "+447700900123";
  const withOutcome = (outcome: "accepted" | "rejected" | "undeliverable" | "slow") => setUp({ testNumbers: [{ number, code: "424242", outcome }] });

  it("accepted: nothing is sent, and the fixed code is valid, after a retry too", async () => {
    const set = withOutcome("accepted");
    const { authentication_uuid } = await set.create({ phone_number: number });
    set.clock.advance(30_000);
    expect((await set.retry(authentication_uuid)).status).toBe("approved");
    expect((await set.check(authentication_uuid, "424243")).status).toBe("invalid");
    expect((await set.check(authentication_uuid, "424242")).status).toBe("valid");
    expect(set.box.messages).toEqual([]);
  });

  it("rejected: check returns `without_attempt`", async () => {
    const set = withOutcome("rejected");
    const { authentication_uuid } = await set.create({ phone_number: number });
    expect((await set.check(authentication_uuid, "424242")).status).toBe("without_attempt");
  });

  it("slow: create returns after `sendTimeout`, and the code works", async () => {
    const set = withOutcome("slow");
    const creating = set.create({ phone_number: number });
    await new Promise((resolve) => setImmediate(resolve));
    set.clock.advance(5000);
    expect((await set.check((await creating).authentication_uuid, "424242")).status).toBe("valid");
  });

  it("undeliverable: reported by callback after `submitted`, and the code still works", async () => {
    const posts: string[] = [];
    const set = setUp({
      testNumbers: [{ number, code: "424242", outcome: "undeliverable" }],
      callbacks: {
        worker: false,
        allowOrigins: ["http://receiver.test"],
        sender: { post: async ({ body }) => ({ status: posts.push(JSON.parse(body).data.status) > 0 ? 200 : 500 }) },
      },
    });
    const { authentication_uuid } = await set.create({ phone_number: number, callback_url: "http://receiver.test/" });
    await set.verifier.flush();
    expect(posts).toEqual(["submitted", "undeliverable"]);
    expect((await set.check(authentication_uuid, "424242")).status).toBe("valid");
  });
});
