/** Returns numbers from 0 up to, not including, 1. */
export type Random = () => number;

/** A stream that depends only on seed and name (mulberry32), and is independent of streams with other names. */
export function stream(seed: number, name: string | number): Random {
  let state = mix(seed ^ hash(String(name)));
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    return mix(state) / 4_294_967_296;
  };
}

function mix(state: number): number {
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return (t ^ (t >>> 14)) >>> 0;
}

/** FNV-1a. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193);
  return state | 0;
}

/** An integer from 0 up to, not including, `limit`. */
export function below(random: Random, limit: number): number {
  return Math.floor(random() * limit);
}

export function pick<T>(random: Random, list: readonly T[]): T {
  return list[below(random, list.length)] as T;
}

/** `count` digits. */
export function digits(random: Random, count: number): string {
  return count === 0 ? "" : String(below(random, 10 ** count)).padStart(count, "0");
}

/** `count` hexadecimal digits. */
export function hex(random: Random, count: number): string {
  let text = "";
  while (text.length < count) text += below(random, 0x10000).toString(16).padStart(4, "0");
  return text.slice(0, count);
}

/** A random number of events with this mean. */
export function poisson(random: Random, mean: number): number {
  if (mean > 30) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal(random)));
  const end = Math.exp(-mean);
  let count = 0;
  for (let product = random(); product > end; product *= random()) count++;
  return count;
}

/**
 * A duration that is mostly close to `median` and sometimes several times that. `spread` is the deviation of its
 * logarithm.
 */
export function around(random: Random, median: number, spread: number): number {
  return median * Math.exp(spread * normal(random));
}

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Draws from a list by weight. */
export function lottery<T>(entries: readonly (readonly [value: T, weight: number])[]): (random: Random) => T {
  const ends: number[] = [];
  let total = 0;
  for (const [, weight] of entries) ends.push((total += weight));
  return (random) => {
    const point = random() * total;
    let low = 0;
    let high = ends.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle] as number) > point) high = middle;
      else low = middle + 1;
    }
    return (entries[low] as readonly [T, number])[0];
  };
}
