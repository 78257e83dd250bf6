import { randomUUID } from "node:crypto";
import { ensure, granted, holds, rejects, type StoreCases, same, stored, sums, write } from "./checks.js";
import { expiry, halfHour, member, newRecord, oddTexts, weight } from "./fixtures.js";

/** `get` and `put`. */
export const valueCases: StoreCases = {
  "put: the value exists until its end, and a later put replaces it; undefined if there was none": async (store, peer) => {
    const key = randomUUID();
    const now = Date.now();
    same(await store.get(key), undefined, "an unknown key");
    await store.put(key, "first", expiry());
    same(await store.get(key), "first", "the value");
    same(await peer.get(key), "first", "the value, read by the peer");
    await peer.put(key, "second", { now, keepUntil: now + halfHour - 60_000 });
    same(await store.get(key), "second", "the value that replaced it");
    await store.put(key, "third", { now, keepUntil: now + 60_000 });
    same(await store.get(key), "third", "a value with a nearer end");
    await store.put(key, "fourth", { now, keepUntil: now + 30 * 86_400_000 });
    same(await peer.get(key), "fourth", "a value with a far end");
  },
  "put: a value whose end has passed may be gone, and the value that it replaced is gone": async (store) => {
    const key = randomUUID();
    await store.put(key, "old", expiry());
    await store.put(key, "ended", { now: Date.now(), keepUntil: Date.now() - 60_000 });
    const value = await store.get(key);
    ensure(value === undefined || value === "ended", `the value past its end: expected undefined or "ended", got ${JSON.stringify(value)}`);
    await store.put(key, "new", expiry());
    same(await store.get(key), "new", "the value put after the ended one");
  },
  "put: returns values byte for byte, whatever they look like": async (store) => {
    for (const value of ["", ...oddTexts]) {
      const key = randomUUID();
      await store.put(key, value, expiry());
      same(await store.get(key), value, "an awkward value");
    }
  },
  "put: keeps keys apart whatever they look like": async (store) => {
    const start = randomUUID();
    const keys = [...oddTexts, "", "x".repeat(500)].map((text) => `${start}${text}`);
    for (const [i, key] of keys.entries()) await store.put(key, `value ${i}`, expiry());
    for (const [i, key] of keys.entries()) same(await store.get(key), `value ${i}`, `the value under ${JSON.stringify(key)}`);
  },
  "put: stores 64 KiB; rejects a megabyte and leaves the value unchanged": async (store) => {
    const key = randomUUID();
    const value = "x".repeat(65_536);
    await store.put(key, value, expiry());
    ensure((await store.get(key)) === value, "64 KiB do not come back as they were");
    await rejects(store.put(key, "y".repeat(1_048_576), expiry()), "a put of a megabyte");
    ensure((await store.get(key)) === value, "the value changed although the put was rejected");
    const other = randomUUID();
    await rejects(store.put(other, "y".repeat(1_048_576), expiry()), "a put of a megabyte");
    same(await store.get(other), undefined, "the key after the rejected put");
  },
  "put: values, windows, sums, counters and records with the same name are independent": async (store) => {
    const record = await write(store, newRecord(), null);
    const { now } = record;
    const name = `${record.customer}:${record.id}`;
    same(await store.get(name), undefined, "a value under a record's name");
    await store.put(name, "value", expiry());
    await granted(store, [member(name, { now, limit: 1 })], [1], "a window under a value's name");
    await granted(store, [weight(name, 7, { now, limit: 7 })], [7], "a sum under a window's name");
    same(await store.tally([{ counter: name, by: 3, ...expiry() }], [name]), [3], "a counter under a sum's name");
    await store.put(record.id, "value of the id", expiry());
    same(await store.get(name), "value", "the value");
    await stored(store, record, "the record");
    await holds(store, name, now - 1, 1, "the window");
    await sums(store, name, 7, "the sum");
  },
};
