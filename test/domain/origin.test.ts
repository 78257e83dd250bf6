import { expect, test } from "vitest";
import { defaultSpamPolicy } from "../../src/domain/spam-policy.js";
import { originOf } from "../../src/domain/spam-rules.js";

const off = { mode: "off" as const };
const kept = (change: Partial<typeof defaultSpamPolicy>) =>
  originOf("192.0.2.7", {}, { pot: false, safe: false, grows: false, strange: false }, { ...defaultSpamPolicy, ...change }, (text) => `hash of ${text}`);

test("only what a rule reads of an address is stored", () => {
  const address = { ...defaultSpamPolicy.address, ...off };
  const strangeNetwork = { ...defaultSpamPolicy.strangeNetwork, ...off };
  expect(Object.keys(kept({}) ?? {})).toEqual(["a", "w"]);
  expect(Object.keys(kept({ strangeNetwork }) ?? {})).toEqual(["a"]);
  expect(Object.keys(kept({ address }) ?? {})).toEqual(["w"]);
  expect(kept({ address, strangeNetwork })).toBeUndefined();
});
