/**
 * How the expiry of a message is sent: `relative` to its arrival at the message centre, `absolute` in UTC, or not at
 * all.
 */
export type ValidityPeriod = "relative" | "absolute" | "none";

/** The shortest useful validity, in milliseconds: a validity_period is in whole seconds. */
export const leastValidity = 1000;
/** The longest validity sent, in milliseconds: 30 days. Beyond it message centres apply their own limits. */
const longestValidity = 30 * 86_400_000;

/**
 * Returns validity_period (SMPP 3.4, 7.1.1: `YYMMDDhhmmsstnnp`), in whole seconds, rounded down.
 *
 * @param expiresAt When the message expires, like `now` in milliseconds since the epoch.
 */
export function validityPeriod(form: ValidityPeriod, expiresAt: number, now: number): string {
  const left = Math.max(leastValidity, Math.min(expiresAt - now, longestValidity));
  if (form === "absolute") return `${digits(now + left)}000+`;
  if (form === "none") return "";
  const days = Math.floor(left / 86_400_000);
  return `0000${String(days).padStart(2, "0")}${digits(left).slice(6)}000R`;
}

/** Formats a UTC time as `YYMMDDhhmmss`. */
function digits(ms: number): string {
  return new Date(ms).toISOString().slice(2, 19).replace(/\D/g, "");
}
