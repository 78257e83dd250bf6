import { randomUUID } from "node:crypto";
import type { Change, Claim, RecordWrite, Store } from "../../ports/store.js";
import {
  ask,
  between,
  commit,
  ensure,
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
  refused,
  refusedWith,
  type StoreCase,
  same,
  stored,
  sums,
  weight,
  write,
} from "./fixtures.js";

/** Many callers at once, half of them through the peer. Racers may be refused more than they need to be, never granted more. */
export function raceCases(racers: number): readonly StoreCase[] {
  /** Starts `racers` callers in one tick and waits for all. */
  const race = <T>(store: Store, peer: Store, run: (handle: Store, index: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: racers }, (_, i) => run(i % 2 ? peer : store, i)));

  /** Races writes of one record: exactly one is done, the others get it back. */
  const oneIsDone = async (store: Store, peer: Store, changes: readonly (Change & { readonly record: RecordWrite })[]): Promise<RecordWrite> => {
    const results = await race(store, peer, (handle, i) => handle.commit(changes[i] as Change));
    const done = changes.filter((_, i) => results[i]?.done);
    same(done.length, 1, `how many of ${racers} racers were done`);
    const winner = (done[0] as { readonly record: RecordWrite }).record;
    for (const [i, result] of results.entries()) if (!result.done) refusedWith(result, winner, `racer ${i}, who lost`);
    await stored(store, winner, "the record after the race");
    await stored(peer, winner, "the record after the race, read by the peer");
    return winner;
  };

  /** Races these claims and returns how many were granted. */
  const grants = async (store: Store, peer: Store, claims: (index: number) => readonly Claim[]): Promise<number> => {
    const results = await race(store, peer, (handle, i) => handle.commit({ claims: claims(i) }));
    return results.filter((result) => result.done).length;
  };

  return [
    {
      name: `commit: of ${racers} racing creates exactly one is done, and the others get its record`,
      async run(store, peer) {
        const { customer, id } = newRecord();
        const changes = Array.from({ length: racers }, (_, i) => ({ record: newRecord({ customer, id, data: `racer ${i}` }) }));
        await oneIsDone(store, peer, changes);
      },
    },
    {
      name: `commit: of ${racers} racing writes from one token exactly one is done, and the others get its record`,
      async run(store, peer) {
        let record = await write(store, newRecord(), null);
        for (let round = 0; round < 3; round++) {
          const changes = Array.from({ length: racers }, (_, i) => ({
            record: following(record, { data: `round ${round} racer ${i}` }),
            expected: newest(record),
          }));
          record = await oneIsDone(store, peer, changes);
        }
      },
    },
    {
      name: `commit: of ${racers} racing creates with claims of their own exactly the claims of the one that is done are counted`,
      async run(store, peer) {
        const { customer, id, now } = newRecord();
        const [window, list, sum] = [newName(customer), newName(customer), newName(customer)];
        const changes = Array.from({ length: racers }, (_, i) => ({
          claims: [member(window, { now, limit: 1_000, member: `${i}` }), member(list, { now, member: `${i}` }), weight(sum, i + 1, { now })],
          record: newRecord({ customer, id, now, data: `${i}` }),
        }));
        const winner = Number((await oneIsDone(store, peer, changes)).data);
        same(await store.members(window, 10), [`${winner}`], "the window after the race");
        same(await store.members(list, 10), [`${winner}`], "the list after the race");
        await sums(store, sum, now - length, winner + 1, "the sum after the race");
      },
    },
    {
      name: `commit: of ${racers} racing writes that claim one member one is done, and the member stays counted`,
      async run(store, peer) {
        let record = await write(store, newRecord(), null);
        const { customer, now } = record;
        const [window, sum] = [newName(customer), newName(customer)];
        for (let round = 1; round <= 3; round++) {
          const changes = Array.from({ length: racers }, () => ({
            claims: [member(window, { now, limit: 3, member: `round ${round}` }), weight(sum, 10, { now })],
            record: following(record),
            expected: newest(record),
          }));
          record = await oneIsDone(store, peer, changes);
          await holds(store, window, now - minute, round, `the window after round ${round}`);
          await sums(store, sum, now - length, 10 * round, `the sum after round ${round}`);
        }
        await refused(store, [member(window, { now, limit: 3 })], 0, 3, "a member past the limit");
      },
    },
    {
      name: `commit: one write sent ${racers} times at once is done every time, written once and counted once`,
      async run(store, peer) {
        const first = newRecord();
        const { customer, now } = first;
        const [window, list, sum] = [newName(customer), newName(customer), newName(customer)];
        const claims = (round: number) => [member(window, { now, limit: 2 }), member(list, { now }), weight(sum, round, { now })];
        const next = following(first, { data: "next" });
        const changes: Change[] = [
          { claims: claims(1), record: first },
          { claims: claims(2), record: next, expected: newest(first) },
        ];
        for (const [i, change] of changes.entries()) {
          const results = await race(store, peer, (handle) => handle.commit(change));
          ensure(
            results.every((result) => result.done),
            "a write sent many times at once was refused",
          );
          await holds(store, window, now - minute, i + 1, "the window after it");
          same((await store.members(list, 10)).length, i + 1, "the list after it");
          await sums(store, sum, now - length, i === 0 ? 1 : 3, "the sum after it");
        }
        await stored(store, next, "the record after it");
      },
    },
    {
      name: "commit: no update is lost among callers that write until they land",
      async run(store, peer) {
        const first = await write(store, newRecord({ data: "0" }), null);
        const sum = newName(first.customer);
        const caller = async (handle: Store) => {
          let landed = 0;
          for (let tries = 0; landed < 5; tries++) {
            ensure(tries < 1_000, "a caller that writes over what it has just read did not land five times in 1,000 tries");
            const current = await handle.find(first.customer, first.id);
            if (!current) throw new Error("the record is gone");
            const record = following(current, { data: String(Number(current.data) + 1) });
            const change = { claims: [weight(sum, 1, { now: first.now })], record, expected: newest(current) };
            if ((await handle.commit(change)).done) landed++;
          }
        };
        await Promise.all([store, peer, store, peer, store, peer].map(caller));
        same((await store.find(first.customer, first.id))?.data, "30", "the count after six callers added one five times each");
        await sums(store, sum, first.now - length, 30, "the sum after six callers added one five times each");
      },
    },
    {
      name: `window: of ${racers} racers never more than \`limit\` are granted, and one after another exactly \`limit\``,
      async run(store, peer) {
        for (const limit of new Set([1, Math.ceil(racers / 5), racers - 1])) {
          const window = newName();
          const now = Date.now();
          const some = await grants(store, peer, () => [member(window, { limit, now })]);
          ensure(some <= limit, `expected at most ${limit} of ${racers} racers granted, got ${some}`);
          await holds(store, window, now - minute, some, "the members in the window are the racers granted");
          for (let i = some + 1; i <= limit; i++) await granted(store, [member(window, { limit, now })], [i], `member ${i} of ${limit}, after the race`);
          await refused(peer, [member(window, { limit, now })], 0, limit, `a member past the limit of ${limit}`);
        }
      },
    },
    {
      name: `window: of ${racers} racers for two in both orders never more than \`limit\` are granted, and refusals charge nothing`,
      async run(store, peer) {
        const customer = randomUUID();
        const [a, b] = [newName(customer), newName(customer)];
        const limitB = Math.ceil(racers / 4);
        const limitA = 2 * limitB;
        const now = Date.now();
        const claims = () => [member(a, { limit: limitA, now }), member(b, { limit: limitB, now })];
        const some = await grants(store, peer, (i) => (i % 3 ? claims() : claims().reverse()));
        ensure(some <= limitB, `expected at most ${limitB} of ${racers} racers granted, got ${some}`);
        for (const window of [a, b]) await holds(store, window, now - minute, some, "the members in either window are the racers granted");
        for (let i = some + 1; i <= limitB; i++) await granted(store, claims(), [i, i], `member ${i} of ${limitB}, after the race`);
        await refused(peer, claims(), 1, limitB, `a member past the limit of ${limitB}`);
        for (const window of [a, b]) await holds(peer, window, now - minute, limitB, "either window at the end");
      },
    },
    {
      name: `window: one member claimed by ${racers} racers is granted to all and counted once`,
      async run(store, peer) {
        const customer = randomUUID();
        const [a, b] = [newName(customer), newName(customer)];
        const now = Date.now();
        const one = randomUUID();
        const some = await grants(store, peer, () => [member(a, { now, limit: 1, member: one }), member(b, { limit: 2, now, member: one })]);
        same(some, racers, "how many racers with one member were granted");
        for (const window of [a, b]) await holds(store, window, now - minute, 1, "either window");
      },
    },
    {
      name: `window: of ${racers} racers with records of their own never more than \`limit\` are done, and who is refused leaves no record`,
      async run(store, peer) {
        const { customer, now } = newRecord();
        const [window, sum] = [newName(customer), newName(customer)];
        const limit = Math.ceil(racers / 3);
        const change = () => ({ claims: [weight(sum, 5, { now }), member(window, { now, limit })], record: newRecord({ customer, now }) });
        const changes = Array.from({ length: racers }, change);
        const results = await race(store, peer, (handle, i) => handle.commit(changes[i] as Change));
        const done = results.filter((result) => result.done).length;
        ensure(done <= limit, `expected at most ${limit} of ${racers} racers done, got ${done}`);
        for (const [i, { record }] of changes.entries()) {
          const found = (await store.find(customer, record.id)) !== undefined;
          same(found, results[i]?.done, `racer ${i}, who was told ${results[i]?.done ? "done" : "refused"}: whether the record is there`);
        }
        await holds(store, window, now - minute, done, "the window after the race");
        await sums(store, sum, now - length, 5 * done, "the sum after the race");
        for (let i = done + 1; i <= limit; i++) await commit(store, change(), `record ${i} of ${limit}, after the race`);
        const late = await peer.commit(change());
        same(late.done ? "done" : late.refusedBy, 1, "the claim that refuses one past the limit");
      },
    },
    {
      name: `sum: of ${racers} racers never more than the limit is granted, and one after another exactly the limit`,
      async run(store, peer) {
        const { customer, now } = newRecord();
        const sum = newName(customer);
        const by = (i: number) => (i % 7) + 1;
        const limit = Math.floor((racers * 4) / 3);
        const changes = Array.from({ length: racers }, (_, i) => ({ claims: [weight(sum, by(i), { now, limit })], record: newRecord({ customer, now }) }));
        const results = await race(store, peer, (handle, i) => handle.commit(changes[i] as Change));
        const total = results.reduce((total, result, i) => (result.done ? total + by(i) : total), 0);
        ensure(total <= limit, `expected at most ${limit} granted to ${racers} racers, got ${total}`);
        await sums(store, sum, now - length, total, "the sum is what was granted");
        if (total < limit) await granted(store, [weight(sum, limit - total, { now, limit })], [limit], "what is left of the limit, after the race");
        await refused(peer, [weight(sum, 1, { now, limit })], 0, limit, "1 more than the limit");
      },
    },
    {
      name: `sum: of ${racers} racers for two in both orders never more than the limits are granted, and refusals charge nothing`,
      async run(store, peer) {
        const customer = randomUUID();
        const [a, b] = [newName(customer), newName(customer)];
        const now = Date.now();
        const most = Math.ceil(racers / 4);
        const [limitA, limitB] = [3 * 2 * most, 5 * most];
        const claims = () => [weight(a, 3, { now, limit: limitA }), weight(b, 5, { now, limit: limitB })];
        const some = await grants(store, peer, (i) => (i % 3 ? claims() : claims().reverse()));
        ensure(some <= most, `expected at most ${most} of ${racers} racers granted, got ${some}`);
        const since = now - length;
        const asks = [a, b].map((sum) => ({ sum, since }));
        same(await ask(store, asks), [3 * some, 5 * some], "the sums are what was granted");
        for (let i = some + 1; i <= most; i++) await granted(store, claims(), [3 * i, 5 * i], `claim ${i}, after the race`);
        await refused(peer, claims(), 1, limitB, "one past the limit");
      },
    },
    {
      name: `sum: of ${racers} racers that claim and give back nothing is lost`,
      async run(store, peer) {
        const sum = newName();
        const now = Date.now();
        const at = (i: number) => now + (i % 3) * 5 * (length / 12);
        const told = await race(store, peer, async (handle, i) => {
          const { counts } = await commit(handle, { claims: [weight(sum, 10, { now: at(i) })] }, "a claim of 10");
          await commit(handle, { claims: [weight(sum, -4, { now: at(i) })] }, "4 given back");
          return counts[0];
        });
        for (const count of told) between(count, 10, 10 * racers, "what a racer was told");
        await sums(store, sum, now - length, 6 * racers, "the sum after the race");
      },
    },
    {
      name: `commit: ${racers} racers that claim without a limit and ask are told themselves and all before them`,
      async run(store, peer) {
        const { customer, now } = newRecord();
        const sum = newName(customer);
        const change = () => ({ claims: [weight(sum, 1, { now })], asks: [{ sum, since: now - length }], record: newRecord({ customer, now }) });
        const results = await race(store, peer, (handle) => commit(handle, change(), "a claim without a limit"));
        for (const [i, count] of results
          .map(({ counts }) => counts[0] as number)
          .sort((a, b) => a - b)
          .entries())
          between(count, i + 1, racers, `the racer who was told the ${i + 1}. lowest count`);
        for (const { counts, asked } of results) between(asked[0], 1, racers, `what a racer asked who was told ${counts[0]}`);
        await sums(store, sum, now - length, racers, "the sum after the race");
      },
    },
    {
      name: `put: of ${racers} racing puts one stays whole`,
      async run(store, peer) {
        const key = randomUUID();
        await race(store, peer, (handle, i) => handle.put(key, `${i}`.repeat(50), life()));
        const value = (await store.get(key)) ?? "";
        ensure(/^(\d+?)\1{49}$/.test(value), `the value after the race: got ${JSON.stringify(value)}`);
        same(await peer.get(key), value, "the value after the race, read by the peer");
      },
    },
  ];
}
