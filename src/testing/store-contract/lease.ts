import { randomInt, randomUUID } from "node:crypto";
import type { RecordWrite, Store, StoredRecord } from "../../ports/store.js";
import { commit, ensure, refusedWith, type StoreCase, type StoreCases, same, sameRecord, spoil, stored, write } from "./checks.js";
import { following, newest, newRecord } from "./fixtures.js";

/** More than a shared store is likely to hold before the times used here, which lie in 1970. */
const plenty = 1_000;

/** Length of these cases' leases. Milliseconds. */
const span = 600_000;

/** Leases the due records of one customer. */
async function leased(store: Store, customer: string, until: number, leaseUntil = until + span): Promise<StoredRecord[]> {
  return (await store.lease(until, plenty, leaseUntil)).filter((record) => record.customer === customer);
}

/** The ids of those records. */
async function ids(store: Store, customer: string, until: number, leaseUntil = until + span): Promise<string[]> {
  return (await leased(store, customer, until, leaseUntil)).map((record) => record.id);
}

/** Runs `use`, then removes the wake times of the customer's records. */
async function leavingNone(store: Store, customer: string, use: () => Promise<void>): Promise<void> {
  try {
    await use();
  } finally {
    for (const record of await leased(store, customer, 2_000_000_000 + 100 * span, Date.now())) {
      await store.commit({ record: following(record), expected: newest(record) });
    }
  }
}

/** A case whose records belong to one customer, around one time in 1970, before all other records of a shared store. */
function leaseCase(run: (store: Store, peer: Store, customer: string, at: number) => Promise<void>): StoreCase {
  return (store, peer) => {
    const customer = randomUUID();
    return leavingNone(store, customer, () => run(store, peer, customer, randomInt(1_000_000, 2_000_000_000)));
  };
}

