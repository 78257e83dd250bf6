import { describe, expect, test } from "vitest";
import { codeIn, digitsOf, placed } from "../../clients/otp-input/code.js";

describe("the code in a text", () => {
  const found: [text: string, length: number, code: string][] = [
    ["123456", 6, "123456"],
    ["Your code is 123456.", 6, "123456"],
    ["Your code is 123 456", 6, "123456"],
    ["12-34-56", 6, "123456"],
    ["1 2 3 4 5 6", 6, "123456"],
    ["123\u00a0456", 6, "123456"],
    ["123–456", 6, "123456"],
    ["G-123456 is your code", 6, "123456"],
    ["Valid for 10 minutes: 123456", 6, "123456"],
    ["Order 98765 of 2026: your code is 482913", 6, "482913"],
    ["Code 1234, valid until 2026", 4, "1234"],
    ["In 2026 your code is 9876\n\n@example.com #9876", 4, "9876"],
    ["رمز التحقق الخاص بك هو ١٢٣٤٥٦", 6, "123456"],
    ["\u200f١٢٣\u200f ٤٥٦", 6, "123456"],
    ["आपका कोड १२३४५६ है", 6, "123456"],
    ["コードは１２３４５６です", 6, "123456"],
    ["1234567890", 10, "1234567890"],
  ];
  test.each(found)("%j, of %i digits: %s", (text, length, code) => {
    expect(codeIn(text, length)).toBe(code);
  });

  const none: [text: string, length: number][] = [
    ["", 6],
    ["12345", 6],
    ["1234567", 6],
    ["+33 6 12 34 56 78", 6],
    ["+33612345678", 6],
    ["no digits here", 6],
    ["123456", 4],
  ];
  test.each(none)("%j contains no code of %i digits", (text, length) => {
    expect(codeIn(text, length)).toBeUndefined();
  });
});

test("digits of every script become ASCII digits, and everything else is dropped", () => {
  expect(digitsOf("a1 ٢-３४!𝟓")).toBe("12345");
});

describe("input into a field of six digits", () => {
  // `[` and `]` mark the selection.
  const rows: [before: string, text: string, after: string][] = [
    ["12[]", "3", "123"],
    ["12[]56", "3", "12356"],
    ["12[345]6", "7", "1276"],
    ["12[]3456", "7", "127456"],
    ["12[]3456", "78", "127856"],
    ["12[]345", "78", "127845"],
    ["1[2]3456", "78", "178456"],
    ["12345[]", "67", "123456"],
    ["123456[]", "7", "123456"],
    ["12[]", "x", "12"],
    ["12[]", "٣", "123"],
    ["12[]", "123456", "123456"],
    ["12[3]456", "Your code is 482 913", "482913"],
  ];
  test.each(rows)("%s with input %j becomes %s", (before, text, after) => {
    const value = before.replace(/[[\]]/g, "");
    const { digits, from, to } = placed(text, value, before.indexOf("["), before.indexOf("]") - 1, 6);
    expect(value.slice(0, from) + digits + value.slice(to)).toBe(after);
  });
});
