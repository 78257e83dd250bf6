/**
 * Where the verifier reports what an operator should know: pino and console fit as they are. No code, key or whole phone number is ever passed in.
 * What it throws is not felt by any request; the line goes to the console then.
 */
export interface Logger {
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}
