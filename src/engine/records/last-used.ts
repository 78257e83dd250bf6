/** What was set last, by key. */
export interface LastUsed<T> {
  get(key: string): T | undefined;
  /** `weight`: what it takes. Default 1. `at`: what time it is. */
  set(key: string, value: T, weight?: number, at?: number): void;
  delete(key: string): void;
}

/**
 * Keeps what weighs up to `most` together and was set within `age` milliseconds, where there is an age; and up to as much again, from up to as long before.
 * Two generations: a Map used as a list of the last used walks its holes. `dropped`: told of what it lets go of.
 */
export function lastUsed<T>(most: number, age = Number.POSITIVE_INFINITY, now = () => 0, dropped?: (value: T, key: string) => void): LastUsed<T> {
  let young = new Map<string, T>();
  let old = new Map<string, T>();
  let weighs = 0;
  let since = now();
  return {
    get: (key) => young.get(key) ?? old.get(key),
    set(key, value, weight = 1, at = now()) {
      // A clock may go back.
      if (weighs + weight > most || Math.abs(at - since) > age) {
        const gone = old;
        old = young;
        young = new Map();
        weighs = 0;
        since = at;
        if (dropped !== undefined) for (const [oldest, held] of gone) if (!old.has(oldest)) dropped(held, oldest);
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
