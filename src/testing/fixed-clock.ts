import { systemClock } from "../core/clocks.js";
import type { Clock } from "../ports/clock.js";

/** A clock that moves only when it is set. */
export interface FixedClock extends Clock {
  /** Advances by `ms` milliseconds (0 or more) and runs the timers that fall due, as `set` does. */
  advance(ms: number): void;
  /**
   * Sets the time to `ms`, in milliseconds since the epoch. Timers that fall due on the way run in order, each at its
   * own time, and so do timers that they schedule. Setting the clock back runs nothing.
   */
  set(ms: number): void;
}

/**
 * A clock for tests.
 *
 * @param startMs Start time, in milliseconds since the epoch. Default: the first instant of 2026, UTC.
 */
export function fixedClock(startMs: number = Date.UTC(2026, 0, 1)): FixedClock {
  return movedClock(finite(startMs));
}

/** A clock that follows the system's time and can also be advanced. */
export function runningClock(): FixedClock {
  const system = systemClock();
  return movedClock(system.now(), system);
}

/** `flow`: the clock whose time it follows. Default: none, so time moves only when it is set. */
function movedClock(startMs: number, flow?: Clock): FixedClock {
  const flown = () => flow?.now() ?? 0;
  let ahead = startMs - flown();
  const now = () => ahead + flown();
  const timers = new Set<{ readonly at: number; readonly run: () => void }>();

  const earliest = () => {
    let first: { readonly at: number; readonly run: () => void } | undefined;
    for (const timer of timers) if (first === undefined || timer.at < first.at) first = timer;
    return first;
  };

  const set = (ms: number) => {
    const end = finite(ms);
    for (let timer = earliest(); timer !== undefined && timer.at <= end; timer = earliest()) {
      timers.delete(timer);
      ahead = Math.max(now(), timer.at) - flown();
      timer.run();
    }
    ahead = end - flown();
  };

  return {
    now,
    after(ms, run, kind) {
      const timer = {
        at: now() + Math.max(0, finite(ms)),
        run() {
          rest();
          run();
        },
      };
      timers.add(timer);
      let rest = () => {};
      // If the clock was set back, keep waiting.
      const wait = () => {
        if (timer.at <= now()) set(now());
        else if (flow !== undefined) rest = flow.after(timer.at - now(), wait, kind);
      };
      if (flow !== undefined) rest = flow.after(ms, wait, kind);
      return () => {
        timers.delete(timer);
        rest();
      };
    },
    set,
    advance(ms) {
      if (typeof ms !== "number" || !(ms >= 0)) throw new RangeError(`fixedClock: advance takes 0 or more milliseconds, got ${ms}; set() goes back.`);
      set(now() + ms);
    },
  };
}

function finite(ms: number): number {
  if (!Number.isFinite(ms)) throw new RangeError(`fixedClock: a time in milliseconds is a finite number, got ${ms}.`);
  return ms;
}
