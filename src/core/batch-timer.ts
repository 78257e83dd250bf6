import type { Core } from "./core.js";

/**
 * Calls `write` a fixed time after the first `start` of a batch. With `waitUntil`, the platform may run no timer after
 * the response: then the first count after such a time without a write is written at once, in the work that continues.
 *
 * @param ms Milliseconds.
 */
export function batchTimer(parts: Pick<Core, "clock" | "inBackground" | "overrides" | "settings">, ms: number, write: () => Promise<void>) {
  const { clock, inBackground, overrides, settings } = parts;
  let cancel: (() => void) | undefined;
  let writtenAt = settings.waitUntil === undefined || overrides.batches ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  return {
    /** Call after each count. */
    start(): void {
      const now = clock.now();
      if (now - writtenAt >= ms) {
        writtenAt = now;
        // With what the request counts next.
        inBackground(Promise.resolve().then(write));
      } else cancel ??= clock.after(ms, () => inBackground(write()), "background");
    },
    /** Call when the batch is taken. */
    stop(): void {
      cancel?.();
      cancel = undefined;
    },
  };
}
