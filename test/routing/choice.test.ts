import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  answerMargin,
  type Candidate,
  mayFailOver,
  type RouteScope,
  rankRoutes,
  routeMatches,
  shortestTry,
  type Target,
  timeForTry,
} from "../../src/routing/choice.js";

const target = (fields: Partial<Target> = {}): Target => ({ to: "+33612345678", country: "FR", network: { mcc: "208", mnc: "01" }, ...fields });
const candidate = (fields: Partial<Candidate> = {}): Candidate => ({
  name: "a",
  priority: 1,
  cost: 0,
  weight: 1,
  health: 1,
  breaker: "closed",
  mayProbe: false,
  overdue: false,
  quality: 1,
  tried: false,
  wished: false,
  unreachable: false,
  ...fields,
});

describe("routes by country, dialling prefix and MCC/MNC", () => {
  const cases: [what: string, scope: RouteScope, fields: Partial<Target>, matches: boolean][] = [
    ["no criterion takes all", {}, { country: undefined, network: undefined }, true],
    ["its country", { countries: new Set(["DE", "FR"]) }, {}, true],
    ["another country", { countries: new Set(["DE"]) }, {}, false],
    ["no country is in no list", { countries: new Set(["FR"]) }, { country: undefined }, false],
    ["one of its prefixes", { prefixes: ["+49", "+336"] }, {}, true],
    ["none of its prefixes", { prefixes: ["+337", "+6"] }, {}, false],
    ["the MCC alone", { networks: ["208"] }, {}, true],
    ["MCC and MNC", { networks: ["262-01", "208-01"] }, {}, true],
    ["another MNC", { networks: ["208-10"] }, {}, false],
    ["01 and 001 are two networks", { networks: ["208-001"] }, {}, false],
    ["MCC and MNC where the MNC is not known", { networks: ["208-01"] }, { network: { mcc: "208" } }, false],
    ["an unknown network is in no list", { networks: ["208"] }, { network: undefined }, false],
    ["each criterion must hold", { countries: new Set(["FR"]), prefixes: ["+337"] }, {}, false],
  ];
  it.each(cases)("%s", (_, scope, fields, matches) => expect(routeMatches(scope, target(fields))).toBe(matches));
});

