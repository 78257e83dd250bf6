import { second } from "../domain/time.js";

/** The seconds that were asked for last, written up to their milliseconds: those of now, and of what ends in a while. */
const seconds = new Map<number, string>();
const mostSeconds = 64;

const milliseconds = Array.from({ length: second }, (_, value) => `${String(value).padStart(3, "0")}Z`);

/** `YYYY-MM-DDTHH:MM:SS.sssZ` (docs/contract.md#timestamps), as `Date` writes it: every answer has up to three, at half a microsecond each. Milliseconds since the epoch, whole. */
export function timestamp(ms: number): string {
  const at = Math.floor(ms / second);
  return (seconds.get(at) ?? newSecond(at)) + milliseconds[ms - at * second];
}

function newSecond(at: number): string {
  const written = new Date(at * second).toISOString().slice(0, -"000Z".length);
  if (seconds.size === mostSeconds) seconds.clear();
  seconds.set(at, written);
  return written;
}
