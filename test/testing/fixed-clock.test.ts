import { describe, expect, test } from "vitest";
import { fixedClock } from "../../src/testing/fixed-clock.js";

describe("fixedClock", () => {
  test("stands still until it is moved", () => {
    const clock = fixedClock(1_000);
    expect(clock.now()).toBe(1_000);
    clock.advance(250);
    expect(clock.now()).toBe(1_250);
    clock.set(500);
    expect(clock.now()).toBe(500);
    expect(fixedClock().now()).toBe(Date.parse("2026-01-01T00:00:00.000Z"));
  });

  test("runs timers in order, each at its own time, and once", () => {
    const clock = fixedClock(0);
    const ran: [string, number][] = [];
    const note = (name: string) => () => void ran.push([name, clock.now()]);
    clock.after(30, note("c"));
    clock.after(10, note("a"));
    clock.after(20, note("b"));
    clock.after(20, note("b, scheduled later"));
    clock.advance(9);
    expect(ran).toEqual([]);
    clock.advance(16);
    expect(ran).toEqual([
      ["a", 10],
      ["b", 20],
      ["b, scheduled later", 20],
    ]);
    expect(clock.now()).toBe(25);
    clock.set(1_000);
    clock.set(2_000);
    expect(ran.slice(3)).toEqual([["c", 30]]);
  });

  test("runs timers that other timers set, if they fall due on the way", () => {
    const clock = fixedClock(0);
    const ran: number[] = [];
    const again = () => {
      ran.push(clock.now());
      clock.after(10, again);
    };
    clock.after(10, again);
    clock.advance(35);
    expect(ran).toEqual([10, 20, 30]);
    expect(clock.now()).toBe(35);
  });

  test("runs no cancelled timer, and none when it is set back", () => {
    const clock = fixedClock(100);
    const ran: string[] = [];
    const callOff = clock.after(10, () => ran.push("called off"));
    clock.after(0, () => ran.push("at once"));
    clock.after(20, () => ran.push("kept"));
    callOff();
    clock.set(50);
    expect(ran).toEqual([]);
    clock.set(100);
    expect(ran).toEqual(["at once"]);
    clock.set(120);
    expect(ran).toEqual(["at once", "kept"]);
  });

  test("rejects invalid times", () => {
    const clock = fixedClock(0);
    expect(() => clock.advance(-1)).toThrow("advance takes 0 or more milliseconds, got -1");
    expect(() => clock.advance("30" as never)).toThrow("advance takes 0 or more milliseconds, got 30");
    expect(() => clock.advance(Number.NaN)).toThrow("got NaN");
    expect(() => clock.set(Number.POSITIVE_INFINITY)).toThrow("finite number, got Infinity");
    expect(() => fixedClock(Number.NaN)).toThrow("finite number, got NaN");
    expect(clock.now()).toBe(0);
  });
});
