import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  count as countIn,
  countryCounts,
  createCounts,
  mergeRead,
  type Place,
  periodsOf,
  readsDue,
  type Signal,
  stretch,
  tidy,
} from "../../src/routing/counts.js";
import { totals } from "../../src/routing/health.js";

const [slice, window] = [15_000, 3_600_000];
const start = Date.UTC(2026, 0, 1);
const number = (at: number) => Math.floor(at / slice);

function set() {
  const counts = createCounts({ window, settle: 60_000 }, 4000);
  const fr = countryCounts(counts, "FR");
  const count = (at: number, signal: Signal = "handOver", route = "a") => countIn(counts, fr, route, at, signal, { good: 1, all: 1 });
  const seen = (now: number, signal: Signal = "handOver", route = "a") => totals(periodsOf(counts, fr, now), [route])[signal].all;
  const place = (at: number, fields: Partial<Place> = {}): Place => ({
    country: "FR",
    route: "a",
    first: number(at),
    length: 1,
    signal: "handOver",
    ...fields,
  });
  const merge = (at: Place, all: number) => mergeRead(counts, at, { good: all, all });
  /** Reads all that is due, with the values that `answers` returns. */
  const read = (now: number, answers: (place: Omit<Place, "route">) => number = () => 0) => {
    fr.usedAt = now;
    const { reads, done } = readsDue(counts, now);
    for (const one of reads) mergeRead(counts, { ...one, route: "a" }, { good: 0, all: answers(one) });
    done();
    return reads;
  };
  /** Takes the unshared counts, as an exchange does. */
  const share = () => {
    const shared = [...counts.unshared.values()];
    counts.unshared.clear();
    return shared;
  };
  return { counts, fr, count, seen, place, merge, read, share };
}

it("a slice is a quarter of `settle`, at least a second, and at least a 240th of the window", () => {
  expect(createCounts({ window, settle: 60_000 }, 4000)).toMatchObject({ slice, window, settle: 64_000, shared: true });
  expect(createCounts({ window: 7_200_000, settle: 1 }, undefined)).toMatchObject({ slice: 30_000, window: 7_200_000, settle: 1, shared: false });
  expect(createCounts({ window: 10, settle: 1 }, undefined).slice).toBe(1000);
});

describe("the counts of a slice", () => {
  it("are those of all processes, plus what was counted here since they were read", () => {
    const { count, seen, place, merge, share } = set();
    count(start);
    expect(share()).toEqual([{ place: place(start), tally: { good: 1, all: 1 } }]);
    expect(share()).toEqual([]);
    count(start);
    merge(place(start), 5);
    expect(seen(start)).toBe(6);
    expect(share().map(({ tally }) => tally)).toEqual([{ good: 1, all: 1 }]);
    merge(place(start), 6);
    expect(seen(start)).toBe(6);
  });

  it("are read while hand-overs are in progress, once more when they are over, and when the time for its codes is over", () => {
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

  it("are read later if its hand-overs were never read, and again if the clock was set back", () => {
    const { read } = set();
    read(start);
    const late = read(start + 60_000).filter(({ signal, first }) => signal === "handOver" && first >= number(start));
    expect(late.map(({ first }) => first)).toEqual([0, 1, 2, 3, 4].map((n) => number(start) + n));
    read(start + 600_000);
    read(start);
    expect(read(start + 79_000).filter(({ first, signal }) => first === number(start) && signal === "conversion")).toHaveLength(1);
  });

  it("include codes only once they are read and, after a clock was set back, once the time for them is over", () => {
    const { counts, count, seen, read } = set();
    count(start, "conversion");
    read(start);
    expect([seen(start + 79_000, "conversion"), seen(start + 79_000)]).toEqual([0, 0]);
    read(start + 79_000, ({ first, signal }) => (first === number(start) && signal === "conversion" ? 3 : 0));
    expect([seen(start + 79_000, "conversion"), seen(start + 78_999, "conversion")]).toEqual([4, 0]);
    counts.cutOff = true;
    expect(seen(start + 79_000, "conversion")).toBe(4);
  });
});

describe("old counts", () => {
  it("are merged into stretches, without loss or double counting, whatever arrives late", () => {
    const { counts, fr, count, seen, place, merge, read, share } = set();
    for (let n = 0; n < 200; n++) count(start + n * slice);
    share();
    count(start);
    const now = start + 200 * slice;
    fr.readAt = now;
    tidy(counts, fr, now);
    expect(seen(now)).toBe(201);
    expect(fr.rows.length).toBeLessThanOrEqual(10 + 2 * stretch + 5);
    // Counts that are shared or read for a slice that is already merged.
    expect(share()).toHaveLength(1);
    merge(place(start), 2);
    count(start + slice);
    expect(seen(now)).toBe(201);
    read(now + 2000, ({ signal, length, first }) => (signal === "handOver" && length === 1 && first * slice < now ? 1 : 0));
    tidy(counts, fr, now + 2000);
    expect(seen(now + 2000)).toBe(201);
  });

  it("are read by the stretch, instead of the slices that it covers", () => {
    const { counts, fr, count, seen, read } = set();
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
    // The 20 counted here are part of the 70 that all counted; the newest is not shared yet.
    expect(seen(now)).toBe(71);
    expect(periodsOf(counts, fr, now, (begin + 1) * slice)).toHaveLength(1);
  });

  it("are read with few counters when a process starts", () => {
    const { read } = set();
    for (let n = 0; n < 300; n++) expect(set().read(start + n * slice).length).toBeLessThan(260);
    const reads = read(start);
    const slices = new Set(reads.flatMap(({ first, length }) => Array.from({ length }, (_, n) => first + n)));
    expect(slices.size).toBeGreaterThan(240 - stretch);
    expect(Math.min(...slices) * slice).toBeGreaterThan(start - window);
  });

  it("stay bounded and in order, whatever is counted and merged when (property)", () => {
    const event = fc.record({ at: fc.integer({ min: -7_200_000, max: 7_200_000 }), take: fc.boolean(), long: fc.boolean(), read: fc.boolean() });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 80 }), (events) => {
        const { counts, fr, count, place, merge, read } = set();
        for (const one of events) {
          const at = start + one.at;
          const first = Math.floor(number(at) / stretch) * stretch;
          if (one.take) merge(place(at, one.long ? { first, length: stretch } : {}), 1);
          else count(at);
          if (one.read) {
            read(at);
            tidy(counts, fr, at);
            expect(fr.rows.every((row) => row.first * slice > at - window && row.first * slice <= at + counts.settle)).toBe(true);
          }
          for (const [index, row] of fr.rows.slice(1).entries()) expect(row.first).toBeGreaterThanOrEqual(fr.rows[index]!.first + fr.rows[index]!.length);
        }
      }),
    );
  });
});
