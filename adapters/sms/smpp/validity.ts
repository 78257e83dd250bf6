/** How the end of a message is told: `relative` to its arrival at the message centre, `absolute` in UTC, or not at all. */
export type ValidityPeriod = "relative" | "absolute" | "none";

/** A message with less time than this to its end, in milliseconds, is of no use: a validity_period is in seconds. */
export const leastValidity = 1000;
/** The longest validity that is told, in milliseconds: 30 days. Beyond it message centres have limits of their own. */
const longestValidity = 30 * 86_400_000;

/**
 * validity_period (SMPP 3.4, 7.1.1: `YYMMDDhhmmsstnnp`), in whole seconds, of which a message is never given more than it has.
 *
 * @param expiresAt When the message ends, and `now`: in milliseconds since the epoch.
 */
export function validityPeriod(form: ValidityPeriod, expiresAt: number, now: number): string {
  const left = Math.max(leastValidity, Math.min(expiresAt - now, longestValidity));
  if (form === "absolute") return `${digits(now + left)}000+`;
  if (form === "none") return "";
  const days = Math.floor(left / 86_400_000);
  return `0000${String(days).padStart(2, "0")}${digits(left).slice(6)}000R`;
}

/** A time in UTC as `YYMMDDhhmmss`. */
function digits(ms: number): string {
  return new Date(ms).toISOString().slice(2, 19).replace(/\D/g, "");
}
