import fc from "fast-check";
import { type Parsed, PhoneNumberFormat, PhoneNumberType, PhoneNumberUtil } from "google-libphonenumber";
import { describe, expect, it, test } from "vitest";
import { phoneNumberOf } from "../../src/domain/phone-number.js";
import { parsePhoneNumber } from "../../src/index.js";
import { codePoint } from "../support/code-point.js";

const french = { ok: true, phone_number: "+33612345678", country_code: "FR" };

describe("accepted spellings", () => {
  test.each([
    ["06 12 34 56 78", "FR"],
    ["06.12.34.56.78", "FR"],
    ["06-12-34-56-78", "FR"],
    ["06/12/34/56/78", "FR"],
    ["(06) 12 34 56 78", "FR"],
    ["0612345678", "fr"],
    ["612345678", "FR"],
    ["33612345678", "FR"],
    ["+33612345678", undefined],
    ["+33 6 12 34 56 78", "US"],
    ["+33 6 12 34 56 78", "XX"],
    ["  +33612345678\n", undefined],
    ["+330612345678", undefined],
    ["+33 (0)6 12 34 56 78", undefined],
    ["+33 [0] 6 12 34 56 78", undefined],
    ["+33 ( 0 ) 6 12 34 56 78", undefined],
    ["＋３３（０）６ １２ ３４ ５６ ７８", undefined],
    ["0033 6 12 34 56 78", undefined],
    ["0033 6 12 34 56 78", "FR"],
    ["0033 6 12 34 56 78", "US"],
    ["0033 (0)6 12 34 56 78", "FR"],
    ["011 33 6 12 34 56 78", "US"],
    ["++33 6 12 34 56 78", undefined],
    ["+00 33 6 12 34 56 78", undefined],
    ["０６１２３４５６７８", "FR"],
    ["٠٦١٢٣٤٥٦٧٨", "FR"],
    ["०६१२३४५६७८", "FR"],
    ["06\u00a012\u202f34\u200956\u300078", "FR"],
    ["06‑12–34—56−78", "FR"],
    ["\u202a+33 6 12 34 56 78\u202c", undefined],
    ["tel:+33-6-12-34-56-78", undefined],
    ["TEL:+33612345678;ext=", undefined],
    ["tel:%2B33612345678", undefined],
    ["tel:06-12-34-56-78;phone-context=+33", undefined],
  ])("%j in %s is +33612345678", (input, country) => {
    expect(parsePhoneNumber(input, { country })).toEqual(french);
  });

  test.each([
    ["(415) 555-2671", "US", "+14155552671"],
    ["1-415-555-2671", "US", "+14155552671"],
    ["8 (912) 345-67-89", "RU", "+79123456789"],
    ["+7 (8) 912 345-67-89", undefined, "+79123456789"],
    ["06 20 123 4567", "HU", "+36201234567"],
    ["+39 06 6982", undefined, "+39066982"],
    ["+39 (0)6 6982 1234", undefined, "+390669821234"],
    ["+39 (0)347 1234567", undefined, "+393471234567"],
    ["+34 (0)612 345 678", undefined, "+34612345678"],
    ["0034 (0)612 345 678", "ES", "+34612345678"],
    ["0034 (0)612 345 678", undefined, "+34612345678"],
    ["+44 (0)7400 123456", undefined, "+447400123456"],
    ["+54 11 15 2345-6789", undefined, "+5491123456789"],
    ["+882 16 1234 5678", undefined, "+8821612345678"],
  ])("%j in %s is %s", (input, country, phone_number) => {
    const parsed = parsePhoneNumber(input, { country });
    expect(parsed.ok ? parsed.phone_number : undefined).toBe(phone_number);
  });

  it("a number of a global range has no country", () => {
    expect(parsePhoneNumber("+800 1234 5678")).toEqual({ ok: true, phone_number: "+80012345678" });
  });

  it('with phoneValidation "possible", a length that the country has is enough', () => {
    expect(parsePhoneNumber("+1 555 555 0100")).toEqual({ ok: false, reason: "invalid" });
    expect(parsePhoneNumber("+1 555 555 0100", { phoneValidation: "possible" })).toMatchObject({ ok: true, phone_number: "+15555550100" });
    expect(parsePhoneNumber("+33 (0)6 12 34 56 78", { phoneValidation: "possible" })).toEqual(french);
    expect(parsePhoneNumber("+33 6 12", { phoneValidation: "possible" })).toEqual({ ok: false, reason: "too_short" });
  });
});

