import { Ending, Expiry } from "./expiry.js";
import { atMost64KiB, compact, TextMap } from "./text.js";

class Value extends Ending<Value> {
  constructor(
    readonly key: string,
    public value: string,
    keepUntil: number,
  ) {
    super(keepUntil);
  }
}

/** Values by key and by end. */
export class Values {
  readonly #values = new TextMap<Value>();
  readonly #expiry = new Expiry<Value>();
  size = 0;

  get(key: string): string | undefined {
    return this.#values.get(key)?.value;
  }

  /** `makeRoom` is called before a value more is kept; it throws when there is no room. */
  put(key: string, value: string, keepUntil: number, makeRoom: () => void): void {
    atMost64KiB(value, "a value");
    const stored = this.#values.get(key);
    if (stored !== undefined) {
      stored.value = compact(value);
      this.#expiry.move(stored, keepUntil);
      return;
    }
    makeRoom();
    const created = new Value(compact(key), compact(value), keepUntil);
    this.#values.set(created.key, created);
    this.#expiry.add(created);
    this.size++;
  }

  /** Forgets one value that has ended before `now`; false when there is none. */
  forgetOne(now: number): boolean {
    const value = this.#expiry.ended(now);
    if (value === undefined) return false;
    this.#expiry.remove(value);
    this.#values.delete(value.key);
    this.size--;
    return true;
  }
}
