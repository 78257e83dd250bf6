import { ask, between, commit, countOf, granted, holds, refused, type StoreCases, same, stored, sums, write } from "./checks.js";
import { expiry, following, halfHour, member, minute, newest, newName, newRecord, newScene, part, partsOf, weight } from "./fixtures.js";

const day = 86_400_000;

/** How long things are kept: by the store's own clock, whatever the callers' clocks show. */
export const expiryCases: StoreCases = {
  "expiry: data from a caller whose clock is years behind or ahead is kept for its full life": async (store, peer) => {
    for (const now of [1_000_000, Date.now() - 2 * day, Date.now() + 2 * day, Date.now() + 3_650 * day]) {
      const { record, window, list, sum, counter, key } = newScene({ now });
      await commit(store, { claims: [member(window, { now, limit: 2 }), member(list, { now }), weight(sum, 5, { now, limit: 9 })], record }, "a commit");
      await store.tally([{ counter, by: 3, ...expiry(now) }], []);
      await store.put(key, "value", expiry(now));
      await stored(peer, record, "the record");
      await granted(peer, [member(window, { now, limit: 2 }), weight(sum, 4, { now, limit: 9 })], [2, 9], "one more");
      await refused(store, [member(window, { now, limit: 2 })], 0, 2, "one more than the window's limit");
      await refused(store, [weight(sum, 1, { now, limit: 9 })], 0, 9, "one more than the sum's limit");
      same((await store.members(list, 5)).length, 1, "the list");
      same(await store.tally([], [counter]), [3], "the counter");
      same(await store.get(key), "value", "the value");
    }
  },
  "expiry: a caller whose clock is two days ahead ends nothing that others keep": async (store, peer) => {
    const { record, customer, now, window, list, sum, other, counter, key } = newScene();
    const ahead = now + 2 * day;
    await write(store, record, null);
    await granted(store, [member(window, { now, limit: 10 }), member(list, { now }), weight(sum, 5, { now, limit: 100 })], [1, 1, 5], "a caller on time");
    await granted(store, [member(window, { now, limit: 10 }), member(list, { now }), weight(other, 3, { now })], [2, 2, 3], "another on time");
    await store.tally([{ counter, by: 3, ...expiry(now) }], []);
    await store.put(key, "value", expiry(now));

    const early = [member(window, { now: ahead, limit: 10 }), member(list, { now: ahead }), weight(sum, 7, { now: ahead, limit: 100, part: part + 9 })];
    await granted(peer, early, [1, 1, 7], "a caller two days ahead, who sees none of the others");
    await granted(peer, [weight(newName(customer), 1, { now: ahead, part: part + 9 })], [1], "the same caller in another sum");
    await peer.tally([{ counter, by: 4, ...expiry(ahead) }], []);
    await peer.put(newName(customer), "other", expiry(ahead));
    const own = await write(peer, newRecord({ customer, now: ahead }), null);
    const next = await write(peer, following(own, { now: ahead + 1 }), newest(own));

    await holds(store, window, now - minute, 3, "the window, back on time");
    same((await store.members(list, 10)).length, 3, "the list, back on time");
    const asks = [sum, other].map((name) => partsOf(name));
    same(await ask(store, asks), [5, 3], "the sums, back on time");
    await granted(store, [member(window, { now, limit: 10 }), weight(sum, 1, { now, limit: 100 })], [4, 6], "one more on time");
    await sums(store, sum, 7, "the sum as of the part of the caller ahead", { part: part + 9 });
    same(await store.tally([], [counter]), [7], "the counter");
    same(await store.get(key), "value", "the value");
    await stored(store, record, "the record of the caller on time");
    await stored(store, next, "the record of the caller ahead");
    await write(store, following(record), newest(record), "the next write on time");
  },
  "expiry: an earlier end never shortens the life of a window, a sum or a counter": async (store) => {
    const { now, window, list, sum, counter } = newScene();
    const claims = (keepUntil: number) => [member(window, { now, limit: 9, keepUntil }), member(list, { now, keepUntil }), weight(sum, 5, { now, keepUntil })];
    await granted(store, claims(now + halfHour), [1, 1, 5], "claims to be kept for half an hour");
    await store.tally([{ counter, by: 3, ...expiry(now) }], []);
    await commit(store, { claims: claims(now - 1) }, "claims that need not be kept");
    await store.tally([{ counter, by: 4, now, keepUntil: now - 1 }], []);
    between(await countOf(store, window, now - minute), 1, 2, "the window");
    between((await store.members(list, 10)).length, 1, 2, "the list");
    between((await ask(store, [partsOf(sum)]))[0], 5, 10, "the sum");
    between((await store.tally([], [counter]))[0], 3, 7, "the counter");
  },
};
