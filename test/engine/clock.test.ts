import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { checkedClock, systemClock } from "../../src/core/clocks.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";

describe("the system clock supports any length of wait (docs/contract.md#clock)", () => {
  const thirtyDays = 30 * 86_400_000;
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("in the background, even beyond the 24.8 days of one timer", () => {
    const run = vi.fn();
    systemClock().after(thirtyDays, run, "background");
    vi.advanceTimersByTime(thirtyDays - 1);
    expect(run).toHaveBeenCalledTimes(0);
    vi.advanceTimersByTime(1);
    expect(run).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(2 * thirtyDays);
    expect(run).toHaveBeenCalledTimes(1);
  });

  it("such a wait can be canceled during its last timer", () => {
    const run = vi.fn();
    const callOff = systemClock().after(thirtyDays, run, "background");
    vi.advanceTimersByTime(thirtyDays - 1);
    callOff();
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(thirtyDays);
    expect(run).toHaveBeenCalledTimes(0);
  });
});

describe("a clock with fractions of a millisecond (docs/contract.md#clock)", () => {
  it("returns whole milliseconds, before 1970 too, and waits as the clock itself does", () => {
    const clock = fixedClock(1_000.75);
    const whole = checkedClock(clock);
    const ran: string[] = [];
    whole.after(10, () => ran.push("run"));
    whole.after(10, () => ran.push("called off"))();
    expect(whole.now()).toBe(1_000);
    clock.advance(10);
    expect([whole.now(), ran]).toEqual([1_010, ["run"]]);
    clock.set(-0.25);
    expect(whole.now()).toBe(-1);
  });
});
