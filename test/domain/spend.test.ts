import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SpendCeiling } from "../../src/domain/policy.js";
import { decodeLedger, emptyLedger, encodeLedger, holdSpend, type Ledger, leaveSpend, settleSpend, soundPrice, spendRefusal } from "../../src/domain/spend.js";

const lengths = { hour: 3_600_000, day: 86_400_000 };
const start = Date.parse("2026-03-01T12:03:07.000Z");

/** The ledger with a hold more, whatever the ceilings. */
function withHold(ledger: Ledger, { amount, at, name }: { readonly amount: number; readonly at: number; readonly name?: string }): Ledger {
  const held = holdSpend(ledger, amount, name, [], at, 0);
  if ("refusal" in held) throw new Error("refused without a ceiling");
  return held.next;
}

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
          for (const { at, price } of back) ledger = leaveSpend(ledger, { amount: price, at });
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
    for (let hold = 0; hold < 2_000; hold++) ledger = withHold(ledger, { name: `01234567-89ab ${1e7 + hold}`, amount: 999.999999, at: start + hold });
    expect(encodeLedger(ledger).length).toBeLessThan(32_000);
    expect(decodeLedger(encodeLedger(ledger))).toEqual(ledger);
    expect(withHold(ledger, { name: "x", amount: 1, at: start + 1_999 + 59_999 }).named, "those of the last minute").toHaveLength(2);
  });

  describe("twins of one request", () => {
    const ceilings = perOf("hour");
    const join = (ledger: Ledger, price: number, at = start, name = "k") => {
      const held = holdSpend(ledger, price, name, ceilings, at, 0);
      return "refusal" in held ? held.refusal.rule : held;
    };
    const joined = (ledger: Ledger, price: number, at = start) => {
      const held = join(ledger, price, at);
      if (typeof held === "string") throw new Error(held);
      return held;
    };
    const spentOf = ({ hour }: Ledger) => hour.reduce((sum, { spent }) => sum + spent, 0) / 1e6;

    it("hold once; the last to leave gives back, and one that was sent stays paid", () => {
      const one = joined(emptyLedger, 3);
      const two = joined(one.next, 3);
      expect(spentOf(two.next)).toBe(3);
      expect(spentOf(leaveSpend(two.next, one.hold))).toBe(3);
      expect(spentOf(leaveSpend(leaveSpend(two.next, one.hold), two.hold))).toBe(0);
      const sent = settleSpend(two.next, one.hold, 2);
      expect(spentOf(sent)).toBe(2);
      expect(spentOf(leaveSpend(sent, two.hold)), "who leaves after that takes nothing along").toBe(2);
    });

    it("a dearer plan holds the difference, and is refused where that is too much", () => {
      const one = joined(emptyLedger, 3);
      const two = joined(one.next, 4);
      expect(spentOf(two.next)).toBe(4);
      expect(spentOf(settleSpend(two.next, two.hold, 4))).toBe(4);
      expect(spentOf(settleSpend(two.next, one.hold, 3)), "what the twin held more goes too").toBe(3);
      expect(join(one.next, 6)).toBe("spend 5/hour");
      expect(spentOf(joined(two.next, 1).next)).toBe(4);
    });

    it("a name is forgotten after a minute: what was held stays, and the next is charged anew", () => {
      const one = joined(emptyLedger, 3);
      expect(spentOf(joined(one.next, 2, start + 59_999).next)).toBe(3);
      expect(spentOf(joined(one.next, 2, start + 60_000).next)).toBe(5);
      expect(join(one.next, 3, start + 60_000)).toBe("spend 5/hour");
      const later = joined(one.next, 2, start + 60_000);
      expect(spentOf(leaveSpend(later.next, later.hold))).toBe(3);
    });
  });

  it("a price counts as no less than it is, an amount as no more", () => {
    expect(spendRefusal(emptyLedger, 4e-7, [{ amount: 4e-7, per: "hour" }], start, 0)).toBeDefined();
    expect(spendRefusal(emptyLedger, 0.1 + 0.2, [{ amount: 0.3, per: "hour" }], start, 0)).toBeUndefined();
  });

  it("a text that is no ledger is told apart, and a price that is none", () => {
    for (const text of ["", "[]", "{}", "[[1],[]]", '[["1","2"],[]]', "[[1,1.5],[]]"]) expect(() => decodeLedger(text), text).toThrow();
    expect([0, 0.05, 1e9].map(soundPrice)).toEqual([0, 0.05, 1e9]);
    expect([-1, Number.NaN, Number.POSITIVE_INFINITY, 1e10, "1", null, undefined].map(soundPrice)).toEqual(Array(7).fill(undefined));
  });
});
