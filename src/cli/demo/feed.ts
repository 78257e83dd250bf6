import type { ServerResponse } from "node:http";

/** The events that pages receive. */
type FeedEvent = "message" | "call" | "callback";

/** How many events of each type are kept for pages that open later. */
export const kept = 50;

export type Feed = ReturnType<typeof createFeed>;

/** Events of this run, for any number of open pages. */
export function createFeed() {
  const recent = new Map<string, { readonly event: FeedEvent; readonly line: string }>();
  const listeners = new Set<ServerResponse>();
  const write = (text: string) => {
    for (const response of listeners) response.write(text);
  };
  // A regular comment lets a proxy or a laptop that was asleep notice that the connection is lost.
  const beat = setInterval(() => write(":\n\n"), 15_000).unref();
  return {
    /** Sends an event to the pages. It replaces an earlier one of the same type and name. */
    tell(event: FeedEvent, name: string, data: object) {
      const line = `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
      recent.set(`${event} ${name}`, { event, line });
      const ofKind = [...recent].filter(([, entry]) => entry.event === event);
      if (ofKind.length > kept) recent.delete((ofKind[0] as (typeof ofKind)[0])[0]);
      write(line);
    },
    /**
     * Responds with an event stream (text/event-stream): past events first, then each new one, until the client
     * disconnects or `close` is called.
     */
    stream(response: ServerResponse) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`retry: 1000\n\n${[...recent.values()].map(({ line }) => line).join("")}`);
      listeners.add(response);
      response.on("close", () => listeners.delete(response));
    },
    /** Ends every stream. */
    close() {
      clearInterval(beat);
      for (const response of listeners) response.end();
    },
  };
}
