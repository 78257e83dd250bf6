import { randomInt, randomUUID } from "node:crypto";
import type { Store, StoredRecord } from "../../ports/store.js";
import { ensure, following, newest, newRecord, refusedWith, type StoreCase, same, sameRecord, write } from "./fixtures.js";

/** More than a shared store is likely to hold before the times used here, which lie in 1970. */
const plenty = 1000;

/** A time in 1970, so that other records of a shared store come after it. */
function early(): number {
  return randomInt(1_000_000, 2_000_000_000);
}

/** What `due` returns of one customer's records. */
async function dueOf(store: Store, customer: string, now: number): Promise<StoredRecord[]> {
  return (await store.due(now, plenty)).filter((record) => record.customer === customer);
}

async function dueIds(store: Store, customer: string, now: number): Promise<string[]> {
  return (await dueOf(store, customer, now)).map((record) => record.id);
}

/** Runs `use`, then takes the wake times of the customer's records away. */
async function leavingNone(store: Store, customer: string, use: () => Promise<void>): Promise<void> {
  try {
    await use();
  } finally {
    for (const record of await dueOf(store, customer, Date.now())) await store.compareAndSwap(following(record), newest(record));
  }
}

/** `due`. */
export const dueCases: readonly StoreCase[] = [
  {
    name: "due: returns the records whose wakeAt is `now` or earlier, whole, and no others",
    async run(store, peer) {
      const customer = randomUUID();
      const at = early();
      await leavingNone(store, customer, async () => {
        const due = await write(store, newRecord({ customer, wakeAt: at, tokens: [randomUUID(), randomUUID()], data: "123456" }), null);
        await write(store, newRecord({ customer, wakeAt: at + 1 }), null);
        await write(store, newRecord({ customer }), null);
        same(await dueIds(store, customer, at - 1), [], "a millisecond before the wakeAt");
        for (const handle of [store, peer]) {
          const found = await dueOf(handle, customer, at);
          same(found.length, 1, "how many records are due at the wakeAt of one");
          sameRecord(found[0], due, "the due record");
        }
        same((await dueIds(store, customer, at + 1)).length, 2, "how many records are due at the later wakeAt");
      });
    },
  },
  {
    name: "due: the earliest come first, and at most `limit`",
    async run(store) {
      const customer = randomUUID();
      const at = early();
      await leavingNone(store, customer, async () => {
        const offsets = [70, 10, 100, 30, 90, 2, 50, 8, 60, 40, 80, 20];
        const records: StoredRecord[] = [];
        for (const offset of offsets) records.push(await write(store, newRecord({ customer, wakeAt: at + offset }), null));
        const wakes = (await dueOf(store, customer, at + 100)).map((record) => (record.wakeAt ?? 0) - at);
        same(wakes, [2, 8, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100], "the wake times in the order returned");
        for (const limit of [1, 5]) {
          const some = await store.due(at + 100, limit);
          same(some.length, limit, `how many come back of twelve or more with a limit of ${limit}`);
          const last = Math.max(...some.map((record) => record.wakeAt ?? Number.POSITIVE_INFINITY));
          const left = records.filter((record) => !some.some((taken) => taken.id === record.id));
          ensure(
            left.every((record) => (record.wakeAt ?? 0) >= last),
            `with a limit of ${limit} a record was left out that is earlier than one returned`,
          );
        }
      });
    },
  },
  {
    name: "due: records of all customers come back",
    async run(store) {
      const [one, two] = [randomUUID(), randomUUID()];
      const at = early();
      const id = randomUUID();
      await leavingNone(store, one, () =>
        leavingNone(store, two, async () => {
          await write(store, newRecord({ customer: one, id, wakeAt: at }), null);
          await write(store, newRecord({ customer: two, id, wakeAt: at }), null);
          same(await dueIds(store, one, at), [id], "the first customer's record");
          same(await dueIds(store, two, at), [id], "the second customer's record with the same id");
        }),
      );
    },
  },
  {
    name: "due: a swap that moves wakeAt moves the record, and one that leaves it out takes the record away",
    async run(store, peer) {
      const customer = randomUUID();
      const at = early();
      await leavingNone(store, customer, async () => {
        let record = await write(store, newRecord({ customer, wakeAt: at }), null);
        const swap = async (fields: Partial<StoredRecord>) => {
          record = await write(store, following(record, fields), newest(record));
        };
        await swap({ wakeAt: at + 1_000 });
        same(await dueIds(store, customer, at + 999), [], "before the later wakeAt");
        same(await dueIds(peer, customer, at + 1_000), [record.id], "at the later wakeAt");
        await swap({ wakeAt: at - 1_000 });
        same(await dueIds(store, customer, at - 1_000), [record.id], "at the earlier wakeAt");
        sameRecord((await dueOf(store, customer, at + 1_000))[0], record, "the record after two moves, found once and whole");
        same((await dueIds(store, customer, at + 1_000)).length, 1, "how often the moved record is found");
        await swap({});
        same(await dueIds(peer, customer, at + 1_000), [], "after wakeAt was left out");
        await swap({ wakeAt: at });
        same(await dueIds(store, customer, at), [record.id], "after wakeAt was set again");
      });
    },
  },
  {
    name: "due: a write that was refused, or sent again, changes nothing",
    async run(store) {
      const customer = randomUUID();
      const at = early();
      await leavingNone(store, customer, async () => {
        const first = await write(store, newRecord({ customer, wakeAt: at }), null);
        refusedWith(await store.compareAndSwap(following(first), "wrong"), first, "a swap from a wrong token");
        same(await dueIds(store, customer, at), [first.id], "after a refused swap that would leave wakeAt out");
        const second = await write(store, following(first), newest(first));
        await write(store, first, null, "the create sent again");
        refusedWith(await store.compareAndSwap(following(second, { wakeAt: at }), "wrong"), second, "a swap from a wrong token");
        same(await dueIds(store, customer, at), [], "after the create with the wakeAt was sent again and a swap to it was refused");
        const loser = newRecord({ customer, wakeAt: at });
        refusedWith(await store.compareAndSwap(loser, "wrong"), undefined, "a swap of a missing record");
        same(await dueIds(store, customer, at), [], "after a refused swap of a missing record");
      });
    },
  },
  {
    name: "due: several workers that claim by compareAndSwap take each record once",
    async run(store, peer) {
      const customer = randomUUID();
      const at = early();
      await leavingNone(store, customer, async () => {
        const ids = Array.from({ length: 30 }, () => randomUUID());
        await Promise.all(ids.map((id, i) => write(store, newRecord({ customer, id, wakeAt: at + i }), null)));
        const taken: string[] = [];
        const worker = async (handle: Store) => {
          for (let round = 0; round < 100; round++) {
            const found = await dueOf(handle, customer, at + 30);
            if (found.length === 0) return;
            for (const record of found) {
              const leased = following(record, { data: "leased", wakeAt: at + 60_000 });
              if ((await handle.compareAndSwap(leased, newest(record))).swapped) taken.push(record.id);
            }
          }
          ensure(false, "records are due however often they are leased until later");
        };
        await Promise.all([store, peer, store, peer].map(worker));
        same([...taken].sort(), [...ids].sort(), "the records taken");
        same((await dueIds(store, customer, at + 60_000)).length, 30, "how many are due when the leases end");
      });
    },
  },
];
