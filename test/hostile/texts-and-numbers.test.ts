import type { VerifierOptions } from "phoneproof";
import { otpWords } from "phoneproof/otp-input";
import { describe, expect, onTestFinished, test } from "vitest";
import { thrownBy, worldwide } from "./texts-and-numbers-kit.js";

function made(options: Partial<VerifierOptions> = {}): ReturnType<typeof worldwide> {
  const one = worldwide(options);
  onTestFinished(() => one.verifier.close());
  return one;
}

describe("numbers on lists", () => {
  test.each([
    // +54 11 15 2345 6789 is how Argentines write +54 9 11 2345 6789.
    ["of Argentina with 15", "+54111523456789", "+5491123456789"],
    ["of Antigua with its trunk prefix 1", "+112684641234", "+12684641234"],
  ])("that create accepts in the form %s: the block list blocks them (docs/contract.md#canonical-form)", async (_form, written, canonical) => {
    const { phone_number } = await made().verifier.createAuthentication({ phone_number: written });
    expect(phone_number).toBe(canonical);
    for (const options of [{ blockedNumbers: [written] }, { lists: { block: { numbers: [written] } } }]) {
      const { verifier } = made(options);
      expect(await thrownBy(() => verifier.createAuthentication({ phone_number: written }))).toMatch(/^blocked_number/);
    }
  });

  test("with Hungary's trunk prefix 06: the error names what is wrong and how to fix it (docs/contract.md#undefined-options)", async () => {
    const error = await thrownBy(() => made({ blockedNumbers: ["+3606*"] }));
    // Leaving out "the zero" makes +366*, which blocks other numbers; the entry does not end with a zero.
    expect(error).not.toContain("ends with the zero");
  });
});

describe("languages", () => {
  const text = { default: "Default {code}", en: "English {code}", fr: "Français {code}" };

  test("a locale that names no language (und) leaves the choice to the number's country (docs/contract.md#locale)", async () => {
    const { verifier, messages } = made({ message: { text } });
    await verifier.verifications.start({ phone_number: "+33612345678", locale: "und" });
    expect(messages[0]?.text).toMatch(/^Français/);
  });

  test("an empty key is not a language's tag and is rejected (docs/contract.md#message-text)", async () => {
    const error = await thrownBy(() => made({ message: { text: { default: "Code {code}", "": "Kode {code}" } } }));
    expect(error).toMatch(/^invalid_options/);
  });

  test("the sentence of a delivery is in traditional characters for zh-TW (docs/contract.md#deliver-answers)", async () => {
    const { verifier } = made({ conversion: "reported" });
    const { message } = await verifier.deliver({ phone_number: "+33112345678", code: "482913", locale: "zh-TW" });
    expect(message).toMatch(/[電話號碼無]/u);
    expect(message).not.toMatch(/[电话号码无]/u);
  });

  test("the Portuguese button for a call does not read 'first' (docs/front-end.md#words)", () => {
    expect(otpWords.pt?.call).not.toMatch(/\bantes\b/);
  });
});

describe("codes as people paste them", () => {
  test.each([
    ["U+034F combining grapheme joiner", "\u034f"],
    ["U+3164 Hangul filler", "\u3164"],
  ])("with the invisible %s are right (docs/contract.md#check-code)", async (_name, invisible) => {
    const { verifier, messages } = made();
    const { authentication_uuid } = await verifier.createAuthentication({ phone_number: "+821012345678" });
    const { status } = await verifier.check({ authentication_uuid, check_code: `${messages[0]?.code}${invisible}` });
    expect(status).toBe("valid");
  });
});
