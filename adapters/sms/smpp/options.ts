import { type ConnectionOptions, createSecureContext } from "node:tls";
import type { Clock } from "../../../src/ports/clock.js";
import type { Logger } from "../../../src/ports/logger.js";
import type { Receipt } from "../../../src/ports/receipts.js";
import type { SmsMessage } from "../../../src/ports/sms-sender.js";
import type { Address } from "./pdu.js";
import type { ReceiptIds } from "./receipt.js";

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
   * The sender that phones show: an international number (`+447400123456`), a short code of up to 8 digits (`60777`), a name of up to 11 characters (`Acme`), or a function that answers one of these.
   * Default: none, so that the message centre puts its own.
   */
  readonly source?: string | ((message: SmsMessage) => string);
  /** Type of number and numbering plan of `source`. Default: 1/1 for `+` and digits, 3/0 for a short code, 5/0 for a name, 0/0 for none. */
  readonly sourceTon?: number;
  readonly sourceNpi?: number;
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
  /** Hears of binds, refused binds, lost connections, throttling and unreadable receipts. Default: nobody. */
  readonly logger?: Logger;
  /** Default: the system's. */
  readonly clock?: Clock;
}

/** The options with their defaults; durations in milliseconds. */
export interface Settings {
  readonly host: string;
  readonly port: number;
  readonly tls: ConnectionOptions | undefined;
  readonly systemId: string;
  readonly password: string;
  readonly systemType: string;
  readonly serviceType: string;
  /** A sentence instead of an address says what is wrong with the source. */
  readonly source: (message: SmsMessage) => Address | string;
  readonly destination: { readonly ton: number; readonly npi: number };
  readonly window: number;
  readonly bindTimeout: number;
  readonly responseTimeout: number;
  readonly enquireLinkAfter: number;
  readonly rebind: { readonly min: number; readonly max: number };
  readonly throttlePause: number;
  readonly drainTimeout: number;
  readonly onReceipt: ((receipt: Receipt) => Promise<void> | void) | undefined;
  readonly receiptIds: ReceiptIds;
  readonly logger: Logger | undefined;
  readonly clock: Clock;
}

/** Reads the options. @throws Error that names the option and the mend. */
export function readOptions(options: SmppOptions): Settings {
  if (typeof options !== "object" || options === null) throw new Error("smppSender needs options: smppSender({ host, systemId, password })");
  const { tls = false, source, rebind = {}, onReceipt, receiptIds = "same", logger, clock } = options;

  if (typeof tls !== "boolean" && (typeof tls !== "object" || tls === null)) throw fault("tls", "true, or options for tls.connect such as { ca }");
  if (typeof tls === "object") readTls(tls);
  if (typeof rebind !== "object" || rebind === null) throw fault("rebind", "{ min, max } in seconds");
  if (onReceipt !== undefined && typeof onReceipt !== "function") throw fault("onReceipt", "a function that takes a receipt");
  if (!["same", "hex-to-decimal", "decimal-to-hex"].includes(receiptIds)) throw fault("receiptIds", '"same", "hex-to-decimal" or "decimal-to-hex"');
  if (logger !== undefined && typeof logger?.warn !== "function")
    throw fault("logger", "an object with info, warn and error, such as console or a pino logger");
  if (clock !== undefined && typeof clock?.after !== "function") throw fault("clock", "a Clock with now and after; leave it out for the system's");

  const ton = optionalOctet(options, "sourceTon");
  const npi = optionalOctet(options, "sourceNpi");
  const readSource = (text: unknown): Address | string => {
    const address = sourceAddress(text);
    return typeof address === "string" ? address : { ...address, ton: ton ?? address.ton, npi: npi ?? address.npi };
  };
  if (source !== undefined && typeof source !== "function") {
    const address = readSource(source);
    if (typeof address === "string") throw new Error(`smppSender: option \`source\` ${address}`);
  }

  const min = seconds("rebind.min", rebind.min, 1);
  const max = seconds("rebind.max", rebind.max, Math.max(60, min / 1000));
  if (max < min) throw fault("rebind.max", "at least rebind.min");

  return {
    host: text(options, "host", 253),
    port: integer("port", options.port, 1, 65_535) ?? (tls ? 3550 : 2775),
    tls: typeof tls === "boolean" ? (tls ? {} : undefined) : tls,
    systemId: text(options, "systemId", 15),
    password: text(options, "password", 64),
    systemType: options.systemType === undefined ? "" : text(options, "systemType", 12),
    serviceType: options.serviceType === undefined ? "" : text(options, "serviceType", 5),
    source(message) {
      if (typeof source !== "function") return readSource(source ?? "");
      try {
        const address = readSource(source(message));
        return typeof address === "string" ? `what the function \`source\` answers ${address}` : address;
      } catch {
        return "the function `source` threw";
      }
    },
    destination: { ton: optionalOctet(options, "destinationTon") ?? 1, npi: optionalOctet(options, "destinationNpi") ?? 1 },
    window: integer("window", options.window, 1, 1000) ?? 10,
    bindTimeout: seconds("bindTimeout", options.bindTimeout, 10),
    responseTimeout: seconds("responseTimeout", options.responseTimeout, 10),
    enquireLinkAfter: seconds("enquireLinkAfter", options.enquireLinkAfter, 30),
    rebind: { min, max },
    throttlePause: seconds("throttlePause", options.throttlePause, 1),
    drainTimeout: seconds("drainTimeout", options.drainTimeout, 5),
    onReceipt,
    receiptIds,
    logger,
    clock: clock ?? systemClock,
  };
}

