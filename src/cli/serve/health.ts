import { setTimeout as sleep } from "node:timers/promises";
import type { Verifier } from "../../create-verifier.js";

/**
 * The time limit for the store, and how long its result is reused: many probes cause one read in that time.
 * Milliseconds.
 */
const patience = 2_000;
const fresh = 2_000;

export type Health = ReturnType<typeof createHealth>;

/**
 * Whether requests should be sent to this process: checks the store with one read.
 *
 * @param tell Called when the store stops responding and when it responds again. `fault`: its client's error message.
 */
export function createHealth(verifier: Pick<Verifier, "ping">, tell: (ok: boolean, fault: string | undefined) => void) {
  let leaving = false;
  let was = true;
  let last: { readonly fault: string | undefined; readonly until: number } | undefined;
  let asking: Promise<void> | undefined;

  const ask = async () => {
    const late = sleep(patience, `no response within ${patience / 1000} s`, { ref: false });
    const said = verifier.ping({ brief: true }).then(({ ok, store }) => (ok ? undefined : (store.fault ?? "no answer")));
    const fault = await Promise.race([said, late]);
    last = { fault, until: performance.now() + fresh };
    if (was === (fault === undefined)) return;
    was = !was;
    tell(was, fault);
  };

  return {
    /** The response to `GET /healthz`: a status and one line of plain text. */
    async answer(): Promise<readonly [status: 200 | 503, text: string]> {
      if (leaving) return [503, "stopping\n"];
      if (last === undefined || performance.now() >= last.until) {
        asking ??= ask().finally(() => {
          asking = undefined;
        });
        await asking;
      }
      return last?.fault === undefined ? [200, "ok\n"] : [503, "the store does not respond\n"];
    },
    /** From now on the response is 503. */
    leave() {
      leaving = true;
    },
  };
}
