import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { calendarOf, createCounters, type Place, stretch } from "../../src/routing/counters.js";
import { type Signal, total } from "../../src/routing/health.js";

const [slice, window] = [15_000, 3_600_000];
const start = Date.UTC(2026, 0, 1);
const calendar = calendarOf({ window, settle: 60_000 }, 4000);
const number = (at: number) => Math.floor(at / slice);

function set() {
  const counters = createCounters(calendar, true);
  const fr = counters.of("FR");
  const count = (at: number, signal: Signal = "handOver", route = "a") => counters.count(fr, route, at, signal, 1, 1);
  const seen = (now: number, signal: Signal = "handOver", route = "a") => total(counters.periods(fr, now), [route], signal).all;
  const place = (at: number, fields: Partial<Place> = {}): Place => ({
    country: "FR",
    route: "a",
    first: number(at),
    length: 1,
    signal: "handOver",
    ...fields,
  });
  /** All that it asks for, answered with nothing but what `answers` says. */
  const read = (now: number, answers: (place: Omit<Place, "route">) => number = () => 0) => {
    fr.metAt = now;
    const { reads, done } = counters.wants(now);
    for (const one of reads) counters.take({ ...one, route: "a" }, { good: 0, all: answers(one) });
    done();
    return reads;
  };
  return { counters, fr, count, seen, place, read };
}

it("time is cut up alike by all with the same rules: a quarter of `settle`, at least a second, at most 240 slices in the window", () => {
  expect(calendar).toEqual({ slice, window, settle: 64_000, answer: 10_000 });
  expect(calendarOf({ window: 7_200_000, settle: 1 }, 0)).toEqual({ slice: 30_000, window: 7_200_000, settle: 1, answer: 1 });
  expect(calendarOf({ window: 10, settle: 1 }, 0).slice).toBe(1000);
});

describe("what is known of a slice", () => {
  it("is what all counted together, and what was counted here since that was asked for", () => {
    const { counters, count, seen, place } = set();
    count(start);
    expect(counters.news()).toEqual([{ country: "FR", route: "a", first: number(start), length: 1, signal: "handOver", tally: { good: 1, all: 1 } }]);
    expect([counters.hasNews, counters.news()]).toEqual([false, []]);
    count(start);
    counters.take(place(start), { good: 5, all: 5 });
    expect(seen(start)).toBe(6);
    expect(counters.news().map(({ tally }) => tally)).toEqual([{ good: 1, all: 1 }]);
    counters.take(place(start), { good: 6, all: 6 });
    expect(seen(start)).toBe(6);
  });

  it("is asked for while hand-overs are under way, once more when they are over, and when its codes have had their time", () => {
    const { read } = set();
    read(start);
    const asked = (now: number) => read(now).flatMap(({ first, length, signal }) => (first === number(start) && length === 1 ? [signal] : []));
    expect(asked(start + 14_000)).toEqual(["handOver", "latency"]);
    expect(asked(start + 24_000)).toEqual(["handOver", "latency"]);
    expect(asked(start + 25_000)).toEqual(["handOver", "latency"]);
    expect(asked(start + 27_000)).toEqual([]);
    expect(asked(start + 78_999)).toEqual([]);
    expect(asked(start + 79_000)).toEqual(["conversion", "handOver", "receipts", "latency"]);
    expect(asked(start + 81_000)).toEqual([]);
  });

  it("is asked for again where its hand-overs were never read, nor the clock kept going forward", () => {
    const { read } = set();
    read(start);
    const late = read(start + 60_000).filter(({ signal, first }) => signal === "handOver" && first >= number(start));
    expect(late.map(({ first }) => first)).toEqual([0, 1, 2, 3, 4].map((n) => number(start) + n));
    read(start + 600_000);
    read(start);
    expect(read(start + 79_000).filter(({ first, signal }) => first === number(start) && signal === "conversion")).toHaveLength(1);
  });

  it("is not judged by codes before it was read, nor, after a clock was set back, before their time is over", () => {
    const { counters, count, seen, read } = set();
    count(start, "conversion");
    read(start);
    expect([seen(start + 79_000, "conversion"), seen(start + 79_000)]).toEqual([0, 0]);
    read(start + 79_000, ({ first, signal }) => (first === number(start) && signal === "conversion" ? 3 : 0));
    expect([seen(start + 79_000, "conversion"), seen(start + 78_999, "conversion")]).toEqual([4, 0]);
    counters.alone = true;
    expect(seen(start + 79_000, "conversion")).toBe(4);
  });
});

