/**
 * Where the verifier reports what an operator should know: pino and console fit as they are. No code, key or whole phone number is ever passed in.
 */
export interface Logger {
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}