describe("reasons why an input is rejected", () => {
  test.each([
    ["", undefined, "not_a_number"],
    ["   ", undefined, "not_a_number"],
    ["+", undefined, "not_a_number"],
    ["call me", "FR", "not_a_number"],
    ["1-800-FLOWERS", "US", "not_a_number"],
    ["+33 6 12 34 56 78 or +33 6 98 76 54 32", undefined, "not_a_number"],
    ["06 12 34 56 78 ext. 5", "FR", "not_a_number"],
    ["06+12345678", "FR", "not_a_number"],
    ["tel:", undefined, "not_a_number"],
    ["tel:%zz", undefined, "not_a_number"],
    ["06 12 34 56 78", undefined, "country_needed"],
    ["06 12 34 56 78", "UK", "unknown_country"],
    ["07400 123456", "XX", "unknown_country"],
    ["+999 123 456 789", undefined, "unknown_country"],
    ["+0612345678", undefined, "unknown_country"],
    ["06 12 34", "FR", "too_short"],
    ["+33 6", undefined, "too_short"],
    ["1", "FR", "too_short"],
    ["06 12 34 56 78 90 12", "FR", "too_long"],
    ["+33 6 12 34 56 78 90 12", undefined, "too_long"],
    ["1".repeat(251), "FR", "too_long"],
    ["+49 800 1234 5678 9012", undefined, "too_long"],
    ["+1 555 555 0100", undefined, "invalid"],
    ["05 00 00 00 00", "GB", "invalid"],
  ])("%j in %s: %s", (input, country, reason) => {
    expect(parsePhoneNumber(input, { country })).toEqual({ ok: false, reason });
  });

  test.each([undefined, null, 612345678, {}, []])("%j, which is not a string: not_a_number", (input) => {
    expect(parsePhoneNumber(input as unknown as string, { country: "FR" })).toEqual({ ok: false, reason: "not_a_number" });
  });
});

/** Google's own port of libphonenumber: an independent parser with its own copy of the metadata. */
const google = PhoneNumberUtil.getInstance();

/** Beginnings of numbers for which the two have metadata of different months: see numbering-plan.test.ts. */
const knownToDiffer = ["+2298", "+267", "+26313", "+290", "+49800"];

const formOf = (parsed: Parsed, form: keyof typeof PhoneNumberFormat) => google.format(parsed, PhoneNumberFormat[form]);

interface Example {
  readonly region: string;
  readonly parsed: Parsed;
  readonly number: string;
}

const types = Object.values(PhoneNumberType).filter((type) => type >= 0);
const examples: readonly Example[] = google.getSupportedRegions().flatMap((region) =>
  types.flatMap((type) => {
    const parsed = google.getExampleNumberForType(region, type);
    if (parsed === null || !google.isValidNumber(parsed)) return [];
    const number = formOf(parsed, "E164");
    return number.length > 16 || knownToDiffer.some((beginning) => number.startsWith(beginning)) ? [] : [{ region, parsed, number }];
  }),
);

/** The zeros of scripts in which people enter digits. */
const zeros = ["0", "０", "٠", "۰", "०", "০", "๐", "𝟎"].map((zero) => zero.codePointAt(0) as number);
const inScript = (text: string, zero: number) => text.replace(/\d/g, (digit) => String.fromCodePoint(zero + Number(digit)));
const gaps = ["", " ", "  ", "-", ".", "/", "\u00a0", "\u2011", "–", "－", " (", ") "];

/** `text` with other separators between its groups of digits. */
const regrouped = (text: string, choices: readonly number[]) => {
  let at = 0;
  return text.replace(/(?<=\d)[^\d+]+(?=\d)/g, () => gaps[(choices[at++ % choices.length] ?? 0) % gaps.length] as string);
};

/** The result of Google's port for a number. */
function theirs(number: string): string {
  try {
    const parsed = google.parse(number);
    return google.isValidNumber(parsed) ? formOf(parsed, "E164") : "refused";
  } catch {
    return "refused";
  }
}

/** The same numbers in each run: numbering-plan.test.ts checks where the metadata of the two differ. */
const seed = 1;

