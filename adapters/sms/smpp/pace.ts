import type { Clock } from "../../../src/ports/clock.js";

/**
 * Spaces starts evenly, at least `1000 / perSecond` ms apart, so that no second holds more and no burst follows a
 * pause. A late timer is made up for by up to one start.
 *
 * @param perSecond `undefined`: no limit.
 * @param freed Called when a denied start may be tried again.
 * @returns A function that returns whether a start is allowed now; if so, it counts as made.
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
