import { describe, expect, test, vi } from "vitest";
import { languageOf, otpWords, triesLeft, waitingFor, wordsFor } from "../../clients/otp-input/words.js";
import { authenticationStatuses } from "../../src/contract/authentication.js";
import { checkStatuses } from "../../src/contract/check.js";
import { retryStatuses } from "../../src/contract/retry.js";

const languages = Object.keys(otpWords);
const english = otpWords.en as NonNullable<typeof otpWords.en>;
const statuses = new Set([...authenticationStatuses, ...retryStatuses, ...checkStatuses]);

test("two copies of the file on a page share the texts, because the element is defined once", async () => {
  vi.resetModules();
  const copy = await import("../../clients/otp-input/words.js");
  copy.otpWords.sv = { ...english, label: "Kod" };
  expect([copy.otpWords, otpWords.sv?.label]).toEqual([otpWords, "Kod"]);
  delete otpWords.sv;
});

test("there are sixteen languages", () => {
  expect(languages.sort()).toEqual(["ar", "de", "en", "es", "fr", "hi", "it", "ja", "ko", "nl", "pl", "pt", "ru", "tr", "zh", "zh-Hant"]);
});

describe.each(languages)("in %s", (lang) => {
  const words = otpWords[lang] as typeof english;

  test("every English text is translated", () => {
    expect(Object.keys(words)).toEqual(Object.keys(english));
    const texts = Object.values(words).flatMap((one: string | Readonly<Record<string, string>>) => (typeof one === "string" ? [one] : Object.values(one)));
    expect(texts.every((text) => text.trim() === text && text !== "")).toBe(true);
    if (lang !== "en") expect(Object.values(words).filter((text) => Object.values(english).includes(text))).toEqual([]);
  });

  test("every status of the wire has its own text, and any other the text of a failure", () => {
    for (const status of statuses) expect([status, wordsFor(lang, status)]).not.toEqual([status, words.failed]);
    expect(wordsFor(lang, "unavailable")).toBe(words.failed);
    expect(wordsFor(lang, "label")).toBe(words.failed);
  });

  test("the tries left have the plural form of their number", () => {
    const rules = new Intl.PluralRules(lang);
    for (let left = 0; left <= 20; left++) {
      const text = triesLeft(lang, left);
      expect(text).toBe((words.tries[rules.select(left)] ?? words.tries.other).replace("#", left.toLocaleString(lang)));
      expect(text).not.toContain("#");
    }
    // Only the forms for zero, one and two may omit the figure.
    for (const [category, form] of Object.entries(words.tries)) if (!["zero", "one", "two"].includes(category)) expect(form).toContain("#");
  });

  test("a wait is shown with its unit", () => {
    const relative = new Intl.RelativeTimeFormat(lang);
    expect(waitingFor(lang, 24)).toBe(words.wait.replace("{when}", relative.format(24, "second")));
    expect(waitingFor(lang, 121)).toBe(words.wait.replace("{when}", relative.format(3, "minute")));
    expect(waitingFor(lang, 24)).not.toContain("{");
  });
});

test("texts that a page does not override stay those of the element, in that language or else in English", () => {
  const before = { ...otpWords };
  const partly = (words: Partial<typeof english>) => words as typeof english;
  try {
    Object.assign(otpWords, { da: partly({ invalid: "Forkert kode." }), fr: partly({ invalid: "Non." }), en: partly({ invalid: "No." }) });
    expect(["da", "fr", "en"].map((lang) => wordsFor(lang, "invalid"))).toEqual(["Forkert kode.", "Non.", "No."]);
    expect(["da", "fr", "en"].map((lang) => wordsFor(lang, "valid"))).toEqual([english.valid, before.fr?.valid, english.valid]);
    expect(triesLeft("da", 2)).toBe("2 tries left");
    expect(waitingFor("da", 2)).toBe("New code om 2 sekunder");
  } finally {
    for (const lang of Object.keys(otpWords)) delete otpWords[lang];
    Object.assign(otpWords, before);
  }
});

test.each([
  ["en", 1, "1 try left"],
  ["fr", 0, "0 essai restant"],
  ["pl", 2, "Pozostały 2 próby"],
  ["pl", 5, "Pozostało 5 prób"],
  ["ru", 1, "Осталась 1 попытка"],
  ["ar", 2, "بقيت محاولتان"],
  ["ja", 3, "残り 3 回"],
] as const)("in %s, %i: %s", (lang, left, text) => {
  expect(triesLeft(lang, left)).toBe(text);
});

test.each([
  ["en-GB", "en"],
  ["pt-BR", "pt"],
  ["zh-CN", "zh"],
  ["zh-TW", "zh-Hant"],
  ["zh-Hant-HK", "zh-Hant"],
  ["de-CH-1996", "de"],
  ["sv", "en"],
  ["not a tag", "en"],
  ["", "en"],
])("the tag %j selects %s", (tag, lang) => {
  expect(languageOf(tag)).toBe(lang);
});
