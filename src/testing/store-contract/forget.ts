import { randomUUID } from "node:crypto";
import {
  commit,
  fill,
  following,
  granted,
  holds,
  length,
  life,
  member,
  minute,
  newest,
  newName,
  newRecord,
  refusedWith,
  type StoreCase,
  same,
  stored,
  sums,
  weight,
  write,
} from "./fixtures.js";

/** `forget`. */
export const forgetCases: readonly StoreCase[] = [
  {
    name: "forget: of records, windows, lists, sums and values nothing is left, and of others all",
    async run(store, peer) {
      const now = Date.now();
      const customer = randomUUID();
      const [record, other, foreign] = [newRecord({ customer, now }), newRecord({ customer, now }), newRecord({ now })];
      for (const one of [record, other, foreign]) await write(store, one, null);
      await write(store, { ...newRecord({ now }), id: record.id }, null);
      const [window, list, sum, value, kept] = Array.from({ length: 5 }, () => newName(customer)) as [string, string, string, string, string];
      for (const name of [window, kept]) await fill(store, name, 3, { now, limit: 9 });
      await granted(store, [member(list, { now }), member(`${list}+`, { now }), weight(sum, 5, { now }), weight(kept, 7, { now })], [1, 1, 5, 7], "more");
      for (const key of [value, kept]) await store.put(key, "value", life());

      await store.forget({ records: [record, foreign], windows: [window, list], sums: [sum], values: [value] });
      for (const one of [record, foreign]) same(await peer.find(one.customer, one.id), undefined, "a record that was let go of");
      await stored(peer, other, "another record of the customer");
      same(await peer.members(window, 9), [], "the window that was let go of");
      same(await peer.members(list, 9), [], "the list that was let go of");
      await holds(peer, window, now - minute, 0, "the window that was let go of");
      await sums(peer, sum, now - length, 0, "the sum that was let go of");
      same(await peer.get(value), undefined, "the value that was let go of");
      await holds(peer, kept, now - minute, 3, "another window");
      same((await peer.members(`${list}+`, 9)).length, 1, "another list");
      await sums(peer, kept, now - length, 7, "another sum");
      same(await peer.get(kept), "value", "another value");
      await store.forget({});
    },
  },
  {
    name: "forget: the same id under another customer stays, and so does a sum with the name of a window, and a window with that of a sum",
    async run(store) {
      const now = Date.now();
      const record = await write(store, newRecord({ now }), null);
      const twin = await write(store, newRecord({ now, id: record.id }), null);
      const [one, two] = [newName(record.customer), newName(record.customer)];
      for (const name of [one, two])
        await granted(store, [member(name, { now, limit: 5 }), weight(name, 4, { now })], [1, 4], "a window and a sum of one name");
      await store.forget({ records: [record], windows: [one], sums: [two] });
      await stored(store, twin, "the record of the other customer");
      await holds(store, one, now - minute, 0, "the window that was let go of");
      await sums(store, one, now - length, 4, "the sum of its name");
      await holds(store, two, now - minute, 1, "the window whose name a sum had");
      await sums(store, two, now - length, 0, "the sum that was let go of");
    },
  },
  {
    name: "forget: what is not there is passed over, a second call does nothing, and all of it can be made anew",
    async run(store) {
      const now = Date.now();
      const record = newRecord({ now });
      const [window, sum, value] = [newName(record.customer), newName(record.customer), newName(record.customer)];
      const all = { records: [record], windows: [window], sums: [sum], values: [value] };
      const make = async () => {
        await commit(store, { claims: [member(window, { now, limit: 1 }), weight(sum, 5, { now, limit: 5 })], record }, "a commit that makes all of it");
        await store.put(value, "value", life());
      };
      await store.forget(all);
      await make();
      await store.forget(all);
      await store.forget(all);
      await make();
      await stored(store, record, "the record that was made anew");
      same(await store.get(value), "value", "the value that was made anew");
      await holds(store, window, now - minute, 1, "the window that was made anew");
      await sums(store, sum, now - length, 5, "the sum that was made anew");
    },
  },
  {
    name: "forget: a write over a record that was let go of finds none and does not bring it back",
    async run(store, peer) {
      const record = await write(store, newRecord(), null);
      await peer.forget({ records: [record] });
      const late = await store.commit({ record: following(record), expected: newest(record) });
      refusedWith(late, undefined, "a write over a record that was let go of");
      same(await store.find(record.customer, record.id), undefined, "the record");
    },
  },
  {
    name: "forget: a record that was let go of is not leased, and wakes no more when another takes its place",
    async run(store) {
      // In 1970, where no other case's records wake.
      const wakeAt = 86_400_000 + Math.floor(Math.random() * 1e9);
      const record = await write(store, newRecord({ wakeAt }), null);
      await store.forget({ records: [record] });
      const leased = async () => (await store.lease(wakeAt, 1_000, Date.now() + 3_600_000)).filter(({ id }) => id === record.id).length;
      same(await leased(), 0, "how often it is leased");
      const { wakeAt: _, ...asleep } = record;
      await write(store, { ...asleep, tokens: [randomUUID()] }, null);
      same(await leased(), 0, "how often the record in its place is leased, which never wakes");
      await store.forget({ records: [record] });
    },
  },
  {
    name: "forget: thousands at once",
    async run(store) {
      const now = Date.now();
      const customer = randomUUID();
      const records = Array.from({ length: 1_000 }, () => newRecord({ customer, now }));
      const windows = Array.from({ length: 1_000 }, () => newName(customer));
      // A hundred at a time: a client may refuse more.
      for (let from = 0; from < records.length; from += 100)
        await Promise.all(
          records
            .slice(from, from + 100)
            .map((record, at) => commit(store, { claims: [member(windows[from + at] as string, { now, limit: 2 })], record }, "a create")),
        );
      await store.forget({ records, windows, values: windows });
      for (let from = 0; from < records.length; from += 100) {
        const found = await Promise.all(records.slice(from, from + 100).map(({ id }) => store.find(customer, id)));
        same(found.filter((one) => one !== undefined).length, 0, "records that are left");
        const members = await Promise.all(windows.slice(from, from + 100).map((window) => store.members(window, 2)));
        same(members.flat().length, 0, "members that are left");
      }
    },
  },
];
