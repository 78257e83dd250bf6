import { setTimeout as sleep } from "node:timers/promises";
import type { Ping, PingOptions } from "../../operations/ping.js";

/** An answer to `GET /healthz`: a status and a line of plain text. */
export type HealthAnswer = readonly [status: 200 | 503, text: string];

/** Whether requests should be sent here. */
export interface Health {
  answer(): Promise<HealthAnswer>;
  /** From now on the answer is 503. */
  leave(): void;
}

/** How long the store may take, and how long what it said counts: probes from many places ask it once in that time. Milliseconds. */
const patience = 2_000;
const fresh = 2_000;

/**
 * Asks the store, by one read.
 *
 * @param tell Is told when the store stops answering, and when it answers again. `fault`: in the words of its client.
 */
export function createHealth(ping: (options: PingOptions) => Promise<Ping>, tell: (ok: boolean, fault: string | undefined) => void): Health {
  let leaving = false;
  let was = true;
  let last: { readonly fault: string | undefined; readonly until: number } | undefined;
  let asking: Promise<void> | undefined;

  const ask = async () => {
    const done = new AbortController();
    const late = sleep(patience, `no answer within ${patience / 1000} s`, { signal: done.signal, ref: false }).catch(() => undefined);
    const said = ping({ brief: true }).then(({ ok, store }) => (ok ? undefined : (store.fault ?? "no answer")));
    const fault = await Promise.race([said, late]);
    done.abort();
    last = { fault, until: performance.now() + fresh };
    if (was === (fault === undefined)) return;
    was = !was;
    tell(was, fault);
  };

  return {
    async answer() {
      if (leaving) return [503, "stopping\n"];
      if (last === undefined || performance.now() >= last.until) {
        asking ??= ask().finally(() => {
          asking = undefined;
        });
        await asking;
      }
      return last?.fault === undefined ? [200, "ok\n"] : [503, "the store does not answer\n"];
    },
    leave() {
      leaving = true;
    },
  };
}