describe("compared with Google's own port", () => {
  const example = fc.constantFrom(...examples);
  const disguise = fc.record({
    zero: fc.constantFrom(...zeros),
    choices: fc.array(fc.nat(100), { minLength: 1, maxLength: 6 }),
    around: fc.constantFrom("", " ", "\t", "\u200e"),
  });

  it("accepts numbers of every country and type, in every format of Google's, with any separators", () => {
    const countries = new Set<string>();
    fc.assert(
      fc.property(
        example,
        fc.constantFrom("E164", "INTERNATIONAL", "NATIONAL", "RFC3966"),
        disguise,
        ({ region, parsed, number }, form, { zero, choices, around }) => {
          const written = formOf(parsed, form);
          const typed = form === "RFC3966" ? written : `${around}${inScript(regrouped(written, choices), zero)}${around}`;
          // The national form of some islands means a number of another country with the same code; Google decides.
          const expected = form === "NATIONAL" ? formOf(google.parse(written, region), "E164") : number;
          countries.add(region);
          expect(parsePhoneNumber(typed, form === "NATIONAL" ? { country: region } : {}), `${typed} in ${region}`).toMatchObject({
            ok: true,
            phone_number: expected,
          });
        },
      ),
      { numRuns: 1_500, seed },
    );
    expect(countries.size).toBeGreaterThan(200);
  });

  it("drops a trunk zero in brackets after the country code in every country that dials one", () => {
    const dialled = examples.filter(({ parsed, number }) => {
      const [, national = ""] = /^\+\d+ (.*)$/.exec(formOf(parsed, "INTERNATIONAL")) ?? [];
      return formOf(parsed, "NATIONAL").replace(/\D/g, "") === `0${national.replace(/\D/g, "")}` && number !== "";
    });
    expect(new Set(dialled.map(({ region }) => region)).size).toBeGreaterThan(60);
    for (const { parsed, number, region } of dialled) {
      for (const trunk of ["(0)", "(0) ", "[0]"])
        expect(parsePhoneNumber(formOf(parsed, "INTERNATIONAL").replace(" ", ` ${trunk}`)), `${number} of ${region} with ${trunk}`).toMatchObject({
          phone_number: number,
        });
    }
  });

  it("accepts and rejects the same numbers as Google's, among numbers similar to valid ones", () => {
    let refused = 0;
    fc.assert(
      fc.property(
        example,
        fc.string({ unit: fc.constantFrom(..."0123456789"), minLength: 1, maxLength: 6 }),
        fc.integer({ min: -1, max: 1 }),
        ({ number }, end, more) => {
          const like = `${number.slice(0, -end.length - Math.max(0, -more))}${end}${more > 0 ? "5" : ""}`;
          if (knownToDiffer.some((beginning) => like.startsWith(beginning)) || like.length > 16) return;
          const ours = parsePhoneNumber(like);
          if (!ours.ok) refused++;
          expect(ours.ok ? ours.phone_number : "refused", like).toBe(theirs(like));
        },
      ),
      { numRuns: 1_000, seed },
    );
    expect(refused).toBeGreaterThan(500);
  });

  it("never throws for any string, and create accepts the numbers that it returns", () => {
    const rules = { validation: "valid", testNumbers: new Map(), ambiguousLineType: "Unknown" } as const;
    const alphabet = fc.constantFrom(..."0123456789+-. ()/;=%tel:x０＋（）٠", "\u202a", "\ud800", "😀");
    const any = fc.oneof(
      fc.string({ unit: codePoint }),
      fc.string({ unit: alphabet, maxLength: 40 }),
      example.map(({ number }) => number),
    );
    fc.assert(
      fc.property(
        any,
        fc.option(fc.oneof(fc.constantFrom("FR", "US", "IT", "JP", "UK", "", "__proto__"), fc.string()), { nil: undefined }),
        (input, country) => {
          const parsed = parsePhoneNumber(input, { country });
          if (parsed.ok) expect(phoneNumberOf(parsed.phone_number, rules)?.number).toBe(parsed.phone_number);
          else expect(["not_a_number", "country_needed", "unknown_country", "too_short", "too_long", "invalid"]).toContain(parsed.reason);
        },
      ),
      { numRuns: 400 },
    );
  });
});
