import { minute, second } from "../domain/time.js";

/** The minutes that were asked for last, written up to their seconds: those of now, and of what ends in a while. */
const minutes = new Map<number, string>();
const mostMinutes = 32;

/** `YYYY-MM-DDTHH:MM:SS.sssZ` (docs/contract.md#timestamps), as `Date` writes it: every answer has up to three, at half a microsecond each. Milliseconds since the epoch, whole. */
export function timestamp(ms: number): string {
  const at = Math.floor(ms / minute);
  const beginning = minutes.get(at) ?? newMinute(at);
  const rest = ms - at * minute;
  const seconds = Math.floor(rest / second);
  return `${beginning}${padded(seconds, 2)}.${padded(rest - seconds * second, 3)}Z`;
}

function newMinute(at: number): string {
  const written = new Date(at * minute).toISOString().slice(0, -"00.000Z".length);
  if (minutes.size === mostMinutes) minutes.clear();
  minutes.set(at, written);
  return written;
}

function padded(value: number, width: number): string {
  return String(value).padStart(width, "0");
}
