import type { Channel, CodeMessage, SendContext, SendOutcome, SmsSender } from "../../../src/ports/sms-sender.js";
import { failureOf } from "../../kit/error-code.js";
import { type OptionNames, optionError, requireFlag } from "../../kit/option-error.js";
import { type Extra, type Fields, openExtra } from "./extra.js";
import { discreet, notSent } from "./outcomes.js";
import { openSenderId, type SenderId } from "./sender-id.js";

/** Options of every sender in the kit. */
export interface SenderOptions<V = unknown> {
  /** The sender of messages. */
  readonly from?: SenderId;
  /** Further fields of the request. */
  readonly extra?: Extra<V>;
  /** `false`: messages request no receipts, even if the verifier accepts them. Default: `true`. */
  readonly receipts?: boolean;
}

export const senderOptions: OptionNames<SenderOptions> = { from: true, extra: true, receipts: true };

/** The option values for one message. */
export interface Made<V = unknown> {
  /** Undefined only if the carrier chooses. */
  readonly from: string | undefined;
  readonly extra: Fields<V>;
  /** Seconds until the code expires, or another message replaces this one; at least 1. */
  readonly ttl: number;
  /** The verifier's time, in milliseconds since the epoch. */
  readonly now: number;
}

/** What every sender defines. */
export interface SenderFrame<V = unknown> {
  /** As in its receipt source: lower-case letters. */
  readonly provider: string;
  /** Default: `"sms"`. */
  readonly channel?: Channel;
  /**
   * The other option that names the sender if `from` does not; one of the two is required. `true`: the carrier chooses
   * if `from` is missing. Absent: `from` is required.
   */
  readonly fromElse?: string | true;
  /** The carrier also accepts senders in its own form, such as an ARN. */
  readonly fromAnyForm?: boolean;
  /** Whether messages request receipts that an HTTP source reads. Default: `true`. */
  readonly asksForReceipts?: boolean;
  /** Sends one message. An error thrown before the carrier can have received it has `outcome: "rejected"`. */
  hand(message: CodeMessage, made: Made<V>, context: SendContext): Promise<SendOutcome>;
}

/**
 * Builds a sender around `hand`: sets sender and further fields, rejects expired messages, puts the provider into the
 * receipt URL, and keeps code and number out of reasons.
 *
 * @throws TypeError for an invalid `from` or `extra`.
 */
export function framedSender<V>(name: string, options: SenderOptions<V>, frame: SenderFrame<V>): SmsSender {
  const { provider, fromElse } = frame;
  const other = typeof fromElse === "string" && (options as Readonly<Record<string, unknown>>)[fromElse] !== undefined;
  if (options.from === undefined && fromElse !== true && !other) {
    const more = fromElse === undefined ? "or a function of the message" : `a function of the message, or a ${fromElse}`;
    throw optionError(name, "from", "is missing", `Pass a sender id or number, a map by country, ${more}.`);
  }
  const senders = options.from === undefined ? undefined : openSenderId(name, options.from, frame.fromAnyForm);
  const extraOf = openExtra(name, options.extra);
  const takes = requireFlag(name, "receipts", options.receipts) !== false;
  // Receipts of SMS do not confirm each delivery, and calls are not delivered.
  const confirms = !["sms", "voice"].includes(frame.channel ?? "sms");

  const prepareAndHand = async (sent: CodeMessage, context: SendContext): Promise<SendOutcome> => {
    const now = context.deadline - context.timeLeft;
    if (sent.expires_at <= now) return notSent("its code has ended");
    const message = takes ? forProvider(sent, provider) : withoutReceipts(sent);
    let from: string | undefined;
    let extra: Fields<V>;
    try {
      from = senders?.of(message);
    } catch (error) {
      return notSent(`option from failed: ${failureOf(error)}`);
    }
    if (from === undefined && senders !== undefined && !other)
      return notSent(`option from names no sender for ${message.country ?? "a number without a country"}`);
    try {
      extra = extraOf(message);
    } catch (error) {
      return notSent(`option extra failed: ${failureOf(error)}`);
    }
    const ttl = Math.max(1, Math.floor(((message.replaced_at ?? message.expires_at) - now) / 1000));
    return frame.hand(message, { from, extra, ttl, now }, context);
  };

  return {
    ...(frame.channel !== undefined && { channel: frame.channel }),
    ...(takes && frame.asksForReceipts !== false && { receiptProviders: [provider], ...(confirms && { confirms: true }) }),
    reaches: (country) => other || senders?.has(country) !== false,
    send: async (sent, context) => (context.signal.aborted ? notSent("timed out") : discreet(await prepareAndHand(sent, context), sent)),
  };
}

/** Puts the provider into the message's receipt URL. */
function forProvider(message: CodeMessage, provider: string): CodeMessage {
  return message.receipt_url === undefined ? message : { ...message, receipt_url: message.receipt_url.replace("{provider}", provider) };
}

function withoutReceipts({ receipt_url, receipt_reference, ...message }: CodeMessage): CodeMessage {
  return message;
}
