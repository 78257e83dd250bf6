import { minute } from "../domain/time.js";
import type { Clock } from "../ports/clock.js";
import type { Logger } from "../ports/logger.js";

/** Messages remembered; beyond that, all are forgotten. */
const most = 1_000;

/**
 * For errors that an outage causes in every request: each message is logged up to once a minute, with the number of
 * omitted ones (`left_out`).
 */
export function throttledLogger(clock: Clock, logger: Logger): Logger {
  const known = new Map<string, { at: number; leftOut: number }>();
  const at = (level: "info" | "warn" | "error") => (fields: Record<string, unknown>, message: string) => {
    const now = clock.now();
    const last = known.get(message);
    if (last !== undefined && Math.abs(now - last.at) < minute) {
      last.leftOut++;
      return;
    }
    if (known.size >= most) known.clear();
    known.set(message, { at: now, leftOut: 0 });
    logger[level](last === undefined || last.leftOut === 0 ? fields : { ...fields, left_out: last.leftOut }, message);
  };
  return { info: at("info"), warn: at("warn"), error: at("error") };
}
