/** What was set last, by key. */
export interface LastUsed<T> {
  get(key: string): T | undefined;
  /** `weight`: what it takes. Default 1. */
  set(key: string, value: T, weight?: number): void;
  delete(key: string): void;
}

/**
 * Keeps what weighs up to `most` together and was set within `age` milliseconds, where there is an age; and up to as much again, from up to as long before.
 * Two generations: a Map used as a list of the last used walks its holes.
 */
export function lastUsed<T>(most: number, age = Number.POSITIVE_INFINITY, now = () => 0): LastUsed<T> {
  let young = new Map<string, T>();
  let old = new Map<string, T>();
  let weighs = 0;
  let since = now();
  return {
    get: (key) => young.get(key) ?? old.get(key),
    set(key, value, weight = 1) {
      // A clock may go back.
      if (weighs + weight > most || Math.abs(now() - since) > age) {
        old = young;
        young = new Map();
        weighs = 0;
        since = now();
      }
      young.set(key, value);
      weighs += weight;
    },
    delete(key) {
      young.delete(key);
      old.delete(key);
    },
  };
}
