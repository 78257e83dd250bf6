import type { Feedback, SendContext, SendOutcome, SmsMessage, SmsSender } from "../../../src/ports/sms-sender.js";
import { framedSender, type Made, type SenderFrame, type SenderOptions } from "./framed-sender.js";
import { parseJson } from "./json.js";
import { optionFault, requireFlag } from "./option-fault.js";
import { errorToken, failureOf, notSent, withCode } from "./outcomes.js";
import { connectionCode, isHeader, neverConnected, openTransport, readText, type Transport, type TransportOptions } from "./transport.js";

/** Options that every sender over HTTP takes. */
export interface CarrierOptions<V = unknown> extends SenderOptions<V>, TransportOptions {
  /** `true`: tells the carrier of each code that was typed, where it listens to that: the sender's page says how. Default: `false`. */
  readonly conversions?: boolean;
}

/** What a sender asks of its carrier. At most one of `json`, `form` and `body`. */
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

/** What the carrier said. */
export interface CarrierAnswer {
  readonly status: number;
  /** At most 64 KiB of it; empty when it broke off. */
  readonly text: string;
  /** `text` read as JSON; undefined when it is none. */
  readonly json: unknown;
}

/** What one carrier's API asks for: how a message is put, and what its answers mean. */
export interface CarrierApi<V = unknown> extends Omit<SenderFrame<V>, "hand"> {
  /** The carrier's public address, without the path of an operation. */
  readonly url: string;
  /** The request for one message. One that cannot be made throws: the message is rejected. */
  request(message: SmsMessage, made: Made<V> & { readonly baseUrl: string }): CarrierRequest | Promise<CarrierRequest>;
  /** Judges an answer of any status before all else; undefined: it has nothing to say. */
  judgeFirst?(answer: CarrierAnswer): SendOutcome | undefined;
  /** Judges an answer whose status is 200 to 299. */
  accepted(answer: CarrierAnswer): SendOutcome;
  /** The carrier's own code in an answer of another status. Default: none. */
  errorCode?(answer: CarrierAnswer): unknown;
  /** True for the carrier's codes that say, at any status outside 200 to 299, that the message was surely not sent. */
  readonly notSent?: (code: string) => boolean;
  /** The carrier's receipts echo nothing of ours and come to no URL of a message: they are found by its id. Default: `false`. */
  readonly receiptsById?: boolean;
  /** Tells the carrier that the code of its message was typed, with the option `conversions`. Default: it does not listen. */
  conversion?(messageId: string, told: { readonly baseUrl: string; readonly now: number }): CarrierRequest | Promise<CarrierRequest>;
}

/** Conversions under way at a time; what comes beyond is not told. */
const mostConversions = 100;

/** How long a carrier may take over one. Milliseconds. */
const conversionTimeout = 10_000;

/**
 * A sender over HTTP. One request for a message and never a second one, no redirect followed.
 *
 * `rejected`, because surely not sent: an answer of 400 to 499 (429 among them, but 408, 409 and 499 are left open), a connection that never came about, a
 * request that could not be made.
 * `unknown`: 500 and above, 300 to 399, a cut connection, no answer in time, an answer of 200 to 299 that is not in the carrier's form.
 * Reasons hold the HTTP status and the carrier's error code only: its sentences often repeat the number.
 *
 * @param name Of the function that makes the sender, for faults in its options.
 * @throws TypeError for options that cannot be used.
 */
