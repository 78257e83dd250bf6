import type { Clock } from "../ports/clock.js";

/** The longest delay of the platform's timers, in milliseconds; longer ones would fire at once. */
const longestWait = 2 ** 31 - 1;

/** The system clock, with the platform's timers. */
export function systemClock(): Clock {
  return {
    now: () => Date.now(),
    elapsed: () => performance.now(),
    after(ms, run, kind) {
      let timer: NodeJS.Timeout;
      const wait = (left: number) => {
        timer = setTimeout(() => (left > longestWait ? wait(left - longestWait) : run()), Math.min(left, longestWait));
        if (kind === "background") timer.unref?.();
      };
      wait(ms);
      return () => clearTimeout(timer);
    },
  };
}

/** Wraps a clock so that it returns whole milliseconds, as stored times require. */
export function wholeMilliseconds(clock: Clock): Clock {
  return {
    now: () => Math.floor(clock.now()),
    after: (ms, run, kind) => clock.after(ms, run, kind),
    ...(clock.elapsed !== undefined && { elapsed: () => clock.elapsed?.() ?? clock.now() }),
  };
}
