import type { Outbox } from "../callbacks/outbox.js";
import type { AgedCache } from "../core/collections.js";
import type { Seals } from "../core/seal.js";
import type { Observed } from "../observability/observed.js";
import type { SmsSender } from "../ports/sms-sender.js";
import type { Countries } from "./countries.js";
import type { Past } from "./past.js";

/** The parts that send and track messages. */
export interface Messages extends Observed {
  readonly sender: SmsSender;
  readonly outbox: Outbox;
  readonly countries: Countries;
  readonly past: Past;
  /**
   * Higher limits of sums, as this process found them within some minutes: infinite for a country or range with enough
   * verifications, and what a growing cell allows.
   */
  readonly learned: AgedCache<number>;
  /** Encrypts the codes of deliveries that may fall back. The owner is the authentication. */
  readonly keptCodes: Seals;
  /**
   * Receipts whose write failed within some hours, by authentication, attempt and status. It may have been written, so
   * the carrier's repeat is reported even if it changes nothing.
   */
  readonly failedReceipts: AgedCache<true>;
  /** Messages that this process is handing over, by authentication and attempt. */
  readonly underWay: Map<string, Promise<unknown>>;
}
