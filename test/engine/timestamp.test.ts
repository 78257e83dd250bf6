import fc from "fast-check";
import { expect, test } from "vitest";
import { timestamp } from "../../src/engine/timestamp.js";

const latest = 8.64e15;

test("as Date writes it, for every time that a Date can hold", () =>
  fc.assert(
    fc.property(
      fc.oneof(
        fc.integer({ min: 1.7e12, max: 1.8e12 }),
        fc.maxSafeInteger().filter((ms) => Math.abs(ms) <= latest),
      ),
      (ms) => {
        expect(timestamp(ms)).toBe(new Date(ms).toISOString());
      },
    ),
    { numRuns: 3_000, examples: [[0], [-1], [999], [59_999], [60_000], [latest - 1], [-latest + 60_000]] },
  ));

test("what is no time is none", () => {
  for (const ms of [Number.NaN, Number.POSITIVE_INFINITY, 2 * latest]) expect(() => timestamp(ms)).toThrow(RangeError);
});
