import { isIP } from "node:net";
import { type ConnectionOptions, createSecureContext } from "node:tls";
import { throttledLogger } from "../../../src/core/throttled-logger.js";
import type { Logger } from "../../../src/ports/logger.js";
import { systemClock } from "../../kit/clock.js";
import { onlyOptions } from "../../kit/option-error.js";
import { openFrom } from "./from.js";
import { type SmppOptions, smppOptions } from "./options.js";
import { openParameters } from "./parameters.js";
import type { BindRole } from "./pdu.js";

/** The options with their defaults; durations in milliseconds. */
export type Settings = Readonly<ReturnType<typeof readOptions>>;

/** Reads the options. @throws Error that names the option and the fix. */
export function readOptions(options: SmppOptions) {
  if (typeof options !== "object" || options === null) throw new Error("smppSender needs options: smppSender({ host, systemId, password })");
  onlyOptions("smppSender", options, smppOptions);
  const { tls = false, rebind = {}, onReceipt, logger: given, clock = systemClock } = options;

  if (typeof tls !== "boolean" && (typeof tls !== "object" || tls === null)) throw invalid("tls", "true, or options for tls.connect such as { ca }");
  if (typeof tls === "object") readTls(tls);
  if (typeof rebind !== "object" || rebind === null) throw invalid("rebind", "{ min, max } in seconds");
  onlyOptions("smppSender", rebind, { min: true, max: true }, { path: "rebind" });
  if (onReceipt !== undefined && typeof onReceipt !== "function") throw invalid("onReceipt", "a function that takes a receipt");
  if (given !== undefined && typeof given?.warn !== "function")
    throw invalid("logger", "an object with info, warn and error, such as console or a pino logger");
  if (typeof clock?.after !== "function") throw invalid("clock", "a Clock with now and after; leave it out for the system's");

  const min = seconds("rebind.min", rebind.min, 1);
  const max = seconds("rebind.max", rebind.max, Math.max(60, min / 1000));
  if (max < min) throw invalid("rebind.max", "at least rebind.min");

  const host = text(options, "host", 253);
  if (isIP(host) === 0 && !/^[\p{L}\p{N}_.-]+$/u.test(host))
    throw invalid("host", 'a host name or an IP address, without scheme, port and brackets, such as "smpp.example" or "2001:db8::1"');
  const port = integer("port", options.port, 1, 65_535) ?? (tls ? 3550 : 2775);
  const systemId = text(options, "systemId", 15);
  const logger = given && harmless(given);
  return {
    host,
    port,
    tls: typeof tls === "boolean" ? (tls ? {} : undefined) : tls,
    systemId,
    password: text(options, "password", 64),
    systemType: options.systemType === undefined ? "" : text(options, "systemType", 12),
    serviceType: options.serviceType === undefined ? "" : text(options, "serviceType", 5),
    /** The binds; the first one carries messages. */
    roles: rolesOf(oneOf("bindType", options.bindType, ["transceiver", "transmitter+receiver"]), onReceipt !== undefined),
    sources: openFrom(options.from, { ton: octet("fromTon", options.fromTon), npi: octet("fromNpi", options.fromNpi) }),
    destination: { ton: octet("destinationTon", options.destinationTon) ?? 1, npi: octet("destinationNpi", options.destinationNpi) ?? 1 },
    alphabet: oneOf("alphabet", options.alphabet, ["gsm", "ascii", "latin1"]),
    /** Of texts in `alphabet`. */
    dataCoding: octet("dataCoding", options.dataCoding) ?? 0,
    longMessages: oneOf("longMessages", options.longMessages, ["payload", "udh", "sar"]),
    validityPeriod: oneOf("validityPeriod", options.validityPeriod, ["relative", "absolute", "none"]),
    parameters: openParameters(options.parameters),
    window: integer("window", options.window, 1, 1000) ?? 10,
    messagesPerSecond: options.messagesPerSecond === undefined ? undefined : number("messagesPerSecond", options.messagesPerSecond, 10_000, "messages"),
    bindTimeout: seconds("bindTimeout", options.bindTimeout, 10),
    responseTimeout: seconds("responseTimeout", options.responseTimeout, 10),
    enquireLinkAfter: seconds("enquireLinkAfter", options.enquireLinkAfter, 30),
    rebind: { min, max },
    throttlePause: seconds("throttlePause", options.throttlePause, 1),
    drainTimeout: seconds("drainTimeout", options.drainTimeout, 5),
    onReceipt,
    receiptIds: oneOf("receiptIds", options.receiptIds, ["same", "hex-to-decimal", "decimal-to-hex"]),
    /** Milliseconds by which the receipts' clock is ahead of UTC. */
    receiptOffset: offset(options.receiptOffset),
    idSpace: options.idSpace === undefined ? `smpp:${systemId}@${host}:${port}` : text(options, "idSpace", 256),
    logger,
    /** For what many receipts or messages may cause. */
    throttled: logger && throttledLogger(clock, logger),
    clock,
  };
}

