import type { ServerResponse } from "node:http";

/** What the pages are told of. */
export type FeedEvent = "message" | "call" | "callback";

/** What happens in this run, for any number of pages that listen. */
export interface Feed {
  /** Tells the pages. What was told of this event under the same name before is replaced. */
  tell(event: FeedEvent, name: string, data: object): void;
  /** Answers with an event stream (text/event-stream): what was told so far, then each thing as it comes, until the client leaves or `close`. */
  stream(response: ServerResponse): void;
  /** Ends every stream. */
  close(): void;
}

/** How many of each event are kept for pages that open late. */
export const kept = 50;

export function createFeed(): Feed {
  const told = new Map<string, { readonly event: FeedEvent; readonly line: string }>();
  const listeners = new Set<ServerResponse>();
  const write = (text: string) => {
    for (const response of listeners) response.write(text);
  };
  // A comment now and then lets a proxy or a sleeping laptop notice that the connection is gone.
  const beat = setInterval(() => write(":\n\n"), 15_000).unref();
  return {
    tell(event, name, data) {
      const line = `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
      told.set(`${event} ${name}`, { event, line });
      const ofKind = [...told].filter(([, entry]) => entry.event === event);
      if (ofKind.length > kept) told.delete((ofKind[0] as (typeof ofKind)[0])[0]);
      write(line);
    },
    stream(response) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`retry: 1000\n\n${[...told.values()].map(({ line }) => line).join("")}`);
      listeners.add(response);
      response.on("close", () => listeners.delete(response));
    },
    close() {
      clearInterval(beat);
      for (const response of listeners) response.end();
    },
  };
}
