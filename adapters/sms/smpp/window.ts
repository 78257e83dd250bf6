import { evenPace } from "./pace.js";
import type { Settings } from "./settings.js";

/** What a submit came to, as far as the window cares. */
export type Answered = "accepted" | "throttled" | "other";

export interface Window {
  /**
   * Runs `submit` as soon as there is room, at once if there is. `submit` calls `done` exactly once. `first`: before all that wait without that word, for parts of a message that has begun.
   * The function answered takes it out of the queue; `false`: it has run.
   */
  enter(submit: (done: (answered: Answered) => void) => void, first: boolean): () => boolean;
  /** Looks again whether there is room: to be called when the connection is ready. */
  pump(): void;
  /** Submits that wait, and submits without an answer yet. */
  readonly queued: number;
  readonly outstanding: number;
  /** Submits that may be outstanding now. */
  readonly size: number;
  /** Whether new submits are held back because the peer throttled. */
  readonly paused: boolean;
}

/**
 * How many submits may be without an answer at a time: `window`, and fewer after the peer said "throttled". Each such word halves the window, to 1 at least, and holds new submits back for `throttlePause` ms;
 * one word per pause counts, for those on the way when it came are of the same burst. Each window's worth of accepted submits opens it by one again. Within it they start as evenly as `messagesPerSecond` says.
 *
 * @param ready Whether a submit can be written.
 */
export function submitWindow(
  { window: limit, throttlePause, messagesPerSecond, clock }: Pick<Settings, "window" | "throttlePause" | "messagesPerSecond" | "clock">,
  ready: () => boolean,
  onThrottled: (size: number) => void,
): Window {
  const mayStart = evenPace(messagesPerSecond, clock, pump);
  const begun = new Set<(done: (answered: Answered) => void) => void>();
  const fresh: typeof begun = new Set();
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
    enter(submit, first) {
      const queue = first ? begun : fresh;
      queue.add(submit);
      pump();
      return () => queue.delete(submit);
    },
    pump,
    get queued() {
      return begun.size + fresh.size;
    },
    get outstanding() {
      return outstanding;
    },
    get size() {
      return size;
    },
    get paused() {
      return paused;
    },
  };
}
