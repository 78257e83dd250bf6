import { randomUUID } from "node:crypto";
import type { Claim, Store, StoredRecord } from "../../ports/store.js";
import {
  claim,
  ensure,
  following,
  granted,
  holds,
  newest,
  newRecord,
  newWindow,
  refusedBy,
  refusedWith,
  type StoreCase,
  same,
  stored,
  write,
} from "./fixtures.js";

/** Many callers at once, half of them through the peer. */
export function raceCases(racers: number): readonly StoreCase[] {
  /** Starts `racers` callers in one tick and waits for all. */
  const race = <T>(store: Store, peer: Store, run: (handle: Store, index: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: racers }, (_, i) => run(i % 2 ? peer : store, i)));

  /** Races these writes: exactly one lands, the others get it back. */
  const oneLands = async (store: Store, peer: Store, writes: readonly StoredRecord[], expected: string | null): Promise<StoredRecord> => {
    const results = await race(store, peer, (handle, i) => handle.compareAndSwap(writes[i] as StoredRecord, expected));
    const winners = writes.filter((_, i) => results[i]?.swapped);
    same(winners.length, 1, `how many of ${racers} racers were swapped`);
    const winner = winners[0] as StoredRecord;
    for (const [i, result] of results.entries()) if (writes[i] !== winner) refusedWith(result, winner, `racer ${i}, who lost`);
    await stored(store, winner, "the record after the race");
    await stored(peer, winner, "the record after the race, read by the peer");
    return winner;
  };

  /** Races these reserves and returns how many were granted. */
  const grants = async (store: Store, peer: Store, claims: (index: number) => readonly Claim[]): Promise<number> => {
    const results = await race(store, peer, (handle, i) => handle.reserve(claims(i)));
    return results.filter((result) => result.granted).length;
  };

  return [
    {
      name: `compareAndSwap: of ${racers} racing creates exactly one is swapped, and the others get its record`,
      async run(store, peer) {
        const { customer, id } = newRecord();
        await oneLands(
          store,
          peer,
          Array.from({ length: racers }, (_, i) => newRecord({ customer, id, data: `racer ${i}` })),
          null,
        );
      },
    },
    {
      name: `compareAndSwap: of ${racers} racing swaps from one token exactly one is swapped, and the others get its record`,
      async run(store, peer) {
        let record = await write(store, newRecord(), null);
        for (let round = 0; round < 3; round++) {
          const writes = Array.from({ length: racers }, (_, i) => following(record, { data: `round ${round} racer ${i}` }));
          record = await oneLands(store, peer, writes, newest(record));
        }
      },
    },
    {
      name: `compareAndSwap: one write sent ${racers} times at once is swapped every time and written once`,
      async run(store, peer) {
        const first = newRecord();
        const creates = await race(store, peer, (handle) => handle.compareAndSwap(first, null));
        ensure(
          creates.every((result) => result.swapped),
          "a create sent many times at once was refused",
        );
        const next = following(first, { data: "next" });
        const swaps = await race(store, peer, (handle) => handle.compareAndSwap(next, newest(first)));
        ensure(
          swaps.every((result) => result.swapped),
          "a swap sent many times at once was refused",
        );
        await stored(store, next, "the record after it");
      },
    },
    {
      name: "compareAndSwap: no update is lost among callers that swap until they land",
      async run(store, peer) {
        const first = await write(store, newRecord({ data: "0" }), null);
        const caller = async (handle: Store) => {
          let landed = 0;
          for (let tries = 0; landed < 5; tries++) {
            ensure(tries < 1_000, "a caller that swaps from what it has just read did not land five times in 1,000 tries");
            const current = await handle.find(first.customer, first.id);
            if (!current) throw new Error("the record is gone");
            const next = following(current, { data: String(Number(current.data) + 1) });
            if ((await handle.compareAndSwap(next, newest(current))).swapped) landed++;
          }
        };
        await Promise.all([store, peer, store, peer, store, peer].map(caller));
        same((await store.find(first.customer, first.id))?.data, "30", "the count after six callers added one five times each");
      },
    },
    {
      name: `reserve: of ${racers} racers never more than \`limit\` are granted, and one after another exactly \`limit\``,
      async run(store, peer) {
        for (const limit of new Set([1, Math.ceil(racers / 5), racers - 1])) {
          const window = newWindow();
          const now = Date.now();
          const some = await grants(store, peer, () => [claim(window, { limit, now })]);
          ensure(some <= limit, `expected at most ${limit} of ${racers} racers granted, got ${some}`);
          await holds(store, window, now - 60_000, some, "the members in the window are the racers granted");
          for (let i = some; i < limit; i++) same(await store.reserve([claim(window, { limit, now })]), granted, `member ${i + 1} of ${limit}, after the race`);
          same(await peer.reserve([claim(window, { limit, now })]), refusedBy(0), `a member past the limit of ${limit}`);
        }
      },
    },
    {
      name: `reserve: of ${racers} racers for two windows in both orders never more than \`limit\` are granted, and refusals charge nothing`,
      async run(store, peer) {
        const customer = randomUUID();
        const [a, b] = [newWindow(customer), newWindow(customer)];
        const [limitA, limitB] = [Math.ceil(racers / 2), Math.ceil(racers / 4)];
        const now = Date.now();
        const claims = () => [claim(a, { limit: limitA, now }), claim(b, { limit: limitB, now })];
        const some = await grants(store, peer, (i) => (i % 3 ? claims() : claims().reverse()));
        ensure(some <= limitB, `expected at most ${limitB} of ${racers} racers granted, got ${some}`);
        const since = now - 60_000;
        const windows = [
          { window: a, since },
          { window: b, since },
        ];
        same(await store.count(windows), [some, some], "the members in both windows are the racers granted");
        for (let i = some; i < limitB; i++) same(await store.reserve(claims()), granted, `member ${i + 1} of ${limitB}, after the race`);
        same(await peer.reserve(claims()), refusedBy(1), `a member past the limit of ${limitB}`);
        same(await peer.count(windows), [limitB, limitB], "both windows at the end");
      },
    },
    {
      name: `reserve: one member claimed by ${racers} racers is granted to all and counted once`,
      async run(store, peer) {
        const customer = randomUUID();
        const [a, b] = [newWindow(customer), newWindow(customer)];
        const now = Date.now();
        const member = randomUUID();
        const some = await grants(store, peer, () => [claim(a, { now, member }), claim(b, { limit: 2, now, member })]);
        same(some, racers, "how many racers with one member were granted");
        const since = now - 60_000;
        same(
          await store.count([
            { window: a, since },
            { window: b, since },
          ]),
          [1, 1],
          "the members in both windows",
        );
      },
    },
    {
      name: `reserve: of ${racers} racers for the last places under a limit above 1,000 never more are granted`,
      async run(store, peer) {
        const window = newWindow();
        const now = Date.now();
        const limit = 1001;
        const places = Math.max(1, Math.floor(racers / 3));
        const one = () => claim(window, { limit, now, since: now - 1_200_000, keepUntil: now + 2_400_000 });
        for (let i = 0; i < limit - places; i++) same(await store.reserve([one()]), granted, `member ${i + 1} of ${limit}`);
        const some = await grants(store, peer, () => [one()]);
        ensure(some <= places, `expected at most ${places} of ${racers} racers granted, got ${some}`);
        for (let i = some; i < places; i++) same(await store.reserve([one()]), granted, `place ${i + 1} of ${places}, after the race`);
        same(await peer.reserve([one()]), refusedBy(0), `a member past the limit of ${limit}`);
        await holds(peer, window, now - 1_200_000, limit, "the full window");
      },
    },
    {
      name: `put: of ${racers} racing puts one stays whole`,
      async run(store, peer) {
        const key = randomUUID();
        await race(store, peer, (handle, i) => handle.put(key, `${i}`.repeat(50), Date.now() + 1_800_000));
        const value = (await store.get(key)) ?? "";
        ensure(/^(\d+?)\1{49}$/.test(value), `the value after the race: got ${JSON.stringify(value)}`);
        same(await peer.get(key), value, "the value after the race, read by the peer");
      },
    },
  ];
}
