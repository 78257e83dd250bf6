import { Heap, type Heaped } from "./heap.js";

/** Something with an end. `earlier` and `later` are its neighbours in a slot and belong to `Expiry`. */
export abstract class Ending<T> {
  /** Milliseconds since the epoch; changed by `Expiry` alone. */
  keepUntil: number;
  earlier: T | undefined = undefined;
  later: T | undefined = undefined;

  constructor(keepUntil: number) {
    this.keepUntil = keepUntil;
  }
}

/** Width of a slot in milliseconds. */
const width = 4_096;

/** How long, in milliseconds, entries stay past the end of their slot: what a clock that stands still in a test may lag behind real time. */
const grace = 5_000;

interface Slot<T> extends Heaped {
  head: T | undefined;
}

/** Entries by their end, in slots of about four seconds: adding, moving and removing cost the same however many there are. An entry is freed at most ten seconds after its end. */
export class Expiry<T extends Ending<T>> {
  readonly #slots = new Map<number, Slot<T>>();
  readonly #byTime = new Heap<Slot<T>>();

  add(entry: T): void {
    const order = slotOf(entry.keepUntil);
    let slot = this.#slots.get(order);
    if (slot === undefined) {
      slot = { order, place: 0, head: undefined };
      this.#slots.set(order, slot);
      this.#byTime.add(slot);
    }
    entry.later = slot.head;
    if (slot.head !== undefined) slot.head.earlier = entry;
    slot.head = entry;
  }

  remove(entry: T): void {
    const { earlier, later } = entry;
    if (later !== undefined) later.earlier = earlier;
    if (earlier !== undefined) {
      earlier.later = later;
    } else {
      const order = slotOf(entry.keepUntil);
      const slot = this.#slots.get(order) as Slot<T>;
      slot.head = later;
      if (later === undefined) {
        this.#slots.delete(order);
        this.#byTime.remove(slot);
      }
    }
    entry.earlier = undefined;
    entry.later = undefined;
  }

  /** Gives an entry that was added another end. */
  move(entry: T, keepUntil: number): void {
    if (slotOf(entry.keepUntil) === slotOf(keepUntil)) {
      entry.keepUntil = keepUntil;
      return;
    }
    this.remove(entry);
    entry.keepUntil = keepUntil;
    this.add(entry);
  }

  /** An entry whose end was before `now`, or `undefined`. */
  ended(now: number): T | undefined {
    const slot = this.#byTime.first();
    return slot !== undefined && (slot.order + 1) * width + grace <= now ? slot.head : undefined;
  }
}

function slotOf(keepUntil: number): number {
  return Math.floor(keepUntil / width);
}

/** The time that a reservation has told last, carried forward by the monotonic clock. Good for housekeeping only. */
export class ToldTime {
  #told = Number.NEGATIVE_INFINITY;
  #at = 0;

  tell(now: number): void {
    this.#told = now;
    this.#at = performance.now();
  }

  /** Milliseconds since the epoch; -Infinity before anyone has told. */
  now(): number {
    return this.#told + (performance.now() - this.#at);
  }
}
