import type { ConnectionOptions } from "node:tls";
import type { Clock } from "../../../src/ports/clock.js";
import type { Logger } from "../../../src/ports/logger.js";
import type { Receipt } from "../../../src/ports/receipts.js";
import type { SenderId } from "../kit/sender-id.js";
import type { ReceiptIds } from "./ids.js";

/** Options of `smppSender`. Durations are in seconds. */
export interface SmppOptions {
  /** Name or address of the message centre. */
  readonly host: string;
  /** Default: 2775, and 3550 with `tls`. */
  readonly port?: number;
  /**
   * `true`, or options for `tls.connect` (`ca`, `cert`, `key`, `servername` …). Certificates are verified unless those options say otherwise.
   * Default: plain TCP, which shows password and codes to the network.
   */
  readonly tls?: boolean | ConnectionOptions;
  readonly systemId: string;
  readonly password: string;
  /** Default: none. */
  readonly systemType?: string;
  readonly serviceType?: string;
  /**
   * The sender that phones show: an international number (`+447400123456`), a short code of up to 8 digits (`60777`) or a name of up to 11 characters (`Acme`); one for each country, with `default` for the rest;
   * or a function of the message. Where none fits a message it is rejected, unsent. Default: none, so that the message centre puts its own.
   */
  readonly from?: SenderId;
  /** Type of number and numbering plan of `from`. Default: 1/1 for `+` and digits, 3/0 for a short code, 5/0 for a name, 0/0 for none. */
  readonly fromTon?: number;
  readonly fromNpi?: number;
  /** Of the destination, which is sent as digits without `+`. Default: 1 (international) and 1 (E.164). */
  readonly destinationTon?: number;
  readonly destinationNpi?: number;
  /** Submits that may be without an answer at a time, 1 to 1000. Default: 10. */
  readonly window?: number;
  /** For connection, TLS and bind together. Default: 10. */
  readonly bindTimeout?: number;
  /** For the peer's answer to each PDU. Default: 10. */
  readonly responseTimeout?: number;
  /** How long the peer may be silent before it is asked with enquire_link. Default: 30. */
  readonly enquireLinkAfter?: number;
  /** Pause before a lost connection is made again: `min`, doubled by each failure up to `max`, less up to a half at random. Default: 1 and 60. */
  readonly rebind?: { readonly min?: number; readonly max?: number };
  /** How long new submits are held back after the peer said "throttled" or "queue full". Default: 1. */
  readonly throttlePause?: number;
  /** How long `close()` waits for answers. Default: 5. */
  readonly drainTimeout?: number;
  /** Takes the receipts, which are asked for when it is given. The peer gets its acknowledgement once the promise resolves; when it rejects, the peer is asked to deliver the receipt again. */
  readonly onReceipt?: (receipt: Receipt) => Promise<void> | void;
  /** Default: `"same"`. */
  readonly receiptIds?: ReceiptIds;
  /**
   * What the message ids are unique in: receipts find the message of that id in this space alone. Give the same to all connections of one account whose receipts may come on another connection, host or bind, and another to each
   * account. Receipts of messages that were sent under another `idSpace` find nothing. Default: `smpp:<systemId>@<host>:<port>`.
   */
  readonly idSpace?: string;
  /**
   * Where the clock of the receipts' `done date` stands, as an offset from UTC such as `+05:30`: the date says no zone. It is one offset for the whole year, so not for a message centre that changes to summer time.
   * Default: none, and receipts say no time.
   */
  readonly receiptOffset?: string;
  /** Hears of binds, refused binds, lost connections, throttling and unreadable receipts. Default: nobody. */
  readonly logger?: Logger;
  /** Default: the system's. */
  readonly clock?: Clock;
}
