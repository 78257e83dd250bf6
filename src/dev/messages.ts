import type { ServerResponse } from "node:http";

/** Names a message. */
export interface MessageName {
  readonly authentication_uuid: string;
  readonly attempt: number;
}

/** A message as the page's phone shows it. */
export interface ShownMessage extends MessageName {
  readonly to: string;
  readonly text: string;
  readonly code: string;
  /** Only an accepted message has an id, and with it receipts. */
  readonly outcome: "accepted" | "unknown";
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** What a carrier's receipt may say last. */
export type FinalStatus = "delivered" | "undeliverable";

/** The messages of this run, for any number of pages that listen. */
export interface Messages {
  add(message: ShownMessage): void;
  /** Whether a receipt for this message may come: `unknown` for one that is not kept, `settled` for one that has its receipt or can have none. */
  awaits(name: MessageName): "yes" | "unknown" | "settled";
  /** Notes a message's receipt and tells the pages, as the event `receipt`. */
  settle(name: MessageName, delivery: FinalStatus): void;
  /** Answers with an event stream (text/event-stream): the messages so far, with `delivery` where they have a receipt, then each message and receipt as it comes, until the client leaves or `close`. */
  stream(response: ServerResponse): void;
  /** Ends every stream. */
  close(): void;
}

const keyOf = ({ authentication_uuid, attempt }: MessageName) => `${authentication_uuid}/${attempt}`;

/** Keeps the last 50 messages in memory. */
export function createMessages(): Messages {
  const kept = new Map<string, ShownMessage & { readonly delivery?: FinalStatus }>();
  const listeners = new Set<ServerResponse>();
  const tell = (event: string) => {
    for (const response of listeners) response.write(event);
  };
  const eventOf = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
  // A comment now and then lets a proxy or a sleeping laptop notice that the connection is gone.
  const beat = setInterval(() => tell(":\n\n"), 15_000).unref();
  return {
    add(message) {
      kept.set(keyOf(message), message);
      if (kept.size > 50) kept.delete([...kept.keys()][0] as string);
      tell(eventOf(message));
    },
    awaits(name) {
      const message = kept.get(keyOf(name));
      if (message === undefined) return "unknown";
      return message.outcome === "accepted" && message.delivery === undefined ? "yes" : "settled";
    },
    settle(name, delivery) {
      const message = kept.get(keyOf(name));
      if (message === undefined) return;
      kept.set(keyOf(name), { ...message, delivery });
      tell(`event: receipt\n${eventOf({ ...name, delivery })}`);
    },
    stream(response) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`retry: 1000\n\n${[...kept.values()].map(eventOf).join("")}`);
      listeners.add(response);
      response.on("close", () => listeners.delete(response));
    },
    close() {
      clearInterval(beat);
      for (const response of listeners) response.end();
    },
  };
}
