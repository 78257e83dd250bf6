import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SpendCeiling } from "../../src/domain/policy.js";
import { decodeLedger, emptyLedger, encodeLedger, type Ledger, settled, soundPrice, spendRefusal, withHold } from "../../src/domain/spend.js";

const lengths = { hour: 3_600_000, day: 86_400_000 };
const start = Date.parse("2026-03-01T12:03:07.000Z");

/** Spends as the rule allows, step by step; the steps that were let through. */
function spendAll(steps: readonly { readonly at: number; readonly price: number }[], ceilings: readonly SpendCeiling[], skew = 0) {
  let ledger: Ledger = emptyLedger;
  return steps.filter(({ at, price }) => {
    if (spendRefusal(ledger, price, ceilings, at, skew) !== undefined) return false;
    ledger = withHold(decodeLedger(encodeLedger(ledger)), { amount: price, at });
    return true;
  });
}

const someSteps = (longest: number) =>
  fc.array(fc.record({ wait: fc.nat(longest), price: fc.integer({ min: 1, max: 300 }).map((cents) => cents / 100) }), { maxLength: 60 }).map((list) => {
    let at = start;
    return list.map(({ wait, price }) => ({ at: (at += wait), price }));
  });

const perOf = (per: SpendCeiling["per"]) => [{ amount: 5, per }] as const;

describe('spend ceiling | `{ amount, per: "hour" or "day" }` over the route\'s price', () => {
  for (const per of ["hour", "day"] as const) {
    const length = lengths[per];

    it(`per ${per}: holds in every window of its length, and refuses at most a twelfth longer (property)`, () => {
      fc.assert(
        fc.property(someSteps(length / 3), (steps) => {
          const passed = spendAll(steps, perOf(per));
          for (const { at, price } of steps) {
            const since = (reach: number) => passed.filter((one) => one.at > at - reach && one.at <= at).reduce((sum, one) => sum + one.price, 0);
            expect(since(length)).toBeLessThanOrEqual(5 + 1e-9);
            const refused = !passed.some((one) => one.at === at && one.price === price);
            if (refused) expect(since(length * (1 + 1 / 12)) + price).toBeGreaterThan(5 - 1e-9);
          }
        }),
      );
    });

    it(`per ${per}: what is given back counts no more, in whatever order it comes back (property)`, () => {
      fc.assert(
        fc.property(someSteps(length / 3), fc.array(fc.nat(1000), { minLength: 60, maxLength: 60 }), (steps, order) => {
          let ledger: Ledger = emptyLedger;
          for (const { at, price } of steps) ledger = withHold(ledger, { amount: price, at });
          const back = steps.map((step, index) => ({ ...step, place: order[index] as number })).sort((a, b) => a.place - b.place);
          for (const { at, price } of back) ledger = settled(ledger, { amount: price, at }, 0);
          expect(ledger).toEqual(emptyLedger);
        }),
      );
    });
  }

  it("hour and day hold side by side, each named where it refuses", () => {
    const ceilings: SpendCeiling[] = [
      { amount: 1, per: "hour" },
      { amount: 3, per: "day" },
    ];
    const steps = Array.from({ length: 40 }, (_, minute) => ({ at: start + minute * 10 * 60_000, price: 0.5 }));
    expect(spendAll(steps, ceilings)).toHaveLength(6);
    const ledger = withHold(emptyLedger, { amount: 1, at: start });
    expect(spendRefusal(ledger, 0.5, ceilings, start, 0)).toEqual({ at: start, rule: "spend 1/hour", mode: "enforce", value: 1.5, threshold: 1 });
    const fullDay = [2, 4, 6].reduce((sum, hours) => withHold(sum, { amount: 1, at: start - hours * lengths.hour }), emptyLedger);
    expect(spendRefusal(fullDay, 0.5, ceilings, start, 0)).toMatchObject({ rule: "spend 3/day", value: 3.5, threshold: 3 });
  });

  it("sums do not drift: 10 pays for one hundred messages at 0.1, and for no more", () => {
    const steps = Array.from({ length: 120 }, (_, second) => ({ at: start + second, price: 0.1 }));
    expect(spendAll(steps, [{ amount: 10, per: "day" }])).toHaveLength(100);
  });

  it("without a price nothing passes, whatever is left", () => {
    const refusal = { at: start, rule: "spend 5/hour", mode: "enforce", threshold: 5, reason: "the sender told no price" };
    expect(spendRefusal(emptyLedger, undefined, perOf("hour"), start, 0)).toEqual(refusal);
  });

  it("clocks that are off: windows reach back twice the skew", () => {
    const ledger = withHold(emptyLedger, { amount: 5, at: start });
    const ended = Math.floor(start / 300_000) * 300_000 + 300_000 + lengths.hour;
    const refused = (at: number, skew: number) => spendRefusal(ledger, 1, perOf("hour"), at, skew) !== undefined;
    expect([refused(ended - 1, 0), refused(ended, 0)]).toEqual([true, false]);
    expect([refused(ended + 9_999, 5_000), refused(ended + 10_000, 5_000)]).toEqual([true, false]);
  });

  it("a ledger stays small, however long it is used, and however many holds have names", () => {
    let ledger = emptyLedger;
    for (let minute = 0; minute < 10_000; minute++) ledger = withHold(ledger, { amount: 999.999999, at: start + minute * 60_000 });
    expect(encodeLedger(ledger).length).toBeLessThan(1500);
    for (let hold = 0; hold < 2_000; hold++) ledger = withHold(ledger, { name: "01234567-89ab", amount: 999.999999, at: start + hold });
    expect(encodeLedger(ledger).length).toBeLessThan(60_000);
    expect(decodeLedger(encodeLedger(ledger))).toEqual(ledger);
    expect(withHold(ledger, { name: "x", amount: 1, at: start + 1_999 + 59_999 }).named, "those of the last minute").toHaveLength(2);
  });

  it("a text that is no ledger is told apart, and a price that is none", () => {
    for (const text of ["", "[]", "{}", "[[1],[]]", '[["1","2"],[]]', "[[1,1.5],[]]"]) expect(() => decodeLedger(text), text).toThrow();
    expect([0, 0.05, 1e9].map(soundPrice)).toEqual([0, 0.05, 1e9]);
    expect([-1, Number.NaN, Number.POSITIVE_INFINITY, 1e10, "1", null, undefined].map(soundPrice)).toEqual(Array(7).fill(undefined));
  });
});
