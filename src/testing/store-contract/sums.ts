import { randomUUID } from "node:crypto";
import { ask, commit, granted, refused, roomFor, type StoreCases, same, sums } from "./checks.js";
import { newName, newRecord, newScene, oddTexts, part, partsOf, weight } from "./fixtures.js";

/** Claims on sums, which store only totals, one caller at a time. */
export const sumCases: StoreCases = {
  "sum: grants exactly what the limit allows, one after another, each with the total that includes it": async (store, peer) => {
    const sum = newName();
    const claim = (by: number) => [weight(sum, by, { limit: 10 })];
    await granted(store, claim(3), [3], "3 of 10");
    await granted(peer, claim(4), [7], "4 more");
    await refused(store, claim(4), 0, 7, "4 more, where 3 are left");
    await granted(peer, claim(3), [10], "3 more");
    await refused(store, claim(1), 0, 10, "1 more than the limit");
    await refused(store, [weight(newName(), 11, { limit: 10 })], 0, 0, "more than the limit in an empty sum");
    await sums(peer, sum, 10, "the full sum");
  },
  "sum: counts `part` and the parts just before it, `parts` in all, each with what was added to it": async (store, peer) => {
    for (const [newest, parts] of [
      [part, 1],
      [part, 3],
      [1_790_000_000_000, 13],
      [9, 64],
    ] as const) {
      const sum = newName();
      const numbers = Array.from({ length: parts + 3 }, (_, i) => newest - parts - 1 + i).filter((number) => number >= 0);
      const weights = new Map(numbers.map((number, i) => [number, i + 1]));
      const held = (newest: number) =>
        numbers.reduce((total, number) => (number <= newest && number > newest - parts ? total + (weights.get(number) ?? 0) : total), 0);
      for (const number of numbers)
        await commit(store, { claims: [weight(sum, weights.get(number) as number, { part: number, parts })] }, "a weight in its part");
      for (const number of numbers) await sums(peer, sum, held(number), `the sum as of part ${number} of ${parts}`, { part: number, parts });
      const limit = held(newest);
      await refused(store, [weight(sum, 1, { part: newest, parts, limit })], 0, limit, "1 more than the parts that count leave room for");
      await granted(peer, [weight(sum, 1, { part: newest, parts, limit: limit + 1 })], [limit + 1], "1 more, for which there is room");
      await sums(store, sum, held(newest + 1) + (parts > 1 ? 1 : 0), "the sum as of the next part", { part: newest + 1, parts });
    }
  },
  "sum: the part after `part` counts only if the claim or the ask looks ahead": async (store, peer) => {
    const sum = newName();
    await granted(store, [weight(sum, 6, { part: part + 1 })], [6], "6 of a caller in the next part");
    await commit(store, { claims: [weight(sum, 100, { part: part + 2 })] }, "100 in the part after it");
    await granted(peer, [weight(sum, 4, { limit: 10 })], [4], "4 of a caller who does not look ahead");
    await granted(peer, [weight(sum, 3, { limit: 13, ahead: true })], [13], "3 of a caller who does");
    await refused(peer, [weight(sum, 1, { limit: 13, ahead: true })], 0, 13, "1 more of a caller who does");
    same(await ask(store, [partsOf(sum), partsOf(sum, { ahead: true })]), [7, 13], "the sum without the part ahead, and with it");
  },
  "sum: a part's number decides what counts, never a time": async (store, peer) => {
    const { sum, now } = newScene();
    const day = 86_400_000;
    await granted(store, [weight(sum, 1, { now: now + day, part: part - 2 })], [1], "the oldest part, a day ahead");
    await granted(peer, [weight(sum, 2, { now: now - day, part: part - 2, limit: 3 })], [3], "the oldest part, a day behind");
    await granted(store, [weight(sum, 4, { now: now - 2 * day })], [7], "the newest part, two days behind");
    await refused(peer, [weight(sum, 1, { now, limit: 7 })], 0, 7, "the newest part, on time");
    await sums(store, sum, 4, "the sum when the oldest part has left", { part: part + 1 });
  },
  "sum: each claim's own limit applies, lowered or raised since the last, and without one it is counted, never rejected": async (store) => {
    const sum = newName();
    await granted(store, [weight(sum, 6, { limit: 10 })], [6], "6 of 10");
    await refused(store, [weight(sum, 1, { limit: 5 })], 0, 6, "1 more, the limit lowered to 5");
    await granted(store, [weight(sum, 6, { limit: 12 })], [12], "6 more, the limit raised to 12");
    for (let i = 1; i <= 20; i++) await granted(store, [weight(sum, 1_000_000)], [12 + i * 1_000_000], `claim ${i} without a limit`);
    await granted(store, [weight(sum, 0)], [20_000_012], "a weight of 0 without a limit");
  },
  "sum: a weight of 0 is subject to the limit and adds nothing": async (store, peer) => {
    const sum = newName();
    await granted(store, [weight(sum, 0, { limit: 0 })], [0], "nothing, in an empty sum");
    await granted(store, [weight(sum, 5, { limit: 5 })], [5], "5 of 5");
    await granted(peer, [weight(sum, 0, { limit: 5 })], [5], "nothing, in a sum that has reached the limit");
    await refused(peer, [weight(sum, 0, { limit: 4 })], 0, 5, "nothing, in a sum above the limit");
  },
  "sum: a weight below 0 is granted whatever the limit, and what it gives back is available again, to the unit": async (store, peer) => {
    const sum = newName();
    await granted(store, [weight(sum, 60, { limit: 100, part: part - 1 })], [60], "60 of 100");
    await granted(store, [weight(sum, 40, { limit: 100 })], [100], "40 more, in the next part");
    await granted(peer, [weight(sum, -25, { limit: 1, part: part - 1 })], [35], "25 given back of the 60, with a limit of 1");
    await refused(store, [weight(sum, 26, { limit: 100 })], 0, 75, "26, where 25 are free");
    await granted(store, [weight(sum, 25, { limit: 100 })], [100], "25");
    await sums(peer, sum, 65, "the sum without the oldest part", { part: part + 2 });
  },
  "sum: may fall below 0, and so may each of its parts": async (store, peer) => {
    const sum = newName();
    await granted(store, [weight(sum, -5)], [-5], "5 given back to an absent sum");
    await refused(peer, [weight(sum, 16, { limit: 10 })], 0, -5, "16, where 15 are free");
    await granted(peer, [weight(sum, 15, { limit: 10, part: part + 1 })], [10], "15 in the next part");
    await granted(store, [weight(sum, -20, { part: part + 1 })], [-10], "20 given back of the 15");
    await granted(store, [weight(sum, 0, { limit: -10, part: part + 1 })], [-10], "nothing, under a limit below 0");
    await refused(store, [weight(sum, 0, { limit: -11, part: part + 1 })], 0, -10, "nothing, above a limit below 0");
    await sums(store, sum, -5, "the first part alone");
  },
  "sum: a total below `floor` counts as `floor`, before a claim and after it": async (store, peer) => {
    const sum = newName();
    const claim = (by: number, fields: object = {}) => [weight(sum, by, { floor: -10, ...fields })];
    await granted(store, claim(-7), [-7], "7 less than none");
    await granted(store, claim(-7), [-10], "7 less, which would fall below the floor");
    await granted(peer, [weight(sum, -30, { part: part - 1 })], [-30], "30 less in the part before, without a floor");
    await refused(peer, claim(15, { limit: 4 }), 0, -40, "15, where the floor leaves 14");
    await granted(peer, claim(14, { limit: 4 }), [4], "14");
    await sums(store, sum, 34, "the newest part, which took all of it", { part: part + 2 });
    await granted(store, claim(-100), [-10], "100 less");
    await granted(store, [weight(sum, -5)], [-15], "5 less without a floor");
    await granted(store, claim(-1), [-10], "1 less, which raises the sum to its floor");
    await refused(store, claim(0, { limit: -11 }), 0, -10, "nothing, where the floor is above the limit");
  },
  "sum: numbers up to 2^53, positive or negative, are exact": async (store, peer) => {
    const most = Number.MAX_SAFE_INTEGER;
    for (const sign of [1, -1]) {
      const sum = newName();
      const claim = (by: number, fields: object = {}) => [weight(sum, sign * by, fields)];
      await granted(store, claim(1e15), [sign * 1e15], "1e15");
      await granted(peer, claim(1e15 + 1), [sign * (2e15 + 1)], "1e15 + 1 more");
      await granted(store, claim(most - 2e15 - 2, { part: part - 1 }), [sign * (most - 2e15 - 2)], "all but one of the rest, in the part before");
      await sums(peer, sum, sign * (most - 1), "one short of 2^53 - 1");
      await granted(store, [weight(sum, 0, { limit: sign * (most - 1) })], [sign * (most - 1)], "nothing, at the limit");
      await refused(peer, [weight(sum, 0, { limit: sign * (most - 1) - 1 })], 0, sign * (most - 1), "nothing, one above the limit");
      await granted(store, claim(1, { floor: -most, limit: most }), [sign * most], "one more");
      await granted(store, claim(-(1e15 + 2)), [sign * (most - 1e15 - 2)], "1e15 + 2 back");
    }
  },
  "sum: keeps names apart whatever they look like, also from the numbers of parts, and customers too": async (store, peer) => {
    const customer = randomUUID();
    const names = [...oddTexts, "n", "n1", "n:1", "n1:", "n 1", "n/1", "n.1", "n-1", "n#1", "n,1"].map((name) => `${customer}:${name}`);
    const fields = { part: 11 };
    for (const [i, sum] of names.entries()) await granted(store, [weight(sum, i + 1, { ...fields, limit: i + 1 })], [i + 1], `the sum ${JSON.stringify(sum)}`);
    const asks = names.map((sum) => partsOf(sum, fields));
    const expected = names.map((_, i) => i + 1);
    same(await ask(peer, asks), expected, "every sum");
    for (const part of [1, 10]) {
      const others = names.map((sum) => partsOf(sum, { part }));
      const none = names.map(() => 0);
      same(await ask(store, others), none, `every sum as of part ${part}, where 11 is in use`);
    }
    await sums(store, `${randomUUID()}:n`, 0, "a sum of another customer with the same name", fields);
  },
  "sum: if a rejection reports the part from which there is room, a claim is granted from exactly that part on": async (store, peer) => {
    for (const [held, by, limit, expected] of [
      [[1, 2, 3, 4], 1, 10, 1],
      [[1, 2, 3, 4], 4, 10, 3],
      [[1, 2, 3, 4], 10, 10, 4],
      [[1, 2, 3, 4], 0, 9, 1],
      [[1, 2, 3, 4], 11, 10, undefined],
      [[-5, 10, -3, 4], 4, 6, 2],
      [[2, -9, 9, 0], 1, 2, 1],
    ] as const) {
      const sum = newName();
      for (const [i, by] of held.entries()) await commit(store, { claims: [weight(sum, by, { part: part - 3 + i, parts: 4 })] }, "a part");
      const what = `${by} more under ${limit}, where the parts hold ${held}`;
      const room = await roomFor(peer, weight(sum, by, { parts: 4, limit }), what);
      if (room !== undefined) same(room - part, expected, `${what}: the room`);
    }
    const sum = newName();
    await commit(store, { claims: [weight(sum, -50, { part: part - 2 })] }, "far below the floor");
    const room = await roomFor(peer, weight(sum, 5, { limit: -1, floor: -5 }), "5 above a floor of -5, where -1 is allowed");
    same(room, undefined, "the room where the floor leaves none");
  },
  "asks: returns the totals of sums, in order, 0 for missing ones; asking charges nothing": async (store, peer) => {
    const { customer, sum: one, other: two } = newScene();
    await granted(store, [weight(one, 5), weight(two, 7, { part: part - 1 })], [5, 7], "5 in one, 7 in the part before of the other");
    const asks = [
      partsOf(newName(customer)),
      partsOf(two),
      partsOf(one),
      partsOf(two, { part: part + 2 }),
      partsOf(two, { part: part - 2, ahead: true }),
      partsOf(one),
    ];
    for (const handle of [store, peer, store]) same(await ask(handle, asks), [0, 7, 5, 0, 7, 5], "what is asked");
  },
  "asks: includes the claims just granted, also those that give back, with or without a record": async (store) => {
    const { customer, sum: one, other: two } = newScene();
    await granted(store, [weight(one, 5), weight(two, 50, { part: part - 1 })], [5, 50], "what was there");
    const asks = [partsOf(two), partsOf(newName(customer)), partsOf(one), partsOf(two, { part: part + 2 })];
    const added = await store.commit({ claims: [weight(one, 3, { limit: 10 }), weight(two, 4)], asks });
    same(added, { done: true, counts: [8, 54], asked: [54, 0, 8, 4] }, "adding");
    for (const record of [{}, { record: newRecord({ customer }) }]) {
      const change = { claims: [weight(one, -1), weight(two, 2)], asks: [partsOf(one), partsOf(two)], ...record };
      const { counts, asked } = await commit(store, change, "a claim, and one that gives back");
      same(asked, counts, "what is asked of the sums that are claimed");
    }
    same(await ask(store, asks.slice(0, 3)), [58, 0, 6], "the sums after it");
  },
};
