import type { Channel, CodeMessage } from "../../src/ports/sms-sender.js";
import { router } from "../../src/routing/router.js";

/** A router with a route for each channel, in this order and named after it. `sent` records the messages. */
export function routerOf(...channels: readonly Channel[]) {
  const sent: (CodeMessage & { readonly by: Channel })[] = [];
  const routes = channels.map((channel, priority) => ({
    name: channel,
    priority,
    sender: {
      channel,
      ...(channel === "voice" && { callsFixedLines: () => true }),
      send: async (message: CodeMessage) => {
        sent.push({ ...message, by: channel });
        return { outcome: "accepted" as const };
      },
    },
  }));
  return { sent, sender: router({ routes }) };
}
