import { PhoneNumberFormat, PhoneNumberType, PhoneNumberUtil } from "google-libphonenumber";
import { describe, expect, it } from "vitest";
import { type ParsedPhoneNumber, parsePhoneNumber } from "../../src/index.js";

const google = PhoneNumberUtil.getInstance();
const reasons = ["not_a_number", "country_needed", "unknown_country", "too_short", "too_long", "invalid"];

/** Checks what every result must be, whatever the input. */
function sound(answer: ParsedPhoneNumber): ParsedPhoneNumber {
  if (!answer.ok) {
    expect(Object.keys(answer).sort()).toEqual(["ok", "reason"]);
    expect(reasons).toContain(answer.reason);
    return answer;
  }
  expect(answer.phone_number).toMatch(/^\+[1-9]\d{4,14}$/);
  // Canonical: parsed again, in any country, it is the same.
  for (const country of [undefined, "FR", "US", "RU", "BR", "no such"]) expect(parsePhoneNumber(answer.phone_number, { country })).toEqual(answer);
  return answer;
}

const read = (input: unknown, country?: unknown) => sound(parsePhoneNumber(input as string, { country } as never));

/** An example mobile number of every country. */
const examples = google
  .getSupportedRegions()
  .map((country) => ({ country, example: google.getExampleNumberForType(country, PhoneNumberType["MOBILE"] as number) }))
  .filter(({ example }) => example !== null && google.isValidNumber(example))
  .map(({ country, example }) => {
    const as = (format: number) => google.format(example as never, format);
    return {
      country,
      e164: as(PhoneNumberFormat.E164),
      national: as(PhoneNumberFormat.NATIONAL),
      international: as(PhoneNumberFormat.INTERNATIONAL),
      link: as(PhoneNumberFormat.RFC3966),
    };
  });

const written = (text: string, zero: number) => text.replace(/\d/g, (digit) => String.fromCodePoint(zero + Number(digit)));

const ways: readonly [string, (one: (typeof examples)[number]) => string][] = [
  ["as E.164", ({ e164 }) => e164],
  ["nationally", ({ national }) => national],
  ["internationally", ({ international }) => international],
  ["as a tel: link", ({ link }) => link],
  ["as a TEL: link with RFC 3966 parameters", ({ e164 }) => `TEL:${e164};isub=12345;foo=bar`],
  [
    "as a local tel: link with its phone-context",
    ({ national, e164, country }) => `tel:${national.replace(/[ /]/g, "-")};phone-context=+${callingCode(country, e164)}`,
  ],
  ["in Arabic-Indic digits", ({ international }) => written(international, 0x660)],
  ["in Persian digits, nationally", ({ national }) => written(national, 0x6f0)],
  ["in Devanagari digits", ({ national }) => written(national, 0x966)],
  ["in Bengali digits", ({ international }) => written(international, 0x9e6)],
  ["full-width", ({ international }) => written(international, 0xff10).replace("+", "＋").replace(/-/g, "－")],
  ["between bidi marks", ({ international }) => `\u202a\u2066${international}\u2069\u202c\u200f`],
  ["with a mark that nobody sees before each character", ({ national }) => [...national].map((one) => `\u200b\u2060${one}`).join("")],
  ["behind a byte order mark, with an end of line", ({ e164 }) => `\ufeff${e164}\r\n`],
  ["with no-break spaces", ({ international }) => international.replace(/ /g, "\u00a0").replace(/-/g, "\u2011")],
];

function callingCode(country: string, e164: string): string {
  const code = google.parse(e164, country).getCountryCode();
  return String(code);
}

describe("the example mobile number of every country is read", () => {
  it("of more than 200", () => expect(examples.length).toBeGreaterThan(200));

  it.each(ways)("%s", (_, write) => {
    const wrong: string[] = [];
    for (const one of examples) {
      const typed = write(one);
      const answer = read(typed, one.country);
      if (!answer.ok || answer.phone_number !== one.e164) wrong.push(`${one.country} ${JSON.stringify(typed)} ${JSON.stringify(answer)} for ${one.e164}`);
    }
    expect(wrong).toEqual([]);
  });

  it("with the international prefix of the country in which it is entered", () => {
    const wrong: string[] = [];
    for (const { country, e164 } of examples)
      for (const [from, prefix] of [
        ["FR", "00"],
        ["US", "011"],
        ["JP", "010"],
        ["RU", "8~10".replace("~", " ")],
        ["HK", "001"],
        ["GB", "00"],
      ] as const) {
        if (from === country) continue;
        const answer = read(`${prefix} ${e164.slice(1)}`, from);
        if (!answer.ok || answer.phone_number !== e164) wrong.push(`${from}: ${prefix} ${e164.slice(1)} (${country}) ${JSON.stringify(answer)}`);
      }
    expect(wrong).toEqual([]);
  });
});

