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
