import type { Settings } from "../options/options.js";
import type { Clock } from "../ports/clock.js";
import type { Logger } from "../ports/logger.js";
import type { Store } from "../ports/store.js";
import type { StoreDeadline } from "./deadline.js";
import type { Keyring } from "./keyring.js";
import type { Records } from "./records/records.js";
import type { TestOverrides } from "./test-overrides.js";

/** The parts that everything else uses. */
export interface Core {
  readonly settings: Settings;
  readonly overrides: TestOverrides;
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly keyring: Keyring;
  readonly records: Records;
  /** Starts the deadline of one request. `within`: milliseconds, if it must be shorter than `storeTimeout`. */
  readonly newDeadline: (within?: number) => StoreDeadline;
  /** Lets work continue after the response, even on platforms that would stop the process then. */
  readonly inBackground: (work: Promise<unknown>) => void;
}
