import { withCode } from "./error-code.js";
import { type OptionNames, optionError, requireSeconds, requireText } from "./option-error.js";

/** The part of `fetch` that senders and lookups use; the global `fetch` and compatible clients match it. */
export type Fetch = (
  url: string,
  init: {
    readonly method: string;
    readonly headers: Record<string, string>;
    readonly body?: string;
    readonly redirect: "manual";
    readonly signal: AbortSignal;
  },
) => Promise<FetchResponse>;

/** The part of a `Response` that they use. */
export interface FetchResponse {
  readonly status: number;
  /** A web stream. Any other body, such as node-fetch's, is read with `text()`. */
  readonly body?: object | null | undefined;
  text?(): Promise<string>;
}

interface WebStream {
  getReader?(): { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>; cancel(): Promise<void> };
}

/** How to reach a carrier or another external API: options of every HTTP sender and lookup. */
export interface TransportOptions {
  /**
   * The API's base URL, without an operation's path, for another region or a test server. It starts with `https://`
   * or `http://` and has no credentials, query or fragment. Default: the public one.
   */
  readonly baseUrl?: string;
  /** Default: the global `fetch`. */
  readonly fetch?: Fetch;
  /**
   * Seconds to wait for the whole response; after that a send is `unknown`, and a lookup has no result. Default and
   * maximum: until the deadline of the send or lookup.
   */
  readonly timeout?: number;
}

export const transportOptions: OptionNames<TransportOptions> = { baseUrl: true, fetch: true, timeout: true };

/** Transport options, checked. */
export type Transport = ReturnType<typeof openTransport>;

/** @throws TypeError for an invalid base URL, `fetch` or timeout. */
export function openTransport(owner: string, options: TransportOptions, publicUrl: string) {
  const { baseUrl: given = publicUrl, timeout } = options;
  const baseUrl = requireText(owner, "baseUrl", given, `Pass for example "${publicUrl}".`);
  if (!isBase(baseUrl)) {
    const example = !baseUrl.includes("://") && isBase(`https://${baseUrl}`) ? `https://${baseUrl}` : publicUrl;
    const problem = "must be a URL that starts with https:// or http://, without credentials, query, fragment and white space";
    throw optionError(owner, "baseUrl", problem, `Pass for example "${example}".`);
  }
  requireSeconds(owner, "timeout", timeout, "Leave it out to wait as long as the verifier does.");
  if (options.fetch !== undefined && typeof options.fetch !== "function") {
    throw optionError(owner, "fetch", "must be a function", "Leave it out for the global fetch.");
  }
  // Read at each call, so that tools can replace the global `fetch` later.
  const fetch: Fetch = options.fetch ?? ((url, init) => globalThis.fetch(url, init));
  return {
    /** Without a trailing slash. */
    baseUrl: baseUrl.replace(/\/+$/, ""),
    fetch,
    /** Milliseconds. */
    timeout: timeout === undefined ? undefined : timeout * 1000,
  };
}

/** Whether a path can be added to it. */
function isBase(url: string): boolean {
  return /^https?:\/\/[^\s/?#@]+(\/[^\s?#]*)?$/i.test(url) && URL.canParse(url);
}

/** Maximum number of characters of a response that are read. */
const answerLimit = 65_536;

/** The body as text, up to 64 KiB; empty if it was cut off. */
export async function readText(response: FetchResponse): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    const reader = (response.body as WebStream | null | undefined)?.getReader?.();
    if (reader === undefined) return ((await response.text?.()) ?? "").slice(0, answerLimit);
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      text += decoder.decode(part.value, { stream: true });
      if (text.length > answerLimit) {
        void reader.cancel().catch(() => {});
        return text.slice(0, answerLimit);
      }
    }
    return text + decoder.decode();
  } catch {
    // The status is known: a 400 without its body is still a 400, and a 200 without it has an unexpected form.
    return "";
  }
}

