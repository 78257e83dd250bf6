import type { Settings } from "../options/options.js";
import type { Clock } from "../ports/clock.js";
import type { Logger } from "../ports/logger.js";
import type { LookupProvider } from "../ports/lookup-provider.js";
import type { SmsSender } from "../ports/sms-sender.js";
import type { Store } from "../ports/store.js";
import type { Alarms } from "../observability/alarms.js";
import type { Outbox } from "../callbacks/outbox.js";
import { type StoreBudget, storeBudget } from "./deadline.js";
import type { Codes } from "./keyring.js";
import type { NumberFacts } from "../access/number-facts.js";
import type { Lists } from "../access/lists.js";
import type { Eyes } from "../observability/monitor.js";
import type { AgedCache } from "./aged-cache.js";
import type { Records } from "./records/records.js";
import type { Countries } from "../messages/countries.js";
import type { Statistics } from "../observability/statistics.js";
import type { TestOverrides } from "./test-overrides.js";

/** What everything in the engine is made of. */
export interface BaseParts {
  readonly settings: Settings;
  readonly overrides: TestOverrides;
  readonly store: Store;
  readonly sender: SmsSender;
  readonly lookup: LookupProvider | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly codes: Codes;
  readonly records: Records;
  readonly eyes: Eyes;
}

/** What the operations are made of. */
export interface Parts extends BaseParts {
  readonly outbox: Outbox;
  readonly lists: Lists;
  readonly facts: NumberFacts;
  readonly countries: Countries;
  /** Sums of a country or a range in which enough verified, as this process has seen within some minutes. */
  readonly proven: AgedCache<true>;
  readonly alarms: Alarms;
  readonly statistics: Statistics;
  /** Lets work go on after the answer, on platforms that stop a process then too. */
  readonly inBackground: (work: Promise<unknown>) => void;
}

/** The budget of one request. */
export function newBudget({ clock, eyes, settings }: Pick<Parts, "clock" | "eyes" | "settings">): StoreBudget {
  return storeBudget(clock, eyes.outages.store, settings.storeTimeout);
}

/** Whether nothing is ever sent to a number: it costs nothing, so that no cap and none of our spam rules hold it. */
export function isTestNumber({ testNumbers }: Settings, number: string): boolean {
  return testNumbers.get(number) !== undefined;
}
