/** Lengths of time, in milliseconds. */
export const second = 1000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

let newest = { ms: 0, text: "0" };

/** A time in base 36: as what is stored and sent names the creation of an authentication, several times in one request. */
export function base36(ms: number): string {
  if (ms !== newest.ms) newest = { ms, text: ms.toString(36) };
  return newest.text;
}
