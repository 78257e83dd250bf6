import type { CodeMessage, CredentialCheck, Feedback, SendOutcome, SmsSender } from "../../../src/ports/sms-sender.js";
import { errorToken, withCode } from "../../kit/error-code.js";
import { type OptionNames, optionError, requireFlag } from "../../kit/option-error.js";
import { ask, type CarrierRequest, type CarrierResponse, type NoAnswer } from "../../kit/request.js";
import { openTransport, type TransportOptions, transportOptions } from "../../kit/transport.js";
import { framedSender, type Made, type SenderFrame, type SenderOptions, senderOptions } from "./framed-sender.js";
import { notSent } from "./outcomes.js";

/** Options of every HTTP sender. */
export interface CarrierOptions<V = unknown> extends SenderOptions<V>, TransportOptions {
  /** `true`: reports each entered code to a carrier that supports it (see the sender's page). Default: `false`. */
  readonly conversions?: boolean;
}

export const carrierOptions: OptionNames<CarrierOptions> = { ...senderOptions, ...transportOptions, conversions: true };

/** Options of a sender whose carrier accepts no reports of entered codes. */
export type SilentOptions<V = unknown> = Omit<CarrierOptions<V>, "conversions">;

export const silentOptions: OptionNames<SilentOptions> = { ...senderOptions, ...transportOptions };

/** Options of such a sender, if `from` has no meaning either: other options name the sender of the messages. */
export type FixedOptions<V = unknown> = Omit<SilentOptions<V>, "from">;

export const fixedOptions: OptionNames<FixedOptions> = { extra: true, receipts: true, ...transportOptions };

/**
 * Environment variables of a sender's options, as `phoneproof dev --sender <name>` reads them. `needs`: all are
 * required. `needsOneOf`: one is required. `may`: optional.
 */
export interface Variables {
  readonly needs: Readonly<Record<string, string>>;
  readonly needsOneOf?: Readonly<Record<string, string>>;
  readonly may: Readonly<Record<string, string>>;
}

/** One carrier's API: how to build a request and what its responses mean. */
export interface CarrierApi<V = unknown> extends Omit<SenderFrame<V>, "hand"> {
  /** The carrier's public base URL, without an operation's path. */
  readonly url: string;
  /** Builds the request for one message. If it throws, the message is rejected. */
  request(message: CodeMessage, made: Made<V> & { readonly baseUrl: string }): CarrierRequest | Promise<CarrierRequest>;
  /** Evaluates a response of any status before everything else; undefined: no decision. */
  judgeFirst?(answer: CarrierResponse): SendOutcome | undefined;
  /** Evaluates a response of status 200 to 299. */
  accepted(answer: CarrierResponse): SendOutcome;
  /** The carrier's error code in a response of another status. Default: none. */
  errorCode?(answer: CarrierResponse): unknown;
  /** Whether an error code means, at any status outside 200 to 299, that the message was definitely not sent. */
  readonly notSent?: (code: string) => boolean;
  /** Whether an error code means that the number is not on this channel. Default: none does. */
  readonly unreachable?: (code: string) => boolean;
  /**
   * A documented, free request that sends nothing and needs the credentials. It asks for JSON: a response of 200 to 299
   * accepts the credentials only if it is JSON. Default: none.
   */
  credentials?(context: { readonly baseUrl: string }): CarrierRequest | Promise<CarrierRequest>;
  /** Whether an error code, at any status outside 200 to 299, means invalid credentials. 401 always does. */
  readonly refusesCredentials?: (code: string) => boolean;
  /** Its receipts may lack our reference and a message's own URL, so its id must find them. Default: `false`. */
  readonly receiptsById?: boolean;
  /** With the option `conversions`: reports that the code of a message was entered. Default: not supported. */
  conversion?(messageId: string, context: { readonly baseUrl: string; readonly now: number }): CarrierRequest | Promise<CarrierRequest>;
}

/** Maximum number of concurrent conversion reports; further ones are dropped. */
const mostConversions = 100;

/** Timeout of a conversion report, in milliseconds. */
const conversionTimeout = 10_000;

/**
 * A sender over HTTP. It makes one request per message, with no retry, and follows no redirect.
 *
 * `rejected`, because definitely not sent: a response of 400 to 499 (including 429, but not 408, 409 and 499), a
 * connection that failed, a request that could not be built.
 * `unknown`: 500 and above, 300 to 399, a cut connection, a timeout, a response of 200 to 299 in an unexpected form.
 * Reasons hold only the HTTP status and the carrier's error code: its sentences often repeat the number.
 *
 * @param name Name of the function that makes the sender, for option errors.
 * @throws TypeError for invalid options.
 */