export function carrierSender<V = unknown>(name: string, options: CarrierOptions<V>, api: CarrierApi<V>): SmsSender {
  const transport = openTransport(name, options, api.url);
  const { baseUrl } = transport;
  const { conversion } = api;
  const wantsConversions = requireFlag(name, "conversions", options.conversions) === true;
  const tells = wantsConversions && conversion !== undefined;
  if (wantsConversions && conversion === undefined)
    throw optionFault(name, "conversions", "has no meaning: this carrier does not listen to them", "Leave it out.");
  let telling = 0;

  const sender = framedSender<V>(name, options, {
    ...api,
    async hand(message, made, context) {
      let ready: ReadyRequest;
      try {
        ready = readyRequest(await before(context.signal, async () => api.request(message, { ...made, baseUrl })));
      } catch (error) {
        return notSent(context.signal.aborted ? "the time for it was over" : `the request could not be made: ${failureOf(error)}`);
      }
      const outcome = await exchange(api, transport, ready, context);
      if (outcome.outcome !== "accepted") return outcome;
      return { ...outcome, ...(api.receiptsById === true && options.receipts !== false && { idSpace: api.provider }), ...(tells && { keepId: true }) };
    },
  });
  if (!tells) return sender;
  return {
    ...sender,
    async feedback({ event, messageId }: Feedback) {
      if (event !== "validated" || messageId === undefined || telling >= mostConversions) return;
      telling += 1;
      try {
        const time = AbortSignal.timeout(conversionTimeout);
        const { status } = await call(transport, readyRequest(await before(time, async () => conversion(messageId, { baseUrl, now: Date.now() }))), time);
        if (status < 200 || status >= 300) throw new Error(`${api.provider} answered HTTP ${status} to a conversion`);
      } finally {
        telling -= 1;
      }
    },
  };
}

/** What work comes to, or a rejection once the signal is aborted, whatever the work does then. */
function before<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(new Error("the time for it was over"));
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    work()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", stop));
  });
}

async function exchange<V>(api: CarrierApi<V>, transport: Transport, request: ReadyRequest, context: SendContext): Promise<SendOutcome> {
  const abort = new AbortController();
  const stop = () => abort.abort();
  context.signal.addEventListener("abort", stop, { once: true });
  const timer = transport.timeout === undefined ? undefined : setTimeout(stop, transport.timeout);
  try {
    return judge(api, await call(transport, request, abort.signal));
  } catch (error) {
    const code = connectionCode(error);
    if (neverConnected(error)) return notSent(withCode("no connection to the carrier", code));
    return { outcome: "unknown", reason: abort.signal.aborted ? "no answer in time" : withCode("the connection was cut before the answer", code) };
  } finally {
    clearTimeout(timer);
    context.signal.removeEventListener("abort", stop);
  }
}

async function call({ fetch }: Transport, { url, ...init }: ReadyRequest, signal: AbortSignal): Promise<CarrierAnswer> {
  const response = await fetch(url, { ...init, redirect: "manual", signal });
  const text = await readText(response);
  return { status: response.status, text, json: parseJson(text) };
}

/** A request as `fetch` takes it. */
interface ReadyRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
}

/** Throws at what `fetch` would throw at, before a byte goes out. */
function readyRequest({ url, method = "POST", headers = {}, json, form, body }: CarrierRequest): ReadyRequest {
  const { protocol, username, password } = URL.canParse(url) ? new URL(url) : { protocol: "", username: "", password: "" };
  if (!/^https?:$/.test(protocol)) throw new Error("its URL is none");
  if (username !== "" || password !== "") throw new Error("its URL holds a user or a password: put them into a header");
  const type = json !== undefined ? "application/json" : form !== undefined ? "application/x-www-form-urlencoded" : undefined;
  const all = { ...(type !== undefined && { "content-type": type, accept: "application/json" }), ...headers };
  for (const [name, value] of Object.entries(all)) if (!isHeader(name, value)) throw new Error(`the header ${name} holds what no header can`);
  const written = json !== undefined ? JSON.stringify(json) : (form?.toString() ?? body);
  return { url, method, headers: all, ...(written !== undefined && { body: written }) };
}

function judge<V>(api: CarrierApi<V>, answer: CarrierAnswer): SendOutcome {
  const first = api.judgeFirst?.(answer);
  if (first !== undefined) return first;
  if (answer.status >= 200 && answer.status < 300) return api.accepted(answer);
  const code = errorToken(api.errorCode?.(answer));
  const sure = surelyNotSent(answer.status) || (code !== undefined && api.notSent?.(code) === true);
  return { outcome: sure ? "rejected" : "unknown", reason: withCode(`HTTP ${answer.status}`, code) };
}

/** 408 and 499 may come from something between us and a carrier that took the message, 409 from an earlier twin of it. */
function surelyNotSent(status: number): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 409 && status !== 499;
}
