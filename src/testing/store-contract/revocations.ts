import type { Change, Claim, RecordWrite, Store } from "../../ports/store.js";
import { ask, commit, countOf, fill, granted, holds, refused, refusedWith, type StoreCases, same, stored, sums, write } from "./checks.js";
import { following, member, minute, newest, newName, newRecord, newScene, part, partsOf, weight } from "./fixtures.js";

/**
 * A window, a list and two sums with some content, a commit that claims more of each, and what they hold without it.
 */
async function scene(store: Store) {
  const { record, now, window, list, sum, other } = newScene();
  const own = member(window, { now, limit: 9 });
  const claims: Claim[] = [
    own,
    { ...own, limit: 5, since: now - 1_000 },
    member(list, { now }),
    weight(sum, 7, { now, limit: 50, part: part - 1 }),
    weight(other, -3, { now }),
  ];
  const others = () => [member(window, { now, limit: 9 }), member(list, { now }), weight(sum, 20, { now }), weight(other, 30, { now, part: part - 1 })];
  await granted(store, others(), [1, 1, 20, 30], "what others claimed before");
  const held = async (handle: Store, expected: readonly number[], what: string) => {
    const members = [await countOf(handle, window, now - minute), await countOf(handle, list, now - minute, true)];
    same([...members, ...(await ask(handle, [partsOf(sum), partsOf(other)]))], expected, `${what}: the window, the list and the sums`);
  };
  return { record, claims, held, change: { claims, record } satisfies Change, without: [1, 1, 20, 30], withIt: [2, 2, 27, 27] };
}

/** A write over `current`, or of a new record, that revokes what the commit of `record` claimed. */
export function revoking(record: RecordWrite, claims: readonly Claim[], current: RecordWrite | undefined): Change & { readonly record: RecordWrite } {
  const next = current ? following(current, { data: "revoked" }) : newRecord({ customer: record.customer, id: record.id, data: "revoked" });
  return { record: next, expected: current ? newest(current) : null, revoke: { token: newest(record), claims } };
}

