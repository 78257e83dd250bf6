import type { SendOutcome, SmsMessage, SmsSender } from "../../src/ports/sms-sender.js";
import { onlyOptions } from "../kit/option-fault.js";

/** A sender that keeps its messages, and what tests ask of it. */
export interface Inbox extends SmsSender {
  /** Messages taken, oldest first. A message that was rejected is not among them; one of unknown outcome is. */
  readonly messages: readonly SmsMessage[];
  /** The newest message to a number, given as `+` and digits. */
  last(to: string): SmsMessage | undefined;
  /** Forgets all messages. */
  clear(): void;
}

/**
 * A sender for tests: keeps messages in memory, codes included, and sends nothing.
 *
 * @param options.outcome What becomes of each message. Default: accepted under the id `inbox-1`, `inbox-2` and so on.
 * @param options.limit How many messages are kept; the oldest go first. Default: 1000.
 * @throws TypeError when `limit` is not a whole number above 0, and for an option that is none.
 */
export function inboxSender(
  options: { readonly outcome?: SendOutcome | ((message: SmsMessage) => SendOutcome | Promise<SendOutcome>); readonly limit?: number } = {},
): Inbox {
  onlyOptions("inboxSender", options, { outcome: true, limit: true });
  const limit = options.limit ?? 1000;
  if (!(Number.isSafeInteger(limit) && limit > 0)) throw new TypeError("inboxSender: option limit must be a whole number above 0. Leave it out for 1000.");
  const messages: SmsMessage[] = [];
  let taken = 0;
  return {
    messages,
    last: (to) => messages.findLast((message) => message.to === to),
    clear: () => void messages.splice(0),
    async send(message) {
      taken += 1;
      const usual: SendOutcome = { outcome: "accepted", messageId: `inbox-${taken}` };
      const outcome = typeof options.outcome === "function" ? await options.outcome(message) : (options.outcome ?? usual);
      if (outcome.outcome !== "rejected") {
        messages.push(message);
        if (messages.length > limit) messages.shift();
      }
      return outcome;
    },
  };
}
