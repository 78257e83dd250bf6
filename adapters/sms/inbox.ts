import type { CodeMessage, SendOutcome, SmsSender } from "../../src/ports/sms-sender.js";
import { onlyOptions } from "../kit/option-error.js";

/** A sender that keeps its messages for inspection by tests. */
export interface Inbox extends SmsSender {
  /** Messages sent, oldest first. Includes messages of unknown outcome, but not rejected ones. */
  readonly messages: readonly CodeMessage[];
  /** The newest message to a number, given as `+` and digits. */
  last(to: string): CodeMessage | undefined;
  /** Removes all messages. */
  clear(): void;
}

/**
 * A sender for tests: keeps messages in memory, including codes, and sends nothing.
 *
 * @param options.outcome Outcome of each message. Default: accepted, with the ids `inbox-1`, `inbox-2` and so on.
 * @param options.limit Maximum number of messages kept; the oldest are dropped. Default: 1000.
 * @throws TypeError for an invalid or unknown option.
 */
export function inboxSender(
  options: { readonly outcome?: SendOutcome | ((message: CodeMessage) => SendOutcome | Promise<SendOutcome>); readonly limit?: number } = {},
): Inbox {
  onlyOptions("inboxSender", options, { outcome: true, limit: true });
  const limit = options.limit ?? 1000;
  if (!(Number.isSafeInteger(limit) && limit > 0)) throw new TypeError("inboxSender: option limit must be a whole number above 0. Leave it out for 1000.");
  if (options.outcome !== undefined && typeof options.outcome !== "function" && typeof options.outcome?.outcome !== "string")
    throw new TypeError('inboxSender: option outcome must be an outcome, for example { outcome: "rejected" }, or a function that returns one');
  const messages: CodeMessage[] = [];
  let taken = 0;
  return {
    messages,
    sendsNothing: ["inboxSender keeps the codes in memory and sends nothing"],
    verify: async () => [],
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
