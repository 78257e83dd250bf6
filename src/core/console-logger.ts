import type { Logger } from "../ports/logger.js";

/** The default logger. */
export const consoleLogger: Logger = {
  info: () => undefined,
  warn: (fields, message) => console.warn(`phoneproof: ${message}`, fields),
  error: (fields, message) => console.error(`phoneproof: ${message}`, fields),
};
