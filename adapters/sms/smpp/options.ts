import type { ConnectionOptions } from "node:tls";
import type { Clock } from "../../../src/ports/clock.js";
import type { Logger } from "../../../src/ports/logger.js";
import type { Receipt } from "../../../src/ports/receipts.js";
import type { OptionNames } from "../../kit/option-fault.js";
import type { SenderId } from "../kit/sender-id.js";
import type { ReceiptIds } from "./ids.js";
import type { SmppParameters } from "./parameters.js";
import type { Alphabet } from "./text.js";
import type { ValidityPeriod } from "./validity.js";

/** How a text of several segments is handed over: whole, for the message centre to split; or in parts, one submit_sm each, which the phone puts together by a header (`udh`) or by optional parameters (`sar`). */
export type LongMessages = "payload" | "udh" | "sar";

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
   * `transceiver`: one connection both ways. `transmitter+receiver`, for message centres that refuse that: one for messages, and one for receipts where `onReceipt` is given; each is kept and made again by itself.
   * Default: `"transceiver"`.
   */
  readonly bindType?: "transceiver" | "transmitter+receiver";
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
  /**
   * The message centre's default alphabet. It decides what the octets of a text mean that GSM 03.38 can write; any other text goes out in UCS-2. `gsm` for most. On one whose default is ASCII or Latin-1 the octets of GSM 03.38 turn
   * `@` into NUL, and the last line that browsers read a code from breaks: name its alphabet then. Characters that it lacks (`€` and Greek capitals, in ASCII accents too) then cost a UCS-2 message of 70 characters. Default: `"gsm"`.
   */
  readonly alphabet?: Alphabet;
  /** data_coding of texts in `alphabet`, for message centres that want it said: 1 is ASCII and 3 Latin-1. Default: 0, the message centre's default alphabet. */
  readonly dataCoding?: number;
  /**
   * How a text of more than one segment is handed over: `payload` whole, as message_payload, which the message centre splits; `udh` or `sar` in parts of one submit_sm each, one after the other, which the phone puts together by a
   * header or by the parameters sar_*. Such a message is accepted when all parts were; rejected when the first was not; unknown when a later one was not, for some of it is on its way. The id and the receipt are those of the last part.
   * Default: `"payload"`.
   */
  readonly longMessages?: LongMessages;
  /**
   * How the message centre is told when a code ends, so that no phone that was off gets it later: `relative` to the arrival of the message, `absolute` in UTC, or `none` for message centres that refuse both (ESME_RINVEXPIRY).
   * Measured by `clock`. Default: `"relative"`.
   */
  readonly validityPeriod?: ValidityPeriod;
  /**
   * Further parameters of submit_sm: a list of `{ tag, value }`, one for each country, or a function of the message. The ids of a registered text (India's DLT, the verifier's `message.registered`) go as 0x1400 and 0x1401 without it.
   * Default: none.
   */
  readonly parameters?: SmppParameters;
  /** Submits that may be without an answer at a time, 1 to 1000. Default: 10. */
  readonly window?: number;
  /**
   * Submits (messages, or parts of long ones) that are written in a second at most, evenly spread: what the contract with the carrier allows to this connection. Those that find no turn before their deadline are rejected. At most 10000.
   * Default: without limit, until the peer throttles.
   */
  readonly messagesPerSecond?: number;
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
  /**
   * Takes the receipts, which are asked for when it is given, sixteen at a time; with a thousand waiting the connection is not read. The peer gets its acknowledgement once the promise resolves; when it rejects, or a receipt has had
   * no answer for 3 s, the peer is asked to deliver it again (ESME_RX_T_APPN), so the same receipt may come twice.
   */
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
  /** For time-outs, pauses and the end of messages. Default: the system's. */
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