/** Changes that revoke what another commit claimed. */
export const revocationCases: StoreCases = {
  "revoke: removes the members and subtracts the weights of a commit that was done, from the parts they were added to, once, whatever is repeated": async (
    store,
    peer,
  ) => {
    const { record, claims, held, change, without, withIt } = await scene(store);
    await commit(store, change, "the commit");
    await held(store, withIt, "after the commit");
    const back = revoking(record, claims, record);
    for (const handle of [store, peer]) {
      await commit(handle, back, "the revocation");
      await held(store, without, "after the revocation");
      await commit(handle, change, "the commit sent again, which landed before");
      await held(store, without, "after the commit was sent again");
    }
    for (const claim of claims)
      if ("sum" in claim && claim.part !== part) await sums(store, claim.sum, 20, "the part that the commit did not add to", { part: part + 2 });
    await stored(store, back.record, "the record");
    const later = await write(store, following(back.record), newest(back.record));
    await commit(peer, back, "the revocation sent again after another write");
    await held(store, without, "after the revocation was sent again after another write");
    const last = newRecord({ customer: record.customer, id: record.id });
    await write(store, last, newest(later), "a write that leaves the older tokens out");
    refusedWith(await peer.commit(change), last, "the commit sent again, whose token is no longer there");
    await held(store, without, "after the commit was sent again and refused");
  },
  "revoke: takes back a commit that is followed by other writes, with whatever else the change does": async (store, peer) => {
    const { record, claims, held, change, without, withIt } = await scene(store);
    await commit(store, change, "the commit");
    const [window, sum] = [newName(record.customer), newName(record.customer)];
    const between = following(record);
    await commit(peer, { claims: [weight(sum, 9)], record: between, expected: newest(record) }, "a write after it");
    await held(store, withIt, "after a write after it");
    const back = { ...revoking(record, claims, between), claims: [member(window, { limit: 1 }), weight(sum, -4)] };
    for (let i = 0; i < 3; i++) same((await commit(store, back, "the revocation")).counts, [1, 5], "the counts of its own claims");
    await held(peer, without, "after the revocation");
    await sums(peer, sum, 5, "a sum that was not revoked");
  },
  "revoke: does not take back a commit that was not done, which must not be done later either": async (store, peer) => {
    for (const isFirst of [true, false]) {
      const { record, claims, held, without } = await scene(store);
      const before = isFirst ? undefined : await write(store, record, null);
      const next = before ? following(before) : record;
      const late: Change = { claims, record: next, expected: before ? newest(before) : null };
      const back = revoking(next, claims, before);
      for (let i = 0; i < 2; i++) await commit(store, back, "the revocation of what has not landed");
      await held(store, without, "after the revocation of what had not landed");
      for (const handle of [peer, store]) refusedWith(await handle.commit(late), back.record, "the revoked commit, which comes later");
      await held(store, without, "after the revoked commit came later");
      await commit(store, back, "the revocation sent again");
      await held(store, without, "after the revocation was sent again");
      await stored(store, back.record, "the record");
    }
  },
  "revoke: a rejected change takes nothing back, and the revoked commit can still be done": async (store) => {
    const { record, claims, held, change, withIt, without } = await scene(store);
    const full = newName(record.customer);
    await fill(store, full, 1, { limit: 1, now: record.now });
    const back = revoking(record, claims, record);
    const refusing = { ...revoking(record, claims, undefined), claims: [member(full, { limit: 1, now: record.now })] };
    refusedWith(await store.commit(back), undefined, "a revocation over a record that is not there");
    same((await store.commit(refusing)).done, false, "a revocation of which a claim is refused");
    await commit(store, change, "the commit that was not revoked");
    await held(store, withIt, "after the commit");
    refusedWith(await store.commit({ ...back, expected: "wrong" }), record, "a revocation over the wrong record");
    same((await store.commit({ ...refusing, expected: newest(record) })).done, false, "a revocation of which a claim is refused");
    await held(store, withIt, "after refused revocations");
    await commit(store, { ...revoking(record, claims, record) }, "a revocation that is not refused");
    await held(store, without, "after a revocation that was not refused");
  },
  "revoke: keeps a member that existed before, or that another commit has claimed since, at its current time": async (store, peer) => {
    for (const limited of [{ limit: 5 }, {}])
      for (const by of [50, 0, -50])
        for (const revoked of [0, 1]) {
          const records = [newRecord(), newRecord()] as const;
          const { customer, now } = records[0];
          const one = member(newName(customer), { now, ...limited });
          const changes = [0, by].map((later, i) => ({ claims: [{ ...one, now: now + later }], record: { ...(records[i] as RecordWrite), customer } }));
          for (const [i, change] of changes.entries()) await commit(i ? peer : store, change, `the member claimed ${by} ms later`);
          const { claims, record } = changes[revoked] as (typeof changes)[0];
          await commit(store, revoking(record, claims, record), "the revocation of one of the two claims");
          const list = !("limit" in limited);
          const at = now + Math.max(by, 0);
          same(await countOf(store, one.window, at - 1, list), 1, "members since a millisecond before the member");
          same(await countOf(store, one.window, at, list), 0, "members since the member");
        }
  },
  "revoke: removes a member that had been taken out before the commit added it": async (store) => {
    const { record, now, window } = newScene();
    const added = member(window, { now, limit: 5 });
    for (const at of [now - 20, now - 10]) await granted(store, [{ ...added, now: at }], [1], "the member before");
    await granted(store, [{ ...added, now: now - 10, out: true }], [0], "the member taken out");
    await commit(store, { claims: [added], record }, "the member added");
    await commit(store, revoking(record, [added], record), "the revocation");
    await holds(store, window, now - minute, 0, "the window after the revocation");
  },
  "revoke: what was taken back is available again, to the unit, and a sum's weight is subtracted whatever its floor": async (store, peer) => {
    const { record, now, window, sum, other: low } = newScene();
    await granted(store, [weight(low, -50, { now, part: part - 1 })], [-50], "a sum below its floor");
    const claims = [member(window, { now, limit: 1 }), weight(sum, 10, { now, limit: 10 }), weight(low, 4, { now, limit: 9, floor: -5 })];
    same((await commit(store, { claims, record }, "a commit that fills its window and a sum")).counts, [1, 10, -1], "its counts");
    await refused(peer, [weight(sum, 1, { now, limit: 10 })], 0, 10, "1 more");
    await commit(store, revoking(record, claims, record), "the revocation");
    await granted(peer, [member(window, { now, limit: 1 }), weight(sum, 10, { now, limit: 10 })], [1, 10], "as much again");
    await refused(store, [weight(sum, 1, { now, limit: 10 })], 0, 10, "1 more");
    await sums(store, low, -5, "the sum below its floor, which the commit had raised to it");
  },
};
