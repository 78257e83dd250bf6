/** Something with its place in an order. */
interface Entry<T> {
  readonly order: number;
  readonly item: T;
}

/** A binary heap: what has the lowest order comes first. */
export class Heap<T> {
  readonly #entries: Entry<T>[] = [];

  get size(): number {
    return this.#entries.length;
  }

  /** What stands at `place`, where something must stand; 0 is the first. */
  at(place: number): Entry<T> {
    return this.#entries[place] as Entry<T>;
  }

  add(entry: Entry<T>): void {
    this.#settle(entry, this.size);
  }

  /** Takes out what stands at `place`. */
  remove(place: number): void {
    const last = this.#entries.pop() as Entry<T>;
    if (place < this.size) this.#settle(last, place);
  }

  /** Takes out all that `isGone` tells of. */
  removeAll(isGone: (item: T) => boolean): void {
    // From the end: what takes the place of one that is taken out was looked at before.
    for (let place = this.size - 1; place >= 0; place--) if (isGone(this.at(place).item)) this.remove(place);
  }

  /** Puts an entry where it belongs, beginning at a place that is free. */
  #settle(entry: Entry<T>, from: number): void {
    let place = from;
    for (let above = (place - 1) >> 1; place > 0 && this.at(above).order > entry.order; above = (place - 1) >> 1) {
      this.#entries[place] = this.at(above);
      place = above;
    }
    for (let below = 2 * place + 1; below < this.size; below = 2 * place + 1) {
      if (below + 1 < this.size && this.at(below + 1).order < this.at(below).order) below++;
      if (this.at(below).order >= entry.order) break;
      this.#entries[place] = this.at(below);
      place = below;
    }
    this.#entries[place] = entry;
  }
}