describe("what is old", () => {
  it("is joined into stretches, in which nothing is lost and nothing counts twice, whatever comes late", () => {
    const { counters, fr, count, seen, place, read } = set();
    for (let n = 0; n < 200; n++) count(start + n * slice);
    counters.news();
    count(start);
    const now = start + 200 * slice;
    fr.settledUpTo = number(now) - 5;
    counters.tidy(fr, now);
    expect(seen(now)).toBe(201);
    expect(fr.rows.length).toBeLessThanOrEqual(10 + 2 * stretch + 5);
    // What is told or answered for a slice that is joined already.
    expect(counters.news()).toHaveLength(1);
    counters.take(place(start), { good: 2, all: 2 });
    count(start + slice);
    expect(seen(now)).toBe(201);
    read(now + 2000, ({ signal, length, first }) => (signal === "handOver" && length === 1 && first * slice < now ? 1 : 0));
    counters.tidy(fr, now + 2000);
    expect(seen(now + 2000)).toBe(201);
  });

  it("is read by the stretch, in the place of the slices that it covers", () => {
    const { counters, fr, count, seen, read } = set();
    const begin = Math.ceil(number(start) / stretch) * stretch;
    for (let n = 0; n < stretch; n++) count((begin + n) * slice);
    const now = (begin + 6 * stretch) * slice;
    count(now);
    const reads = read(now, ({ first, length, signal }) => (length === stretch && first === begin && signal === "handOver" ? 70 : 0));
    expect(reads.filter(({ length, first }) => length === stretch && first === begin)).toHaveLength(4);
    expect(fr.rows.map(({ first, length }) => [first, length])).toEqual([
      [begin, stretch],
      [number(now), 1],
    ]);
    // The 20 that were counted here stand in the 70 that all counted; the newest is not told yet.
    expect(seen(now)).toBe(71);
    expect(counters.periods(fr, now, (begin + 1) * slice)).toHaveLength(1);
  });

  it("a process that starts asks for an hour in few counters", () => {
    const { read } = set();
    for (let n = 0; n < 300; n++) expect(set().read(start + n * slice).length).toBeLessThan(260);
    const reads = read(start);
    const slices = new Set(reads.flatMap(({ first, length }) => Array.from({ length }, (_, n) => first + n)));
    expect(slices.size).toBeGreaterThan(240 - stretch);
    expect(Math.min(...slices) * slice).toBeGreaterThan(start - window);
  });

  it("is bounded, and in order, whatever is counted and taken in when (property)", () => {
    const event = fc.record({ at: fc.integer({ min: -7_200_000, max: 7_200_000 }), take: fc.boolean(), long: fc.boolean(), read: fc.boolean() });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 80 }), (events) => {
        const { counters, fr, count, place, read } = set();
        for (const one of events) {
          const at = start + one.at;
          const first = Math.floor(number(at) / stretch) * stretch;
          if (one.take) counters.take(place(at, one.long ? { first, length: stretch } : {}), { good: 1, all: 1 });
          else count(at);
          if (one.read) {
            read(at);
            counters.tidy(fr, at);
            expect(fr.rows.every((row) => row.first * slice > at - window && row.first * slice <= at + calendar.settle)).toBe(true);
          }
          for (const [index, row] of fr.rows.slice(1).entries()) expect(row.first).toBeGreaterThanOrEqual(fr.rows[index]!.first + fr.rows[index]!.length);
        }
      }),
    );
  });
});
