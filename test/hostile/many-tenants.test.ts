import type { VerifierOptions } from "phoneproof";
import { expect, it, onTestFinished } from "vitest";
import { numberAt, service, tenant } from "./many-tenants-kit.js";

function opened(options: Partial<VerifierOptions> = {}) {
  const made = service(options);
  onTestFinished(() => made.verifier.close());
  return made;
}

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
