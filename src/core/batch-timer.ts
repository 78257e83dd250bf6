import type { Clock } from "../ports/clock.js";

/**
 * Calls `write` a fixed time after the first `start` of a batch. A timer that is late is dead: Cloudflare Workers end a
 * timer with the request that began it. Then the next `start` writes.
 *
 * @param ms Milliseconds.
 */
export function batchTimer(clock: Clock, ms: number, write: () => void) {
  let running: { readonly late: number; readonly cancel: () => void } | undefined;
  return {
    /** Call after each count. */
    start(): void {
      const now = clock.now();
      if (running === undefined) running = { late: now + 2 * ms, cancel: clock.after(ms, write, "background") };
      else if (now > running.late) write();
    },
    /** Call when the batch is taken. */
    stop(): void {
      running?.cancel();
      running = undefined;
    },
  };
}
