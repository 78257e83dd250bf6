import type { Logger } from "../ports/logger.js";
import { consoleLogger } from "./console-logger.js";

/** A logger as the engine uses it: it never throws (docs/contract.md#listeners). What the host's own does not take, because it throws or rejects, goes to the console. */
export function safeLogger(host: Logger): Logger {
  const level =
    (name: keyof Logger): Logger[typeof name] =>
    (fields, message) => {
      const toConsole = () => quietly(() => consoleLogger[name](fields, message));
      try {
        const told: unknown = host[name](fields, message);
        if (told instanceof Promise) told.catch(toConsole);
      } catch {
        toConsole();
      }
    };
  return { info: level("info"), warn: level("warn"), error: level("error") };
}

/** A console may have been made to throw as well, by a test runner for one. */
function quietly(work: () => void): void {
  try {
    work();
  } catch {}
}
