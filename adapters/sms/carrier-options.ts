import type { SmsMessage } from "../../src/ports/sms-sender.js";

/** The part of `fetch` that the senders use. The global `fetch` has this shape, and so has that of any client that imitates it. */
export type Fetch = (
  url: string,
  init: {
    readonly method: string;
    readonly headers: Record<string, string>;
    readonly body?: string;
    readonly redirect: "manual";
    readonly signal: AbortSignal;
  },
) => Promise<FetchAnswer>;

/** The part of a `Response` that the senders use. */
export interface FetchAnswer {
  readonly status: number;
  readonly body: { getReader(): { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>; cancel(): Promise<void> } } | null;
}

/** How a carrier is reached: options that every sender over HTTP takes. */
export interface TransportOptions {
  /**
   * Where the carrier's API is, without the path of an operation: another region of the carrier, or a stand-in for tests. Default: the carrier's public
   * address.
   */
  readonly baseUrl?: string;
  /** Default: the global `fetch`. */
  readonly fetch?: Fetch;
  /** Seconds to wait for the carrier's whole answer; then the outcome is `unknown`. Default, and at most: until the send's own deadline. */
  readonly timeout?: number;
}

/**
 * Whom a message comes from: a sender id or a number; one for each country, by ISO 3166-1 alpha-2, with `default` for the rest;
 * or a rule. Where none fits the message it is rejected, unsent.
 */
export type SenderId = string | Readonly<Record<string, string>> | ((message: SmsMessage) => string | undefined);

/** Transport options, checked. */
export interface Transport {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly fetch: Fetch;
  /** Milliseconds. */
  readonly timeout: number | undefined;
}

/** A fault in a sender's options: names the option and the mend. */
export function optionFault(sender: string, option: string, problem: string, mend: string): TypeError {
  return new TypeError(`${sender}: option ${option} ${problem}. ${mend}`);
}

/** @throws TypeError unless `value` is text with something in it. */
export function requireText(sender: string, option: string, value: unknown, mend: string): string {
  if (typeof value !== "string" || value.trim() === "")
    throw optionFault(sender, option, value === undefined ? "is missing" : "must be a non-empty string", mend);
  return value;
}

/** @throws TypeError for a base URL, `fetch` or time-out that cannot be used. */
export function openTransport(sender: string, options: TransportOptions, carrierUrl: string): Transport {
  const { baseUrl = carrierUrl, timeout } = options;
  if (!URL.canParse(baseUrl) || !/^https?:$/.test(new URL(baseUrl).protocol)) {
    throw optionFault(sender, "baseUrl", "must be a URL that starts with https:// or http://", `Leave it out for ${carrierUrl}.`);
  }
  if (timeout !== undefined && !(Number.isFinite(timeout) && timeout > 0)) {
    throw optionFault(sender, "timeout", "must be a number of seconds above 0", "Leave it out to wait until the verifier's sendTimeout.");
  }
  if (options.fetch !== undefined && typeof options.fetch !== "function") {
    throw optionFault(sender, "fetch", "must be a function", "Leave it out for the global fetch.");
  }
  // Looked up at each call, so that tools which replace the global one later are heard.
  const fetch = options.fetch ?? ((url, init) => globalThis.fetch(url, init));
  return { baseUrl: baseUrl.replace(/\/+$/, ""), fetch, timeout: timeout === undefined ? undefined : timeout * 1000 };
}

/**
 * The rule that names a message's sender.
 *
 * @throws TypeError when `from` cannot name anyone.
 */
export function openSenderId(sender: string, from: SenderId): (message: SmsMessage) => string | undefined {
  const mend = 'Pass a sender id or number, a map such as { GB: "ACME", default: "+15005550006" }, or a function of the message.';
  if (typeof from === "function") return (message) => nonEmpty(from(message));
  if (typeof from === "string") {
    const one = requireText(sender, "from", from, mend);
    return () => one;
  }
  if (typeof from !== "object" || from === null)
    throw optionFault(sender, "from", from === undefined ? "is missing" : "is neither text, a map nor a function", mend);
  const byCountry = new Map(Object.entries(from));
  if (byCountry.size === 0) throw optionFault(sender, "from", "is an empty map", mend);
  for (const [country, id] of byCountry) {
    if (country !== "default" && !/^[A-Z]{2}$/.test(country)) {
      throw optionFault(sender, `from.${country}`, 'is neither an ISO 3166-1 alpha-2 country in capitals nor "default"', mend);
    }
    requireText(sender, `from.${country}`, id, mend);
  }
  return (message) => (message.country === undefined ? undefined : byCountry.get(message.country)) ?? byCountry.get("default");
}

function nonEmpty(text: unknown): string | undefined {
  return typeof text === "string" && text.trim() !== "" ? text : undefined;
}
