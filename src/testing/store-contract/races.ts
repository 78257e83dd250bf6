import { randomUUID } from "node:crypto";
import type { Change, Claim, RecordWrite, Store } from "../../ports/store.js";
import { ask, between, commit, ensure, granted, holds, refused, refusedWith, type StoreCases, same, stored, sums, write } from "./checks.js";
import { expiry, following, member, minute, newest, newRecord, newScene, partsOf, weight } from "./fixtures.js";
import { revoking } from "./revocations.js";

/**
 * Many concurrent callers, half of them through the peer. More of them may be rejected than necessary, but never too
 * many granted.
 */
export function raceCases(racers: number): StoreCases {
  /** Starts `racers` callers in one tick and waits for all. */
  const race = <T>(store: Store, peer: Store, run: (handle: Store, index: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: racers }, (_, i) => run(i % 2 ? peer : store, i)));

  /** Races writes of one record: exactly one is done, and the others get it back. */
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

  return {
    [`commit: of ${racers} racing writes exactly one is done, for a create and for the next write, and the others get its record`]: async (store, peer) => {
      const { customer, id } = newRecord();
      let last: RecordWrite | undefined;
      for (let round = 0; round < 3; round++) {
        const next = (data: string) => (last ? following(last, { data }) : newRecord({ customer, id, data }));
        const expected = last ? newest(last) : null;
        const changes = Array.from({ length: racers }, (_, i) => ({ record: next(`round ${round} racer ${i}`), expected }));
        last = await oneIsDone(store, peer, changes);
      }
    },
    [`commit: of ${racers} racing creates with different claims, exactly the claims of the one that is done are counted`]: async (store, peer) => {
      const { record, customer, now, window, list, sum } = newScene();
      const changes = Array.from({ length: racers }, (_, i) => ({
        claims: [member(window, { now, limit: 1_000, member: `${i}` }), member(list, { now, member: `${i}` }), weight(sum, i + 1, { now })],
        record: newRecord({ customer, id: record.id, now, data: `${i}` }),
      }));
      const winner = Number((await oneIsDone(store, peer, changes)).data);
      same(await store.members(window, 10), [`${winner}`], "the window after the race");
      same(await store.members(list, 10), [`${winner}`], "the list after the race");
      await sums(store, sum, winner + 1, "the sum after the race");
    },
    [`commit: of ${racers} racing writes that claim one member, one is done, and the member stays counted`]: async (store, peer) => {
      const { record: first, now, window, sum } = newScene();
      let record = await write(store, first, null);
      for (let round = 1; round <= 3; round++) {
        const changes = Array.from({ length: racers }, () => ({
          claims: [member(window, { now, limit: 3, member: `round ${round}` }), weight(sum, 10, { now })],
          record: following(record),
          expected: newest(record),
        }));
        record = await oneIsDone(store, peer, changes);
        await holds(store, window, now - minute, round, `the window after round ${round}`);
        await sums(store, sum, 10 * round, `the sum after round ${round}`);
      }
      await refused(store, [member(window, { now, limit: 3 })], 0, 3, "a member past the limit");
    },
    [`commit: one write sent ${racers} times at once is done each time, but written and counted once`]: async (store, peer) => {
      const { record: first, now, window, list, sum, other: back } = newScene();
      const claims = (round: number) => [member(window, { now, limit: 2 }), member(list, { now }), weight(sum, round, { now }), weight(back, -round, { now })];
      const next = following(first, { data: "next" });
      const changes: Change[] = [
        { claims: claims(1), record: first },
        { claims: claims(2), record: next, expected: newest(first) },
      ];
      for (const [i, change] of changes.entries()) {
        const results = await race(store, peer, (handle) => handle.commit(change));
        const refusals = results.filter((result) => !result.done);
        ensure(refusals.length === 0, "a write sent many times at once was refused");
        await holds(store, window, now - minute, i + 1, "the window after it");
        same((await store.members(list, 10)).length, i + 1, "the list after it");
        same(await ask(store, [partsOf(sum), partsOf(back)]), i === 0 ? [1, -1] : [3, -3], "the sums after it");
      }
      await stored(store, next, "the record after it");
    },
    "commit: no update is lost among callers that retry until their write is done": async (store, peer) => {
      const { record: first, sum } = newScene({ data: "0" });
      await write(store, first, null);
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
      await sums(store, sum, 30, "the sum after six callers added one five times each");
    },
    [`window: of ${racers} racers, never more than \`limit\` are granted, and exactly \`limit\` one after another`]: async (store, peer) => {
      for (const limit of new Set([1, Math.ceil(racers / 5), racers - 1])) {
        const { window, now } = newScene();
        const some = await grants(store, peer, () => [member(window, { limit, now })]);
        ensure(some <= limit, `expected at most ${limit} of ${racers} racers granted, got ${some}`);
        await holds(store, window, now - minute, some, "the members in the window are the racers granted");
        for (let i = some + 1; i <= limit; i++) await granted(store, [member(window, { limit, now })], [i], `member ${i} of ${limit}, after the race`);
        await refused(peer, [member(window, { limit, now })], 0, limit, `a member past the limit of ${limit}`);
      }
    },
    [`commit: of ${racers} racers for a window and a sum in both orders, never more than the limits are granted, and rejected ones are charged nothing`]:
      async (store, peer) => {
        const { now, window, sum } = newScene();
        const most = Math.ceil(racers / 4);
        const claims = (limit: number): Claim[] => [member(window, { limit, now }), weight(sum, 5, { limit: 5 * (most + 1), now })];
        for (const limit of [most, most + 2]) {
          const before = limit === most ? 0 : most;
          const some = before + (await grants(store, peer, (i) => (i % 3 ? claims(limit) : claims(limit).reverse())));
          const allowed = Math.min(limit, most + 1);
          ensure(some <= allowed, `expected at most ${allowed} of ${racers} racers granted, got ${some}`);
          await holds(store, window, now - minute, some, "the members in the window are the racers granted");
          await sums(store, sum, 5 * some, "the sum is what was granted");
          for (let i = some + 1; i <= allowed; i++) await granted(store, claims(limit), [i, 5 * i], `claim ${i} of ${allowed}, after the race`);
          if (limit === most) await refused(peer, claims(limit), 0, most, "one past the window's limit");
          else await refused(peer, claims(limit), 1, 5 * (most + 1), "one past the sum's limit");
        }
      },
    [`window: one member claimed by ${racers} racers is granted to each and counted once`]: async (store, peer) => {
      const { now, window: a, other: b } = newScene();
      const one = randomUUID();
      const some = await grants(store, peer, () => [member(a, { now, limit: 1, member: one }), member(b, { limit: 2, now, member: one })]);
      same(some, racers, "how many racers with one member were granted");
      for (const window of [a, b]) await holds(store, window, now - minute, 1, "either window");
    },
    [`window: of ${racers} racers with different records, never more than \`limit\` are done, and rejected ones leave no record`]: async (store, peer) => {
      const { customer, now, window, sum } = newScene();
      const limit = Math.ceil(racers / 3);
      const change = () => ({ claims: [weight(sum, 5, { now }), member(window, { now, limit })], record: newRecord({ customer, now }) });
      const changes = Array.from({ length: racers }, change);
      const results = await race(store, peer, (handle, i) => handle.commit(changes[i] as Change));
      const done = results.filter((result) => result.done).length;
      ensure(done <= limit, `expected at most ${limit} of ${racers} racers done, got ${done}`);
      for (const [i, { record }] of changes.entries()) {
        const found = (await store.find(customer, record.id)) !== undefined;
        same(found, results[i]?.done, `racer ${i}, who was ${results[i]?.done ? "done" : "refused"}: whether the record is there`);
      }
      await holds(store, window, now - minute, done, "the window after the race");
      await sums(store, sum, 5 * done, "the sum after the race");
      for (let i = done + 1; i <= limit; i++) await commit(store, change(), `record ${i} of ${limit}, after the race`);
      const late = await peer.commit(change());
      same(late.done ? "done" : late.refusedBy, 1, "the claim that refuses one past the limit");
    },
    [`sum: of ${racers} racers, never more than the limit is granted, even if some give back, and the total equals what was granted`]: async (store, peer) => {
      for (const weights of [
        [1, 2, 3, 4, 5, 6, 7],
        [5, 5, -3],
      ]) {
        const { customer, now, sum } = newScene();
        const by = (i: number) => weights[i % weights.length] as number;
        const limit = racers;
        const change = (i: number): Change => ({ claims: [weight(sum, by(i), { now, limit })], ...(i % 2 && { record: newRecord({ customer, now }) }) });
        const changes = Array.from({ length: racers }, (_, i) => change(i));
        const results = await race(store, peer, (handle, i) => handle.commit(changes[i] as Change));
        for (const [i, result] of results.entries()) {
          if (result.done) between(result.counts[0], -3 * racers, limit, `the count that racer ${i} got`);
          else ensure(by(i) > 0, `racer ${i}, who gives back, was refused`);
        }
        const total = results.reduce((total, result, i) => (result.done ? total + by(i) : total), 0);
        ensure(total <= limit, `expected at most ${limit} held after the race, got ${total}`);
        await sums(store, sum, total, "the sum is what was granted");
        if (total < limit) await granted(store, [weight(sum, limit - total, { now, limit })], [limit], "what is left of the limit, after the race");
        await refused(peer, [weight(sum, 1, { now, limit })], 0, limit, "1 more than the limit");
      }
    },
    [`commit: ${racers} racers that claim without a limit and ask each get a count that includes themselves and all before them`]: async (store, peer) => {
      const { customer, now, sum } = newScene();
      const change = () => ({ claims: [weight(sum, 1, { now })], asks: [partsOf(sum)], record: newRecord({ customer, now }) });
      const results = await race(store, peer, (handle) => commit(handle, change(), "a claim without a limit"));
      const counts = results.map(({ counts }) => counts[0] as number).sort((a, b) => a - b);
      for (const [i, count] of counts.entries()) between(count, i + 1, racers, `the ${i + 1}. lowest count of a racer`);
      for (const { counts, asked } of results) between(asked[0], 1, racers, `what a racer asked whose count was ${counts[0]}`);
      await sums(store, sum, racers, "the sum after the race");
    },
    [`put: of ${racers} racing puts, one value stays, complete`]: async (store, peer) => {
      const key = randomUUID();
      await race(store, peer, (handle, i) => handle.put(key, `${i}`.repeat(50), expiry()));
      const value = (await store.get(key)) ?? "";
      ensure(/^(\d+?)\1{49}$/.test(value), `the value after the race: got ${JSON.stringify(value)}`);
      same(await peer.get(key), value, "the value after the race, read by the peer");
    },
    [`revoke: of ${racers} racing commits and their revocations, nothing is left, whichever comes first`]: async (store, peer) => {
      const { customer, now, window, list, sum, other: back } = newScene();
      await granted(store, [member(window, { now, limit: 1_000 }), weight(sum, 3, { now })], [1, 3], "what is there before");
      const pair = async (handle: Store, other: Store) => {
        const record = newRecord({ customer, now });
        const claims = [member(window, { now, limit: 1_000 }), member(list, { now }), weight(sum, 5, { now, limit: 1_000_000 }), weight(back, -2, { now })];
        const revoke = async () => {
          const create = revoking(record, claims, undefined);
          const [result] = await Promise.all([other.commit(create), handle.commit(create)]);
          if (result.done) return;
          const over = revoking(record, claims, record);
          await Promise.all([commit(other, over, "a revocation over what has landed"), commit(handle, over, "the same sent again")]);
        };
        const change = { claims, record };
        await Promise.all([handle.commit(change), other.commit(change), revoke(), handle.commit(change)]);
      };
      for (let from = 0; from < racers; from += 250) {
        const some = Math.min(250, racers - from);
        await Promise.all(Array.from({ length: some }, (_, i) => (i % 2 ? pair(peer, store) : pair(store, peer))));
      }
      await holds(store, window, now - minute, 1, "the window after the race");
      same(await store.members(list, 10), [], "the list after the race");
      same(await ask(store, [partsOf(sum), partsOf(back)]), [3, 0], "the sums after the race");
    },
  };
}
