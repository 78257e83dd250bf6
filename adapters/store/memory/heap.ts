/** Something with a place in a heap. The heap keeps `place`. */
export interface Heaped {
  readonly order: number;
  place: number;
}

/** A binary heap that also removes from the middle: the smallest `order` first. */
export class Heap<T extends Heaped> {
  readonly #items: T[] = [];

  first(): T | undefined {
    return this.#items[0];
  }

  add(item: T): void {
    this.#items.push(item);
    this.#up(item, this.#items.length - 1);
  }

  remove(item: T): void {
    const last = this.#items.pop() as T;
    if (last === item) return;
    this.#up(last, item.place);
    this.#down(last, last.place);
  }

  #up(item: T, from: number): void {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#items[above] as T;
      if (parent.order <= item.order) break;
      this.#put(parent, place);
      place = above;
    }
    this.#put(item, place);
  }

  #down(item: T, from: number): void {
    let place = from;
    for (;;) {
      let below = 2 * place + 1;
      let child = this.#items[below];
      if (child === undefined) break;
      const right = this.#items[below + 1];
      if (right !== undefined && right.order < child.order) {
        child = right;
        below++;
      }
      if (item.order <= child.order) break;
      this.#put(child, place);
      place = below;
    }
    this.#put(item, place);
  }

  #put(item: T, place: number): void {
    this.#items[place] = item;
    item.place = place;
  }
}
