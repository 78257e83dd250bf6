import type { Logger } from "../ports/logger.js";
import { consoleLogger } from "./console-logger.js";

/**
 * Wraps the host's logger so that it never throws (docs/contract.md#listeners). Entries that it fails to log go to the
 * console.
 */
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