/** What is wrong with `text` as a source, or its address. */
function sourceAddress(text: unknown): Address | string {
  if (text === "") return { ton: 0, npi: 0, address: "" };
  if (typeof text === "string") {
    if (/^\+\d{5,15}$/.test(text)) return { ton: 1, npi: 1, address: text.slice(1) };
    if (/^\d{1,8}$/.test(text)) return { ton: 3, npi: 0, address: text };
    if (/^(?=.*[A-Za-z])[ -~]{1,11}$/.test(text)) return { ton: 5, npi: 0, address: text };
  }
  return "must be + and up to 15 digits, a short code of up to 8 digits, or a name of up to 11 ASCII characters with a letter in it: give one of these, or leave it out";
}

const systemClock: Clock = {
  now: Date.now,
  after(ms, run, kind) {
    const timer = setTimeout(run, ms);
    if (kind === "background") timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Keys and certificates that cannot be read would otherwise be told at the first send. */
function readTls(tls: ConnectionOptions): void {
  try {
    createSecureContext(tls);
  } catch (error) {
    throw fault("tls", `options that tls.connect takes (${(error as Error).message}); give ca, cert and key as PEM texts`);
  }
}

function fault(option: string, mend: string): Error {
  return new Error(`smppSender: option \`${option}\` must be ${mend}`);
}

function text(options: SmppOptions, name: "host" | "systemId" | "password" | "systemType" | "serviceType", longest: number): string {
  const value: unknown = options[name];
  if (typeof value === "string" && value.length <= longest && /^[!-~][ -~]*$/.test(value)) return value;
  throw fault(name, `a text of 1 to ${longest} ASCII characters${value === undefined ? ", as your carrier gave it to you" : ""}`);
}

function integer(name: string, value: number | undefined, least: number, most: number): number | undefined {
  if (value !== undefined && !(Number.isInteger(value) && value >= least && value <= most)) throw fault(name, `a whole number from ${least} to ${most}`);
  return value;
}

function optionalOctet(options: SmppOptions, name: "sourceTon" | "sourceNpi" | "destinationTon" | "destinationNpi"): number | undefined {
  return integer(name, options[name], 0, 255);
}

/** Seconds in, milliseconds out. */
function seconds(name: string, value: number | undefined, preset: number): number {
  if (value !== undefined && !(typeof value === "number" && value > 0 && value <= 86_400)) throw fault(name, "a number of seconds above 0, at most 86400");
  return (value ?? preset) * 1000;
}
