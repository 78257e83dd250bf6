import type { Clock } from "../../ports/clock.js";

/** How late a deadline may be noticed, in milliseconds. */
const tick = 25;

interface Deadline {
  readonly at: number;
  readonly run: () => void;
}

/**
 * The system's clock. Deadlines share one timer, which runs while there are any: nearly all are called off within a millisecond, and a timer of their own would cost each request more than its work.
 */
export function systemClock(): Clock {
  const deadlines = new Set<Deadline>();
  let ticking = false;

  const look = () => {
    const now = performance.now();
    for (const deadline of deadlines) {
      if (deadline.at > now) continue;
      deadlines.delete(deadline);
      deadline.run();
    }
    ticking = deadlines.size > 0;
    if (ticking) setTimeout(look, tick);
  };

  return {
    now: () => Date.now(),
    after(ms, run, kind) {
      if (kind === "background") return inBackground(ms, run);
      const deadline = { at: performance.now() + ms, run };
      deadlines.add(deadline);
      if (!ticking) {
        ticking = true;
        setTimeout(look, tick);
      }
      return () => deadlines.delete(deadline);
    },
  };
}

/** The longest that the platform's timers wait, in milliseconds; they run at once what is to wait longer. */
const longestWait = 2 ** 31 - 1;

/** One that is longer waits again for what is left. */
function inBackground(ms: number, run: () => void): () => void {
  let timer: NodeJS.Timeout;
  const wait = (left: number) => {
    timer = setTimeout(() => (left > longestWait ? wait(left - longestWait) : run()), Math.min(left, longestWait));
    timer.unref?.();
  };
  wait(ms);
  return () => clearTimeout(timer);
}
