import { VerifierError } from "../errors.js";
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

/**
 * A host's clock, in whole milliseconds, as stored times require.
 *
 * @throws VerifierError `invalid_options` if it has no time now; later, what it lacks is a TypeError.
 */
export function checkedClock(clock: Clock): Clock {
  const now = () => {
    const time = Math.floor(clock.now());
    if (Number.isFinite(time)) return time;
    throw new TypeError("option `clock` is invalid: clock.now must return milliseconds since the epoch, as Date.now does");
  };
  try {
    now();
  } catch (error) {
    throw new VerifierError("invalid_options", `phoneproof: ${(error as Error).message}`, { cause: error });
  }
  return {
    now,
    after(ms, run, kind) {
      const cancel: unknown = clock.after(ms, run, kind);
      if (typeof cancel === "function") return cancel as () => void;
      throw new TypeError("option `clock` is invalid: clock.after must return a function that cancels the timer");
    },
    ...(clock.elapsed !== undefined && { elapsed: () => clock.elapsed?.() ?? now() }),
  };
}
