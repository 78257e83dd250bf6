import { randomUUID } from "node:crypto";
import { ask, commit, countOf, ensure, fill, granted, holds, refused, refusedWith, type StoreCases, same, stored, sums, write } from "./checks.js";
import { following, halfHour, member, minute, newest, newName, newRecord, newScene, partsOf, weight } from "./fixtures.js";

/** Several claims, or claims and a record, in one `commit`: all or nothing. */
export const togetherCases: StoreCases = {
  "commit: an empty change is done": async (store) => {
    same(await store.commit({}), { done: true, counts: [], asked: [] }, "an empty change");
    same(await store.commit({ claims: [], asks: [], expected: "nothing" }), { done: true, counts: [], asked: [] }, "no claims, no asks, no record");
  },
  "commit: every claim on a window or sum is counted, and the record is written": async (store, peer) => {
    const { record, customer, now } = newScene();
    const [windows, totals] = [8, 5].map((many) => Array.from({ length: many }, () => newName(customer))) as [string[], string[]];
    const claims = [...windows.map((name, i) => member(name, { now, limit: i + 1 })), ...totals.map((name, i) => weight(name, i + 1, { now, limit: 100 }))];
    const asks = totals.map((sum) => partsOf(sum));
    const result = await commit(store, { claims, asks, record }, "eight windows, five sums and a record");
    same(result, { done: true, counts: [1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5], asked: [1, 2, 3, 4, 5] }, "the answer");
    for (const window of windows) await holds(peer, window, now - minute, 1, "each of the windows");
    same(await ask(peer, asks), [1, 2, 3, 4, 5], "the sums");
    await stored(peer, record, "the record");
  },
  "commit: names the first rejected claim, in order, and the count without it": async (store) => {
    const { customer, now, window: roomy, full, sum, other: small } = newScene();
    const fuller = newName(customer);
    await fill(store, full, 1, { limit: 1, now });
    await fill(store, fuller, 2, { limit: 2, now });
    await granted(store, [weight(sum, 8, { now })], [8], "8 in a sum");
    const room = () => member(roomy, { limit: 9, now });
    const one = () => member(full, { limit: 1, now });
    const two = () => member(fuller, { limit: 2, now });
    const three = () => weight(sum, 3, { limit: 10, now });
    const little = () => weight(small, 3, { limit: 10, now });
    await refused(store, [room(), one(), two(), three()], 1, 1, "room, a window of one, a window of two, a sum");
    await refused(store, [room(), two(), one(), three()], 1, 2, "room, a window of two, a window of one, a sum");
    await refused(store, [three(), room(), one(), two()], 0, 8, "a sum, room, a window of one, a window of two");
    await refused(store, [little(), room(), three(), two()], 2, 8, "a sum with room, a window with room, a sum, a window of two");
    await refused(store, [room(), little(), member(newName(customer), { now }), one()], 3, 1, "three with room, a window of one");
    await granted(store, [little(), room()], [3, 1], "those with room");
  },
  "commit: a rejected claim charges nothing, neither before nor after it": async (store) => {
    const { now, window, list, full, sum, other: fullSum } = newScene();
    await fill(store, window, 1, { limit: 3, now });
    await fill(store, full, 1, { limit: 1, now });
    await granted(store, [weight(sum, 2), weight(fullSum, 10)], [2, 10], "what is there before");
    const some = () => [member(window, { limit: 3, now }), member(list, { now }), weight(sum, 5, { limit: 7 })];
    for (const refusing of [member(full, { limit: 1, now }), weight(fullSum, 1, { limit: 10 })]) {
      const held = "sum" in refusing ? 10 : 1;
      for (let i = 0; i < 3; i++) {
        await refused(store, [...some(), refusing], 3, held, "the last is full");
        await refused(store, [refusing, ...some()], 0, held, "the first is full");
      }
    }
    await holds(store, window, now - minute, 1, "the window");
    same(await store.members(list, 10), [], "the list");
    await sums(store, sum, 2, "the sum");
    await granted(store, some(), [2, 1, 7], "those with room");
  },
  "commit: a rejected change neither moves, takes out nor gives back": async (store) => {
    const { customer, now, window, full, sum } = newScene();
    const claim = member(window, { limit: 5, now });
    await granted(store, [{ ...claim, now: now - 30_000 }, weight(sum, 9)], [1, 9], "a member and 9 in a sum");
    await fill(store, full, 1, { limit: 1, now });
    for (const one of [claim, { ...claim, now: now - 30_000, out: true as const }]) {
      const claims = [one, weight(sum, -4)];
      await refused(store, [...claims, { ...claim, window: full, limit: 1 }], 2, 1, "with a full window");
      // If claims are made before the record, a member may have moved when the record is rejected.
      if (one !== claim) refusedWith(await store.commit({ claims, record: newRecord({ customer }), expected: "wrong" }), undefined, "with a missing record");
      await holds(store, window, now - 30_001, 1, "the window that held the member");
      await holds(store, window, now - 30_000, 0, "the window that held the member, later than it was claimed");
      await sums(store, sum, 9, "the sum");
    }
  },
  "commit: a rejected claim leaves the record unchanged": async (store) => {
    const { record: first, customer, now, full, sum } = newScene({ wakeAt: Date.now() + halfHour });
    await fill(store, full, 1, { limit: 1, now });
    await granted(store, [weight(sum, 10, { now })], [10], "10 in a sum");
    for (const claim of [member(full, { limit: 1, now }), weight(sum, 1, { now, limit: 10 })]) {
      const create = await store.commit({ claims: [claim], record: first });
      same({ done: create.done, refusedBy: "refusedBy" in create && create.refusedBy }, { done: false, refusedBy: 0 }, "a create with a refused claim");
      same(await store.find(customer, first.id), undefined, "the record after it");
    }
    await write(store, first, null, "the create without claims, with the same token");
    const next = following(first, { data: "next" });
    const change = { claims: [weight(newName(customer), 1, { now }), member(full, { limit: 1, now })], record: next, expected: newest(first) };
    const swap = await store.commit(change);
    same({ done: swap.done, refusedBy: "refusedBy" in swap && swap.refusedBy }, { done: false, refusedBy: 1 }, "a write with a refused claim");
    await stored(store, first, "the record after it");
    await write(store, next, newest(first), "the write without claims, with the same token");
  },
  "commit: a rejected record counts nothing": async (store, peer) => {
    const { record: first, customer, now, window, list, sum } = newScene();
    await write(store, first, null);
    const there = member(window, { limit: 5, now: now - 1_000 });
    await granted(store, [there, weight(sum, 7, { now })], [1, 7], "what is there before");
    const moved = { ...there, now, since: now - minute };
    const missing = newRecord({ customer, tokens: [randomUUID(), randomUUID()] });
    for (const handle of [store, peer, store]) {
      for (const one of [member(window, { limit: 5, now }), moved]) {
        const claims = [one, member(list, { now }), weight(sum, 5, { now, limit: 100 })];
        refusedWith(await handle.commit({ claims, record: newRecord({ customer, id: first.id }) }), first, "a second create");
        refusedWith(await handle.commit({ claims, record: following(first), expected: "wrong" }), first, "a write from a wrong token");
        refusedWith(await handle.commit({ claims, record: missing, expected: "wrong" }), undefined, "a write over a missing record");
      }
    }
    await holds(store, window, now - minute, 1, "the window after refused records");
    same(await store.members(window, 10), [there.member], "its members");
    same(await store.members(list, 10), [], "the list after refused records");
    await sums(store, sum, 7, "the sum after refused records");
    await stored(store, first, "the record");
  },
  "commit: if both a claim and the record are rejected, one of them is reported, and nothing changes": async (store) => {
    const { record: first, customer, now, full, sum } = newScene();
    await write(store, first, null);
    await fill(store, full, 1, { limit: 1, now });
    const claims = [weight(sum, 5, { now }), member(full, { limit: 1, now })];
    const result = await store.commit({ claims, record: newRecord({ customer, id: first.id }) });
    if (!result.done && result.refusedBy !== undefined) same([result.refusedBy, result.count], [1, 1], "the claim that is reported");
    else refusedWith(result, first, "the record that is reported");
    await stored(store, first, "the record after it");
    await sums(store, sum, 0, "the sum after it");
    same(await countOf(store, full, now - minute), 1, "the window after it");
  },
  "commit: claims, takes out and gives back in the same step as the record": async (store, peer) => {
    const { record, now, window: open, other: verified, sum: money } = newScene();
    const sent = member(open, { limit: 3, now });
    await commit(store, { claims: [sent, weight(money, 40, { now, limit: 50 })], record }, "a create that charges 40");
    const settled = following(record, { data: "settled" });
    const claims = [{ ...sent, out: true } as const, weight(money, -40, { now }), member(verified, { limit: 9, now: now + 5 })];
    const result = await commit(peer, { claims, record: settled, expected: newest(record) }, "a write that settles it");
    same(result.counts, [0, 0, 1], "what is left and what is new");
    await stored(store, settled, "the record");
    await granted(store, [weight(money, 50, { now, limit: 50 })], [50], "all of the money, free again");
    ensure((await countOf(store, open, now - minute)) === 0, "the member that was taken out with the record is still there");
  },
};
