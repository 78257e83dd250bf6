import type { FixedClock } from "../../src/testing/fixed-clock.js";

/** Events in virtual time, one after another. */
export interface Agenda {
  now(): number;
  /** Calls `run` at `at`, in milliseconds since the epoch, or at once if that time has passed. */
  at(at: number, run: () => Promise<void> | void): void;
  /** Calls `run` in `ms` milliseconds. */
  in(ms: number, run: () => Promise<void> | void): void;
}

interface Entry {
  readonly at: number;
  /** Of two entries at the same time, the one with the lower turn comes first. */
  readonly turn: number;
  readonly run: () => Promise<void> | void;
}

/**
 * An agenda, and a function that plays it up to, not including, `end`. Each entry ends before the next one starts. The
 * rest never happens.
 */
export function agendaOn(clock: FixedClock): { readonly agenda: Agenda; play(end: number): Promise<void> } {
  const heap: Entry[] = [];
  let turns = 0;
  const before = (a: Entry, b: Entry) => a.at < b.at || (a.at === b.at && a.turn < b.turn);

  const push = (entry: Entry) => {
    let at = heap.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!before(entry, heap[parent] as Entry)) break;
      heap[at] = heap[parent] as Entry;
      at = parent;
    }
    heap[at] = entry;
  };

  const pop = (): Entry => {
    const first = heap[0] as Entry;
    const last = heap.pop() as Entry;
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1] as Entry, heap[child] as Entry)) child++;
      if (!before(heap[child] as Entry, last)) break;
      heap[at] = heap[child] as Entry;
      at = child;
    }
    heap[at] = last;
    return first;
  };

  const at: Agenda["at"] = (when, run) => push({ at: Math.max(Math.ceil(when), clock.now()), turn: turns++, run });
  return {
    agenda: { now: () => clock.now(), at, in: (ms, run) => at(clock.now() + ms, run) },
    async play(end) {
      while (heap.length > 0 && (heap[0] as Entry).at < end) {
        const entry = pop();
        clock.set(entry.at);
        await entry.run();
      }
      clock.set(end);
    },
  };
}
