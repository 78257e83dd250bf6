/** An entry with an end: in whole seconds of the store's own clock, because small integers need no extra memory. */
export interface Row {
  end: number;
}

const none: readonly never[] = [];

export class Rows<R extends Row> {
  /** Most keys have one row and need no list. */
  readonly #kept = new Map<string, R | readonly R[]>();
  #cursor = this.#kept.entries();
  size = 0;

  /** `onGone` receives each removed row. */
  constructor(readonly onGone: (row: R) => void = () => {}) {}

  get(key: string): readonly R[] {
    const kept = this.#kept.get(key);
    return kept === undefined ? none : Array.isArray(kept) ? kept : [kept as R];
  }

  set(key: string, rows: readonly R[]): void {
    this.size += rows.length - this.get(key).length;
    const [first] = rows;
    if (first === undefined) this.#kept.delete(key);
    else this.#kept.set(key, rows.length === 1 ? first : rows.slice());
  }

  remove(key: string, isGone: (row: R) => boolean = () => true): void {
    const rows = this.get(key);
    const left = rows.filter((row) => !isGone(row));
    if (left.length === rows.length) return;
    this.set(key, left);
    rows.filter(isGone).forEach(this.onGone);
  }

  /** Checks the next few keys, in rotation, and removes their expired rows. */
  sweep(keys: number, now: number): void {
    const hasEnded = ({ end }: R) => end <= now;
    for (let left = Math.min(keys, this.#kept.size); left > 0; left--) {
      let step = this.#cursor.next();
      if (step.done) step = (this.#cursor = this.#kept.entries()).next();
      const [key, kept] = step.value as [string, R | readonly R[]];
      if (Array.isArray(kept) ? kept.some(hasEnded) : hasEnded(kept as R)) this.remove(key, hasEnded);
    }
  }
}
