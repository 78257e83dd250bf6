import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import type { SpendCeiling } from "../../src/domain/policy.js";
import { refusalOf } from "../../src/domain/quota.js";
import { parsePrice, spendCharges, spendCorrection, unpricedRefusal } from "../../src/domain/spend.js";

const lengths = { hour: 3_600_000, day: 86_400_000 };
const start = Date.parse("2026-03-01T12:03:07.000Z");

/** A customer's spending in a store; `spend` returns the ceiling that blocks, or `undefined`. */
function purse(ceilings: readonly SpendCeiling[], skew = 0) {
  const store = memoryStore({ name: randomUUID() });
  const customer = randomUUID();
  const spend = async (price: number, now: number) => {
    const charges = spendCharges(customer, price, ceilings, { now, skew });
    const result = await store.commit({ claims: charges.map(({ claim }) => claim) });
    return result.done || result.refusedBy === undefined ? undefined : refusalOf(charges[result.refusedBy]!, result, skew);
  };
  const correct = async (held: number, spent: number, at: number) => {
    expect((await store.commit({ claims: spendCorrection(customer, held, spent, ceilings, { now: at, skew }) })).done).toBe(true);
  };
  return { spend, correct };
}

const someSteps = (longest: number) =>
  fc.array(fc.record({ wait: fc.nat(longest), price: fc.integer({ min: 1, max: 300 }).map((cents) => cents / 100) }), { maxLength: 60 }).map((list) => {
    let at = start;
    return list.map(({ wait, price }) => ({ at: (at += wait), price }));
  });

describe('spend ceiling: `{ amount, per: "hour" or "day" }` over the route\'s price', () => {
  for (const per of ["hour", "day"] as const) {
    const length = lengths[per];
    const five = [{ amount: 5, per }];

    it(`per ${per}: holds in every window of its length, and blocks at most a twelfth longer (property)`, async () => {
      await fc.assert(
        fc.asyncProperty(someSteps(length / 3), async (steps) => {
          const { spend } = purse(five);
          const passed: { at: number; price: number }[] = [];
          for (const { at, price } of steps) {
            const since = (reach: number) => passed.filter((one) => one.at > at - reach && one.at <= at).reduce((sum, one) => sum + one.price, 0);
            if ((await spend(price, at)) === undefined) passed.push({ at, price });
            else expect(since(length * (1 + 1 / 12)) + price).toBeGreaterThan(5 - 1e-9);
            expect(since(length)).toBeLessThanOrEqual(5 + 1e-9);
          }
        }),
      );
    });

    it(`per ${per}: what is given back no longer counts, in whatever order (property)`, async () => {
      await fc.assert(
        fc.asyncProperty(someSteps(Math.floor(length / 700)), fc.array(fc.nat(1000), { minLength: 60, maxLength: 60 }), async (steps, order) => {
          const total = steps.reduce((sum, { price }) => sum + price, 0) + 1;
          const { spend, correct } = purse([{ amount: Math.round(total), per }]);
          for (const { at, price } of steps) expect(await spend(price, at)).toBeUndefined();
          const back = steps.map((step, index) => ({ ...step, place: order[index] as number })).sort((a, b) => a.place - b.place);
          for (const { at, price } of back) await correct(price, 0, at);
          const end = steps.at(-1)?.at ?? start;
          expect(await spend(Math.round(total), end)).toBeUndefined();
          expect(await spend(0.01, end)).toMatchObject({ rule: `spend ${Math.round(total)}/${per}` });
        }),
        { numRuns: 50 },
      );
    });
  }

  it("ceilings per hour and per day apply in parallel; the one that blocks is named, with the sum that would exceed it", async () => {
    const ceilings: SpendCeiling[] = [
      { amount: 1, per: "hour" },
      { amount: 3, per: "day" },
    ];
    const { spend } = purse(ceilings);
    expect(await spend(1, start)).toBeUndefined();
    expect(await spend(0.5, start)).toMatchObject({ at: start, rule: "spend 1/hour", mode: "enforce", value: 1.5, threshold: 1 });
    expect(await spend(1, start + 2 * lengths.hour)).toBeUndefined();
    expect(await spend(1, start + 4 * lengths.hour)).toBeUndefined();
    expect(await spend(0.5, start + 6 * lengths.hour)).toMatchObject({ rule: "spend 3/day", value: 3.5, threshold: 3 });
  });

  it("sums do not drift: 10 pays for one hundred messages at 0.1, and for no more", async () => {
    const { spend } = purse([{ amount: 10, per: "day" }]);
    let passed = 0;
    for (let second = 0; second < 120; second++) if ((await spend(0.1, start + second)) === undefined) passed++;
    expect(passed).toBe(100);
  });

  it("a price is rounded up and an amount down, in millionths; what costs nothing is never blocked", async () => {
    expect(await purse([{ amount: 4e-7, per: "hour" }]).spend(4e-7, start)).toBeDefined();
    expect(await purse([{ amount: 0.3, per: "hour" }]).spend(0.1 + 0.2, start)).toBeUndefined();
    const full = purse([{ amount: 1, per: "hour" }]);
    expect(await full.spend(1, start)).toBeUndefined();
    expect(await full.spend(0, start)).toBeUndefined();
  });

  it("a message that cost more than was claimed counts in full, one that cost less gives back the rest", async () => {
    const { spend, correct } = purse([{ amount: 10, per: "hour" }]);
    expect(await spend(4, start)).toBeUndefined();
    await correct(4, 6, start);
    expect(await spend(5, start)).toMatchObject({ value: 11 });
    await correct(4, 1, start);
    expect(await spend(5, start)).toBeUndefined();
  });

  it("windows reach back by twice the clock skew", async () => {
    const skew = 60_000;
    const reach = lengths.hour + 2 * skew;
    const width = Math.ceil(reach / 12);
    const end = (Math.floor(start / width) + 13) * width;
    const late = purse([{ amount: 5, per: "hour" }], skew);
    expect(await late.spend(5, start)).toBeUndefined();
    expect(await late.spend(1, start + reach - 1)).toBeDefined();
    expect(await late.spend(1, end)).toBeUndefined();
  });

  it("a message without a price is blocked if there is a ceiling, and only then", () => {
    const refusal = { at: start, rule: "spend 5/hour", mode: "enforce", threshold: 5, reason: "the sender gave no price" };
    expect(unpricedRefusal(undefined, [{ amount: 5, per: "hour" }], start)).toEqual(refusal);
    expect(unpricedRefusal(undefined, [], start)).toBeUndefined();
    expect(unpricedRefusal("free", [{ amount: 5, per: "hour" }], start)).toBeUndefined();
    expect(spendCharges("c", "free", [{ amount: 5, per: "hour" }], { now: start, skew: 0 })).toEqual([]);
  });

  it("a price is a number from 0 to a thousand million; anything else counts as none", () => {
    expect([0, 0.05, 1e9].map(parsePrice)).toEqual([0, 0.05, 1e9]);
    expect([-1, Number.NaN, Number.POSITIVE_INFINITY, 1e10, "1", null, undefined].map(parsePrice)).toEqual(Array(7).fill(undefined));
  });
});
