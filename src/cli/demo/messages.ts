import type { CodeMessage } from "../../ports/sms-sender.js";
import { type Feed, kept } from "./feed.js";

/** Identifies a message. */
export type MessageName = Pick<CodeMessage, "authentication_uuid" | "attempt">;

/** A message as the page's phone shows it. */
export interface ShownMessage extends Pick<CodeMessage, "authentication_uuid" | "attempt" | "to" | "text" | "code"> {
  /** Only an accepted message has an id, and with it receipts. */
  readonly outcome: "accepted" | "unknown";
  /** Milliseconds since the epoch. */
  readonly at: number;
}

interface KeptMessage extends ShownMessage {
  readonly delivery?: FinalStatus;
}

/** The final status in a carrier's receipt. */
export type FinalStatus = "delivered" | "undeliverable";

const keyOf = ({ authentication_uuid, attempt }: MessageName) => `${authentication_uuid}/${attempt}`;

export type Messages = ReturnType<typeof createMessages>;

/** The messages of this run. Keeps the last 50 in memory. */
export function createMessages(feed: Feed) {
  const messages = new Map<string, KeptMessage>();
  return {
    add(message: ShownMessage) {
      messages.set(keyOf(message), message);
      if (messages.size > kept) messages.delete([...messages.keys()][0] as string);
      feed.tell("message", keyOf(message), message);
    },
    find: (name: MessageName): KeptMessage | undefined => messages.get(keyOf(name)),
    /** Records a message's receipt and sends the message to the pages again, with its `delivery`. */
    settle(name: MessageName, delivery: FinalStatus) {
      const message = messages.get(keyOf(name));
      if (message === undefined) return;
      const settled = { ...message, delivery };
      messages.set(keyOf(name), settled);
      feed.tell("message", keyOf(name), settled);
    },
  };
}
