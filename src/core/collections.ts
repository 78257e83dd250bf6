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

/** A cache by key. */
export interface AgedCache<T> {
  get(key: string): T | undefined;
  set(key: string, value: T): void;
  delete(key: string): void;
}

/**
 * A cache of two generations: an entry is dropped between `age` and twice `age` milliseconds after it was set, even if
 * nothing else happens. It is dropped earlier if `most` others were set since.
 */
export function agedCache<T>(clock: Clock, most: number, age: number): AgedCache<T> {
  let young = new Map<string, T>();
  let old = new Map<string, T>();
  let ages = false;
  const rotate = () => {
    old = young;
    young = new Map();
  };
  const grow = () => {
    rotate();
    ages = old.size > 0;
    if (ages) clock.after(age, grow, "background");
  };
  return {
    get: (key) => young.get(key) ?? old.get(key),
    set(key, value) {
      if (young.size >= most) rotate();
      young.set(key, value);
      if (ages) return;
      ages = true;
      clock.after(age, grow, "background");
    },
    delete(key) {
      young.delete(key);
      old.delete(key);
    },
  };
}
