import type { Clock } from "../../../src/ports/clock.js";
import type { Settings } from "./settings.js";

/** The outcome of a submit, as far as the window needs it. */
export type Answered = "accepted" | "throttled" | "other";

/**
 * Limits the unanswered submits to `window`, and to fewer after the peer throttled. Each "throttled" halves the window,
 * down to 1, and holds new submits back for `throttlePause` ms; only one per pause counts, because those in flight
 * belong to the same burst. Each full window of accepted submits widens it by one. Starts are spaced by
 * `messagesPerSecond`.
 *
 * @param ready Whether a submit can be written.
 */
export function submitWindow(
  { window: limit, throttlePause, messagesPerSecond, clock }: Pick<Settings, "window" | "throttlePause" | "messagesPerSecond" | "clock">,
  ready: () => boolean,
  onThrottled: (size: number) => void,
) {
  type Submit = (done: (answered: Answered) => void) => void;
  const mayStart = evenPace(messagesPerSecond, clock, pump);
  const begun = new Set<Submit>();
  const fresh = new Set<Submit>();
  let outstanding = 0;
  let size = limit;
  let accepted = 0;
  let paused = false;

  function answer(answered: Answered): void {
    outstanding -= 1;
    if (answered === "throttled" && !paused) {
      size = Math.max(1, Math.floor(size / 2));
      accepted = 0;
      paused = true;
      const resume = () => {
        paused = false;
        pump();
      };
      clock.after(throttlePause, resume, "background");
      onThrottled(size);
    } else if (answered === "accepted" && size < limit) {
      accepted += 1;
      if (accepted >= size) {
        size += 1;
        accepted = 0;
      }
    }
    pump();
  }

  function pump(): void {
    for (const queue of [begun, fresh]) {
      for (const submit of queue) {
        if (paused || outstanding >= size || !ready() || !mayStart()) return;
        queue.delete(submit);
        outstanding += 1;
        submit(answer);
      }
    }
  }

  return {
    /**
     * Runs `submit` as soon as there is room, at once if possible. `submit` calls `done` exactly once. `first`: goes
     * before all without it, for further parts of a message.
     * Returns a function that removes it from the queue; `false`: it has already run.
     */
    enter(submit: Submit, first: boolean): () => boolean {
      const queue = first ? begun : fresh;
      queue.add(submit);
      pump();
      return () => queue.delete(submit);
    },
    /** Checks again for room: call it when the connection is ready. */
    pump,
    /** Waiting submits. */
    get queued() {
      return begun.size + fresh.size;
    },
    /** Submits without a response yet. */
    get outstanding() {
      return outstanding;
    },
    /** Current limit of unanswered submits. */
    get size() {
      return size;
    },
    /** Whether new submits are held back because the peer throttled. */
    get paused() {
      return paused;
    },
  };
}

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
