/** Runs what it is given when what has arrived meanwhile was read. */
export const nextTurn: (run: () => void) => unknown = globalThis.setImmediate ?? setTimeout;

const inWorker = (globalThis as { readonly navigator?: { readonly userAgent?: string } }).navigator?.userAgent === "Cloudflare-Workers";

/**
 * Whether what belongs to several requests may go on together at the end of a turn. Not in a Worker of Cloudflare's, where what one request began ends with it; not where a test's own clock
 * was there first (its timers have a `clock`), since turns then end when the test says so; and not by a timer, which takes too long.
 */
export const gathers = !inWorker && nextTurn === globalThis.setImmediate && !("clock" in nextTurn);
