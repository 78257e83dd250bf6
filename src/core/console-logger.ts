import type { Logger } from "../ports/logger.js";

/** Where things are reported unless the host has a logger. */
export const consoleLogger: Logger = {
  info: () => undefined,
  warn: (fields, message) => console.warn(`phoneproof: ${message}`, fields),
  error: (fields, message) => console.error(`phoneproof: ${message}`, fields),
};
