import { expect, onTestFinished, test, vi } from "vitest";
import { Cohort } from "../../src/engine/clock/turn.js";

const turn = () => new Promise(setImmediate);

/** Joins, and writes its name down when it goes on. */
function joins(cohort: Cohort, wentOn: string[]): (name: string) => Promise<void> {
  return async (name) => {
    const others = cohort.join();
    if (others !== undefined) await others;
    wentOn.push(name);
  };
}

test("who comes alone waits for nobody, however often", async () => {
  const cohort = new Cohort();
  for (let time = 0; time < 5; time++) {
    expect(cohort.join()).toBeUndefined();
    await turn();
  }
});

test("after a turn in which several came, those of the next go on together, in the order in which they came, when all of it has come", async () => {
  const cohort = new Cohort();
  const wentOn: string[] = [];
  const join = joins(cohort, wentOn);
  for (const name of ["a", "b"]) void join(name);
  expect(wentOn).toEqual(["a", "b"]);
  await turn();
  for (const name of ["c", "d", "e"]) void join(name);
  await Promise.resolve();
  expect(wentOn).toEqual(["a", "b"]);
  await turn();
  expect(wentOn).toEqual(["a", "b", "c", "d", "e"]);
});

test("the last of a crowd waits once more, and nobody after it", async () => {
  const cohort = new Cohort();
  const wentOn: string[] = [];
  const join = joins(cohort, wentOn);
  for (const name of ["a", "b"]) void join(name);
  await turn();
  void join("c");
  expect(wentOn).toEqual(["a", "b"]);
  await turn();
  expect(wentOn).toEqual(["a", "b", "c"]);
  void join("d");
  expect(wentOn).toEqual(["a", "b", "c", "d"]);
});

test("turns without anybody change nothing", async () => {
  const cohort = new Cohort();
  const wentOn: string[] = [];
  const join = joins(cohort, wentOn);
  for (const name of ["a", "b"]) void join(name);
  for (let time = 0; time < 3; time++) await turn();
  void join("c");
  expect(wentOn).toEqual(["a", "b"]);
  await turn();
  expect(wentOn).toEqual(["a", "b", "c"]);
});

const foreign: readonly [string, () => unknown][] = [
  ["in a Worker", () => vi.stubGlobal("navigator", { userAgent: "Cloudflare-Workers" })],
  ["where a test's clock was there before", () => vi.useFakeTimers()],
  ["without setImmediate", () => vi.stubGlobal("setImmediate", undefined)],
];

test.each(foreign)("%s nobody waits for what another request began", async (_, begin) => {
  onTestFinished(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });
  begin();
  vi.resetModules();
  const there = await import("../../src/engine/clock/turn.js");
  const { gathers } = await import("../../adapters/kit/turn.js");
  expect(gathers).toBe(false);
  const cohort = new there.Cohort();
  for (let time = 0; time < 3; time++) {
    expect([cohort.join(), cohort.join(), cohort.join()]).toEqual([undefined, undefined, undefined]);
    if (vi.isFakeTimers()) vi.advanceTimersByTime(1);
    else await new Promise((resolve) => setTimeout(resolve, 0));
  }
});
