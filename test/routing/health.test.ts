import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Breaker, closed, endRound, halfOpen, trip } from "../../src/routing/breaker.js";
import { type Period, type Signal, signals, type Tallies, type Tally } from "../../src/routing/counts.js";
import { healthFactor, probesPass, quality, shortfall, strainOf, totals } from "../../src/routing/health.js";

const rules = { tolerance: { conversion: 0.05, handOver: 0.3, receipts: 0.3, latency: 0.5 }, minSample: 20 };
const none: Tally = { good: 0, all: 0 };
const of = (good: number, all: number): Tally => ({ good, all });
const tallies = (fields: Partial<Tallies> = {}): Tallies => ({ conversion: none, handOver: none, receipts: none, latency: none, ...fields });
const period = (routes: Record<string, Partial<Tallies>>): Period => new Map(Object.entries(routes).map(([name, fields]) => [name, tallies(fields)]));
const repeat = (count: number, what: Period): Period[] => Array.from({ length: count }, () => what);

describe("shortfall: Newcombe's interval", () => {
  it("contains the difference, and narrows with more samples", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 300 }),
        fc.integer({ min: 1, max: 300 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (n, m, p, q) => {
          const [sample, expected] = [of(Math.round(n * p), n), of(Math.round(m * q), m)];
          const small = shortfall(sample, expected);
          const large = shortfall(of(sample.good * 10, n * 10), of(expected.good * 10, m * 10));
          expect(small.counted).toBeCloseTo(expected.good / m - sample.good / n);
          expect(small.most).toBeGreaterThanOrEqual(small.counted);
          expect(small.chance).toBeGreaterThan(large.chance - 1e-9);
        },
      ),
    );
  });

  it("matches the published one: 56 of 70 against 48 of 80 (Newcombe 1998, table II, method 10)", () => {
    const { counted, chance, most } = shortfall(of(48, 80), of(56, 70), 1.96);
    expect([counted, counted - chance, most].map((value) => Number(value.toFixed(4)))).toEqual([0.2, 0.0524, 0.3339]);
  });

  it("treats more codes than messages as all good, if a code is counted before its message", () => {
    expect(shortfall(of(21, 20), of(18, 20))).toEqual(shortfall(of(20, 20), of(18, 20)));
    expect(totals([period({ a: { conversion: of(3, 2) }, b: { conversion: of(1, 1) } })], ["a", "b"]).conversion).toEqual(of(3, 3));
  });

  it("is wider for routes, because the usual 1.96 would give false alarms", () => {
    const { counted, chance } = shortfall(of(48, 80), of(56, 70));
    expect(counted - chance).toBeLessThan(0);
  });
});

describe("strain: compared with the other routes of the country, above all by check conversion", () => {
  const others = ["b", "c"];
  const conversion = (a: Tally, b: Tally, count = 1) => repeat(count, period({ a: { conversion: a }, b: { conversion: b }, c: { conversion: b } }));
  const cases: [what: string, periods: Period[], opens: boolean][] = [
    ["60 of 100 against 90 of 100 opens", conversion(of(6, 10), of(9, 10), 10), true],
    ["85 of 100 against 90 of 100 does not", conversion(of(17, 20), of(18, 20), 5), false],
    ["nothing typed of 19 is too few to tell", conversion(of(0, 19), of(90, 100)), false],
    ["nothing typed of 20 is not", conversion(of(0, 20), of(90, 100)), true],
    ["a country whose users rarely finish opens no breaker", conversion(of(1, 10), of(1, 10), 20), false],
    ["nothing typed anywhere opens no breaker", conversion(of(0, 10), of(0, 10), 20), false],
    ["what befalls the whole country opens no breaker", [...conversion(of(9, 10), of(9, 10), 20), ...conversion(of(2, 10), of(2, 10), 20)], false],
    ["a sudden fall shows beneath a long good past", [...conversion(of(9, 10), of(9, 10), 40), ...conversion(of(4, 10), of(9, 10), 4)], true],
    [
      "without others it is compared with its own past",
      [...repeat(5, period({ a: { conversion: of(9, 10) } })), ...repeat(5, period({ a: { conversion: of(4, 10) } }))],
      true,
    ],
    ["without others or past it is not judged by conversion", repeat(3, period({ a: { conversion: of(1, 10) } })), false],
    ["failing hand-overs open without anything to compare with", [period({ a: { handOver: of(5, 20) } })], true],
    ["as many failing hand-overs elsewhere do not", [period({ a: { handOver: of(5, 20) }, b: { handOver: of(5, 20) } })], false],
    ["nor does it if every route accepts nothing", [period({ a: { handOver: of(0, 20) }, b: { handOver: of(0, 20) }, c: { handOver: of(0, 20) } })], false],
    ["accepting nothing opens if another route is untried", [period({ a: { handOver: of(0, 20) }, b: { handOver: of(0, 20) } })], true],
    ["so does accepting next to nothing of many", [period({ a: { handOver: of(50, 1000) }, b: { handOver: of(50, 1000) } })], true],
    ["rejecting 60 % does not, as invalid numbers fail too", repeat(20, period({ a: { handOver: of(40, 100) }, b: { handOver: of(40, 100) } })), false],
    [
      "a route that was tried earlier, but not lately, counts as untried",
      [
        ...repeat(5, period({ a: { handOver: of(50, 50) }, b: { handOver: of(50, 50) }, c: { handOver: of(50, 50) } })),
        period({ a: { handOver: of(0, 20) }, b: { handOver: of(0, 20) } }),
      ],
      true,
    ],
    ["slow answers open", [period({ a: { latency: of(2, 40) }, b: { latency: of(40, 40) } })], true],
    [
      "receipts open where conversion cannot tell",
      [period({ a: { receipts: of(5, 40), conversion: of(4, 40) }, b: { receipts: of(38, 40), conversion: of(5, 40) } })],
      true,
    ],
    [
      "receipts count for nothing where conversion proves the route sound",
      [period({ a: { receipts: of(0, 200), conversion: of(180, 200) }, b: { receipts: of(190, 200), conversion: of(180, 200) } })],
      false,
    ],
  ];
  it.each(cases)("%s", (_, periods, opens) => expect(strainOf(periods, "a", others, rules) >= 1).toBe(opens));

  it("evaluates only the signals that are asked for", () => {
    const periods = [period({ a: { handOver: of(19, 20), conversion: of(0, 20) }, b: { handOver: of(100, 100), conversion: of(90, 100) } })];
    expect([["handOver"], ["conversion"], undefined].map((by) => strainOf(periods, "a", ["b"], rules, by as Signal[]) >= 1)).toEqual([false, true, true]);
  });

  it("small samples change nothing, whatever they show", () => {
    const tally = fc.integer({ min: 0, max: 19 }).chain((all) => fc.integer({ min: 0, max: all }).map((good) => of(good, all)));
    fc.assert(
      fc.property(fc.record({ conversion: tally, handOver: tally, receipts: tally, latency: tally }), (few) => {
        expect(healthFactor(strainOf([period({ a: few, b: { conversion: of(90, 100), handOver: of(100, 100) } })], "a", others, rules), 0.05)).toBe(1);
      }),
    );
  });

  it("is never above 0 for a route that does as well as the others", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 1, max: 60 }), fc.constantFrom(...signals), (good, count, signal) => {
        expect(strainOf(repeat(count, period({ a: { [signal]: of(good, 50) }, b: { [signal]: of(good, 50) } })), "a", ["b"], rules)).toBeLessThanOrEqual(0);
      }),
    );
  });
});

