import type { Clock } from "../ports/clock.js";

/** Wraps a clock so that it returns whole milliseconds, as stored times require. */
export function wholeMilliseconds(clock: Clock): Clock {
  return {
    now: () => Math.floor(clock.now()),
    after: (ms, run, kind) => clock.after(ms, run, kind),
    ...(clock.elapsed !== undefined && { elapsed: () => clock.elapsed?.() ?? clock.now() }),
  };
}
