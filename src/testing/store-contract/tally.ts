import { randomUUID } from "node:crypto";
import type { Tally } from "../../ports/store.js";
import { type StoreCases, same } from "./checks.js";
import { expiry, oddTexts } from "./fixtures.js";

/** Adds `by` to `counter`. */
function add(counter: string, by: number): Tally {
  return { counter, by, ...expiry() };
}

/** Cases of `tally`. */
export const tallyCases: StoreCases = {
  "tally: adds, then reads, in order; 0 for a counter that nothing was added to": async (store, peer) => {
    const [one, two, none] = [randomUUID(), randomUUID(), randomUUID()];
    same(await store.tally([], []), [], "no adds and no reads");
    same(await store.tally([], [none, one]), [0, 0], "counters that none was added to");
    same(await store.tally([add(one, 3), add(two, 5)], [two, none, one]), [5, 0, 3], "two adds and three reads");
    same(await peer.tally([add(one, 1)], []), [], "an add without reads");
    same(await peer.tally([], [one, two, one]), [4, 5, 4], "reads without adds");
    same(await store.tally([add(one, 10), add(two, 1), add(one, 100)], [one, two]), [114, 6], "two adds to one counter");
  },
  "tally: numbers below 0 and up to 9e15 are exact": async (store) => {
    const counter = randomUUID();
    same(await store.tally([add(counter, -7)], [counter]), [-7], "7 less than none");
    same(await store.tally([add(counter, 7)], [counter]), [0], "7 more");
    same(await store.tally([add(counter, 0)], [counter]), [0], "0 more");
    same(await store.tally([add(counter, 9e15 - 1)], [counter]), [9e15 - 1], "9e15 - 1 more");
    same(await store.tally([add(counter, 1)], [counter]), [9e15], "1 more");
    same(await store.tally([add(counter, -9e15)], [counter]), [0], "9e15 less");
    same(await store.tally([add(counter, -4_000_000_000_000_001)], [counter]), [-4_000_000_000_000_001], "4e15 + 1 less");
  },
  "tally: keeps counters apart whatever their names look like": async (store) => {
    const start = randomUUID();
    const counters = oddTexts.map((name) => `${start}${name}`);
    const adds = counters.map((counter, i) => add(counter, i + 1));
    const expected = counters.map((_, i) => i + 1);
    same(await store.tally(adds, counters), expected, "every counter, in one call");
    for (const [i, counter] of counters.entries()) same(await store.tally([], [counter]), [i + 1], `the counter ${JSON.stringify(counter)}`);
  },
  "tally: adds to and reads hundreds of counters in one call": async (store, peer) => {
    const counters = Array.from({ length: 500 }, () => randomUUID());
    const adds = counters.map((counter, i) => add(counter, i));
    const expected = counters.map((_, i) => i);
    same(await store.tally(adds, counters), expected, "500 counters");
    const reversed = [...expected].reverse();
    same(await peer.tally([], [...counters].reverse()), reversed, "500 counters read in the other order");
  },
  "tally: loses none of several concurrent adds": async (store, peer) => {
    const [one, two] = [randomUUID(), randomUUID()];
    await Promise.all(Array.from({ length: 100 }, (_, i) => (i % 2 ? peer : store).tally([add(one, 1), add(two, i)], [one])));
    same(await store.tally([], [one, two]), [100, 4_950], "the counters after a hundred adds to both");
  },
};
