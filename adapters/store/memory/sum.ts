import type { SumClaim } from "../../../src/ports/store.js";

/** A sum: its end, and then the end and the weight of each of its parts. A counter: its end, and its value. */
export type Numbers = readonly number[];

/** The most parts that a sum keeps: its newest. */
const mostParts = 32;

/** How many parts a sum has; 1 for a counter. */
export function partsOf(numbers: Numbers): number {
  return numbers.length >> 1;
}

/** What the parts of a sum come to that end after `since`. */
export function total(sum: Numbers = [], since: number): number {
  let weight = 0;
  for (let i = 1; i < sum.length; i += 2) if ((sum[i] as number) > since) weight += sum[i + 1] as number;
  return weight;
}

/** The first end of a part after which no more than `room` is left; `undefined`: `room` is below 0. */
export function roomSince(sum: Numbers = [], since: number, room: number): number | undefined {
  const ends = sum.filter((end, i) => i % 2 === 1 && end > since).sort((a, b) => a - b);
  return ends.find((end) => total(sum, end) <= room);
}

/** The sum with a claim granted, which ends in slot `end`. */
export function withWeight(sum: Numbers | undefined, { now, since, weight }: SumClaim, end: number): Numbers | undefined {
  const width = Math.max(1, Math.floor((now - since) / 12));
  const partEnd = (Math.floor(now / width) + 1) * width;
  if (sum === undefined) return weight > 0 ? [end, partEnd, weight] : undefined;
  const lasts = Math.max(end, sum[0] as number);
  for (let i = 1; i < sum.length; i += 2) {
    if (sum[i] !== partEnd) continue;
    const next = sum.slice();
    next[0] = lasts;
    next[i + 1] = Math.max(0, (sum[i + 1] as number) + weight);
    return next;
  }
  if (weight <= 0) return sum;
  const [, ...parts] = sum;
  if (parts.length === 2 * mostParts) parts.splice(oldestOf(parts), 2);
  return [lasts, ...parts, partEnd, weight];
}

function oldestOf(parts: Numbers): number {
  let oldest = 0;
  for (let i = 2; i < parts.length; i += 2) if ((parts[i] as number) < (parts[oldest] as number)) oldest = i;
  return oldest;
}
