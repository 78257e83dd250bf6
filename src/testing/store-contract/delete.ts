import { randomUUID } from "node:crypto";
import { commit, fill, granted, holds, refusedWith, type StoreCases, same, stored, sums, write } from "./checks.js";
import { expiry, following, member, minute, newest, newName, newRecord, newScene, part, partsOf, weight } from "./fixtures.js";

/** Cases of `delete`. */
export const deleteCases: StoreCases = {
  "delete: removes records, windows, lists, sums and values completely, and leaves others alone, whatever name they share": async (store, peer) => {
    const { record, customer, now, window, list, sum, key: value, other: kept } = newScene();
    const [other, foreign] = [newRecord({ customer, now }), newRecord({ now })];
    for (const one of [record, other, foreign]) await write(store, one, null);
    const twin = await write(store, newRecord({ now, id: record.id }), null);
    for (const name of [window, kept]) await fill(store, name, 3, { now, limit: 9 });
    await granted(store, [member(list, { now }), member(`${list}+`, { now }), weight(sum, 5, { now }), weight(kept, 7, { now })], [1, 1, 5, 7], "more");
    const crossed = [member(sum, { now, limit: 9 }), weight(window, 4, { now })];
    await granted(store, crossed, [1, 4], "a window with the name of a sum, and a sum with that of a window");
    for (const key of [value, kept]) await store.put(key, "value", expiry());

    await store.delete({ records: [record, foreign], windows: [window, list], sums: [partsOf(sum)], values: [value] });
    for (const one of [record, foreign]) same(await peer.find(one.customer, one.id), undefined, "a record that was deleted");
    await stored(peer, other, "another record of the customer");
    await stored(peer, twin, "the record of the same id of another customer");
    await holds(peer, sum, now - minute, 1, "the window with the name of a sum");
    await sums(peer, window, 4, "the sum with the name of a window");
    same(await peer.members(window, 9), [], "the window that was deleted");
    same(await peer.members(list, 9), [], "the list that was deleted");
    await holds(peer, window, now - minute, 0, "the window that was deleted");
    await sums(peer, sum, 0, "the sum that was deleted");
    same(await peer.get(value), undefined, "the value that was deleted");
    await holds(peer, kept, now - minute, 3, "another window");
    same((await peer.members(`${list}+`, 9)).length, 1, "another list");
    await sums(peer, kept, 7, "another sum");
    same(await peer.get(kept), "value", "another value");
    await store.delete({});
  },
  "delete: removes the parts of a sum that count, and the next one, but no part of another sum": async (store, peer) => {
    const { sum: gone, other: kept } = newScene();
    const parts = [-2, -1, 0, 1].map((offset) => part + offset);
    for (const sum of [gone, kept]) for (const part of parts) await commit(store, { claims: [weight(sum, 5, { part })] }, "a part");
    await store.delete({ sums: [partsOf(gone)] });
    for (const part of parts) await sums(peer, gone, 0, `the sum that was deleted, as of part ${part}`, { part });
    await sums(peer, kept, 20, "the other sum", { ahead: true });
    await granted(peer, [weight(gone, 5, { limit: 5 })], [5], "the sum that was deleted, claimed again");
  },
  "delete: ignores what does not exist, does nothing the second time, and everything can be created again": async (store) => {
    const { record, now, window, sum, key: value } = newScene();
    const all = { records: [record], windows: [window], sums: [partsOf(sum)], values: [value] };
    const make = async () => {
      const claims = [member(window, { now, limit: 1 }), weight(sum, 5, { now, limit: 5 })];
      const made = { ...record, tokens: [randomUUID()] };
      await commit(store, { claims, record: made }, "a commit that makes all of it");
      await store.put(value, "value", expiry());
      return made;
    };
    await store.delete(all);
    await make();
    await store.delete(all);
    await store.delete(all);
    await stored(store, await make(), "the record that was made again");
    same(await store.get(value), "value", "the value that was made again");
    await holds(store, window, now - minute, 1, "the window that was made again");
    await sums(store, sum, 5, "the sum that was made again");
  },
  "delete: a write that expects a deleted record is rejected and does not restore it": async (store, peer) => {
    const record = await write(store, newRecord(), null);
    await peer.delete({ records: [record] });
    const late = await store.commit({ record: following(record), expected: newest(record) });
    refusedWith(late, undefined, "a write over a record that was deleted");
    same(await store.find(record.customer, record.id), undefined, "the record");
  },
  "delete: a deleted record is not leased, and does not wake when another takes its place": async (store) => {
    // In 1970, where no other case has due records.
    const wakeAt = 86_400_000 + Math.floor(Math.random() * 1e9);
    const record = await write(store, newRecord({ wakeAt }), null);
    await store.delete({ records: [record] });
    const leased = async () => (await store.lease(wakeAt, 1_000, Date.now() + 3_600_000)).filter(({ id }) => id === record.id).length;
    same(await leased(), 0, "how often it is leased");
    const { wakeAt: _, ...asleep } = record;
    await write(store, { ...asleep, tokens: [randomUUID()] }, null);
    same(await leased(), 0, "how often the record in its place is leased, which never wakes");
    await store.delete({ records: [record] });
  },
  "delete: removes thousands in one call": async (store) => {
    const { customer, now } = newScene();
    const records = Array.from({ length: 1_000 }, () => newRecord({ customer, now }));
    const windows = Array.from({ length: 1_000 }, () => newName(customer));
    // Every tenth record is there, with ten of the windows.
    const written = records.filter((_, at) => at % 10 === 0);
    const claimsOf = (at: number) => windows.slice(10 * at, 10 * at + 10).map((window) => member(window, { now, limit: 2 }));
    await Promise.all(written.map((record, at) => commit(store, { claims: claimsOf(at), record }, "a create")));
    await store.delete({ records, windows, values: windows });
    const found = await Promise.all(written.map(({ id }) => store.find(customer, id)));
    same(found.filter((one) => one !== undefined).length, 0, "records that are left");
    const counts = await Promise.all(written.map(async (_, at) => (await commit(store, { claims: claimsOf(at) }, "new members")).counts));
    same(new Set(counts.flat()), new Set([1]), "what the windows hold with a new member");
  },
};
