import { type CountryCode, countryError } from "../../../src/domain/countries.js";
import type { ReceiptReading } from "../../../src/ports/receipts.js";
import type { SendOutcome, SmsSender } from "../../../src/ports/sms-sender.js";
import { optionError, requireFlag } from "../../kit/option-error.js";
import type { SilentOptions } from "./carrier-sender.js";
import { acceptedAs, notSent, rejectedWith } from "./outcomes.js";
import { type CarrierReport, readReport, type StatusWords } from "./report.js";

/** Options of every sender of calls. */
export interface VoiceOptions<V = unknown> extends SilentOptions<V> {
  /** The only countries that are called (ISO 3166-1 alpha-2). Calls to some cost dollars a minute. */
  readonly countries: readonly CountryCode[];
  /**
   * `true`: the call says the code after a key was pressed, so that no mailbox records it. It needs the verifier's
   * option `receipts`, because the carrier asks there what to say. Default: `true`.
   */
  readonly pressKey?: boolean;
}

/** The longest time that a phone rings, in seconds: most mailboxes pick up later. */
export const longestRing = 25;

/** How long a call lasts, in seconds. */
export const longestCall = 90;

/** How long a call waits for a key, in seconds. */
export const keyTimeout = 10;

/** A call that ends sooner, in seconds, ended before the code was said. */
const shortestCall = 5;

/** @throws TypeError if it needs receipts, and none are requested. */
export function openPressKey(name: string, { pressKey, receipts }: Pick<VoiceOptions, "pressKey" | "receipts">): boolean {
  const asks = requireFlag(name, "pressKey", pressKey) !== false;
  if (asks && receipts === false)
    throw optionError(name, "receipts", "is false, and pressKey needs receipts", "Leave it out, or pass pressKey: false: mailboxes then record codes.");
  return asks;
}

/** Limits a sender to its countries. @throws TypeError unless it is a list of countries. */
export function withinCountries(name: string, countries: readonly CountryCode[] | undefined, sender: SmsSender): SmsSender {
  const fix = 'Pass the only countries to call, such as ["FR", "DE"].';
  if (!Array.isArray(countries) || countries.length === 0)
    throw optionError(name, "countries", countries === undefined ? "is missing" : "is not a list of countries", fix);
  for (const [at, country] of countries.entries()) {
    const problem = typeof country === "string" ? countryError(country) : "is not a string";
    if (problem !== undefined) throw optionError(name, `countries.${at}`, problem, fix);
  }
  const allowed: ReadonlySet<string> = new Set(countries);
  return {
    ...sender,
    reaches: (country) => allowed.has(country) && sender.reaches?.(country) !== false,
    callsFixedLines: (country) => country !== undefined && allowed.has(country),
    send: async (message, context) => {
      if (message.code === "") return notSent("there is no code to speak");
      return message.country !== undefined && allowed.has(message.country)
        ? sender.send(message, context)
        : notSent(`option countries does not list ${message.country ?? "numbers without a country"}`);
    },
  };
}

/** Accepted under the call's id, unless its status says that the call has failed. */
export function judgeCall(id: unknown, status: unknown, words: StatusWords): SendOutcome {
  return typeof status === "string" && words.get(status) === "undeliverable" ? rejectedWith(status) : acceptedAs(id);
}

/** Reads an event about the status of a call, whose `duration` is in seconds. `words` has `heard` and `unheard` too. */
export function readCallStatus({ duration, ...call }: CarrierReport & { readonly duration: unknown }, asksForKey: boolean, words: StatusWords): ReceiptReading {
  const { status } = call;
  if (status !== "completed") {
    const failed = typeof status === "string" && words.get(status) === "undeliverable";
    return readReport({ ...call, error: failed ? status : undefined }, words);
  }
  // A key that was pressed is reported before the call ends, and is not taken back by this.
  const heard = !asksForKey && Number(duration) >= shortestCall;
  return readReport({ ...call, ...(heard ? { status: "heard" } : { status: "unheard", error: asksForKey ? "no-key" : "hung-up" }) }, words);
}

/** Adds what the carrier executes next. */
export function withReply(reading: ReceiptReading, body: string, contentType: string): ReceiptReading {
  return "refused" in reading ? reading : { ...reading, reply: { status: 200, body, contentType } };
}