describe("order: breaker, then not used yet, then priority, then weighted choice", () => {
  const draws = (count: number) => ({ order: Array.from({ length: count }, () => 0.5), probe: 0.99, probeShare: 0 });
  const namesOf = (candidates: readonly Candidate[], given = draws(candidates.length)) => rankRoutes(candidates, given).map(({ name }) => name);

  it("puts a lower cost first within a priority, and routes without a price last", () => {
    const list = [candidate({ name: "d", cost: 0.01, priority: 2 }), candidate({ name: "c", cost: Number.MAX_VALUE }), candidate({ cost: 0.03 })];
    expect(namesOf([...list, candidate({ name: "b", cost: 0.05, weight: 100 })])).toEqual(["a", "b", "c", "d"]);
  });
  it("puts a lower priority number first", () => expect(namesOf([candidate({ name: "b", priority: 2 }), candidate()])).toEqual(["a", "b"]));
  it("puts a route not used yet before a better priority", () =>
    expect(namesOf([candidate({ tried: true }), candidate({ name: "b", priority: 2 })])).toEqual(["b", "a"]));
  it("puts a used route before one whose breaker is open", () =>
    expect(namesOf([candidate({ breaker: "open" }), candidate({ name: "b", tried: true, priority: 9 })])).toEqual(["b", "a"]));
  it("puts the best first when all breakers are open", () =>
    expect(namesOf([candidate({ breaker: "open", quality: 0.2 }), candidate({ name: "b", breaker: "half-open", quality: 0.5, priority: 3 })])).toEqual([
      "b",
      "a",
    ]));

  it("chooses in proportion to weight times health, also for the second place", () => {
    const three = [candidate({ weight: 2 }), candidate({ name: "b", weight: 4, health: 0.5 }), candidate({ name: "c", weight: 4 })];
    const firsts = new Map<string, number>();
    const seconds = new Map<string, number>();
    // An even grid instead of random draws.
    const side = 24;
    for (let i = 0; i < side ** 3; i++) {
      const order = [i % side, Math.floor(i / side) % side, Math.floor(i / side ** 2)].map((n) => (n + 0.5) / side);
      const [first = "", second = ""] = namesOf(three, { order, probe: 0.99, probeShare: 0 });
      firsts.set(first, (firsts.get(first) ?? 0) + 1 / side ** 3);
      if (first === "c") seconds.set(second, (seconds.get(second) ?? 0) + 1 / side ** 3);
    }
    expect(firsts.get("a")).toBeCloseTo(0.25, 1);
    expect(firsts.get("b")).toBeCloseTo(0.25, 1);
    expect(firsts.get("c")).toBeCloseTo(0.5, 1);
    expect(seconds.get("a")).toBeCloseTo(seconds.get("b")!, 1);
  });

  describe("probes", () => {
    const half = candidate({ name: "h", breaker: "half-open", mayProbe: true });
    const first = (candidates: readonly Candidate[], probe: number, probeShare = 0.05) =>
      rankRoutes(candidates, { order: candidates.map(() => 0.5), probe, probeShare })[0];
    it("go to a half-open route if the draw is below the share", () => {
      expect(first([candidate(), half], 0.049)).toEqual({ name: "h", reason: "probe" });
      expect(first([candidate(), half], 0.05)?.name).toBe("a");
    });
    it("are not made with a share of 0, once the round is full, or on an open route", () => {
      expect(first([candidate(), half], 0, 0)?.name).toBe("a");
      expect(first([candidate(), { ...half, mayProbe: false }], 0)?.name).toBe("a");
      expect(first([candidate(), { ...half, breaker: "open" }], 0)?.name).toBe("a");
    });
    it("do not go to a route whose cost would get no messages anyway", () => expect(first([candidate(), { ...half, cost: 0.05 }], 0)?.name).toBe("a"));
    it("do not go to a route whose priority would get no messages anyway", () => expect(first([candidate(), { ...half, priority: 2 }], 0)?.name).toBe("a"));
    it("take every second message if one is overdue, whatever its cost and priority, but none with a share of 0", () => {
      const overdue = { ...half, overdue: true, cost: 0.05, priority: 2 };
      expect([0.49, 0.5].map((probe) => first([candidate(), { ...half, name: "i" }, overdue], probe)?.name)).toEqual(["h", "a"]);
      expect(first([candidate(), overdue], 0, 0)?.name).toBe("a");
    });
    it("are shared among the half-open routes", () => {
      const two = [candidate(), half, { ...half, name: "i" }];
      expect([0.01, 0.04].map((probe) => first(two, probe)?.name)).toEqual(["h", "i"]);
    });
  });

  const reasons: [candidates: readonly Candidate[], reason: string][] = [
    [[candidate()], "the only route"],
    [[candidate({ breaker: "open" })], "the only route, though its breaker is open"],
    [[candidate(), candidate({ name: "b", priority: 2 })], "priority 1"],
    [[candidate({ cost: 0.03 }), candidate({ name: "b", cost: 0.05 })], "lowest cost"],
    [[candidate({ cost: 0.03 }), candidate({ name: "b", cost: 0.03 }), candidate({ name: "c", cost: 0.05 })], "weight 1 of 2"],
    [[candidate({ weight: 2 }), candidate({ name: "b", health: 0.5, weight: 2, tried: false })], "weight 2 of 3"],
    [[candidate(), candidate({ name: "b", tried: true })], "not used yet, priority 1"],
    [[candidate({ breaker: "open", quality: 2 }), candidate({ name: "b", breaker: "open" })], "the breakers of all 2 routes are open"],
  ];
  it.each(reasons)("gives the reason: row %#", (candidates, reason) =>
    expect(rankRoutes(candidates, { order: [0.1, 0.9], probe: 0.5, probeShare: 0 })[0]).toEqual({ name: "a", reason }),
  );

  const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  const any = fc
    .array(
      fc.record({
        priority: fc.integer({ min: 0, max: 3 }),
        cost: fc.constantFrom(0, 0.03, Number.MAX_VALUE),
        weight: fc.double({ min: 0.01, max: 100, noNaN: true }),
        health: fc.double({ min: 0.05, max: 1, noNaN: true }),
        breaker: fc.constantFrom("closed" as const, "open" as const, "half-open" as const),
        mayProbe: fc.boolean(),
        overdue: fc.constant(false),
        quality: unit,
        tried: fc.boolean(),
        wished: fc.constant(false),
        unreachable: fc.constant(false),
      }),
      { maxLength: 6 },
    )
    .map((list) => list.map((fields, index): Candidate => ({ ...fields, name: `r${index}` })));

  it("ranks each route exactly once, and an open or half-open one above a closed one only as a probe", () => {
    fc.assert(
      fc.property(any, fc.array(unit, { minLength: 6, maxLength: 6 }), unit, unit, (candidates, order, probe, probeShare) => {
        const ranked = rankRoutes(candidates, { order, probe, probeShare }).map(({ name }) => candidates.find((other) => other.name === name)!);
        expect(ranked.map(({ name }) => name).sort()).toEqual(candidates.map(({ name }) => name).sort());
        const [head, ...rest] = ranked;
        const probed = head?.breaker === "half-open" && head.mayProbe && probe < probeShare;
        const list = probed ? rest : ranked;
        for (const [i, next] of list.slice(1).entries()) {
          const one = list[i]!;
          expect(next.breaker === "closed" && one.breaker !== "closed").toBe(false);
          if ((next.breaker === "closed") !== (one.breaker === "closed")) continue;
          expect(one.tried && !next.tried).toBe(false);
          if (one.tried === next.tried && one.breaker === "closed") expect(one.priority).toBeLessThanOrEqual(next.priority);
          if (one.tried === next.tried && one.breaker === "closed" && one.priority === next.priority) expect(one.cost).toBeLessThanOrEqual(next.cost);
        }
      }),
    );
  });
});

