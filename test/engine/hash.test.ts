import { createHmac } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { hmacOf } from "../../src/core/hash.js";
import { codePoint } from "../support/code-point.js";

const reference = (secret: string, text: string) => createHmac("sha256", secret).update(text).digest("base64url");

/** Lengths around one block, and around the buffer into which most texts fit. */
const lengths = fc.constantFrom(0, 1, 22, 63, 64, 65, 300, 341, 342, 1_023, 1_024, 1_025, 5_000);
const unit = fc.constantFrom("grapheme" as const, codePoint);
const texts = fc.tuple(lengths, unit).chain(([length, unit]) => fc.string({ minLength: length, maxLength: length, unit }));

test.each([
  ["in one shot", undefined],
  ["where the platform has no one-shot hash", null],
])("HMAC-SHA-256 is the same as the platform's for any key and text, %s", (_name, hash) =>
  fc.assert(
    fc.property(texts, fc.array(texts, { minLength: 1, maxLength: 4 }), (secret, all) => {
      const hmac = hmacOf(secret, hash);
      for (const text of all) expect(hmac(text)).toBe(reference(secret, text));
    }),
    { numRuns: 100 },
  ),
);

test("two keys do not affect each other", () => {
  const [one, other] = [hmacOf("one"), hmacOf("other")];
  for (const text of ["a", "b", "\ud800"]) {
    expect(one(text)).toBe(reference("one", text));
    expect(other(text)).toBe(reference("other", text));
  }
});

/** RFC 4231, sections 4.2 and 4.3: the cases with ASCII keys. */
test.each([
  ["\x0b".repeat(20), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"],
  ["Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"],
])("HMAC-SHA-256 under %j matches RFC 4231", (secret, text, digest) => {
  for (const hash of [undefined, null]) expect(Buffer.from(hmacOf(secret, hash)(text), "base64url").toString("hex")).toBe(digest);
});
