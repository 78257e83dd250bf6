import type { Clock } from "../ports/clock.js";

/** A clock as the engine reads it: it returns whole milliseconds, as everything that is stored must be. */
export function wholeMilliseconds(clock: Clock): Clock {
  return {
    now: () => Math.floor(clock.now()),
    after: (ms, run, kind) => clock.after(ms, run, kind),
    ...(clock.elapsed !== undefined && { elapsed: () => clock.elapsed?.() ?? clock.now() }),
  };
}
