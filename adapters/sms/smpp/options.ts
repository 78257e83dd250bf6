import type { ConnectionOptions } from "node:tls";
import type { Clock } from "../../../src/ports/clock.js";
import type { Logger } from "../../../src/ports/logger.js";
import type { Receipt } from "../../../src/ports/receipts.js";
import type { OptionNames } from "../../kit/option-error.js";
import type { SenderId } from "../kit/sender-id.js";
import type { ReceiptIds } from "./ids.js";
import type { SmppParameters } from "./parameters.js";
import type { Alphabet } from "./text.js";

/** Options of `smppSender`. Durations are in seconds. */
export interface SmppOptions {
  /** Host name or IP address of the message centre, without scheme, port and brackets. */
  readonly host: string;
  /** Default: 2775, or 3550 with `tls`. */
  readonly port?: number;
  /**
   * `true`, or options for `tls.connect` (`ca`, `cert`, `key`, `servername` …). Certificates are verified unless those
   * options turn it off.
   * Default: plain TCP, which exposes the password and codes to the network.
   */
  readonly tls?: boolean | ConnectionOptions;
  readonly systemId: string;
  readonly password: string;
  /** Default: none. */
  readonly systemType?: string;
  readonly serviceType?: string;
  /**
   * `transceiver`: one connection for both directions. `transmitter+receiver`, for message centres that reject that:
   * one for messages, and one for receipts if `onReceipt` is set; each reconnects independently.
   * Default: `"transceiver"`.
   */
  readonly bindType?: "transceiver" | "transmitter+receiver";
  /**
   * The sender that phones show: an international number (`+447400123456`), a short code of up to 8 digits (`60777`) or
   * a name of up to 11 characters (`Acme`). May be one per country, with `default` for the rest, or a function of the
   * message. A message without a matching sender is rejected unsent.
   * Default: none; the message centre sets its own.
   */
  readonly from?: SenderId;
  /**
   * Type of number and numbering plan of `from`. Default: 1/1 for `+` and digits, 3/0 for a short code, 5/0 for a name,
   * 0/0 without `from`.
   */
  readonly fromTon?: number;
  readonly fromNpi?: number;
  /** For the destination, which is sent as digits without `+`. Default: 1 (international) and 1 (E.164). */
  readonly destinationTon?: number;
  readonly destinationNpi?: number;
  /**
   * The message centre's default alphabet, used for texts that GSM 03.38 can write; other texts are sent as UCS-2. Name
   * it if it is ASCII or Latin-1: otherwise `@` becomes NUL, which breaks the last line that browsers read codes from.
   * Characters it lacks (`€`, Greek capitals; in ASCII also accents) then cost a UCS-2 message of 70 characters.
   * Default: `"gsm"`.
   */
  readonly alphabet?: Alphabet;
  /** data_coding of texts in `alphabet`, where required: 1 is ASCII, 3 is Latin-1. Default: 0, the default alphabet. */
  readonly dataCoding?: number;
  /**
   * How a text of several segments is submitted: `payload` sends it whole as message_payload, and the message centre
   * splits it; `udh` and `sar` send one submit_sm per part, in order, which the phone joins by a header or by the sar_*
   * parameters. The message is accepted if all parts were, rejected if the first was not, and unknown if a later one
   * was not. Its id and receipt are those of the last part. Default: `"payload"`.
   */
  readonly longMessages?: "payload" | "udh" | "sar";
  /**
   * How the message centre learns when a code expires, so that a phone that was off does not get it later: `relative`
   * to the message's arrival, `absolute` in UTC, or `none` for message centres that reject both (ESME_RINVEXPIRY).
   * Measured by `clock`. Default: `"relative"`.
   */
  readonly validityPeriod?: "relative" | "absolute" | "none";
  /**
   * Further parameters of submit_sm: a list of `{ tag, value }`, one list per country, or a function of the message.
   * The ids of a registered text (India's DLT, the verifier's `message.registered`) are sent as 0x1400 and 0x1401
   * without it. Default: none.
   */
  readonly parameters?: SmppParameters;
  /** Maximum number of unanswered submits, 1 to 1000. Default: 10. */
  readonly window?: number;
  /**
   * Maximum number of submits (messages, or parts of long ones) per second, evenly spread: the rate in your carrier
   * contract for this connection. Up to 10000. Submits that get no turn before their deadline are rejected.
   * Default: no limit until the peer throttles.
   */
  readonly messagesPerSecond?: number;
  /** Time for connection, TLS and bind together. Default: 10. */
  readonly bindTimeout?: number;
  /** Time for the peer's response to each PDU. Default: 10. */
  readonly responseTimeout?: number;
  /** How long the peer may be silent before an enquire_link is sent. Default: 30. */
  readonly enquireLinkAfter?: number;
  /**
   * Pause before reconnecting: `min`, doubled by each failure up to `max`, minus a random share of up to half. Default:
   * 1 and 60.
   */
  readonly rebind?: { readonly min?: number; readonly max?: number };
  /** How long new submits are held back after the peer responds "throttled" or "queue full". Default: 1. */
  readonly throttlePause?: number;
  /** How long `close()` waits for responses. Default: 5. */
  readonly drainTimeout?: number;
  /**
   * Receives the receipts, up to 16 at a time; setting it requests them. With 1000 waiting, the connection is not read.
   * A receipt is acknowledged when the promise resolves. If it rejects, or takes more than 3 s, the peer is asked to
   * deliver the receipt again (ESME_RX_T_APPN), so a receipt may arrive twice. A call that takes more than 3 s no longer
   * counts as one of the 16.
   */
  readonly onReceipt?: (receipt: Receipt) => Promise<void> | void;
  /** Default: `"same"`. */
  readonly receiptIds?: ReceiptIds;
  /**
   * The scope in which message ids are unique: a receipt only finds messages sent under the same `idSpace`. Use one
   * value for all connections of an account whose receipts may arrive on another connection, host or bind, and a
   * different one per account. Default: `smpp:<systemId>@<host>:<port>`.
   */
  readonly idSpace?: string;
  /**
   * UTC offset of the receipts' `done date`, which has no time zone, for example `+05:30`. It applies all year, so it
   * does not suit a message centre that observes daylight saving time.
   * Default: none; receipts then have no time.
   */
  readonly receiptOffset?: string;
  /**
   * Logs binds, rejected binds, lost connections, throttling, unreadable receipts and failures of `onReceipt`. The last
   * three are logged once a minute, with the number of lines omitted (`left_out`). Default: none.
   */
  readonly logger?: Logger;
  /** For timeouts, pauses and message expiry. Default: the system's. */
  readonly clock?: Clock;
}

export const smppOptions: OptionNames<SmppOptions> = {
  host: true,
  port: true,
  tls: true,
  systemId: true,
  password: true,
  systemType: true,
  serviceType: true,
  bindType: true,
  from: true,
  fromTon: true,
  fromNpi: true,
  destinationTon: true,
  destinationNpi: true,
  alphabet: true,
  dataCoding: true,
  longMessages: true,
  validityPeriod: true,
  parameters: true,
  window: true,
  messagesPerSecond: true,
  bindTimeout: true,
  responseTimeout: true,
  enquireLinkAfter: true,
  rebind: true,
  throttlePause: true,
  drainTimeout: true,
  onReceipt: true,
  receiptIds: true,
  idSpace: true,
  receiptOffset: true,
  logger: true,
  clock: true,
};