/** Cases of `lease`. */
export const leaseCases: StoreCases = {
  "lease: returns exactly the records whose wakeAt is `until` or earlier, complete": leaseCase(async (store, _, customer, at) => {
    const due = await write(store, newRecord({ customer, wakeAt: at, tokens: [randomUUID(), randomUUID()], data: "123456" }), null);
    const later = await write(store, newRecord({ customer, wakeAt: at + 1 }), null);
    await write(store, newRecord({ customer }), null);
    same(await ids(store, customer, at - 1), [], "a millisecond before the wakeAt");
    const found = await leased(store, customer, at);
    same(found.length, 1, "how many records are due at the wakeAt of one");
    sameRecord(found[0], due, "the due record");
    same(await ids(store, customer, at + 1), [later.id], "what is due at the later wakeAt");
  }),
  "lease: does not return a leased record again before `leaseUntil`, and does then": leaseCase(async (store, peer, customer, at) => {
    const record = await write(store, newRecord({ customer, wakeAt: at }), null);
    same(await ids(store, customer, at, at + 5_000), [record.id], "the first lease");
    for (const handle of [store, peer]) same(await ids(handle, customer, at + 4_999), [], "a millisecond before the lease ends");
    same(await ids(peer, customer, at + 5_000, at + 9_000), [record.id], "when the lease ends");
    same(await ids(store, customer, at + 8_999), [], "a millisecond before the second lease ends");
    same(await ids(store, customer, at + 9_000), [record.id], "when the second lease ends");
  }),
  "lease: returns the earliest first": leaseCase(async (store, _, customer, at) => {
    const offsets = [70, 10, 100, 30, 90, 2, 50, 8, 60, 40, 80, 20];
    for (const offset of offsets) await write(store, newRecord({ customer, wakeAt: at + offset, data: `${offset}` }), null);
    const order = (await leased(store, customer, at + 100)).map((record) => Number(record.data));
    same(order, [2, 8, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100], "the wake times in the order handed out");
  }),
  "lease: returns at most `limit`, and leaves the others for the next call": leaseCase(async (store, peer, customer, at) => {
    const offsets = Array.from({ length: 23 }, (_, i) => (i * 7) % 23);
    for (const offset of offsets) await write(store, newRecord({ customer, wakeAt: at + offset, data: `${offset}` }), null);
    const order: number[] = [];
    for (let round = 0; round < 60 && order.length < offsets.length; round++) {
      const some = await (round % 2 ? peer : store).lease(at + 100, 5, at + span);
      ensure(some.length <= 5, `a limit of 5: expected at most 5, got ${some.length}`);
      order.push(...some.filter((record) => record.customer === customer).map((record) => Number(record.data)));
    }
    const inOrder = offsets.map((_, i) => i);
    same(order, inOrder, "the wake times in the order handed out, five at a time");
    same(await ids(store, customer, at + 100), [], "what is left");
  }),
  "lease: returns records of all customers": leaseCase((store, _, one, at) => {
    const [two, id] = [randomUUID(), randomUUID()];
    return leavingNone(store, two, async () => {
      await write(store, newRecord({ customer: one, id, wakeAt: at }), null);
      await write(store, newRecord({ customer: two, id, wakeAt: at }), null);
      const customers = (await store.lease(at, plenty, at + span)).filter((record) => record.id === id).map(({ customer }) => customer);
      same(customers.sort(), [one, two].sort(), "the customers of the records with one id");
    });
  }),
  "lease: does not change tokens, data and end, so a caller that read the record before can write it": leaseCase(async (store, _, customer, at) => {
    const record = await write(store, newRecord({ customer, wakeAt: at, tokens: [randomUUID(), randomUUID()] }), null);
    const [found] = await leased(store, customer, at);
    sameRecord(found, record, "the record handed out");
    if (found) spoil(found);
    await stored(store, record, "the record after the lease, and after its worker changed the object it had got");
    refusedWith(await store.commit({ record: newRecord({ customer, id: record.id }) }), record, "a create over the leased record");
    const next = await write(store, following(record, { data: "delivered" }), newest(record), "a write from the token before the lease");
    await stored(store, next, "the record after it");
  }),
  "lease: a write sets the record's wakeAt, leased or not, and a write without wakeAt removes it": leaseCase(async (store, peer, customer, at) => {
    let record = await write(store, newRecord({ customer, wakeAt: at }), null);
    const next = async (fields: Partial<RecordWrite>) => {
      record = await write(store, following(record, fields), newest(record));
    };
    await next({ wakeAt: at + 1_000 });
    same(await ids(store, customer, at + 999), [], "before the later wakeAt");
    same(await ids(peer, customer, at + 1_000, at + 2_000), [record.id], "at the later wakeAt");
    await next({ wakeAt: at - 1_000 });
    same(await ids(store, customer, at - 1_000, at + 2_000), [record.id], "at the earlier wakeAt, written during a lease");
    await next({ wakeAt: at + 3_000 });
    same(await ids(store, customer, at + 2_999), [], "when the lease would have ended, after a later wakeAt");
    same(await ids(store, customer, at + 3_000, at + 4_000), [record.id], "at the wakeAt after the lease, once");
    await next({});
    same(await ids(peer, customer, at + 4_000), [], "when the lease would have ended, after wakeAt was left out");
    await next({ wakeAt: at });
    same(await ids(store, customer, at), [record.id], "after wakeAt was set again");
    await stored(store, record, "the record after all of it");
  }),
  'lease: a write whose wakeAt is "unchanged" leaves it as it is, leased or not, set or not': leaseCase(async (store, peer, customer, at) => {
    let record = await write(store, newRecord({ customer, wakeAt: at }), null);
    const unchanged = async (handle: Store) => {
      record = await write(handle, following(record, { wakeAt: "unchanged" }), newest(record));
      await stored(store, record, "the record after it");
    };
    await unchanged(store);
    same(await ids(store, customer, at - 1), [], "before the wakeAt");
    same(await ids(store, customer, at, at + 1_000), [record.id], "at the wakeAt of the write before");
    await unchanged(peer);
    await unchanged(store);
    same(await ids(store, customer, at + 999), [], "during the lease");
    same(await ids(peer, customer, at + 1_000), [record.id], "when the lease ends");
    record = await write(store, following(record), newest(record));
    await unchanged(store);
    same(await ids(store, customer, at + span), [], "after a write without wakeAt");
    await write(store, newRecord({ customer, wakeAt: "unchanged" }), null, "a create");
    same(await ids(store, customer, at + span), [], "after a create, which has none before it");
  }),
  "lease: a write that is rejected or repeated does not change when the record wakes": leaseCase(async (store, _, customer, at) => {
    const first = await write(store, newRecord({ customer, wakeAt: at }), null);
    refusedWith(await store.commit({ record: following(first), expected: "wrong" }), first, "a write from a wrong token");
    same(await ids(store, customer, at, at + 1_000), [first.id], "after a refused write that would leave wakeAt out");
    await write(store, first, null, "the create sent again");
    same(await ids(store, customer, at + 999), [], "during the lease, after the create with the earlier wakeAt was sent again");
    const second = await write(store, following(first), newest(first));
    await write(store, first, null, "the create sent again");
    refusedWith(await store.commit({ record: following(second, { wakeAt: at }), expected: "wrong" }), second, "a write from a wrong token");
    same(await ids(store, customer, at + 1_000), [], "after the create was sent again and a write to its wakeAt was refused");
    refusedWith(await store.commit({ record: newRecord({ customer, wakeAt: at }), expected: "wrong" }), undefined, "a write over a missing record");
    same(await ids(store, customer, at + 1_000), [], "after a refused write over a missing record");
  }),
  "lease: each record goes to one of 20 racing workers": leaseCase(async (store, peer, customer, at) => {
    const waiting = Array.from({ length: 60 }, (_, i) => newRecord({ customer, wakeAt: at + i }));
    await Promise.all(waiting.map((record) => write(store, record, null)));
    const taken: string[] = [];
    const worker = async (handle: Store) => {
      for (let round = 0; round < 30 && taken.length < waiting.length; round++) {
        const some = await handle.lease(at + 100, 4, at + span);
        ensure(some.length <= 4, `a limit of 4: expected at most 4, got ${some.length}`);
        taken.push(...some.filter((record) => record.customer === customer).map((record) => record.id));
      }
    };
    await Promise.all(Array.from({ length: 20 }, (_, i) => worker(i % 2 ? peer : store)));
    for (let round = 0; round < 60 && taken.length < waiting.length; round++) await worker(store);
    same([...taken].sort(), waiting.map(({ id }) => id).sort(), "the records taken, each by one worker");
    same((await ids(store, customer, at + span)).length, waiting.length, "how many are due when the leases end");
  }),
  "lease: a write that races with a lease leaves the record as written": leaseCase(async (store, peer, customer, at) => {
    for (let round = 0; round < 10; round++) {
      const record = await write(store, newRecord({ customer, wakeAt: at }), null);
      const next = following(record, { data: "done" });
      await Promise.all([peer.lease(at, plenty, at + 1_000), commit(store, { record: next, expected: newest(record) }, "a write during a lease")]);
      await stored(store, next, "the record after the race");
      same(await ids(store, customer, at + 1_000), [], "what is due after a write without wakeAt, whatever came first");
    }
  }),
};
