import { randomUUID } from "node:crypto";
import type { Change, RecordWrite } from "../../ports/store.js";
import { ask, commit, holds, refusedWith, type StoreCases, same, stored, sums, write } from "./checks.js";
import { following, halfHour, member, minute, newest, newRecord, newScene, partsOf, weight } from "./fixtures.js";

/** Commits that a transport sends twice, and different commits that look the same. */
export const replayCases: StoreCases = {
  "commit: a create sent twice is done both times but written once": async (store, peer) => {
    const record = await write(store, newRecord({ wakeAt: Date.now() + halfHour }), null);
    await write(store, record, null, "a create sent again");
    await write(peer, record, null, "a create sent again through the peer");
    await write(store, { ...record, data: "changed on the way" }, null, "a create known by its token");
    await stored(store, record, "the record after the repeated create");
  },
  "commit: a repeated write is done after up to fifteen later writes, rejected after the next, and writes nothing": async (store) => {
    let current = await write(store, newRecord(), null);
    const writes: { readonly record: RecordWrite; readonly expected: string | null }[] = [{ record: current, expected: null }];
    for (let i = 1; i <= 15; i++) {
      const record = following(current, { data: `write ${i}`, ...(i % 3 === 0 ? {} : { wakeAt: Date.now() + halfHour + i }) });
      const expected = newest(current);
      current = await write(store, record, expected);
      for (const [age, earlier] of writes.entries()) await write(store, earlier.record, earlier.expected, `write ${age} sent again after write ${i}`);
      await stored(store, current, `the record after all earlier writes were sent again, after write ${i}`);
      writes.push({ record, expected });
    }
    const last = await write(store, following(current), newest(current));
    refusedWith(await store.commit(writes[0] as Change), last, "a create sent again after sixteen later writes");
    await stored(store, last, "the record after it");
  },
  "commit: only its newest token identifies a write: the same write under another token is rejected with the stored record": async (store, peer) => {
    const first = await write(store, newRecord(), null);
    refusedWith(await peer.commit({ record: { ...first, tokens: [randomUUID()] } }), first, "the twin of a create");
    const second = await write(store, following(first, { data: "second" }), newest(first));
    refusedWith(await peer.commit({ record: { ...second, tokens: [randomUUID(), ...first.tokens] }, expected: newest(first) }), second, "the twin of a write");
    const stale = following(second, { data: "stale" });
    refusedWith(await store.commit({ record: stale, expected: newest(first) }), second, "a stale write that carries the stored tokens behind its own");
    await stored(store, second, "the record after them");
  },
  "commit: a rejected write is rejected again when it is repeated": async (store) => {
    const first = await write(store, newRecord(), null);
    const second = await write(store, following(first, { data: "second" }), newest(first));
    const record = following(first, { data: "loser" });
    const loser: Change = { record, expected: newest(first) };
    for (const time of ["once", "twice"]) refusedWith(await store.commit(loser), second, `a lost write sent ${time}`);
    const third = await write(store, following(second, { data: "third" }), newest(second));
    refusedWith(await store.commit(loser), third, "a lost write sent again after a later write");
    await write(store, { ...record, tokens: [newest(record), ...third.tokens] }, newest(third), "the loser's write made again on the current record");
    same((await store.find(first.customer, first.id))?.data, "loser", "the data after it");
  },
  "commit: claims repeated with a record that was written count nothing, whatever came after it, and return the current counts": async (store, peer) => {
    const { customer, now, window, list, sum, other } = newScene();
    const change = (record: RecordWrite, expected: string | null): Change => ({
      claims: [member(window, { now, limit: 50 }), member(list, { now }), weight(sum, 5, { now, limit: 1_000 }), weight(other, 7, { now })],
      asks: [partsOf(other)],
      record,
      expected,
    });
    const changes: Change[] = [];
    let current: RecordWrite | undefined;
    for (let i = 1; i <= 4; i++) {
      const next = current ? following(current, { data: `write ${i}` }) : newRecord({ customer });
      const made = change(next, current ? newest(current) : null);
      changes.push(made);
      same(await store.commit(made), { done: true, counts: [i, i, 5 * i, 7 * i], asked: [7 * i] }, `commit ${i}`);
      current = next;
      for (const [age, earlier] of changes.entries()) {
        const again = await (age % 2 ? peer : store).commit(earlier);
        same(again, { done: true, counts: [i, i, 5 * i, 7 * i], asked: [7 * i] }, `commit ${age + 1} sent again after commit ${i}`);
      }
      await holds(store, window, now - minute, i, `the window after commits 1 to ${i} were sent again`);
      same((await store.members(list, 100)).length, i, `the list after commits 1 to ${i} were sent again`);
      const held = await ask(store, [partsOf(sum), partsOf(other)]);
      same(held, [5 * i, 7 * i], `the sums after commits 1 to ${i} were sent again`);
    }
    await stored(store, current as RecordWrite, "the record after all of it");
  },
  "commit: a late repeat of a write, done or rejected, moves no member back in time": async (store) => {
    const { record: first, customer, now, window } = newScene();
    const claim = member(window, { now, limit: 5 });
    const change: Change = { claims: [claim], record: first };
    await commit(store, change, "a member");
    const second = following(first);
    await commit(store, { claims: [{ ...claim, now: now + 1_000 }], record: second, expected: newest(first) }, "the member a second later");
    await commit(store, change, "the first commit sent again");
    await holds(store, window, now + 999, 1, "the window after the first commit was sent again");
    refusedWith(await store.commit({ claims: [claim], record: newRecord({ customer, id: first.id }) }), second, "a twin of the first commit");
    await holds(store, window, now + 999, 1, "the window after a twin was refused");
  },
  "commit: a repeat without room left is done and counts nothing": async (store) => {
    const { record, now, window, sum } = newScene();
    const change: Change = { claims: [member(window, { now, limit: 1 }), weight(sum, 10, { now, limit: 10 })], record };
    await commit(store, change, "a commit that fills its window and its sum");
    for (let i = 0; i < 3; i++) {
      same((await commit(store, change, "it sent again")).counts, [1, 10], "the counts when it was sent again");
      await holds(store, window, now - minute, 1, "the window after it was sent again");
      await sums(store, sum, 10, "the sum after it was sent again");
    }
    await stored(store, record, "the record after it was sent again");
  },
  "commit: takes out and gives back once with a record, however often it is sent": async (store) => {
    const { record: first, now, window, sum } = newScene();
    const taken = member(window, { now, limit: 5 });
    const claims = [taken, weight(sum, 10, { now })];
    await commit(store, { claims, record: first }, "a member and a weight of 10");
    await commit(store, { claims: [weight(sum, 30, { now })] }, "30 more in the sum at the same time");
    const settled = following(first);
    const back: Change = { claims: [{ ...taken, out: true }, weight(sum, -4, { now })], record: settled, expected: newest(first) };
    await commit(store, back, "the member taken out and 4 given back");
    const third = await write(store, following(settled), newest(settled));
    for (let i = 0; i < 3; i++) await commit(store, back, "it sent again");
    await sums(store, sum, 36, "the sum after 4 were given back, and sent again");
    await holds(store, window, now - minute, 0, "the window after its member was taken out, and sent again");
    await commit(store, { claims, record: first }, "the first commit sent again");
    await sums(store, sum, 36, "the sum after the first commit was sent again");
    await holds(store, window, now - minute, 0, "the window after the first commit was sent again");
    await stored(store, third, "the record after all of it");
  },
};
