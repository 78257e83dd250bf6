import type { Outbox } from "../callbacks/outbox.js";
import type { AgedCache } from "../core/aged-cache.js";
import type { Observed } from "../observability/observed.js";
import type { SmsSender } from "../ports/sms-sender.js";
import type { Countries } from "./countries.js";

/** The parts that send and track messages. */
export interface Messages extends Observed {
  readonly sender: SmsSender;
  readonly outbox: Outbox;
  readonly countries: Countries;
  /** Sums of countries and ranges with enough verifications, as seen by this process within some minutes. */
  readonly proven: AgedCache<true>;
}
