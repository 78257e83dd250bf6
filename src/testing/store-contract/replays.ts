import { randomUUID } from "node:crypto";
import { following, later, newest, newRecord, refusedWith, type StoreCase, same, stored, write } from "./fixtures.js";

/** Writes that a transport sends twice, and twins that only look like them. */
export const replayCases: readonly StoreCase[] = [
  {
    name: "compareAndSwap: a create sent twice is swapped both times and written once",
    async run(store, peer) {
      const record = await write(store, newRecord({ wakeAt: later() }), null);
      await write(store, record, null, "a create sent again");
      await write(peer, record, null, "a create sent again through the peer");
      await write(store, { ...record, data: "changed on the way" }, null, "a create known by its token");
      await stored(store, record, "the record after the repeated create");
    },
  },
  {
    name: "compareAndSwap: a swap sent twice is swapped both times and written once",
    async run(store, peer) {
      const first = await write(store, newRecord(), null);
      for (const wake of [{ wakeAt: later() }, { wakeAt: later() + 1 }, {}]) {
        const before = (await store.find(first.customer, first.id)) ?? first;
        const next = await write(store, following(before, { data: "next", ...wake }), newest(before));
        await write(store, next, newest(before), "a swap sent again");
        await write(peer, next, newest(before), "a swap sent again through the peer");
        await stored(store, next, "the record after the repeated swap");
      }
    },
  },
  {
    name: "compareAndSwap: a write sent again after up to fifteen later writes is swapped, and nothing is written",
    async run(store) {
      const writes: { readonly next: ReturnType<typeof newRecord>; readonly expected: string | null }[] = [{ next: newRecord(), expected: null }];
      let current = await write(store, newRecord(writes[0]?.next), null);
      for (let i = 1; i <= 15; i++) {
        const next = following(current, { data: `write ${i}`, ...(i % 3 === 0 ? {} : { wakeAt: later() + i }) });
        const expected = newest(current);
        current = await write(store, next, expected);
        for (const [age, earlier] of writes.entries()) await write(store, earlier.next, earlier.expected, `write ${age} sent again after write ${i}`);
        await stored(store, current, `the record after all earlier writes were sent again, after write ${i}`);
        writes.push({ next, expected });
      }
    },
  },
  {
    name: "compareAndSwap: a write whose token has left the list is refused like any other",
    async run(store) {
      const first = await write(store, newRecord(), null);
      let current = first;
      for (let i = 1; i <= 16; i++) current = await write(store, following(current, { data: `write ${i}` }), newest(current));
      refusedWith(await store.compareAndSwap(first, null), current, "a create sent again after sixteen later writes");
      await stored(store, current, "the record after it");
    },
  },
  {
    name: "compareAndSwap: a twin with a token of its own is refused and gets what is stored",
    async run(store, peer) {
      const first = await write(store, newRecord(), null);
      refusedWith(await peer.compareAndSwap({ ...first, tokens: [randomUUID()] }, null), first, "the twin of a create");
      const next = await write(store, following(first, { data: "next" }), newest(first));
      refusedWith(await peer.compareAndSwap({ ...next, tokens: [randomUUID(), ...first.tokens] }, newest(first)), next, "the twin of a swap");
      await stored(store, next, "the record after its twins");
    },
  },
  {
    name: "compareAndSwap: a write is known by its newest token alone, not by the older ones it carries",
    async run(store) {
      const first = await write(store, newRecord(), null);
      const second = await write(store, following(first, { data: "second" }), newest(first));
      refusedWith(
        await store.compareAndSwap(following(second, { data: "stale" }), newest(first)),
        second,
        "a stale swap that carries the stored tokens behind its own",
      );
      await stored(store, second, "the record after it");
    },
  },
  {
    name: "compareAndSwap: a write that was refused has not landed, and is refused when it is sent again",
    async run(store) {
      const first = await write(store, newRecord(), null);
      const second = await write(store, following(first, { data: "second" }), newest(first));
      const loser = following(first, { data: "loser" });
      for (const time of ["once", "twice"]) refusedWith(await store.compareAndSwap(loser, newest(first)), second, `a lost swap sent ${time}`);
      const third = await write(store, following(second, { data: "third" }), newest(second));
      refusedWith(await store.compareAndSwap(loser, newest(first)), third, "a lost swap sent again after a later write");
      await write(store, { ...loser, tokens: [newest(loser), ...third.tokens] }, newest(third), "the loser's write made again on the current record");
      same((await store.find(first.customer, first.id))?.data, "loser", "the data after it");
    },
  },
];
