import type { Clock } from "../../src/ports/clock.js";

/** The platform's time and timers. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, run, kind) {
    const timer = setTimeout(run, ms);
    if (kind === "background") timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Runs a function after pending input has been read. */
export const nextTurn: (run: () => void) => unknown = globalThis.setImmediate ?? setTimeout;