it("the weight falls from two fifths of the strain that opens a breaker, but never below its floor", () => {
  expect([-1, 0, 0.4, 0.7, 1, 2].map((strained) => Number(healthFactor(strained, 0.05).toFixed(3)))).toEqual([1, 1, 1, 0.5, 0.05, 0.05]);
});

describe("probes", () => {
  const cases: [what: string, a: Partial<Tallies>, b: Partial<Tallies>, pass: boolean][] = [
    ["as good as the others", { conversion: of(18, 20) }, { conversion: of(90, 100) }, true],
    ["within tolerance and chance", { conversion: of(16, 20) }, { conversion: of(90, 100) }, true],
    ["still worse", { conversion: of(15, 20) }, { conversion: of(90, 100) }, false],
    ["typed, but rejected by the carrier", { conversion: of(5, 5), handOver: of(5, 20) }, { conversion: of(90, 100) }, false],
    ["nothing to compare with", { conversion: of(1, 20), handOver: of(20, 20) }, {}, true],
    ["none accepted, as by the others", { handOver: of(0, 20) }, { handOver: of(0, 100) }, false],
  ];
  it.each(cases)("%s", (_, a, b, pass) => expect(probesPass([period({ a, b })], "a", ["b"], rules)).toBe(pass));
});

it("quality is higher for routes whose messages are accepted and whose codes are entered", () => {
  const list = [
    period({ a: { handOver: of(100, 100), conversion: of(60, 100) }, b: { handOver: of(0, 20) }, d: { handOver: of(50, 100), conversion: of(45, 50) } }),
  ];
  const [a, b, fresh, d] = ["a", "b", "c", "d"].map((route) => quality(list, route));
  expect(a).toBeGreaterThan(d!);
  expect(d).toBeGreaterThan(fresh!);
  expect(fresh).toBeGreaterThan(b!);
});

describe("the breaker", () => {
  const times = { probes: 2, probeAfter: 60, window: 300, slice: 10 };
  const half = (failures = 0): Breaker => ({ state: "half-open", since: 100, failures });
  const round = (probes: number, settled = true) => ({ probes, settled });

  it("opens at full strain until the end of a slice, so that processes count one round of probes together", () => {
    expect(trip(0.99, 5, times)).toBe(closed);
    expect([1, 5, 10].map((now) => trip(1, now, times))).toEqual([70, 70, 70].map((until) => ({ state: "open", until, failures: 0 })));
  });
  it("half-opens when its time is over, dated from that moment", () => {
    const open: Breaker = { state: "open", until: 70, failures: 1 };
    expect(halfOpen(open, 69)).toBe(open);
    expect([70, 95].map((now) => halfOpen(open, now))).toEqual([70, 70].map((since) => ({ state: "half-open", since, failures: 1 })));
  });
  it("ends a full round once each probe has had its time", () => {
    expect(endRound(half(), round(2, false), () => true, 150, times)).toEqual(half());
    expect(endRound(half(), round(1), () => true, 150, times)).toEqual(half());
    expect(endRound(half(), round(2), () => true, 150, times)).toBe(closed);
  });
  it("waits longer after each failed round, up to the window", () => {
    const waits = [0, 1, 2, 5].map((failures) => {
      const next = endRound(half(failures), round(2), () => false, 200, times);
      return next.state === "open" ? next.until - 200 : undefined;
    });
    expect(waits).toEqual([120, 240, 300, 300]);
  });
  it("ends a round that is not full when a window has passed, but stays half-open without any probe", () => {
    expect(endRound(half(), round(1), () => false, 399, times).state).toBe("half-open");
    expect(endRound(half(), round(1), () => false, 400, times).state).toBe("open");
    expect(endRound(half(), round(0), () => true, 400, times)).toEqual(half());
  });
});
