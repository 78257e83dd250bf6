import type { Clock } from "../../ports/clock.js";

/** How late a deadline may be noticed, in milliseconds. */
const tick = 25;

/** Its place in the list; below 0: it is in there no more. */
interface Deadline {
  readonly at: number;
  readonly run: () => void;
  place: number;
}

/**
 * The system's clock. Deadlines share one timer, which runs while there are any: nearly all are called off within a millisecond, and a timer of their own would cost each request more than its work.
 */
export function systemClock(): Clock {
  const deadlines: Deadline[] = [];
  let ticking = false;

  /** The last takes the place of what goes. */
  const takeOff = (deadline: Deadline) => {
    const { place } = deadline;
    if (place < 0) return;
    const last = deadlines.pop() as Deadline;
    if (last !== deadline) {
      deadlines[place] = last;
      last.place = place;
    }
    deadline.place = -1;
  };

  const look = () => {
    const now = performance.now();
    for (const deadline of deadlines.filter(({ at }) => at <= now)) {
      // One that ran before it may have called it off.
      if (deadline.place < 0) continue;
      takeOff(deadline);
      deadline.run();
    }
    ticking = deadlines.length > 0;
    if (ticking) setTimeout(look, tick);
  };

  return {
    now: () => Date.now(),
    elapsed: () => performance.now(),
    after(ms, run, kind) {
      if (kind === "background") return inBackground(ms, run);
      const deadline = { at: performance.now() + ms, run, place: deadlines.length };
      deadlines.push(deadline);
      if (!ticking) {
        ticking = true;
        setTimeout(look, tick);
      }
      return () => takeOff(deadline);
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
