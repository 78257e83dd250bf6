import type { IncomingMessage } from "node:http";
import { verifyWebhook } from "../../../clients/webhooks.js";
import type { CallbackEvent } from "../../ports/events.js";
import { readText } from "../read-text.js";

/** The delivery result of a callback, as the history shows it. */
export interface ShownCallback extends Pick<CallbackEvent, "at" | "authentication_uuid" | "sequence" | "status" | "outcome" | "reason"> {
  /** The callback's body, if it came to this demo with a valid signature. */
  readonly received?: object;
}

/** Maximum size of a callback, in bytes. */
const bodyLimit = 16 * 1024;

/** How many callbacks are remembered until the verifier reports their delivery. */
const remembered = 100;

/**
 * The demo's own webhook.
 *
 * @param secrets The customers' secrets, `whsec_…`.
 */
export function createCallbacks(secrets: () => Promise<readonly string[]>, tell: (callback: ShownCallback) => void) {
  const received = new Map<string, object>();
  const nameOf = ({ authentication_uuid, sequence }: Pick<ShownCallback, "authentication_uuid" | "sequence">) => `${authentication_uuid}/${sequence}`;
  return {
    /** Receives a callback at `/dev/callbacks`. Returns the HTTP status and a short text. */
    async take(request: IncomingMessage): Promise<readonly [status: number, text: string]> {
      const body = await readText(request, bodyLimit);
      if (body === undefined) return [413, `at most ${bodyLimit} bytes\n`];
      try {
        const event = verifyWebhook({ secret: await secrets(), headers: request.headers, body });
        received.set(nameOf(event.data), event);
        if (received.size > remembered) received.delete([...received.keys()][0] as string);
        return [204, ""];
      } catch (error) {
        return [400, `${(error as Error).message}\n`];
      }
    },
    /** Receives the verifier's event about a callback, wherever that was posted. */
    heard({ at, authentication_uuid, sequence, status, outcome, reason }: CallbackEvent) {
      const name = nameOf({ authentication_uuid, sequence });
      const came = received.get(name);
      received.delete(name);
      tell({ at, authentication_uuid, sequence, status, outcome, ...(reason !== undefined && { reason }), ...(came !== undefined && { received: came }) });
    },
  };
}
