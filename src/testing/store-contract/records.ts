import { randomUUID } from "node:crypto";
import type { StoredRecord } from "../../ports/store.js";
import {
  awkwardTexts,
  ensure,
  following,
  later,
  newest,
  newRecord,
  refusedWith,
  rejects,
  type StoreCase,
  same,
  sameRecord,
  stored,
  write,
} from "./fixtures.js";

const megabyte = "x".repeat(1_048_576);

/** `find` and `compareAndSwap`, one caller at a time. */
export const recordCases: readonly StoreCase[] = [
  {
    name: "find: a record that was never written is undefined",
    async run(store) {
      same(await store.find(randomUUID(), randomUUID()), undefined, "an unknown record");
      const record = await write(store, newRecord(), null);
      same(await store.find(record.customer, randomUUID()), undefined, "an unknown id of a customer who has a record");
    },
  },
  {
    name: "compareAndSwap: a create (expected null) writes the record, and find returns every field exactly",
    async run(store, peer) {
      const tokens = Array.from({ length: 16 }, () => randomUUID());
      for (const record of [
        newRecord(),
        newRecord({ wakeAt: later() }),
        newRecord({ tokens, data: '{"a":1}', keepUntil: later() + 7 * 86_400_000 + 1, wakeAt: later() + 123 }),
      ]) {
        await write(store, record, null, "a create");
        await stored(store, record, "the record just created");
        await stored(peer, record, "the record just created, read by the peer");
      }
    },
  },
  {
    name: "compareAndSwap: a create refused by a record that is there brings it back and changes nothing",
    async run(store) {
      const record = await write(store, newRecord({ wakeAt: later() }), null);
      refusedWith(await store.compareAndSwap({ ...newRecord(), customer: record.customer, id: record.id }, null), record, "a second create");
      await stored(store, record, "the record after a refused create");
    },
  },
  {
    name: "compareAndSwap: a swap from the newest token replaces every field",
    async run(store, peer) {
      const first = await write(store, newRecord({ wakeAt: later() }), null);
      const second = await write(peer, following(first, { data: "second", keepUntil: first.keepUntil + 60_000, wakeAt: later() + 5 }), newest(first));
      await stored(store, second, "the record after a swap");
      const third = await write(store, following(second, { data: "third", keepUntil: second.keepUntil - 90_000 }), newest(second));
      await stored(peer, third, "the record after a second swap, which has an earlier keepUntil and no wakeAt");
      const fourth = await write(store, { ...third, tokens: [randomUUID()], data: "fourth" }, newest(third));
      await stored(store, fourth, "the record after a swap that leaves the older tokens out");
    },
  },
  {
    name: "compareAndSwap: a swap from any token but the newest is refused, brings the current record back and changes nothing",
    async run(store) {
      const token = "Ab-1e5_0";
      const first = await write(store, newRecord({ tokens: ["12", randomUUID()] }), null);
      const second = await write(store, following(first, { tokens: [token, ...first.tokens], data: "second" }), "12");
      const wrong = [randomUUID(), ...first.tokens, "ab-1e5_0", "AB-1E5_0", "Ab-1e5_", "Ab-1e5_00", " Ab-1e5_0", "Ab-1e5_0 ", "null", "*", ".*"];
      for (const expected of wrong) refusedWith(await store.compareAndSwap(following(second, { data: "wrong" }), expected), second, `a swap from ${expected}`);
      await stored(store, second, "the record after refused swaps");
    },
  },
  {
    name: "compareAndSwap: tokens that look like one number are different tokens",
    async run(store) {
      const record = await write(store, newRecord({ tokens: ["1"] }), null);
      for (const token of ["01", "1.0", "1e0", "+1", " 1", "0x1", "true"]) {
        refusedWith(await store.compareAndSwap(following(record), token), record, `a swap from ${token}, where the token is 1`);
        refusedWith(await store.compareAndSwap({ ...record, tokens: [token] }, null), record, `a create with the token ${token}, where the token is 1`);
      }
    },
  },
  {
    name: "compareAndSwap: a swap of a record that is not there is refused, brings nothing back and writes nothing",
    async run(store) {
      const record = newRecord({ tokens: [randomUUID(), randomUUID()] });
      refusedWith(await store.compareAndSwap(record, record.tokens[1] ?? ""), undefined, "a swap of a missing record");
      same(await store.find(record.customer, record.id), undefined, "the record after the refused swap");
    },
  },
  {
    name: "compareAndSwap: the same id under two customers is two records",
    async run(store) {
      const mine = await write(store, newRecord({ data: "mine" }), null);
      const theirs = await write(store, newRecord({ id: mine.id, data: "theirs" }), null, "a create with an id that another customer has");
      same(await store.find(randomUUID(), mine.id), undefined, "the id under a third customer");
      const changed = await write(store, following(mine, { data: "changed" }), newest(mine));
      await stored(store, changed, "my record");
      await stored(store, theirs, "their record after a swap of mine");
      refusedWith(await store.compareAndSwap(following(theirs), newest(changed)), theirs, "a swap of their record from a token of mine");
    },
  },
  {
    name: "compareAndSwap: what is stored is not touched by changing what was passed in or handed out",
    async run(store) {
      const tokens: string[] = [randomUUID(), randomUUID()];
      const record = newRecord({ tokens: [...tokens] });
      const input = { ...record, tokens: [...tokens] };
      await write(store, input, null);
      input.tokens[0] = "changed";
      input.tokens.push("more");
      input.data = "changed";
      await stored(store, record, "the record after its writer changed the object it had passed");
      const found = await store.find(record.customer, record.id);
      if (found) spoil(found);
      await stored(store, record, "the record after a reader changed the object it had got");
      const refused = await store.compareAndSwap(following(record), "wrong");
      if (!refused.swapped && refused.current) spoil(refused.current);
      await stored(store, record, "the record after a refused writer changed the object it had got");
    },
  },
  {
    name: "compareAndSwap: data comes back byte for byte, whatever it looks like",
    async run(store) {
      let record = await write(store, newRecord(), null);
      for (const data of awkwardTexts) {
        const created = await write(store, newRecord({ data }), null);
        await stored(store, created, "a record created with awkward data");
        record = await write(store, following(record, { data }), newest(record));
        await stored(store, record, "a record swapped to awkward data");
        refusedWith(await store.compareAndSwap(following(record), null), record, "a refused create");
      }
    },
  },
  {
    name: "compareAndSwap: 64 KiB of data are kept",
    async run(store) {
      for (const data of ["x".repeat(65_536), "é".repeat(32_768), '"\\'.repeat(32_768)]) {
        const record = await write(store, newRecord({ data }), null, "a create with 64 KiB");
        const found = await store.find(record.customer, record.id);
        ensure(found?.data === data, "64 KiB of data do not come back as they were");
      }
    },
  },
  {
    name: "compareAndSwap: a megabyte of data is rejected, and nothing is written",
    async run(store) {
      const record = newRecord();
      await rejects(store.compareAndSwap({ ...record, data: megabyte }, null), "a create with a megabyte");
      same(await store.find(record.customer, record.id), undefined, "the record after the rejected create");
      await write(store, record, null, "a create after the rejected one");
      const next = following(record, { data: megabyte });
      await rejects(store.compareAndSwap(next, newest(record)), "a swap to a megabyte");
      await stored(store, record, "the record after the rejected swap");
      await write(store, { ...next, data: "small" }, newest(record), "the same write with less data");
    },
  },
  {
    name: "compareAndSwap: wakeAt is set, changed and removed with the record",
    async run(store) {
      let record = await write(store, newRecord(), null);
      for (const wake of [{ wakeAt: later() }, { wakeAt: later() + 60_000 }, { wakeAt: later() - 60_000 }, {}, { wakeAt: later() }, {}]) {
        record = await write(store, following(record, wake), newest(record));
        await stored(store, record, "the record with its wakeAt");
      }
    },
  },
  {
    name: "compareAndSwap: a record whose keepUntil has passed is there whole or not at all, never as it was before",
    async run(store) {
      const past = Date.now() - 60_000;
      const created = await write(store, newRecord({ keepUntil: past }), null, "a create that need not be kept");
      const first = await store.find(created.customer, created.id);
      if (first !== undefined) sameRecord(first, created, "a record past its keepUntil");
      const kept = await write(store, newRecord(), null);
      const ended = await write(store, following(kept, { data: "ended", keepUntil: past }), newest(kept), "a swap that need not be kept");
      const second = await store.find(ended.customer, ended.id);
      if (second !== undefined) sameRecord(second, ended, "a record past its keepUntil");
    },
  },
];

/** Writes over a record that was handed out, as a careless caller might. */
function spoil(handedOut: StoredRecord): void {
  const record = handedOut as unknown as { data: string; tokens: string[] };
  try {
    record.data = "spoiled";
    record.tokens[0] = "spoiled";
    record.tokens.push("spoiled");
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // frozen: as good as a copy
  }
}