describe("what users enter", () => {
  it.each([
    ["+33 (0)6 12 34 56 78", "FR", "+33612345678"],
    ["+33(0)612345678", "US", "+33612345678"],
    ["0033 (0) 6 12 34 56 78", "FR", "+33612345678"],
    ["+44 (0) 7911 123456", "US", "+447911123456"],
    ["+49 (0)170/123 45 67", "DE", "+491701234567"],
    ["+39 02 1234 5678", "IT", "+390212345678"], // its zero is part of the number
    ["tel:7400-123456;phone-context=+44", "FR", "+447400123456"],
    ["tel:07400-123456;phone-context=+44", "FR", "+447400123456"],
    ["tel:+447400123456;phone-context=+33", "FR", "+447400123456"],
    ["011 15 2345-6789", "AR", "+5491123456789"],
    ["8 (912) 345-67-89", "RU", "+79123456789"],
    ["０９０ー１２３４ー５６７８", "JP", "+819012345678"],
    ["06 12 34 56 78", "fr", "+33612345678"],
  ])("%j in %s is %s", (typed, country, e164) => expect(read(typed, country)).toMatchObject({ ok: true, phone_number: e164 }));

  it.each([
    ["1-800-FLOWERS", "US", "not_a_number"],
    ["+1 800 FLOWERS", "US", "not_a_number"],
    ["06 12 34 56 7B", "FR", "not_a_number"],
    ["O6 12 34 56 78", "FR", "not_a_number"],
    ["<b>0612345678</b>", "FR", "not_a_number"],
    ["0612345678' OR 1=1", "FR", "not_a_number"],
    ["*31#0612345678", "FR", "not_a_number"],
    ["⁰⁶¹²³⁴⁵⁶⁷⁸", "FR", "not_a_number"],
    ["06\u000012345678", "FR", "not_a_number"],
    ["\ud83d0612345678", "FR", "not_a_number"],
    ["0612345678 or 0698765432", "FR", "not_a_number"],
    ["0612345678, 0698765432", "FR", undefined],
    ["", "FR", "not_a_number"],
    ["+", "FR", "not_a_number"],
    ["tel:", "FR", "not_a_number"],
    ["()()", "FR", "not_a_number"],
    ["\u200b\u202e", "FR", "not_a_number"],
    ["0612345678", undefined, "country_needed"],
    ["tel:0612345678", undefined, "country_needed"],
    ["0612345678", "UK", "unknown_country"],
    ["0612345678", "toString", "unknown_country"],
    ["0612345678", "__proto__", "unknown_country"],
    ["+999123456789", "FR", "unknown_country"],
    ["112", "FR", "too_short"],
    ["+33", "FR", "too_short"],
    ["0612345678901", "FR", "too_long"],
  ])("%j in %s is rejected: %s", (typed, country, reason) => expect(read(typed, country)).toEqual({ ok: false, reason: reason ?? expect.any(String) }));

  it.each([";ext=12", " ext. 12", " x12", " x 12", "#12", ",12", " доб. 12", " 内線12"])(
    "a number with the extension %j is rejected, or returned without it",
    (extension) => {
      for (const base of ["+14155552671", "tel:+1-415-555-2671", "(415) 555-2671"]) {
        const answer = read(base + extension, "US");
        if (answer.ok) expect(answer.phone_number).toBe("+14155552671");
      }
    },
  );

  it("parts of two numbers are never combined into a third", () => {
    for (const typed of [
      "061234 5678 06",
      "0612345678/9",
      "+33612345678 / +33612345679",
      "+33612345678+33612345679",
      "0612345678;0612345679",
      "0612345678 (0)6",
    ])
      expect(read(typed, "FR").ok, typed).toBe(false);
  });

  it("never throws: a value that is not a string is not_a_number, and an invalid country is unknown_country", () => {
    const odd: unknown[] = [
      null,
      undefined,
      612345678,
      612345678n,
      Number.NaN,
      true,
      Symbol("06"),
      ["0612345678"],
      { toString: () => "0612345678" },
      () => "0612345678",
      new String("0612345678"),
      Object.create(null),
    ];
    for (const one of odd) expect(read(one, "FR")).toEqual({ ok: false, reason: "not_a_number" });
    for (const one of [33, 33n, true, Symbol("FR"), ["FR"], {}, Object.create(null), () => "FR", "F", "FRA", "F\u0052\u0000", "ＦＲ", " FR "]) {
      expect(() => parsePhoneNumber("0612345678", { country: one as never })).not.toThrow();
      expect(read("0612345678", one)).toEqual({ ok: false, reason: "unknown_country" });
      expect(read("+33612345678", one)).toMatchObject({ ok: true, phone_number: "+33612345678" });
    }
    for (const options of [null, 1, "FR", [], { phoneValidation: "never" }, { phoneValidation: null }, { phoneValidation: 5 }])
      expect(() => parsePhoneNumber("+33612345678", options as never)).not.toThrow();
  });

  it("a million characters of any kind are rejected quickly", () => {
    for (const piece of ["0", "+", "(0)", "(", " ", "-", "\u200b", "6 ", "tel:", "+33", ";ext=1", "٠", "a", "00", ";phone-context=+33", "x"]) {
      const started = performance.now();
      for (const around of ["", "+33", "tel:06", "06 12 34 56 7"]) expect(read(around + piece.repeat(1_000_000 / piece.length), "FR").ok, piece).toBe(false);
      expect(performance.now() - started, JSON.stringify(piece)).toBeLessThan(10_000);
    }
  });
});
