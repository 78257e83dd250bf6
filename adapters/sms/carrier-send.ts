import type { SendContext, SendOutcome, SmsMessage, SmsSender } from "../../src/ports/sms-sender.js";
import type { FetchAnswer, Transport } from "./carrier-options.js";
import { parseJson } from "./json.js";

/** What a sender asks of its carrier for one message. */
export interface CarrierRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
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
export interface CarrierApi {
  /** As its receipt source names it. */
  readonly provider: string;
  readonly transport: Transport;
  /** Names the sender of a message; undefined: none fits. */
  readonly from: (message: SmsMessage) => string | undefined;
  /** True when the carrier chooses a sender itself where `from` names none. */
  readonly fromOptional?: boolean;
  request(message: SmsMessage, from: string | undefined): CarrierRequest | Promise<CarrierRequest>;
  /** Judges an answer of any status before all else; undefined: it has nothing to say. */
  judgeFirst?(answer: CarrierAnswer): SendOutcome | undefined;
  /** Judges an answer whose status is 200 to 299. */
  accepted(answer: CarrierAnswer): SendOutcome;
  /** The carrier's own code in an answer of another status. */
  errorCode(answer: CarrierAnswer): unknown;
  /** True for the carrier's codes that say, at any status outside 200 to 299, that the message was surely not sent. */
  readonly notSent?: (code: string) => boolean;
}

const answerLimit = 65_536;

/**
 * A sender over HTTP. One request for a message and never a second one, no redirect followed.
 *
 * `rejected`, because surely not sent: an answer of 400 to 499 (429 among them, but 408, 409 and 499 are left open), a connection that never came about, a
 * request that could not be made.
 * `unknown`: 500 and above, 300 to 399, a cut connection, no answer in time, an answer of 200 to 299 that is not in the carrier's form.
 * Reasons hold the HTTP status and the carrier's error code only: its sentences often repeat the number.
 */
export function carrierSender(api: CarrierApi): SmsSender {
  return {
    async send(sent, context) {
      const message = sent.receipt_url === undefined ? sent : { ...sent, receipt_url: sent.receipt_url.replace("{provider}", api.provider) };
      let request: CarrierRequest;
      try {
        const from = api.from(message);
        if (from === undefined && api.fromOptional !== true) {
          return { outcome: "rejected", reason: `not sent: option from names no sender for ${message.country ?? "a number without a country"}` };
        }
        request = await api.request(message, from);
      } catch {
        return { outcome: "rejected", reason: "not sent: the request could not be made (a function among the sender's options failed)" };
      }
      return discreet(await exchange(api, request, context), message);
    },
  };
}

async function exchange(api: CarrierApi, request: CarrierRequest, context: SendContext): Promise<SendOutcome> {
  if (context.signal.aborted) return { outcome: "rejected", reason: "not sent: the time for it was over" };
  const { fetch, timeout } = api.transport;
  const abort = new AbortController();
  const stop = () => abort.abort();
  context.signal.addEventListener("abort", stop, { once: true });
  const timer = timeout === undefined ? undefined : setTimeout(stop, timeout);
  try {
    const { url, ...rest } = request;
    const response = await fetch(url, { ...rest, redirect: "manual", signal: abort.signal });
    const text = await readText(response);
    return judge(api, { status: response.status, text, json: parseJson(text) });
  } catch (error) {
    if (neverConnected(error)) return { outcome: "rejected", reason: "not sent: no connection to the carrier" };
    return { outcome: "unknown", reason: abort.signal.aborted ? "no answer in time" : "the connection was cut before the answer" };
  } finally {
    clearTimeout(timer);
    context.signal.removeEventListener("abort", stop);
  }
}

function judge(api: CarrierApi, answer: CarrierAnswer): SendOutcome {
  const first = api.judgeFirst?.(answer);
  if (first !== undefined) return first;
  if (answer.status >= 200 && answer.status < 300) return api.accepted(answer);
  const code = errorToken(api.errorCode(answer));
  const sure = surelyNotSent(answer.status) || (code !== undefined && api.notSent?.(code) === true);
  return { outcome: sure ? "rejected" : "unknown", reason: withCode(`HTTP ${answer.status}`, code) };
}

/** 408 and 499 may come from something between us and a carrier that took the message, 409 from an earlier twin of it. */
function surelyNotSent(status: number): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 409 && status !== 499;
}

/** Accepted under the carrier's id, or unknown where a carrier's answer to an accepted message must hold one and does not. */
export function acceptedAs(id: unknown): SendOutcome {
  const messageId = idToken(id);
  return messageId === undefined ? { outcome: "unknown", reason: "the carrier's answer is not in its form" } : { outcome: "accepted", messageId };
}

/** Rejected inside an answer of 200 to 299. */
export function rejectedWith(code: unknown): SendOutcome {
  return { outcome: "rejected", reason: withCode("refused by the carrier", errorToken(code)) };
}

/** A carrier's id of a message: 1 to 200 visible ASCII characters, or a whole number. */
export function idToken(value: unknown): string | undefined {
  const text = typeof value === "number" && Number.isSafeInteger(value) ? String(value) : value;
  return typeof text === "string" && /^[\x21-\x7e]{1,200}$/.test(text) ? text : undefined;
}

/** A carrier's error code as a short word. Anything that might be a number somebody has, or a sentence, is left out. */
export function errorToken(value: unknown): string | undefined {
  const text = typeof value === "number" && Number.isSafeInteger(value) ? String(value) : value;
  return typeof text === "string" && /^[\w.:-]{1,64}$/.test(text) && !/\d{7}/.test(text) ? text : undefined;
}

/** `+14155552671` as `14155552671`, for carriers that want it so. */
export function digits(number: string): string {
  return number.replace(/^\+/, "");
}

function withCode(reason: string, code: string | undefined): string {
  return code === undefined ? reason : `${reason}, code ${code}`;
}

/** Whatever a carrier echoes, a reason never holds the one-time code. */
function discreet(outcome: SendOutcome, message: SmsMessage): SendOutcome {
  return outcome.outcome !== "accepted" && outcome.reason?.includes(message.code)
    ? { outcome: outcome.outcome, reason: "the carrier's error code is withheld" }
    : outcome;
}

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

/** True when an error of `fetch` says that not a byte of the request went out: no address, no connection, no TLS. */
export function neverConnected(error: unknown): boolean {
  for (let here: unknown = error, depth = 0; typeof here === "object" && here !== null && depth < 5; here = (here as { cause?: unknown }).cause, depth += 1) {
    const { code, syscall, errors } = here as { code?: unknown; syscall?: unknown; errors?: unknown };
    if (syscall === "connect" || syscall === "getaddrinfo") return true;
    if (typeof code === "string" && connectCodes.test(code)) return true;
    if (Array.isArray(errors) && errors.length > 0 && errors.every(neverConnected)) return true;
  }
  return false;
}

/** Codes of failures before a connection stands that name no system call, of Node's fetch and of Bun's. */
const connectCodes =
  /^(ConnectionRefused|FailedToOpenSocket|UND_ERR_CONNECT_TIMEOUT|CERT_\w+|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|ERR_TLS_CERT_ALTNAME_INVALID)$/;
