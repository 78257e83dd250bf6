type Lines = Record<"info" | "warn" | "error", (fields: Record<string, unknown>, message: string) => void>;

/** Milliseconds. */
const minute = 60_000;

/** Messages remembered; beyond that, all are forgotten. */
const mostRemembered = 1_000;

/**
 * Logs a message, for each `rule`, `list` or `route` that it names and each `country`, once a minute, with how many were
 * left out (`left_out`).
 */
export function throttledLogger(clock: { now(): number }, logger: Lines): Lines {
  const known = new Map<string, { at: number; leftOut: number }>();
  const at = (level: keyof Lines) => (fields: Record<string, unknown>, message: string) => {
    const now = clock.now();
    const key = `${message} ${String(fields.rule ?? fields.list ?? fields.route)} ${String(fields.country)}`;
    const last = known.get(key);
    if (last !== undefined && Math.abs(now - last.at) < minute) {
      last.leftOut++;
      return;
    }
    if (known.size >= mostRemembered) known.clear();
    known.set(key, { at: now, leftOut: 0 });
    logger[level](last === undefined || last.leftOut === 0 ? fields : { ...fields, left_out: last.leftOut }, message);
  };
  return { info: at("info"), warn: at("warn"), error: at("error") };
}
