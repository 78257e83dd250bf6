import type { VerifierOptions } from "phoneproof";
import { describe, expect, it, onTestFinished } from "vitest";
import { numberAt, service, tenant } from "./many-tenants-kit.js";

function opened(options: Partial<VerifierOptions> = {}) {
  const made = service(options);
  onTestFinished(() => made.verifier.close());
  return made;
}

describe("languages", () => {
  /** The text that a start with this locale sends to a French number. */
  async function textFor(text: Readonly<Record<string, string>>, locale: string): Promise<string | undefined> {
    const { verifier, sent } = opened({ message: { text } });
    await verifier.verifications.start({ phone_number: numberAt(1), locale });
    return sent[0]?.text.replace(/\d/g, "");
  }

  it.each(["cy", "eu", "fr-CA"])(
    "a text in %s, which no number's country chooses, can be chosen by the locale of a start (docs/contract.md#locale)",
    async (language) => {
      expect(await textFor({ default: "Code {code}", [language]: "right {code}" }, language)).toBe("right ");
    },
  );
});

describe("codes", () => {
  it.each<[string, (code: string) => string]>([
    ["between the marks of right-to-left text", (code) => `\u200f\u200e${code}\u200e`],
    ["between bidirectional isolates", (code) => `\u2068${code}\u2069`],
    ["behind a zero-width space", (code) => `\u200b${code}`],
    ["behind a word joiner", (code) => `\u2060${code}`],
    ["with a soft hyphen in it", (code) => `${code.slice(0, 3)}\u00ad${code.slice(3)}`],
    ["with a minus sign in it", (code) => `${code.slice(0, 3)}\u2212${code.slice(3)}`],
  ])("a code pasted %s, which looks like the right one, is right, as such numbers are (docs/contract.md#check-code)", async (_, pasted) => {
    const { verifier, sent } = opened();
    const { authentication_uuid } = await verifier.createAuthentication({ phone_number: numberAt(1) });
    const { status } = await verifier.check({ authentication_uuid, check_code: pasted(sent[0]?.code ?? "") });
    expect(status).toBe("valid");
  });
});

describe("guards: these pass", () => {
  it("a customer of the host's own source with `suspended: 1`, as SQL databases store it, is never admitted (docs/contract.md#customer-source-fails)", async () => {
    const { customer_uuid } = tenant();
    for (const suspended of [1, 0, "true", "f"]) {
      const row = { customer_uuid, suspended } as never;
      const { verifier, sent } = opened({ customers: { find: () => row, findByKeyDigest: () => row } });
      await expect(verifier.createAuthentication({ customer_uuid, phone_number: numberAt(1) })).rejects.toMatchObject({ code: "unavailable" });
      expect(sent).toEqual([]);
    }
  });

  it("segments are counted as phones count them, even where an escape or an emoji lies across their border (docs/contract.md#deliver-text)", async () => {
    const { verifier, sent } = opened({ conversion: "reported", message: { maxSegments: 2 } });
    const asIs = async (text: string, index: number) => {
      await verifier.deliver({ phone_number: numberAt(index), code: "123456", text });
      return sent.at(-1)?.text === text;
    };
    const gsm = (before: number, after: number) => `123456${"a".repeat(before)}€${"a".repeat(after)}`;
    const unicode = (before: number, after: number) => `123456${"й".repeat(before)}😀${"й".repeat(after)}`;
    expect([await asIs(gsm(146, 151), 1), await asIs(gsm(146, 152), 2), await asIs(gsm(147, 151), 3)]).toEqual([true, false, true]);
    expect([await asIs(unicode(60, 65), 4), await asIs(unicode(60, 66), 5)]).toEqual([true, false]);
  });
});
