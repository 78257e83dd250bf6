import { failureOf } from "./error-code.js";
import { parseJson } from "./json.js";
import { isHeader, readText, type Transport, whyNoResponse, whyNotSent } from "./transport.js";

/** A request to a carrier or another external API. At most one of `json`, `form` and `body`. */
export interface CarrierRequest {
  readonly url: string;
  /** Default: POST. */
  readonly method?: string;
  /** Names in lower case. `content-type` and `accept` are set for `json` and `form`. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly form?: URLSearchParams;
  readonly body?: string;
}

/** The response to it. */
export interface CarrierResponse {
  readonly status: number;
  /** Up to 64 KiB of the body; empty if it was cut off, or did not end in time. */
  readonly text: string;
  /** `text` parsed as JSON; undefined if invalid. Integers beyond 2^53 are strings. */
  readonly json: unknown;
}

/** Why there is no response. */
export interface NoAnswer {
  /** Whether some of the request may have been sent. */
  readonly sent: boolean;
  readonly reason: string;
}

/**
 * Makes one request, follows no redirect, and never rejects. Waits until `signal` is aborted, or for the transport's
 * own timeout; for the body of a response outside 2xx, up to half a second.
 *
 * @param request The request, or a function that makes it (for example with fetched credentials), within the same time
 * limit.
 */
export async function ask(
  transport: Transport,
  request: CarrierRequest | (() => CarrierRequest | Promise<CarrierRequest>),
  signal: AbortSignal,
): Promise<CarrierResponse | NoAnswer> {
  let ready: ReturnType<typeof readyRequest>;
  try {
    ready = readyRequest(typeof request === "function" ? await before(signal, async () => request()) : request);
  } catch (error) {
    return { sent: false, reason: signal.aborted ? overTime : `the request could not be made: ${failureOf(error)}` };
  }
  if (signal.aborted) return { sent: false, reason: overTime };
  const abort = new AbortController();
  const stop = () => abort.abort();
  signal.addEventListener("abort", stop, { once: true });
  const timers = transport.timeout === undefined ? [] : [setTimeout(stop, transport.timeout)];
  try {
    const { url, ...init } = ready;
    const response = await transport.fetch(url, { ...init, redirect: "manual", signal: abort.signal });
    if (response.status < 200 || response.status > 299) timers.push(setTimeout(stop, errorBodyTime));
    const text = await readText(response);
    return { status: response.status, text, json: parseJson(text) };
  } catch (error) {
    const unsent = whyNotSent(error);
    if (unsent !== undefined) return { sent: false, reason: unsent };
    return { sent: true, reason: abort.signal.aborted ? "no response in time" : whyNoResponse(error) };
  } finally {
    for (const timer of timers) clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

/** Milliseconds to wait for the body of a response outside 2xx. Its status suffices, and another route needs the time. */
const errorBodyTime = 500;

const overTime = "timed out";

/** The result of the work, or a rejection once the signal is aborted, whatever the work does then. */
function before<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(new Error(overTime));
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    work()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", stop));
  });
}

/** A request in the form that `fetch` takes. Throws on what `fetch` would reject, before anything is sent. */
function readyRequest({ url, method = "POST", headers = {}, json, form, body }: CarrierRequest) {
  const { protocol, username, password } = URL.canParse(url) ? new URL(url) : { protocol: "", username: "", password: "" };
  if (!/^https?:$/.test(protocol)) throw new Error("the URL is invalid");
  if (username !== "" || password !== "") throw new Error("its URL contains a user or a password: put them into a header");
  const type = json !== undefined ? "application/json" : form !== undefined ? "application/x-www-form-urlencoded" : undefined;
  const all: Record<string, string> = { ...(type !== undefined && { "content-type": type, accept: "application/json" }), ...headers };
  for (const [name, value] of Object.entries(all)) if (!isHeader(name, value)) throw new Error(`the header ${name} has a value that no header can have`);
  const written = json !== undefined ? JSON.stringify(json) : (form?.toString() ?? body);
  return { url, method, headers: all, ...(written !== undefined && { body: written }) };
}
