import { randomUUID } from "node:crypto";
import {
  ask,
  between,
  commit,
  ensure,
  granted,
  length,
  newName,
  newRecord,
  oddNames,
  refused,
  roomFor,
  type StoreCase,
  same,
  sums,
  twelfth,
  weight,
} from "./fixtures.js";

/** Claims on sums, which know only totals, one caller at a time. A sum may count what it holds for up to a twelfth of its length longer, never shorter. */
export const sumCases: readonly StoreCase[] = [
  {
    name: "sum: one after another exactly what the limit allows is granted, each told the total with it",
    async run(store, peer) {
      const sum = newName();
      const now = Date.now();
      const claim = (by: number) => [weight(sum, by, { now, limit: 10 })];
      await granted(store, claim(3), [3], "3 of 10");
      await granted(peer, claim(4), [7], "4 more");
      await refused(store, claim(4), 0, 7, "4 more, where 3 are left");
      await granted(peer, claim(3), [10], "3 more");
      await refused(store, claim(1), 0, 10, "1 more than the limit");
      await refused(store, [weight(sum, 11, { now: now + 10 * length, limit: 10 })], 0, 0, "more than the limit in an empty sum");
      await sums(peer, sum, now - length, 10, "the full sum");
    },
  },
  {
    name: "sum: it holds what is newer than `since`, and at most a twelfth of its length longer",
    async run(store) {
      // From three moments: parts that are too long are too long from most of them, and just right from some.
      for (const later of [0, length / 6, length / 3]) {
        const sum = newName();
        const now = Date.now() + later;
        const claim = (at: number) => [weight(sum, 1, { now: at, limit: 2 })];
        await granted(store, claim(now), [1], "the first");
        await granted(store, claim(now), [2], "the second");
        await refused(store, claim(now + length - 1), 0, 2, "a millisecond before they leave");
        await sums(store, sum, now - 1, 2, "since a millisecond before them");
        await sums(store, sum, now + twelfth, 0, "since a twelfth of the length after them");
        await granted(store, claim(now + length + twelfth), [1], "a twelfth of the length after they left");
      }
    },
  },
  {
    name: "sum: as time goes by it is never less than what is newer than `since`, nor more than what was so a twelfth of its length before",
    async run(store) {
      const sum = newName();
      const start = Date.now() - 5 * length;
      const given: { readonly at: number; readonly by: number }[] = [];
      const exact = (since: number) => given.reduce((total, { at, by }) => (at > since ? total + by : total), 0);
      for (let i = 0; i < 80; i++) {
        const now = start + Math.round((i * length) / 17);
        given.push({ at: now, by: i + 1 });
        const result = await commit(store, { claims: [weight(sum, i + 1, { now })] }, "a claim without a limit");
        between(result.counts[0], exact(now - length), exact(now - length - twelfth), `what is told after ${i + 1} claims`);
        const [asked] = await ask(store, [{ sum, since: now - length / 2 }]);
        between(asked, exact(now - length / 2), exact(now - length / 2 - twelfth), `what half the length holds after ${i + 1} claims`);
      }
    },
  },
  {
    name: "sum: what is ahead of the caller's clock counts",
    async run(store, peer) {
      const sum = newName();
      const now = Date.now();
      await granted(store, [weight(sum, 6, { now: now + 2 * twelfth, limit: 10 })], [6], "a caller ahead");
      await granted(peer, [weight(sum, 4, { now, limit: 10 })], [10], "a caller behind");
      await refused(peer, [weight(sum, 1, { now, limit: 10 })], 0, 10, "a second caller behind");
      await refused(store, [weight(sum, 1, { now: now + 2 * twelfth, limit: 10 })], 0, 10, "a second caller ahead");
    },
  },
  {
    name: "sum: without a limit it is counted and told, never refused",
    async run(store) {
      const sum = newName();
      const now = Date.now();
      for (let i = 1; i <= 20; i++) await granted(store, [weight(sum, 1_000_000, { now: now + i })], [i * 1_000_000], `claim ${i}`);
      await refused(store, [weight(sum, 1, { now: now + 20, limit: 5 })], 0, 20_000_000, "a claim with a limit far below");
      await granted(store, [weight(sum, 0, { now: now + 20 })], [20_000_000], "a weight of 0");
    },
  },
  {
    name: "sum: each claim's own limit holds, lowered or raised since the last",
    async run(store) {
      const sum = newName();
      const now = Date.now();
      await granted(store, [weight(sum, 6, { now, limit: 10 })], [6], "6 of 10");
      await refused(store, [weight(sum, 1, { now, limit: 5 })], 0, 6, "1 more, the limit lowered to 5");
      await granted(store, [weight(sum, 6, { now, limit: 12 })], [12], "6 more, the limit raised to 12");
    },
  },
  {
    name: "sum: a weight of 0 is held to the limit, and adds nothing",
    async run(store, peer) {
      const sum = newName();
      const now = Date.now();
      await granted(store, [weight(sum, 0, { now, limit: 4 })], [0], "nothing, in an empty sum");
      await granted(store, [weight(sum, 5, { now, limit: 5 })], [5], "5 of 5");
      await granted(peer, [weight(sum, 0, { now, limit: 5 })], [5], "nothing, in a sum that has reached the limit");
      await refused(peer, [weight(sum, 0, { now, limit: 4 })], 0, 5, "nothing, in a sum above the limit");
    },
  },
  {
    name: "sum: what is given back is free again, to the unit",
    async run(store, peer) {
      const sum = newName();
      const now = Date.now();
      const claim = (by: number, at = now) => [weight(sum, by, { now: at, limit: 100 })];
      await granted(store, claim(60), [60], "60 of 100");
      await granted(store, claim(40, now + 3 * twelfth), [100], "40 more, later");
      await granted(peer, claim(-25), [75], "25 given back of the 60");
      await refused(store, claim(26, now + 3 * twelfth), 0, 75, "26, where 25 are free");
      await granted(store, claim(25, now + 3 * twelfth), [100], "25");
      await refused(store, claim(1, now + 3 * twelfth), 0, 100, "1 more");
      await sums(peer, sum, now + twelfth, 65, "what was claimed later");
    },
  },
  {
    name: "sum: giving back is granted whatever the limit",
    async run(store) {
      const sum = newName();
      const now = Date.now();
      await granted(store, [weight(sum, 50, { now })], [50], "50");
      await granted(store, [weight(sum, -1, { now, limit: 1 })], [49], "1 given back, with a limit of 1");
      await granted(store, [weight(sum, -9, { now, limit: 0 })], [40], "9 given back, with a limit of 0");
    },
  },
  {
    name: "sum: no part of it falls below 0, and giving back touches no other part",
    async run(store) {
      const sum = newName();
      const now = Date.now();
      const earlier = now - 3 * twelfth;
      await granted(store, [weight(sum, -5, { now })], [0], "5 given back to an absent sum");
      await granted(store, [weight(sum, 3, { now })], [3], "3 claimed after it");
      await granted(store, [weight(sum, 10, { now: earlier })], [13], "10 claimed three twelfths earlier");
      await granted(store, [weight(sum, -8, { now })], [10], "8 given back of the 3");
      await granted(store, [weight(sum, 2, { now })], [12], "2 claimed after it");
      await granted(store, [weight(sum, -1, { now: earlier })], [11], "1 given back of the 10");
      await sums(store, sum, now - twelfth, 2, "what was claimed in the last twelfth");
    },
  },
  {
    name: "sum: totals up to 9e15 are exact",
    async run(store) {
      const sum = newName();
      const now = Date.now();
      const limit = 9e15;
      await granted(store, [weight(sum, 1e15, { now, limit })], [1e15], "1e15");
      await granted(store, [weight(sum, 1e15 + 1, { now, limit })], [2e15 + 1], "1e15 + 1 more");
      await granted(store, [weight(sum, 6_999_999_999_999_998, { now: now + 5 * twelfth, limit })], [9e15 - 1], "one short of the limit");
      await refused(store, [weight(sum, 2, { now, limit })], 0, 9e15 - 1, "2 more");
      await granted(store, [weight(sum, 1, { now, limit })], [9e15], "1 more");
      await granted(store, [weight(sum, -999_999_999_999_999, { now, limit })], [8_000_000_000_000_001], "all but one of 1e15 given back");
      await sums(store, sum, now - length, 8_000_000_000_000_001, "the sum");
    },
  },
  {
    name: "sum: names are told apart whatever they look like",
    async run(store) {
      const customer = randomUUID();
      const now = Date.now();
      const names = oddNames.map((name) => `${customer}:${name}`);
      for (const [i, sum] of names.entries()) await granted(store, [weight(sum, i + 1, { now, limit: i + 1 })], [i + 1], `the sum ${JSON.stringify(sum)}`);
      const held = await ask(
        store,
        names.map((sum) => ({ sum, since: now - length })),
      );
      same(
        held,
        names.map((_, i) => i + 1),
        "every sum",
      );
    },
  },
  {
    name: "sum: those of different customers do not touch",
    async run(store) {
      const [mine, theirs] = [randomUUID(), randomUUID()].map((customer) => `${customer}:day`) as [string, string];
      const now = Date.now();
      await granted(store, [weight(mine, 5, { now, limit: 5 })], [5], "my sum");
      await sums(store, theirs, now - length, 0, "their sum of the same name");
      await granted(store, [weight(theirs, 4, { now, limit: 5 })], [4], "their sum");
      await refused(store, [weight(mine, 1, { now, limit: 5 })], 0, 5, "my full sum");
    },
  },
  {
    name: "sum: where a refusal tells since when there would be room, a claim is granted from just then on",
    async run(store, peer) {
      const sum = newName();
      const now = Date.now();
      const since = now - length;
      for (let part = 11; part >= 1; part--)
        await commit(store, { claims: [weight(sum, part, { now: now - part * twelfth, since: since - part * twelfth })] }, "a part");
      const told = await roomFor(peer, weight(sum, 6, { now, since, limit: 40 }), "6 more than 66, of which 40 are allowed");
      if (told !== undefined)
        ensure(told > now - 9 * twelfth && told <= now - 7 * twelfth, `the room: expected the end of the part of 8, got ${now - told} ms ago`);
      const never = await store.commit({ claims: [weight(sum, 41, { now, since, limit: 40 })] });
      same("roomSince" in never && never.roomSince, false, "the room for more than is ever allowed");
    },
  },
  {
    name: "asks: what sums hold, in the order asked, absent ones as 0; asking charges nothing",
    async run(store, peer) {
      const customer = randomUUID();
      const [one, two] = [newName(customer), newName(customer)];
      const now = Date.now();
      await granted(store, [weight(one, 5, { now })], [5], "5 in one");
      await granted(store, [weight(two, 7, { now: now - 6 * twelfth })], [7], "7 in the other, half its length ago");
      const asks = [
        { sum: newName(customer), since: 0 },
        { sum: two, since: now - length },
        { sum: one, since: 0 },
        { sum: two, since: now - 4 * twelfth },
        { sum: one, since: now + twelfth },
      ];
      for (const handle of [store, peer, store]) same(await ask(handle, asks), [0, 7, 5, 0, 0], "what is asked");
    },
  },
  {
    name: "asks: the claims just granted are included, and what was just given back is not",
    async run(store) {
      const customer = randomUUID();
      const [one, two] = [newName(customer), newName(customer)];
      const now = Date.now();
      const since = now - length;
      await granted(store, [weight(one, 5, { now }), weight(two, 50, { now: now - 6 * twelfth })], [5, 50], "what was there");
      const change = {
        claims: [weight(one, 3, { now, limit: 10 }), weight(two, 4, { now })],
        asks: [
          { sum: two, since },
          { sum: newName(customer), since },
          { sum: one, since },
          { sum: two, since: now - 3 * twelfth },
        ],
      };
      same(await store.commit(change), { done: true, counts: [8, 54], asked: [54, 0, 8, 4] }, "two claims and four asks");
      for (const record of [{}, { record: newRecord({ customer }) }]) {
        const back = { claims: [weight(one, -1, { now }), weight(two, 2, { now })], asks: [one, two].map((sum) => ({ sum, since })), ...record };
        const { counts, asked } = await commit(store, back, "a claim, and one that gives back");
        same(asked, counts, "what is asked of the sums that are claimed");
      }
      const asks = [one, two].map((sum) => ({ sum, since }));
      same(await ask(store, asks), [6, 58], "the sums after it");
    },
  },
];
