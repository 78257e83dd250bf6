import fc from "fast-check";

/** Any character, as the `unit` of `fc.string`. fast-check's own, "binary", takes a second to list all of Unicode. */
export const codePoint = fc.oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff })).map((code) => String.fromCodePoint(code));
