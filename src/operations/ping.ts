import type { StoreInspection } from "../ports/store.js";
import type { Context } from "./context.js";

/** How the verifier stands: for health pages and operators. */
export interface Ping {
  /** Whether the store answers. */
  readonly ok: boolean;
  readonly store: {
    /** What it is, where it tells. */
    readonly kind?: string;
    /** Milliseconds that a read of one small value took, the quicker of two; absent where it was not answered. */
    readonly round_trip?: number;
    /** Milliseconds by which the store's clock is ahead of this process's, to half a round trip; absent where the store does not tell its time. */
    readonly clock_difference?: number;
    /** How it keeps what it acknowledged, where it tells, for example `{ appendonly: "yes", "maxmemory-policy": "noeviction" }`. */
    readonly settings: Readonly<Record<string, string>>;
    /** What it lacks, each with its mend. */
    readonly missing: readonly string[];
    /** Why it could not be asked. */
    readonly fault?: string;
  };
  readonly callbacks: {
    /** Records with callbacks, or with sends to be settled, that are due now, of all processes; absent where the store does not tell. A store may count up to 10,000. */
    readonly due?: number;
    /** Callbacks that were given up, up to 10,000: see `deadLetters`. Absent where the store did not answer. */
    readonly dead?: number;
    /** Records that this process has in line. */
    readonly waiting: number;
  };
}

/** How much `ping` asks. */
export interface PingOptions {
  /** One read alone, for probes that come every second: `settings`, `missing`, `due` and `dead` are left out. Default false. */
  readonly brief?: boolean | undefined;
}

/** How many letters are counted. */
const mostDead = 10_000;

/** The store's round trip, clock and settings, and the callbacks that wait (docs/contract.md#ping). Writes nothing, and never rejects. */
export async function ping(parts: Context, { brief = false }: PingOptions = {}): Promise<Ping> {
  const { clock, store, outbox } = parts;
  const timed = async <T>(work: () => Promise<T>) => {
    const began = clock.now();
    const value = await parts.newDeadline().call(work);
    const ended = clock.now();
    return { value, ms: Math.max(0, ended - began), middle: (began + ended) / 2 };
  };
  try {
    const first = await timed(() => store.get("ping"));
    if (brief) return { ok: true, store: { round_trip: first.ms, settings: {}, missing: [] }, callbacks: { waiting: outbox.waiting() } };
    const trips = [first, await timed(() => store.get("ping"))];
    const dead = await outbox.dead(mostDead);
    const told = await inspection(parts, timed);
    return {
      ok: true,
      store: {
        round_trip: Math.min(...trips.map(({ ms }) => ms)),
        settings: {},
        missing: [],
        ...told.store,
      },
      callbacks: { dead, waiting: outbox.waiting(), ...(told.due !== undefined && { due: told.due }) },
    };
  } catch (error) {
    // It may fail for want of what it can name.
    const { missing = [] } = brief ? {} : (await inspection(parts, timed)).store;
    return { ok: false, store: { settings: {}, missing, fault: wordsOf(error) }, callbacks: { waiting: outbox.waiting() } };
  }
}

type Timed = <T>(work: () => Promise<T>) => Promise<{ readonly value: T; readonly middle: number }>;

/** What the store tells; a store that cannot be asked says so, and works all the same. */
async function inspection({ clock, store }: Context, timed: Timed): Promise<{ readonly store: Partial<Ping["store"]>; readonly due?: number | undefined }> {
  const { inspect } = store;
  if (inspect === undefined) return { store: {} };
  try {
    const { value, middle } = await timed(() => inspect.call(store, clock.now()));
    const { kind, time, due, settings = {}, missing = [] }: StoreInspection = value;
    return {
      store: { settings, missing, ...(kind !== undefined && { kind }), ...(time !== undefined && { clock_difference: Math.round(time - middle) }) },
      due,
    };
  } catch (error) {
    return { store: { fault: `it could not be inspected: ${wordsOf(error)}` } };
  }
}

/** What lies behind a fault of ours. */
function wordsOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return (cause instanceof Error ? cause.message : String(cause)).slice(0, 500);
}
