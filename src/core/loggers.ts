import { minute } from "../domain/time.js";
import type { Clock } from "../ports/clock.js";
import type { Logger } from "../ports/logger.js";

/** The default logger. */
export const consoleLogger: Logger = {
  info: () => undefined,
  warn: (fields, message) => console.warn(`phoneproof: ${message}`, fields),
  error: (fields, message) => console.error(`phoneproof: ${message}`, fields),
};

/** Removes what may be phone numbers from someone else's text, which often repeats the one it was given. */
export function withoutNumbers(words: string): string {
  return words.slice(0, 500).replace(/\d(?:[ .-]?\d){6,}/g, "…");
}

/** For the log: an error of the host's own code with its stack, but without numbers. */
export function stackOf(error: unknown): string {
  return withoutNumbers(String((error as Partial<Error> | undefined)?.stack ?? error));
}

/** Never throws (docs/contract.md#listeners): entries that the host's logger fails to log go to the console. */
export function safeLogger(host: Logger): Logger {
  const level =
    (name: keyof Logger): Logger[typeof name] =>
    (fields, message) => {
      const toConsole = () => quietly(() => consoleLogger[name](fields, message));
      try {
        const written: unknown = host[name](fields, message);
        if (written instanceof Promise) written.catch(toConsole);
      } catch {
        toConsole();
      }
    };
  return { info: level("info"), warn: level("warn"), error: level("error") };
}

/** The console can throw as well, for example in a test runner. */
function quietly(work: () => void): void {
  try {
    work();
  } catch {}
}

/** Messages remembered; beyond that, all are forgotten. */
const mostRemembered = 1_000;

/** Logs each message up to once a minute, with the number of omitted ones (`left_out`): an outage causes many. */
export function throttledLogger(clock: Clock, logger: Logger): Logger {
  const known = new Map<string, { at: number; leftOut: number }>();
  const at = (level: "info" | "warn" | "error") => (fields: Record<string, unknown>, message: string) => {
    const now = clock.now();
    const last = known.get(message);
    if (last !== undefined && Math.abs(now - last.at) < minute) {
      last.leftOut++;
      return;
    }
    if (known.size >= mostRemembered) known.clear();
    known.set(message, { at: now, leftOut: 0 });
    logger[level](last === undefined || last.leftOut === 0 ? fields : { ...fields, left_out: last.leftOut }, message);
  };
  return { info: at("info"), warn: at("warn"), error: at("error") };
}
