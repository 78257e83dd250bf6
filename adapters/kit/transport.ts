import { type OptionNames, optionFault } from "./option-fault.js";

/** The part of `fetch` that senders and lookups use. The global `fetch` has this shape, and so has that of any client that imitates it. */
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

/** The part of a `Response` that they use. */
export interface FetchAnswer {
  readonly status: number;
  readonly body: { getReader(): { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>; cancel(): Promise<void> } } | null;
}

/** How a carrier, or another's API, is reached: options that every sender and lookup over HTTP takes. */
export interface TransportOptions {
  /**
   * Where the carrier's API is, without the path of an operation: another region of the carrier, or a stand-in for tests. Default: the carrier's public
   * address.
   */
  readonly baseUrl?: string;
  /** Default: the global `fetch`. */
  readonly fetch?: Fetch;
  /** Seconds to wait for the whole answer; then a send is `unknown`, and a lookup knows nothing. Default, and at most: until the deadline of the send or the lookup. */
  readonly timeout?: number;
}

export const transportOptions: OptionNames<TransportOptions> = { baseUrl: true, fetch: true, timeout: true };

/** Transport options, checked. */
export interface Transport {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly fetch: Fetch;
  /** Milliseconds. */
  readonly timeout: number | undefined;
}

/** @throws TypeError for a base URL, `fetch` or time-out that cannot be used. */
export function openTransport(owner: string, options: TransportOptions, publicUrl: string): Transport {
  const { baseUrl = publicUrl, timeout } = options;
  if (!URL.canParse(baseUrl) || !/^https?:$/.test(new URL(baseUrl).protocol)) {
    throw optionFault(owner, "baseUrl", "must be a URL that starts with https:// or http://", `Leave it out for ${publicUrl}.`);
  }
  if (timeout !== undefined && !(Number.isFinite(timeout) && timeout > 0)) {
    throw optionFault(owner, "timeout", "must be a number of seconds above 0", "Leave it out to wait as long as the verifier does.");
  }
  if (options.fetch !== undefined && typeof options.fetch !== "function") {
    throw optionFault(owner, "fetch", "must be a function", "Leave it out for the global fetch.");
  }
  // Looked up at each call, so that tools which replace the global one later are heard.
  const fetch = options.fetch ?? ((url, init) => globalThis.fetch(url, init));
  return { baseUrl: baseUrl.replace(/\/+$/, ""), fetch, timeout: timeout === undefined ? undefined : timeout * 1000 };
}

/** Characters of an answer that are read. */
const answerLimit = 65_536;

/** The body as text, at most 64 KiB of it; empty when it broke off. */
export async function readText(response: FetchAnswer): Promise<string> {
  if (response.body === null) return "";
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      text += decoder.decode(part.value, { stream: true });
      if (text.length > answerLimit) {
        void reader.cancel().catch(() => {});
        return text.slice(0, answerLimit);
      }
    }
    return text + decoder.decode();
  } catch {
    // The status has been told: a 400 without the rest of its body is still a 400, and a 200 without it is not in the carrier's form.
    return "";
  }
}

/** Whether a header can be written: what HTTP has no spelling for makes `fetch` throw. */
export function isHeader(name: string, value: string): boolean {
  return /^[!#$%&'*+.^_`|~\w-]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
}

/** True when an error of `fetch` says that not a byte of the request went out: no address, no connection, no TLS. */
export function neverConnected(error: unknown): boolean {
  return causes(error).some(({ code, syscall, errors, message }) => {
    // A port that fetch goes to for nobody.
    if (message === "bad port") return true;
    if (syscall === "connect" || syscall === "getaddrinfo") return true;
    if (typeof code === "string" && connectCodes.test(code)) return true;
    return Array.isArray(errors) && errors.length > 0 && errors.every(neverConnected);
  });
}

/** The system's word for a failed connection, such as `ENOTFOUND`, `ECONNREFUSED` or `CERT_HAS_EXPIRED`; undefined where there is none. */
export function connectionCode(error: unknown): string | undefined {
  for (const { code, errors } of causes(error)) {
    if (typeof code === "string" && /^[A-Za-z_]\w{2,63}$/.test(code)) return code;
    const inner = Array.isArray(errors) ? connectionCode(errors[0]) : undefined;
    if (inner !== undefined) return inner;
  }
  return undefined;
}

interface Cause {
  readonly code?: unknown;
  readonly syscall?: unknown;
  readonly errors?: unknown;
  readonly message?: unknown;
}

/** The error, its cause, and so on. */
function causes(error: unknown): readonly Cause[] {
  const found: Cause[] = [];
  for (let here = error; typeof here === "object" && here !== null && found.length < 5; here = (here as { cause?: unknown }).cause) found.push(here);
  return found;
}

/** Codes of failures before a connection stands that name no system call, of Node's fetch and of Bun's. */
const connectCodes =
  /^(ConnectionRefused|FailedToOpenSocket|UND_ERR_CONNECT_TIMEOUT|CERT_\w+|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|ERR_TLS_CERT_ALTNAME_INVALID)$/;
