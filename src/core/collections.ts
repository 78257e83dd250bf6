import type { Clock } from "../ports/clock.js";

/** Splits a list into parts of up to `size` members. */
export function chunksOf<T>(list: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, at) => list.slice(at * size, (at + 1) * size));
}

/** The value under `key`; a new one is made and put there if it is missing. */
export function getOrPut<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}

/** The properties of an object, unchecked; of anything else, none. */
export function propertiesOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

export type AgedCache<T> = ReturnType<typeof agedCache<T>>;

/**
 * A cache of two generations: an entry is dropped between `age` and twice `age` milliseconds after it was set, even if
 * nothing else happens. It is dropped earlier if `most` others were set since. Cloudflare Workers end a timer with the
 * request that began it: then the next call drops what is too old.
 */
export function agedCache<T>(clock: Clock, most: number, age: number) {
  let young = new Map<string, T>();
  let old = new Map<string, T>();
  let ages = false;
  let turnedAt = 0;
  let cancel = () => {};
  const rotate = () => {
    old = young;
    young = new Map();
  };
  const begin = () => {
    ages = true;
    turnedAt = clock.now();
    cancel = clock.after(age, grow, "background");
  };
  const grow = () => {
    rotate();
    ages = false;
    if (old.size > 0) begin();
  };
  const dropLate = () => {
    if (!ages || clock.now() - turnedAt <= 2 * age) return;
    cancel();
    rotate();
    rotate();
    ages = false;
  };
  return {
    get(key: string): T | undefined {
      dropLate();
      return young.get(key) ?? old.get(key);
    },
    set(key: string, value: T): void {
      dropLate();
      if (young.size >= most) rotate();
      young.set(key, value);
      if (!ages) begin();
    },
    delete(key: string): void {
      young.delete(key);
      old.delete(key);
    },
  };
}
