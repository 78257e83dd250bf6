import type { Core } from "../core/core.js";
import type { Alarms } from "./alarms.js";
import type { Monitor } from "./monitor.js";
import type { Statistics } from "./statistics.js";

/** The core, and what reports on it. */
export interface Observed extends Core {
  readonly monitor: Monitor;
  readonly alarms: Alarms;
  readonly statistics: Statistics;
}

/** Lets a write continue after the response. This process's reads of the record wait for it. A failure is logged. */
export function storeLater({ inBackground, monitor, records }: Observed, id: string, write: Promise<unknown>, fields: object, failure: string): void {
  records.pending(id, write);
  inBackground(write.catch((err: unknown) => monitor.throttledLog.warn({ err, ...fields }, failure)));
}
