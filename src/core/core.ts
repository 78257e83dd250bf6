import type { Settings } from "../options/options.js";
import type { Clock } from "../ports/clock.js";
import type { Logger } from "../ports/logger.js";
import type { Store } from "../ports/store.js";
import type { StoreDeadline } from "./deadline.js";
import type { Keyring } from "./keyring.js";
import type { Records } from "./records/records.js";
import type { TestOverrides } from "./test-overrides.js";

/** What every floor above is made of. */
export interface Core {
  readonly settings: Settings;
  readonly overrides: TestOverrides;
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly keyring: Keyring;
  readonly records: Records;
  /** The deadline of one request. */
  readonly newDeadline: () => StoreDeadline;
  /** Lets work go on after the response, also on platforms that would stop the process then. */
  readonly inBackground: (work: Promise<unknown>) => void;
}