/** Whether a header can be written: `fetch` throws if HTTP cannot express it. */
export function isHeader(name: string, value: string): boolean {
  return /^[!#$%&'*+.^_`|~\w-]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
}

/** Why nothing was sent, if a `fetch` error means that; undefined if something may have been sent. */
export function whyNotSent(error: unknown): string | undefined {
  if (!neverConnected(error)) return undefined;
  const messages = causes(error)
    .flatMap(({ message }) => (typeof message === "string" ? [message] : []))
    .join("\n");
  const [, status] = /^Proxy response \((\d+)\)/m.exec(messages) ?? [];
  if (status !== undefined) return `no connection: the proxy responded with HTTP ${status}`;
  if (/bad port$/m.test(messages)) return "no connection: fetch blocks this port";
  return withCode("no connection", connectionCode(error));
}

/**
 * Why there is no response after a `fetch` error, if something may have been sent. Names only the class of the error:
 * its message may contain keys.
 */
export function whyNoResponse(error: unknown): string {
  const code = connectionCode(error);
  const { name, message } = causes(error).at(-1) ?? {};
  const isClass = typeof name === "string" && /^[A-Z][A-Za-z]{1,40}$/.test(name) && name !== "Error";
  const isVariable = name === "ReferenceError" && typeof message === "string" && /^[\w$]{1,40} is not defined$/.test(message);
  return withCode(["no response", ...(isClass ? [name] : []), ...(isVariable ? [message] : [])].join(": "), code);
}

/** Whether nothing was sent: no address, no connection, no TLS. */
function neverConnected(error: unknown): boolean {
  return causes(error).some(({ code, syscall, errors, message }) => {
    if (syscall === "connect" || syscall === "getaddrinfo") return true;
    if (typeof code === "string" && connectCodes.test(code)) return true;
    if (typeof message === "string" && (connectMessages.test(message) || connectCodes.test(openSslCode(message)))) return true;
    return Array.isArray(errors) && errors.length > 0 && errors.every(neverConnected);
  });
}

/** The system's code of a failed connection, such as `ENOTFOUND` or `CERT_HAS_EXPIRED`; undefined without one. */
export function connectionCode(error: unknown): string | undefined {
  for (const { code, errors } of causes(error)) {
    if (typeof code === "string" && /^[A-Za-z_]\w{2,63}$/.test(code)) return code;
    const inner = Array.isArray(errors) ? connectionCode(errors[0]) : undefined;
    if (inner !== undefined) return inner;
  }
  return undefined;
}

type Cause = { readonly [field in "name" | "code" | "syscall" | "errors" | "message"]?: unknown };

/** The error, its cause, and so on. */
function causes(error: unknown): readonly Cause[] {
  const found: Cause[] = [];
  for (let here = error; typeof here === "object" && here !== null && found.length < 5; here = (here as { cause?: unknown }).cause) found.push(here);
  return found;
}

/**
 * Messages of failures before a connection is established that have no code of their own: a port that fetch blocks, a
 * handshake cut short, and, in undici, a proxy that opens no tunnel. node-fetch puts its own words before the system's,
 * and leaves the system call out.
 */
const connectMessages =
  /^(request to \S+ failed, reason: )?(bad port|Client network socket disconnected before secure TLS connection was established|Proxy response \(\d+\) !== 200 when HTTP Tunneling|(connect|getaddrinfo) E[A-Z_]+.*)$/;

/** The code in which fetch has an OpenSSL error, from the message of Node's http, whose own code is EPROTO. */
function openSslCode(message: string): string {
  const [, reason = ""] = /:SSL routines:\w*:([^:]+):/.exec(message) ?? [];
  return `ERR_SSL_${reason.toUpperCase().replaceAll(" ", "_")}`;
}

/**
 * Codes of failures before a connection is established that name no system call, in Node's fetch and Bun's. A closed
 * dispatcher of undici takes no request; one that was destroyed may have sent it. Of OpenSSL's, only those by which a
 * peer that speaks no TLS, or none in common with us, ends the handshake.
 */
const connectCodes =
  /^(ECONNREFUSED|ENOTFOUND|ConnectionRefused|FailedToOpenSocket|UND_ERR_(CONNECT_TIMEOUT|CLOSED)|CERT_\w+|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|ERR_TLS_CERT_ALTNAME_INVALID|ERR_SSL_(WRONG_VERSION_NUMBER|UNSUPPORTED_PROTOCOL|(SSLV3|SSL\/TLS)_ALERT_HANDSHAKE_FAILURE|TLSV1_ALERT_PROTOCOL_VERSION|TLSV1_ALERT_INSUFFICIENT_SECURITY|TLSV1_UNRECOGNIZED_NAME))$/;
