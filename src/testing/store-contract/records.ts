import { randomUUID } from "node:crypto";
import { commit, ensure, holds, refusedWith, rejects, type StoreCases, same, sameRecord, spoil, stored, sums, write } from "./checks.js";
import { following, halfHour, member, minute, newest, newRecord, newScene, oddTexts, weight } from "./fixtures.js";

const megabyte = "x".repeat(1_048_576);

/** `find`, and `commit` of a record alone, one caller at a time. */
export const recordCases: StoreCases = {
  "find: returns undefined for a record that was never written": async (store) => {
    same(await store.find(randomUUID(), randomUUID()), undefined, "an unknown record");
    const record = await write(store, newRecord(), null);
    same(await store.find(record.customer, randomUUID()), undefined, "an unknown id of a customer who has a record");
  },
  "commit: a create (expected null, or omitted) writes the record, and find returns exactly what is stored of it": async (store, peer) => {
    const tokens = Array.from({ length: 16 }, () => randomUUID());
    const inAWeek = Date.now() + 7 * 86_400_000 + 1;
    for (const record of [newRecord(), newRecord({ wakeAt: Date.now() + halfHour }), newRecord({ tokens, data: '{"a":1}', keepUntil: inAWeek })]) {
      await write(store, record, null, "a create");
      await stored(store, record, "the record just created");
      await stored(peer, record, "the record just created, read by the peer");
    }
    const record = newRecord();
    same(await store.commit({ record }), { done: true, counts: [], asked: [] }, "a create that leaves `expected` out");
    await stored(store, record, "the record it created");
  },
  "commit: a create of an existing record is rejected with that record and changes nothing": async (store) => {
    const record = await write(store, newRecord({ wakeAt: Date.now() + halfHour }), null);
    const { customer, id } = record;
    for (const expected of [{ expected: null }, {}]) {
      refusedWith(await store.commit({ record: newRecord({ customer, id }), ...expected }), record, "a second create");
      await stored(store, record, "the record after a refused create");
    }
  },
  "commit: a write that expects the newest token replaces every field": async (store, peer) => {
    const first = await write(store, newRecord({ wakeAt: Date.now() + halfHour }), null);
    const second = await write(peer, following(first, { data: "second", keepUntil: first.keepUntil + 60_000 }), newest(first));
    await stored(store, second, "the record after a second write");
    const third = await write(store, following(second, { data: "third", keepUntil: second.keepUntil - 90_000 }), newest(second));
    await stored(peer, third, "the record after a third write, which has an earlier keepUntil");
    const fourth = await write(store, { ...third, tokens: [randomUUID()], data: "fourth" }, newest(third));
    await stored(store, fourth, "the record after a write that leaves the older tokens out");
  },
  "commit: a write that expects any other token is rejected with the current record and changes nothing": async (store) => {
    const token = "Ab-1e5_0";
    const first = await write(store, newRecord({ tokens: ["12", randomUUID()] }), null);
    const second = await write(store, following(first, { tokens: [token, ...first.tokens], data: "second" }), "12");
    const wrong = [randomUUID(), ...first.tokens, "ab-1e5_0", "AB-1E5_0", "Ab-1e5_", "Ab-1e5_00", " Ab-1e5_0", "Ab-1e5_0 ", "null", "*", ".*"];
    for (const expected of wrong) {
      refusedWith(await store.commit({ record: following(second, { data: "wrong" }), expected }), second, `a write from ${expected}`);
    }
    await stored(store, second, "the record after refused writes");
    const one = await write(store, newRecord({ tokens: ["1"] }), null);
    for (const token of ["01", "1.0", "1e0", "+1", " 1", "0x1", "true"]) {
      refusedWith(await store.commit({ record: following(one), expected: token }), one, `a write from ${token}, where the token is 1`);
      refusedWith(await store.commit({ record: { ...one, tokens: [token] } }), one, `a create with the token ${token}, where the token is 1`);
    }
  },
  "commit: a write that expects a missing record is rejected without a record and writes nothing": async (store) => {
    const record = newRecord({ tokens: [randomUUID(), randomUUID()] });
    refusedWith(await store.commit({ record, expected: record.tokens[1] ?? "" }), undefined, "a write over a missing record");
    same(await store.find(record.customer, record.id), undefined, "the record after the refused write");
  },
  "commit: the same id under two customers is two records": async (store) => {
    const mine = await write(store, newRecord({ data: "mine" }), null);
    const theirs = await write(store, newRecord({ id: mine.id, data: "theirs" }), null, "a create with an id that another customer has");
    same(await store.find(randomUUID(), mine.id), undefined, "the id under a third customer");
    const changed = await write(store, following(mine, { data: "changed" }), newest(mine));
    await stored(store, changed, "my record");
    await stored(store, theirs, "their record after a write over mine");
    refusedWith(await store.commit({ record: following(theirs), expected: newest(changed) }), theirs, "a write over their record from a token of mine");
  },
  "commit: changing a passed or returned object does not change what is stored": async (store) => {
    const record = newRecord({ tokens: [randomUUID(), randomUUID()] });
    const input = { ...record, tokens: [...record.tokens] };
    await write(store, input, null);
    input.tokens[0] = "changed";
    input.tokens.push("more");
    input.data = "changed";
    await stored(store, record, "the record after its writer changed the object it had passed");
    const found = await store.find(record.customer, record.id);
    if (found) spoil(found);
    await stored(store, record, "the record after a reader changed the object it had got");
    const result = await store.commit({ record: following(record), expected: "wrong" });
    if (!result.done && result.refusedBy === undefined && result.current) spoil(result.current);
    await stored(store, record, "the record after a refused writer changed the object it had got");
  },
  "commit: returns data byte for byte, whatever it looks like": async (store) => {
    let record = await write(store, newRecord(), null);
    for (const data of ["", ...oddTexts]) {
      const created = await write(store, newRecord({ data }), null);
      await stored(store, created, "a record created with awkward data");
      record = await write(store, following(record, { data }), newest(record));
      refusedWith(await store.commit({ record: following(record) }), record, "a refused create after a write with awkward data");
    }
  },
  "commit: stores 64 KiB of data": async (store) => {
    for (const data of ["x".repeat(65_536), "é".repeat(32_768), '"\\'.repeat(32_768)]) {
      const record = await write(store, newRecord({ data }), null, "a create with 64 KiB");
      const found = await store.find(record.customer, record.id);
      ensure(found?.data === data, "64 KiB of data do not come back as they were");
    }
  },
  "commit: rejects a megabyte of data, and writes and counts nothing": async (store) => {
    const { record, now, window, sum } = newScene();
    const claims = () => [member(window, { limit: 5, now }), weight(sum, 7, { now })];
    await rejects(store.commit({ claims: claims(), record: { ...record, data: megabyte } }), "a create with a megabyte");
    same(await store.find(record.customer, record.id), undefined, "the record after the rejected create");
    await write(store, record, null, "a create after the rejected one");
    const next = following(record, { data: megabyte });
    await rejects(store.commit({ claims: claims(), record: next, expected: newest(record) }), "a write of a megabyte");
    await stored(store, record, "the record after the rejected write");
    await holds(store, window, now - minute, 0, "the window after the rejected writes");
    await sums(store, sum, 0, "the sum after the rejected writes");
    await commit(store, { record: { ...next, data: "small" }, expected: newest(record) }, "the same write with less data");
  },
  "commit: a record whose keepUntil has passed exists completely or not at all, never in an earlier version": async (store) => {
    const past = Date.now() - 60_000;
    const created = await write(store, newRecord({ keepUntil: past }), null, "a create that need not be kept");
    const first = await store.find(created.customer, created.id);
    if (first !== undefined) sameRecord(first, created, "a record past its keepUntil");
    const kept = await write(store, newRecord(), null);
    const ended = await write(store, following(kept, { data: "ended", keepUntil: past }), newest(kept), "a write that need not be kept");
    const second = await store.find(ended.customer, ended.id);
    if (second !== undefined) sameRecord(second, ended, "a record past its keepUntil");
  },
};
