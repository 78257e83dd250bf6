import type { CredentialCheck, Feedback, SendOutcome, SmsMessage, SmsSender } from "../../../src/ports/sms-sender.js";
import { errorToken, withCode } from "../../kit/error-code.js";
import { type OptionNames, optionFault, requireFlag } from "../../kit/option-fault.js";
import { ask, type CarrierAnswer, type CarrierRequest, type NoAnswer } from "../../kit/request.js";
import { openTransport, type TransportOptions, transportOptions } from "../../kit/transport.js";
import { framedSender, type Made, type SenderFrame, type SenderOptions, senderOptions } from "./framed-sender.js";
import { notSent } from "./outcomes.js";

/** Options that every sender over HTTP takes. */
export interface CarrierOptions<V = unknown> extends SenderOptions<V>, TransportOptions {
  /** `true`: tells the carrier of each code that was typed, where it listens to that: the sender's page says how. Default: `false`. */
  readonly conversions?: boolean;
}

export const carrierOptions: OptionNames<CarrierOptions> = { ...senderOptions, ...transportOptions, conversions: true };

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
  /** A request that its documentation names, which sends nothing and costs nothing, and which needs the credentials. Default: none is known. */
  credentials?(told: { readonly baseUrl: string }): CarrierRequest | Promise<CarrierRequest>;
  /** True for codes that say, at any status outside 200 to 299, that the credentials are no good. 401 says so by itself. */
  readonly refusesCredentials?: (code: string) => boolean;
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
      const answer = await ask(transport, () => api.request(message, { ...made, baseUrl }), context.signal);
      const outcome = "reason" in answer ? unanswered(answer) : judge(api, answer);
      if (outcome.outcome !== "accepted") return outcome;
      return { ...outcome, ...(api.receiptsById === true && options.receipts !== false && { idSpace: api.provider }), ...(tells && { keepId: true }) };
    },
  });
  const { credentials } = api;
  const verified: SmsSender =
    credentials === undefined
      ? sender
      : {
          ...sender,
          async verify({ signal }) {
            const answer = await ask(transport, () => credentials({ baseUrl }), signal);
            return ["reason" in answer ? { name: api.provider, credentials: "unknown", reason: answer.reason } : credentialWord(api, answer)];
          },
        };
  if (!tells) return verified;
  return {
    ...verified,
    async feedback({ event, messageId }: Feedback) {
      if (event !== "validated" || messageId === undefined || telling >= mostConversions) return;
      telling += 1;
      try {
        const answer = await ask(transport, () => conversion(messageId, { baseUrl, now: Date.now() }), AbortSignal.timeout(conversionTimeout));
        if ("reason" in answer) throw new Error(`${api.provider} was not told of a conversion: ${answer.reason}`);
        if (answer.status < 200 || answer.status >= 300) throw new Error(`${api.provider} answered HTTP ${answer.status} to a conversion`);
      } finally {
        telling -= 1;
      }
    },
  };
}

/** What an answer says of the credentials. A 403 may be about what they are allowed to ask. */
function credentialWord<V>(api: CarrierApi<V>, answer: CarrierAnswer): CredentialCheck {
  if (answer.status >= 200 && answer.status < 300) return { name: api.provider, credentials: "accepted" };
  const code = errorToken(api.errorCode?.(answer));
  const refused = answer.status === 401 || (code !== undefined && api.refusesCredentials?.(code) === true);
  return { name: api.provider, credentials: refused ? "rejected" : "unknown", reason: withCode(`HTTP ${answer.status}`, code) };
}

function unanswered({ sent, reason }: NoAnswer): SendOutcome {
  return sent ? { outcome: "unknown", reason } : notSent(reason);
}

/** What an answer means. A judgement that throws leaves the message open: it was asked for; what was thrown may repeat a number or a code, and is not told. */
function judge<V>(api: CarrierApi<V>, answer: CarrierAnswer): SendOutcome {
  try {
    return judgeBy(api, answer);
  } catch {
    return { outcome: "unknown", reason: `HTTP ${answer.status}, an answer that could not be judged` };
  }
}

function judgeBy<V>(api: CarrierApi<V>, answer: CarrierAnswer): SendOutcome {
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