describe("failover and deadline", () => {
  it.each([
    ["accepted", false, false],
    ["accepted", true, false],
    ["rejected", false, true],
    ["rejected", true, true],
    ["unknown", false, false],
    ["unknown", true, true],
  ] as const)("after %s with afterUnknown %s, failover is %s", (outcome, afterUnknown, goes) => expect(mayFailOver(outcome, afterUnknown)).toBe(goes));

  it.each([
    [5000, 3, false, { timeLeft: 4950, rejectAfter: 1650 }],
    [5000, 1, false, { timeLeft: 4950 }],
    [5000, 3, true, { timeLeft: 1650, rejectAfter: 1650 }],
    [5000, 1, true, { timeLeft: 4950 }],
    [150, 3, true, { timeLeft: 100, rejectAfter: 100 }],
    [149, 1, false, undefined],
    [-10, 1, false, undefined],
  ])("of %d ms, with %d tries left and afterUnknown %s, a try gets %j", (left, tries, afterUnknown, time) =>
    expect(timeForTry(left, tries, afterUnknown)).toEqual(time),
  );

  it("tries that all time out end before the deadline", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 20_000 }), fc.integer({ min: 1, max: 10 }), fc.boolean(), (whole, tries, afterUnknown) => {
        let left = whole;
        for (let open = tries; open > 0; open--) {
          const ms = timeForTry(left, open, afterUnknown)?.timeLeft;
          if (ms === undefined) break;
          expect(ms).toBeGreaterThanOrEqual(shortestTry);
          left -= ms;
          expect(left).toBeGreaterThanOrEqual(answerMargin);
        }
      }),
    );
  });
});
