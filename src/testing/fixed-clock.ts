import type { Clock } from "../ports/clock.js";

/** A clock that stands still until it is told otherwise. */
export interface FixedClock extends Clock {
  /** Moves on by `ms` milliseconds (0 or more) and runs what falls due, as `set` does. */
  advance(ms: number): void;
  /**
   * Goes to `ms`, in milliseconds since the epoch, and runs what falls due on the way: in the order of its times, each at its own time, and what those runs schedule too.
   * Going back runs nothing.
   */
  set(ms: number): void;
}

/**
 * A clock for tests.
 *
 * @param startMs Where it starts, in milliseconds since the epoch. Default: the first instant of 2026, UTC.
 */
export function fixedClock(startMs: number = Date.UTC(2026, 0, 1)): FixedClock {
  let now = finite(startMs);
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
      now = Math.max(now, timer.at);
      timer.run();
    }
    now = end;
  };

  return {
    now: () => now,
    after(ms, run) {
      const timer = { at: now + Math.max(0, finite(ms)), run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    set,
    advance(ms) {
      if (!(ms >= 0)) throw new RangeError(`fixedClock: advance takes 0 or more milliseconds, got ${ms}; set() goes back.`);
      set(now + ms);
    },
  };
}

function finite(ms: number): number {
  if (!Number.isFinite(ms)) throw new RangeError(`fixedClock: a time in milliseconds is a finite number, got ${ms}.`);
  return ms;
}
