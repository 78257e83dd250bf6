import type { IncomingMessage } from "node:http";
import { verifyWebhook } from "../../../clients/webhooks.js";
import type { CallbackEvent } from "../../ports/events.js";
import { readText } from "../read-text.js";

/** What became of a callback, as the history shows it. */
export interface ShownCallback {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly authentication_uuid: string;
  readonly sequence: number;
  readonly status: string;
  readonly outcome: CallbackEvent["outcome"];
  /** Why it was not delivered. */
  readonly reason?: string;
  /** What came, where it came to this demo, and its signature was right. */
  readonly received?: object;
}

/** The demo's own webhook. */
export interface Callbacks {
  /** Takes a callback that comes to `/dev/callbacks`; answers the HTTP status and a word on it. */
  take(request: IncomingMessage): Promise<readonly [status: number, text: string]>;
  /** What the verifier tells of a callback, wherever it was posted. */
  heard(event: CallbackEvent): void;
}

/** Bytes of a callback. */
const bodyLimit = 16 * 1024;

/** How many are remembered until the verifier tells that they were delivered. */
const remembered = 100;

/** @param secrets Those of the customers, `whsec_…`. */
export function createCallbacks(secrets: () => Promise<readonly string[]>, tell: (callback: ShownCallback) => void): Callbacks {
  const received = new Map<string, object>();
  const nameOf = ({ authentication_uuid, sequence }: Pick<ShownCallback, "authentication_uuid" | "sequence">) => `${authentication_uuid}/${sequence}`;
  return {
    async take(request) {
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
    heard({ at, authentication_uuid, sequence, status, outcome, reason }) {
      const name = nameOf({ authentication_uuid, sequence });
      const came = received.get(name);
      received.delete(name);
      tell({ at, authentication_uuid, sequence, status, outcome, ...(reason !== undefined && { reason }), ...(came !== undefined && { received: came }) });
    },
  };
}
