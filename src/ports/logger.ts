/**
 * Receives what an operator should know; pino and console fit as they are. Codes, keys and full phone numbers are never
 * passed in.
 * If it throws, requests are not affected and the line goes to the console.
 */
export interface Logger {
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}
