import { expect, it } from "vitest";
import { leakIn, takeLeaks } from "../support/leaks.js";
import { numberOf, setUp } from "../support/verifier.js";

it.each([
  ["a whole number", (message: { to: string }) => message.to],
  ["a whole number", (message: { to: string }) => `carrier says ${message.to.slice(1)} is no number`],
  ["a code", (message: { code: string }) => `text was ${message.code}`],
  ["a code", (message: { text: string }) => message.text],
])("the suite fails if %s is logged: %s", async (leak, words) => {
  const set = setUp();
  await set.create();
  // http.warn logs whatever it is given.
  set.verifier.http.warn(words(set.box.messages[0] as never));
  const leaks = takeLeaks();
  expect(leaks.length).toBeGreaterThan(0);
  for (const one of leaks) expect(one).toContain(`${leak} was told`);
});

it("masked numbers, times, ids and counts are not leaks", () => {
  for (const text of ["+33612****01", "at 1772366400000", "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f", "perNumber 5/600s", "file.ts:123456:7", "+1 more"])
    expect(leakIn(text)).toBe(undefined);
  expect(leakIn(`to ${numberOf(1)}`)).toBe("a whole number");
});
