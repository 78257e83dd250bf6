import type { Clock } from "../../../src/ports/clock.js";

/**
 * Spreads what starts evenly: each start at least `1000 / perSecond` ms after the one before, so that no second holds more, and no burst follows a pause. A timer that comes late is made up for, by one start at most.
 *
 * @param perSecond `undefined`: without limit.
 * @param freed Called when a start that was refused may be tried again.
 * @returns Whether one may start now; if so it is taken to do so.
 */
export function evenPace(perSecond: number | undefined, clock: Clock, freed: () => void): () => boolean {
  if (perSecond === undefined) return () => true;
  const interval = 1000 / perSecond;
  let nextAt = Number.NEGATIVE_INFINITY;
  let timed = false;
  let woken = false;

  function wake(): void {
    timed = false;
    woken = true;
    freed();
    woken = false;
  }

  return () => {
    const now = clock.now();
    if (now < nextAt) {
      if (!timed) clock.after(nextAt - now, wake, "background");
      timed = true;
      return false;
    }
    nextAt = Math.max(nextAt, woken ? now - interval : now) + interval;
    return true;
  };
}
