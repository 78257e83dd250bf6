import type { Outbox } from "../callbacks/outbox.js";
import type { AgedCache } from "../core/aged-cache.js";
import type { Observed } from "../observability/observed.js";
import type { SmsSender } from "../ports/sms-sender.js";
import type { Countries } from "./countries.js";

/** What sends messages and follows them. */
export interface Messages extends Observed {
  readonly sender: SmsSender;
  readonly outbox: Outbox;
  readonly countries: Countries;
  /** Sums of a country or a range in which enough verified, as this process has seen within some minutes. */
  readonly proven: AgedCache<true>;
}
