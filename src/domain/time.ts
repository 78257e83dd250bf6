/** Durations in milliseconds. */
export const second = 1000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

/** A time in base 36, the form of creation times in stored and sent data. */
export function base36(ms: number): string {
  return ms.toString(36);
}

/** `YYYY-MM-DDTHH:MM:SS.sssZ` (docs/contract.md#timestamps). `ms`: milliseconds since the epoch, whole. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}
