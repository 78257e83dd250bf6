import fc from "fast-check";

/** Any character, as the `unit` of `fc.string`. What fast-check has for it, "binary", lays out all of Unicode first, which takes a second. */
export const codePoint = fc.oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff })).map((code) => String.fromCodePoint(code));
