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
