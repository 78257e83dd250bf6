import { type CountryCode, countryError } from "../../../src/domain/countries.js";
import type { ReceiptRequest } from "../../../src/ports/receipts.js";
import type { CodeMessage, SmsSender } from "../../../src/ports/sms-sender.js";
import { optionError, requireFlag } from "../../kit/option-error.js";
import type { SilentOptions } from "./carrier-sender.js";
import { notSent } from "./outcomes.js";
import { type SealedMessage, sealCode, unsealCode } from "./sealed-code.js";

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

/** How long a phone rings, in seconds: shorter than it takes most mailboxes to answer. */
const longestRing = 25;

/** How long a call lasts, in seconds. */
export const longestCall = 90;

/** How long a call waits for a key, in seconds. */
export const keyTimeout = 10;

/** A call that ends sooner, in seconds, ended before the code was said. */
export const shortestCall = 5;

/** Seconds to ring: no longer than the code lives. */
export function ringTime(ttl: number): number {
  return Math.min(ttl, longestRing);
}

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

/** The URLs of a call that asks for a key. @throws Error if the verifier takes no receipts. */
export function keyUrls(message: CodeMessage, secret: string): { readonly events: string; readonly pressed: string } {
  const { receipt_url: url } = message;
  if (url === undefined) throw new Error("pressKey needs the verifier's option receipts; without it, pass pressKey: false");
  return { events: `${url}&press=1`, pressed: `${url}&sealed=${sealCode(secret, message)}` };
}

/** What the URL of a call's event says. */
export interface CallUrl {
  /** The call asks for a key. */
  readonly asksForKey: boolean;
  /** It is the request that follows a key. */
  readonly isKey: boolean;
  /** The code to say; undefined if it is no longer valid. */
  readonly message: SealedMessage | undefined;
}

export function readCallUrl({ url }: ReceiptRequest, secrets: readonly string[], now: number): CallUrl {
  const query = new URL(url).searchParams;
  const sealed = query.get("sealed");
  return {
    asksForKey: query.has("press"),
    isKey: sealed !== null,
    message: sealed === null ? undefined : unsealCode(secrets, query.get("r") ?? "", sealed, now),
  };
}