export function carrierSender<V = unknown>(name: string, options: CarrierOptions<V>, api: CarrierApi<V>): SmsSender {
  const transport = openTransport(name, options, api.url);
  const { baseUrl } = transport;
  const { credentials } = api;
  const reports = requireFlag(name, "conversions", options.conversions) === true;
  const conversion = reports ? api.conversion : undefined;
  if (reports && conversion === undefined) throw optionError(name, "conversions", "has no effect: this carrier takes no conversions", "Leave it out.");
  const byId = api.receiptsById === true && options.receipts !== false;
  let telling = 0;

  const sender = framedSender<V>(name, options, {
    ...api,
    async hand(message, made, { signal }) {
      const outcome = judge(api, await ask(transport, () => api.request(message, { ...made, baseUrl }), signal));
      return outcome.outcome === "accepted" ? { ...outcome, ...(byId && { idSpace: api.provider }), ...(reports && { keepId: true }) } : outcome;
    },
  });
  return {
    ...sender,
    ...(credentials !== undefined && {
      async verify({ signal }: { readonly signal: AbortSignal }) {
        const request = async () => {
          const { headers, ...rest } = await credentials({ baseUrl });
          return { ...rest, headers: { accept: "application/json", ...headers } };
        };
        return [checkCredentials(api, await ask(transport, request, signal))];
      },
    }),
    ...(conversion !== undefined && {
      async feedback({ event, messageId }: Feedback) {
        if (event !== "validated" || messageId === undefined || telling >= mostConversions) return;
        telling += 1;
        try {
          const answer = await ask(transport, () => conversion(messageId, { baseUrl, now: Date.now() }), AbortSignal.timeout(conversionTimeout));
          if ("reason" in answer) throw new Error(`${api.provider} was not notified of a conversion: ${answer.reason}`);
          if (answer.status < 200 || answer.status >= 300) throw new Error(`${api.provider} responded with HTTP ${answer.status} to a conversion`);
        } finally {
          telling -= 1;
        }
      },
    }),
  };
}

/** What a response shows about the credentials. A 403 may concern their permissions. */
function checkCredentials<V>(api: CarrierApi<V>, answer: CarrierResponse | NoAnswer): CredentialCheck {
  const name = api.provider;
  if ("reason" in answer) return { name, credentials: "unknown", reason: answer.reason };
  if (answer.status >= 200 && answer.status < 300) {
    // Any server has a page for people.
    if (answer.json === undefined) return { name, credentials: "unknown", reason: "the response is not the carrier's: check baseUrl" };
    return { name, credentials: "accepted" };
  }
  const code = errorToken(api.errorCode?.(answer));
  const refused = answer.status === 401 || (code !== undefined && api.refusesCredentials?.(code) === true);
  return { name, credentials: refused ? "rejected" : "unknown", reason: withCode(`HTTP ${answer.status}`, code) };
}

/** The outcome that a response means. An error on the way is not reported: it may contain a number or a code. */
function judge<V>(api: CarrierApi<V>, answer: CarrierResponse | NoAnswer): SendOutcome {
  if ("reason" in answer) return answer.sent ? { outcome: "unknown", reason: answer.reason } : notSent(answer.reason);
  try {
    const first = api.judgeFirst?.(answer);
    if (first !== undefined) return first;
    if (answer.status >= 200 && answer.status < 300) return api.accepted(answer);
    const code = errorToken(api.errorCode?.(answer));
    const reason = withCode(`HTTP ${answer.status}`, code);
    if (!surelyNotSent(answer.status) && !(code !== undefined && api.notSent?.(code) === true)) return { outcome: "unknown", reason };
    return { outcome: "rejected", reason, ...(code !== undefined && api.unreachable?.(code) === true && { unreachable: true }) };
  } catch {
    return { outcome: "unknown", reason: `HTTP ${answer.status}, a response that could not be interpreted` };
  }
}

/**
 * Whether the status of a response means that nothing was sent. 408 and 499 may come from a proxy in front of a carrier
 * that took the message; 409 from an earlier duplicate.
 */
export function surelyNotSent(status: number): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 409 && status !== 499;
}
