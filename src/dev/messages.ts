import type { ServerResponse } from "node:http";

/** A message as the page's phone shows it. */
export interface ShownMessage {
  readonly to: string;
  readonly text: string;
  readonly code: string;
  readonly authentication_uuid: string;
  /** With `authentication_uuid` it tells two messages apart. */
  readonly attempt: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** The messages of this run, for any number of pages that listen. */
export interface Messages {
  add(message: ShownMessage): void;
  /** Answers with an event stream (text/event-stream): the messages so far, then each one as it comes, until the client leaves or `close`. */
  stream(response: ServerResponse): void;
  /** Ends every stream. */
  close(): void;
}

/** Keeps the last 50 messages in memory. */
export function createMessages(): Messages {
  const kept: string[] = [];
  const listeners = new Set<ServerResponse>();
  const tell = (event: string) => {
    for (const response of listeners) response.write(event);
  };
  // A comment now and then lets a proxy or a sleeping laptop notice that the connection is gone.
  const beat = setInterval(() => tell(":\n\n"), 15_000).unref();
  return {
    add(message) {
      const event = `data: ${JSON.stringify(message)}\n\n`;
      kept.push(event);
      if (kept.length > 50) kept.shift();
      tell(event);
    },
    stream(response) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`retry: 1000\n\n${kept.join("")}`);
      listeners.add(response);
      response.on("close", () => listeners.delete(response));
    },
    close() {
      clearInterval(beat);
      for (const response of listeners) response.end();
    },
  };
}
