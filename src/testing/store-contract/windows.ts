import { randomUUID } from "node:crypto";
import { commit, countOf, ensure, fill, granted, holds, refused, roomFor, type StoreCases, same } from "./checks.js";
import { member, minute, newName, newScene, oddTexts } from "./fixtures.js";

/** Claims on windows, which store their members, one caller at a time. */
export const windowCases: StoreCases = {
  "window: grants exactly `limit` members, one after another, each with the count that includes it": async (store, peer) => {
    for (const limit of [1, 3, 10]) {
      const { window, now } = newScene();
      for (let i = 1; i <= limit; i++) await granted(i % 2 ? peer : store, [member(window, { limit, now })], [i], `member ${i} of ${limit}`);
      for (let i = 0; i < 3; i++) await refused(store, [member(window, { limit, now })], 0, limit, `a member past a limit of ${limit}`);
      await holds(peer, window, now - minute, limit, "the window after it was filled");
    }
  },
  "window: if a rejection reports since when there is room, a claim is granted from exactly that time on": async (store, peer) => {
    for (const limit of [1, 3, 30]) {
      const { window, now } = newScene();
      const times = Array.from({ length: limit }, (_, i) => now - minute + 1 + ((i * 7_919) % 50_000));
      const since = now - 2 * minute;
      for (const at of times) await commit(store, { claims: [member(window, { limit, now: at, since })] }, "a member at its time");
      const room = await roomFor(peer, member(window, { limit, now, since }), `a member past a limit of ${limit}`);
      if (room !== undefined) same(room, Math.min(...times), `the room under a limit of ${limit}`);
      const [again] = await store.members(window, 1);
      const own = member(window, { limit, now: now + 1, since, member: again as string });
      await fill(store, window, limit, { limit: 1_000, now, since });
      const moved = await roomFor(store, own, "a member that is there, with others in its place");
      if (moved !== undefined) same(moved, now, "the room among others of one time");
    }
  },
  "window: a limit of 1,000 is exact": async (store) => {
    const { window, now } = newScene();
    await fill(store, window, 1_000, { limit: 1_000, now });
    await refused(store, [member(window, { limit: 1_000, now })], 0, 1_000, "the 1,001st member");
    await granted(store, [member(window, { limit: 1_000, now: now + minute })], [1], "a member as soon as the window has moved past all others");
  },
  "window: an existing member moves to `now`, never back in time": async (store) => {
    const { window, now } = newScene();
    const moved = member(window, { limit: 5, now });
    await granted(store, [moved], [1], "the member");
    await fill(store, window, 1, { limit: 5, now: now + 10 });
    for (const later of [100, 50, -50]) await granted(store, [{ ...moved, now: now + later }], [2], `the member as of ${later} ms later`);
    await holds(store, window, now - 1, 2, "both members");
    await holds(store, window, now + 10, 1, "members newer than the other one");
    await holds(store, window, now + 99, 1, "members a millisecond before the moved one");
    await holds(store, window, now + 100, 0, "members newer than the moved one");
  },
  "window: an existing member of a full window is granted": async (store) => {
    const { window: full, other, now } = newScene();
    const inside = member(full, { limit: 3, now });
    await fill(store, full, 1, { limit: 3, now });
    await fill(store, full, 1, { limit: 3, now: now + 2 });
    await granted(store, [inside], [3], "the member that fills the window");
    await granted(store, [{ ...inside, now: now + 1 }], [3], "the same member again");
    await granted(store, [{ ...inside, window: other, limit: 1 }, inside], [1, 3], "the same member with a second window");
    await refused(store, [member(full, { limit: 3, now: now + 1 })], 0, 3, "a fourth member");
    await refused(store, [{ ...inside, limit: 2 }], 0, 2, "the member, where two others are too many");
    const later = { ...inside, now: now + 2 * minute, since: now + 1, limit: 1 };
    await refused(store, [later], 0, 1, "the member, which no longer counts, with another in its place");
    await holds(store, full, now - minute, 3, "the full window");
  },
  "window: members at `since` or before do not count": async (store) => {
    const { window, now } = newScene();
    await fill(store, window, 1, { limit: 1, now });
    await refused(store, [member(window, { limit: 1, now: now + 100, since: now - 1 })], 0, 1, "since one millisecond before the member");
    await granted(store, [member(window, { limit: 1, now: now + 100, since: now })], [1], "since the member's own time");
    await holds(store, window, now - 1, 2, "since one millisecond before the first");
    await holds(store, window, now, 1, "since the first");
  },
  "window: members ahead of the caller's clock count": async (store, peer) => {
    const { window, now } = newScene();
    await fill(store, window, 2, { limit: 3, now: now + 5_000 });
    await granted(peer, [member(window, { limit: 3, now })], [3], "a caller five seconds behind");
    await refused(peer, [member(window, { limit: 3, now })], 0, 3, "a second caller five seconds behind");
    await refused(store, [member(window, { limit: 3, now: now + 5_000 })], 0, 3, "a caller at the members' time");
    await holds(store, window, now, 2, "members later than the slow caller's now");
  },
  "window: members leave one by one as the window moves on": async (store) => {
    const window = newName();
    const start = Date.now() - 2 * minute;
    for (let i = 0; i < 3; i++) await fill(store, window, 1, { limit: 3, now: start + i * 10_000 });
    for (let i = 0; i < 3; i++) {
      const end = start + i * 10_000 + minute;
      await refused(store, [member(window, { limit: 3, now: end - 1 })], 0, 3, `a millisecond before member ${i} leaves`);
      await granted(store, [member(window, { limit: 3, now: end })], [3], `when member ${i} leaves`);
    }
  },
  "window: two claims over two lengths each get their own count, and the member is added once": async (store) => {
    const window = newName();
    const start = Date.now() - minute;
    const both = (now: number) => {
      const long = member(window, { now, limit: 3 });
      return [{ ...long, limit: 2, since: now - 1_000 }, long];
    };
    await granted(store, both(start), [1, 1], "the first");
    await holds(store, window, start - 1, 1, "the window after one grant");
    await granted(store, both(start + 1), [2, 2], "the second");
    await refused(store, both(start + 2), 0, 2, "a third within the short length");
    await granted(store, both(start + 2_000), [1, 3], "a third after the short length");
    await refused(store, both(start + 4_000), 1, 3, "a fourth within the long length");
    await holds(store, window, start - 1, 3, "the window after three grants");
  },
  "window: each claim's own limit applies, lowered or raised since the last": async (store) => {
    const { window, now } = newScene();
    await fill(store, window, 3, { limit: 5, now });
    await refused(store, [member(window, { limit: 3, now })], 0, 3, "a limit lowered to what is there");
    await refused(store, [member(window, { limit: 1, now })], 0, 3, "a limit lowered below what is there");
    await granted(store, [member(window, { limit: 4, now })], [4], "a limit raised by one");
    await refused(store, [member(window, { limit: 4, now })], 0, 4, "the same limit once more");
  },
  "window: keeps members, names and customers apart whatever they look like": async (store, peer) => {
    const { customer, now } = newScene();
    const all = oddTexts.length;
    for (const again of [0, 1])
      for (const [i, odd] of oddTexts.entries()) {
        const claims = [member(customer, { limit: all, now, member: odd }), member(`${customer}:${odd}`, { limit: 1, now, member: `${i}` })];
        await granted(again ? peer : store, claims, [again ? all : i + 1, 1], `a member and a window named ${JSON.stringify(odd)}`);
      }
    same((await store.members(customer, 100)).sort(), [...oddTexts].sort(), "the members");
    for (const [i, odd] of oddTexts.entries()) same(await store.members(`${customer}:${odd}`, 2), [`${i}`], `the members of ${JSON.stringify(odd)}`);
    await holds(store, `${randomUUID()}:a:b`, now - minute, 0, "another customer's window of the same name");
  },
  "window: a claim without a limit is counted, never rejected": async (store, peer) => {
    const { list, now } = newScene();
    for (let i = 0; i < 1_200; i += 100) {
      const many = Array.from({ length: 100 }, (_, j) => commit(j % 2 ? peer : store, { claims: [member(list, { now, member: `${i + j}` })] }, "a member"));
      await Promise.all(many);
    }
    await granted(store, [member(list, { now: now + 1, member: "last" })], [1_201], "member 1,201");
    await granted(store, [member(list, { now: now + 1, member: "7" })], [1_201], "a member that is there");
    await granted(store, [member(list, { now: now + 2, since: now, member: "newest" })], [3], "a member, counted since the last two");
  },
  "members: returns the newest first, at most `limit`, each once, and none of a missing window": async (store, peer) => {
    const { customer, now } = newScene();
    const offsets = [40, 10, 0, 30, 90, 20, 70, 50, 80, 60];
    for (const limited of [{}, { limit: 100 }]) {
      const window = newName(customer);
      for (const offset of offsets)
        await commit(store, { claims: [member(window, { now: now + offset, member: `+1415555${offset}`, ...limited })] }, "a member");
      const newestFirst = [90, 80, 70, 60, 50, 40, 30, 20, 10, 0].map((offset) => `+1415555${offset}`);
      same(await peer.members(window, 100), newestFirst, "all members");
      same(await store.members(window, 10), newestFirst, "ten of ten members");
      same(await store.members(window, 3), newestFirst.slice(0, 3), "three of them");
      await commit(store, { claims: [member(window, { now: now + 100, member: "+141555520", ...limited })] }, "a member moved to the end");
      same(await store.members(window, 2), ["+141555520", "+141555590"], "the newest two after one has moved");
      same((await store.members(window, 100)).length, 10, "how many there are after one has moved");
    }
    same(await store.members(newName(customer), 10), [], "an absent window");
  },
  "out: removes a member only if its time is exactly `now`; the count is what is left": async (store, peer) => {
    for (const limited of [{ limit: 5 }, {}]) {
      const { window, now } = newScene();
      const count = () => countOf(store, window, now - minute, !("limit" in limited));
      const [one, two] = [member(window, { now, ...limited }), member(window, { now, ...limited })];
      await granted(store, [one], [1], "a member");
      await granted(store, [two], [2], "another at the same time");
      for (const wrong of [now - 1, now + 1, now + minute]) {
        const late = { ...one, now: wrong, out: true } as const;
        await granted(peer, [late], [2], `the member taken out as of ${wrong - now} ms later`);
      }
      await granted(store, [member(window, { now, ...limited, out: true })], [2], "a member that was never there taken out");
      await granted(store, [{ ...one, now: now + 7 }], [2], "the member claimed again, which moves it");
      await granted(store, [{ ...one, out: true }], [2], "the member taken out of where it was before");
      same(await count(), 2, "the window so far");
      await granted(peer, [{ ...one, now: now + 7, out: true }], [1], "the member taken out of where it is");
      await granted(peer, [{ ...one, now: now + 7, out: true }], [1], "the member taken out again");
      same(await store.members(window, 10), [two.member], "the members left");
      await granted(store, [{ ...two, out: true }], [0], "the last member taken out");
      same(await store.members(window, 10), [], "the members after the last was taken out");
      same(await count(), 0, "the window after the last was taken out");
    }
  },
  "out: is granted in a window at or over its limit, and makes room for exactly one": async (store) => {
    const { window, now } = newScene();
    const first = member(window, { limit: 3, now });
    await granted(store, [first], [1], "a member");
    await fill(store, window, 2, { limit: 3, now });
    await refused(store, [member(window, { limit: 3, now })], 0, 3, "a fourth member");
    await granted(store, [{ ...first, limit: 1, out: true }], [2], "the first taken out, with a limit below what is there");
    await granted(store, [member(window, { limit: 3, now })], [3], "another in its place");
    await refused(store, [member(window, { limit: 3, now })], 0, 3, "one more");
    await granted(store, [member(window, { limit: 1, now, out: true })], [3], "an unknown member taken out of a full window");
    ensure(!(await store.members(window, 10)).includes(first.member), "the member that was taken out is among the members");
  },
  "window: keeps the newest members, eight more than its largest limit": async (store, peer) => {
    const window = newName();
    const start = Date.now() - 40 * minute;
    const members = Array.from({ length: 30 }, (_, i) => `member ${i}`);
    for (const [i, name] of members.entries()) {
      const now = start + i * minute;
      const claims = [member(window, { member: name, now, limit: 2 }), member(window, { member: name, now, limit: 10, since: now - 5 * minute })];
      await commit(store, { claims }, "a member a minute");
    }
    same((await peer.members(window, 18)).join(), members.slice(-18).reverse().join(), "the newest eighteen");
  },
};
