import { countDeadLetters } from "../callbacks/dead-letters.js";
import type { StoreDeadline } from "../core/deadline.js";
import { withoutNumbers } from "../core/loggers.js";
import type { StoreInspection } from "../ports/store.js";
import type { Context } from "./context.js";

/** The state of the verifier, for health pages and operators. */
export interface Ping {
  /** Whether the store responds. False for a `lazyVerifier` whose options are invalid. */
  readonly ok: boolean;
  readonly store: {
    /** The kind of store, if it reports one. */
    readonly kind?: string;
    /** Milliseconds for a read of one small value, the faster of two; absent if the store did not respond. */
    readonly round_trip?: number;
    /**
     * Milliseconds by which the store's clock is ahead of this process, within half a round trip; absent if the store
     * does not report its time.
     */
    readonly clock_difference?: number;
    /**
     * Its durability settings, if it reports them, for example `{ appendonly: "yes", "maxmemory-policy": "noeviction"
     * }`.
     */
    readonly settings: Readonly<Record<string, string>>;
    /** What it lacks, each with a fix. */
    readonly missing: readonly string[];
    /** Why it did not respond, or what is invalid. */
    readonly fault?: string;
  };
  readonly callbacks: {
    /**
     * Records of all processes whose callbacks or unsettled sends are due now; absent if the store does not report it.
     * A store may stop counting at 10,000.
     */
    readonly due?: number;
    /** Callbacks that were given up, up to 10,000: see `deadLetters`. Absent if the store did not respond. */
    readonly dead?: number;
    /** Records queued in this process. */
    readonly waiting: number;
  };
}

/** How much `ping` checks. */
export interface PingOptions {
  /** Makes only one read, for frequent probes: omits `settings`, `missing`, `due` and `dead`. Default false. */
  readonly brief?: boolean | undefined;
}

/** The most dead letters counted. */
const mostDead = 10_000;

/**
 * The store's round trip, clock and settings, and the pending callbacks (docs/contract.md#ping), within `storeTimeout`.
 * Writes nothing, and never rejects.
 */
export async function ping(parts: Context, { brief = false }: PingOptions = {}): Promise<Ping> {
  const { store, outbox, newDeadline } = parts;
  const deadline = newDeadline();
  const read = () => timed(parts, deadline, () => store.get("ping"));
  try {
    const first = await read();
    if (brief) return { ok: true, store: { round_trip: first.ms, settings: {}, missing: [] }, callbacks: { waiting: outbox.waiting() } };
    const [second, dead] = await Promise.all([read(), countDeadLetters(parts, deadline, mostDead)]);
    const inspected = await inspection(parts, deadline);
    return {
      ok: true,
      store: { round_trip: Math.min(first.ms, second.ms), settings: {}, missing: [], ...inspected.store },
      callbacks: { dead, waiting: outbox.waiting(), ...(inspected.due !== undefined && { due: inspected.due }) },
    };
  } catch (error) {
    // The store may fail because of something that it can name.
    const { missing = [] } = brief ? {} : (await inspection(parts, deadline)).store;
    return { ok: false, store: { settings: {}, missing, fault: wordsOf(error) }, callbacks: { waiting: outbox.waiting() } };
  }
}

async function timed<T>({ clock }: Context, deadline: StoreDeadline, work: () => Promise<T>) {
  const began = clock.now();
  const value = await deadline.call(work);
  const ended = clock.now();
  return { value, ms: Math.max(0, ended - began), middle: (began + ended) / 2 };
}

/** What the store reports about itself. A failed inspection is reported, but does not make `ping` fail. */
async function inspection(parts: Context, deadline: StoreDeadline): Promise<{ readonly store: Partial<Ping["store"]>; readonly due?: number | undefined }> {
  const { clock, store } = parts;
  const { inspect } = store;
  if (inspect === undefined) return { store: {} };
  try {
    const { value, middle } = await timed(parts, deadline, () => inspect.call(store, clock.now()));
    const { kind, time, due, settings = {}, missing = [] }: StoreInspection = value;
    return {
      store: { settings, missing, ...(kind !== undefined && { kind }), ...(time !== undefined && { clock_difference: Math.round(time - middle) }) },
      due,
    };
  } catch (error) {
    return { store: { fault: `it could not be inspected: ${wordsOf(error)}` } };
  }
}

/** A verifier that cannot be created (docs/contract.md#ping). */
export function unbuilt(error: unknown): Ping {
  return { ok: false, store: { settings: {}, missing: [], fault: wordsOf(error) }, callbacks: { waiting: 0 } };
}

/** The cause of one of our own errors, without what may be phone numbers. */
export function wordsOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return withoutNumbers(cause instanceof Error ? cause.message : String(cause));
}
