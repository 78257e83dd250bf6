import { describe, expect, it } from "vitest";
import { messageText, segmentCount } from "../../src/domain/message.js";
import { setUp } from "../support/verifier.js";

describe("contract.md: Messages", () => {
  const template = { text: "Your code is {code}", domain: "example.com" };

  it("ANDROID with `app_realm`: the hash is the last token", () => {
    expect(messageText(template, "123456", { deviceType: "ANDROID", appRealm: "FA+9qCX9VSu" })).toBe("Your code is 123456\n\nFA+9qCX9VSu");
  });

  it("WEB (and IOS) with a configured domain: last line `@domain #code`", () => {
    for (const deviceType of ["WEB", "IOS"] as const)
      expect(messageText(template, "123456", { deviceType })).toBe("Your code is 123456\n\n@example.com #123456");
    expect(messageText({ text: template.text }, "123456", { deviceType: "WEB" })).toBe("Your code is 123456");
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
  ])("one GSM-7 segment is 160 septets, one UCS-2 segment 70 units: %j", (text, segments) => {
    expect(segmentCount(text)).toBe(segments);
  });

  it("a text that would cost a second segment is a configuration fault, so is one without the code", () => {
    expect(() => setUp({ message: { text: `{code} ${"a".repeat(160)}` } })).toThrow("message.text costs 2 SMS segments");
    expect(() => setUp({ message: { text: `Ваш код подтверждения: {code}. Никому его не сообщайте, даже нам.` } })).toThrow(
      "message.text costs 2 SMS segments",
    );
    expect(() => setUp({ message: { text: `{code} ${"a".repeat(130)}`, domain: "a-long-name-of-a-domain.example.com" } })).toThrow(
      "message.text costs 2 SMS segments",
    );
    expect(() => setUp({ message: { text: "Hello" } })).toThrow("message.text must contain {code}");
    expect(() => setUp({ message: { text: "Ваш код: {code}" } })).not.toThrow();
  });
});