/** A logger that fails ends neither the connection nor the process: its entries go to the console. */
function harmless(logger: Logger): Logger {
  const level =
    (name: keyof Logger): Logger[typeof name] =>
    (fields, message) => {
      const write = async () => logger[name](fields, message);
      write().catch(() => console[name](message, fields));
    };
  return { info: level("info"), warn: level("warn"), error: level("error") };
}

function rolesOf(bindType: NonNullable<SmppOptions["bindType"]>, takesReceipts: boolean): readonly BindRole[] {
  if (bindType === "transceiver") return ["transceiver"];
  return takesReceipts ? ["transmitter", "receiver"] : ["transmitter"];
}

/** Reports unreadable keys and certificates now instead of at the first send. */
function readTls(tls: ConnectionOptions): void {
  try {
    createSecureContext(tls);
  } catch (error) {
    throw invalid("tls", `options that tls.connect takes (${(error as Error).message}); give ca, cert and key as PEM texts`);
  }
}

function invalid(option: string, fix: string): Error {
  return new Error(`smppSender: option \`${option}\` must be ${fix}`);
}

function text(options: SmppOptions, name: "host" | "systemId" | "password" | "systemType" | "serviceType" | "idSpace", longest: number): string {
  const value: unknown = options[name];
  if (typeof value === "string" && value.length <= longest && /^[!-~][ -~]*$/.test(value)) return value;
  throw invalid(name, `a text of 1 to ${longest} ASCII characters${value === undefined ? ", as your carrier gave it to you" : ""}`);
}

/** The first choice is the default. */
function oneOf<const T extends string>(name: string, value: T | undefined, choices: readonly [T, ...T[]]): T {
  if (value !== undefined && !choices.includes(value)) throw invalid(name, choices.map((choice) => `"${choice}"`).join(" or "));
  return value ?? choices[0];
}

function integer(name: string, value: number | undefined, least: number, most: number): number | undefined {
  if (value !== undefined && !(Number.isInteger(value) && value >= least && value <= most)) throw invalid(name, `a whole number from ${least} to ${most}`);
  return value;
}

function octet(name: string, value: number | undefined): number | undefined {
  return integer(name, value, 0, 255);
}

/** Converts seconds to milliseconds. */
function seconds(name: string, value: number | undefined, preset: number): number {
  return number(name, value ?? preset, 86_400, "seconds") * 1000;
}

function number(name: string, value: number, most: number, unit: string): number {
  if (!(typeof value === "number" && value > 0 && value <= most)) throw invalid(name, `a number of ${unit} above 0, at most ${most}`);
  return value;
}

/** Converts an offset such as `+02:00` to milliseconds. */
function offset(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const [, sign, hours, minutes] = /^([+-])(0\d|1[0-4]):([0-5]\d)$/.exec(value) ?? [];
  if (sign === undefined) throw invalid("receiptOffset", 'an offset from UTC such as "+00:00" or "+05:30"');
  return Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}
