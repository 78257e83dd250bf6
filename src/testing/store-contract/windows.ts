import { randomUUID } from "node:crypto";
import { claim, fill, granted, holds, newWindow, refusedBy, type StoreCase, same } from "./fixtures.js";

const oddNames = [
  ":",
  "::a",
  "a:b",
  "$where",
  "$",
  ".",
  "a.b",
  "{}",
  "{a}",
  "*",
  "__proto__",
  "constructor",
  "toString",
  "1",
  "01",
  "1.0",
  "1e0",
  "null",
  "é",
  "e\u0301",
  "日本",
  "😀",
  "'",
  '"',
  "\n",
  "a\0b",
  " ",
  "a ",
  "x".repeat(256),
];

/** `reserve` and `count`, one caller at a time, with limits up to 1,000. */
export const windowCases: readonly StoreCase[] = [
  {
    name: "reserve: one after another exactly `limit` members are granted",
    async run(store, peer) {
      for (const limit of [1, 3, 10]) {
        const window = newWindow();
        const now = Date.now();
        for (let i = 0; i < limit; i++) same(await (i % 2 ? peer : store).reserve([claim(window, { limit, now })]), granted, `member ${i + 1} of ${limit}`);
        for (let i = 0; i < 3; i++) same(await store.reserve([claim(window, { limit, now })]), refusedBy(0), `a member past a limit of ${limit}`);
        await holds(peer, window, now - 60_000, limit, "the window after it was filled");
      }
    },
  },
  {
    name: "reserve: a limit of 1,000 is exact",
    async run(store) {
      const window = newWindow();
      const now = Date.now();
      await fill(store, window, 1000, { limit: 1000, now });
      same(await store.reserve([claim(window, { limit: 1000, now })]), refusedBy(0), "the 1,001st member");
      const moved = now + 60_001;
      same(await store.reserve([claim(window, { limit: 1000, now: moved })]), granted, "a member as soon as the window has moved past all others");
    },
  },
  {
    name: "reserve: a member that left the window long ago has to fit in again",
    async run(store, peer) {
      const window = newWindow();
      const now = Date.now();
      const member = randomUUID();
      same(await store.reserve([claim(window, { member, now: now - 120_000 })]), granted, "the member's first claim");
      await fill(peer, window, 1, { now });
      same(await store.reserve([claim(window, { member, now })]), refusedBy(0), "its second claim, with another in its place");
    },
  },
  {
    name: "reserve: no claims are granted, and count of no windows is empty",
    async run(store) {
      same(await store.reserve([]), granted, "no claims");
      same(await store.count([]), [], "no windows");
    },
  },
  {
    name: "reserve: the first claim whose window is full is named, in the order given",
    async run(store) {
      const customer = randomUUID();
      const [roomy, fullA, fullB] = [newWindow(customer), newWindow(customer), newWindow(customer)];
      await fill(store, fullA, 1, {});
      await fill(store, fullB, 2, { limit: 2 });
      const wants = (...names: string[]) => names.map((name) => claim(name, { limit: name === fullB ? 2 : 1 }));
      same(await store.reserve(wants(roomy, fullA, fullB)), refusedBy(1), "room, full A, full B");
      same(await store.reserve(wants(roomy, fullB, fullA)), refusedBy(1), "room, full B, full A");
      same(await store.reserve(wants(fullB, roomy, fullA)), refusedBy(0), "full B, room, full A");
      same(await store.reserve(wants(roomy, newWindow(customer), newWindow(customer), fullA)), refusedBy(3), "three with room, full A");
    },
  },
  {
    name: "reserve: a refusal charges nothing, neither before nor after the full window",
    async run(store) {
      const customer = randomUUID();
      const [before, full, after] = [newWindow(customer), newWindow(customer), newWindow(customer)];
      const now = Date.now();
      await fill(store, before, 1, { limit: 3, now });
      await fill(store, full, 1, { limit: 1, now });
      for (let i = 0; i < 5; i++) {
        const member = randomUUID();
        const claims = [claim(before, { limit: 3, now, member }), claim(full, { now, member }), claim(after, { limit: 3, now, member })];
        same(await store.reserve(claims), refusedBy(1), "the second window is full");
      }
      const counts = [before, full, after].map((window) => ({ window, since: now - 60_000 }));
      same(await store.count(counts), [1, 1, 0], "the windows after five refusals");
      await fill(store, before, 2, { limit: 3, now });
      await fill(store, after, 3, { limit: 3, now });
    },
  },
  {
    name: "reserve: a refusal neither moves nor removes a member that is already in another window of the claim",
    async run(store) {
      const customer = randomUUID();
      const [held, full] = [newWindow(customer), newWindow(customer)];
      const now = Date.now();
      const member = randomUUID();
      same(await store.reserve([claim(held, { member, now: now - 30_000 })]), granted, "the member's first claim");
      await fill(store, full, 1, { now });
      same(await store.reserve([claim(held, { member, now }), claim(full, { member, now })]), refusedBy(1), "its second claim, with a full window");
      await holds(store, held, now - 30_001, 1, "the window that held the member");
      await holds(store, held, now - 30_000, 0, "the window that held the member, later than its first claim");
    },
  },
  {
    name: "reserve: every window takes its member when all are granted",
    async run(store, peer) {
      const customer = randomUUID();
      const windows = Array.from({ length: 8 }, () => newWindow(customer));
      const now = Date.now();
      same(await store.reserve(windows.map((window, i) => claim(window, { now, limit: i + 1 }))), granted, "eight windows with room");
      const counts = windows.map((window) => ({ window, since: now - 60_000 }));
      same(await peer.count(counts), [1, 1, 1, 1, 1, 1, 1, 1], "the eight windows");
    },
  },
  {
    name: "reserve: a member that is already there is counted once",
    async run(store, peer) {
      const window = newWindow();
      const now = Date.now();
      const member = randomUUID();
      for (let i = 0; i < 5; i++)
        same(await (i % 2 ? peer : store).reserve([claim(window, { limit: 2, now: now + i, member })]), granted, `the member's claim ${i + 1}`);
      await holds(store, window, now - 60_000, 1, "the window after five claims of one member");
      await fill(store, window, 1, { limit: 2, now });
      same(await store.reserve([claim(window, { limit: 2, now })]), refusedBy(0), "a third member");
    },
  },
  {
    name: "reserve: a member that is already there moves to `now`",
    async run(store) {
      const window = newWindow();
      const now = Date.now();
      const member = randomUUID();
      same(await store.reserve([claim(window, { limit: 5, now, member })]), granted, "the member");
      await fill(store, window, 1, { limit: 5, now: now + 10 });
      same(await store.reserve([claim(window, { limit: 5, now: now + 100, member })]), granted, "the member again");
      await holds(store, window, now - 1, 2, "both members");
      await holds(store, window, now + 10, 1, "members newer than the other one");
      await holds(store, window, now + 99, 1, "members at the moved one's time");
      await holds(store, window, now + 100, 0, "members newer than the moved one");
    },
  },
  {
    name: "reserve: a member that is already in a full window is granted",
    async run(store) {
      const customer = randomUUID();
      const [full, other] = [newWindow(customer), newWindow(customer)];
      const now = Date.now();
      const member = randomUUID();
      await fill(store, full, 2, { limit: 3, now });
      same(await store.reserve([claim(full, { limit: 3, now, member })]), granted, "the member that fills the window");
      same(await store.reserve([claim(full, { limit: 3, now: now + 1, member })]), granted, "the same member again");
      same(await store.reserve([claim(other, { now, member }), claim(full, { limit: 3, now, member })]), granted, "the same member with a second window");
      same(await store.reserve([claim(full, { limit: 3, now: now + 1 })]), refusedBy(0), "a fourth member");
      same(await store.reserve([claim(full, { limit: 2, now: now + 1, member })]), refusedBy(0), "the member, where two others are too many");
      await holds(store, full, now - 60_000, 3, "the full window");
    },
  },
  {
    name: "reserve: members at `since` or before do not count",
    async run(store) {
      const window = newWindow();
      const now = Date.now();
      await fill(store, window, 1, { now });
      same(await store.reserve([claim(window, { now: now + 100, since: now - 1 })]), refusedBy(0), "since one millisecond before the member");
      same(await store.reserve([claim(window, { now: now + 100, since: now })]), granted, "since the member's own time");
      await holds(store, window, now - 1, 2, "since one millisecond before the first");
      await holds(store, window, now, 1, "since the first");
    },
  },
  {
    name: "reserve: members ahead of the caller's clock count",
    async run(store, peer) {
      const window = newWindow();
      const now = Date.now();
      await fill(store, window, 2, { limit: 3, now: now + 5_000 });
      same(await peer.reserve([claim(window, { limit: 3, now })]), granted, "a caller five seconds behind");
      same(await peer.reserve([claim(window, { limit: 3, now })]), refusedBy(0), "a second caller five seconds behind");
      same(await store.reserve([claim(window, { limit: 3, now: now + 5_000 })]), refusedBy(0), "a caller at the members' time");
      await holds(store, window, now, 2, "members later than the slow caller's now");
    },
  },
  {
    name: "reserve: room comes back one by one as the window moves on",
    async run(store) {
      const window = newWindow();
      const start = Date.now() - 120_000;
      for (let i = 0; i < 3; i++) await fill(store, window, 1, { limit: 3, now: start + i * 10_000 });
      for (let i = 0; i < 3; i++) {
        const end = start + i * 10_000 + 60_000;
        same(await store.reserve([claim(window, { limit: 3, now: end - 1 })]), refusedBy(0), `a millisecond before member ${i} leaves`);
        same(await store.reserve([claim(window, { limit: 3, now: end })]), granted, `when member ${i} leaves`);
      }
    },
  },
  {
    name: "reserve: two claims on one window hold it over two lengths, and charge it once",
    async run(store) {
      const window = newWindow();
      const start = Date.now() - 60_000;
      const both = (now: number) => {
        const common = { member: randomUUID(), now, keepUntil: now + 1_800_000 };
        return [claim(window, { ...common, limit: 2, since: now - 1_000 }), claim(window, { ...common, limit: 3, since: now - 60_000 })];
      };
      same(await store.reserve(both(start)), granted, "the first");
      await holds(store, window, start - 1, 1, "the window after one grant");
      same(await store.reserve(both(start + 1)), granted, "the second");
      same(await store.reserve(both(start + 2)), refusedBy(0), "a third within the short length");
      same(await store.reserve(both(start + 2_000)), granted, "a third after the short length");
      same(await store.reserve(both(start + 4_000)), refusedBy(1), "a fourth within the long length");
      await holds(store, window, start - 1, 3, "the window after three grants");
    },
  },
  {
    name: "reserve: members are told apart whatever they look like",
    async run(store) {
      const window = newWindow();
      const now = Date.now();
      for (const member of oddNames)
        same(await store.reserve([claim(window, { limit: oddNames.length, now, member })]), granted, `member ${JSON.stringify(member)}`);
      await holds(store, window, now - 1, oddNames.length, "the window with odd members");
      for (const member of oddNames)
        same(await store.reserve([claim(window, { limit: oddNames.length, now, member })]), granted, `member ${JSON.stringify(member)} again`);
      await holds(store, window, now - 1, oddNames.length, "the window after every member came again");
    },
  },
  {
    name: "reserve: windows are told apart whatever their names look like",
    async run(store) {
      const customer = randomUUID();
      const now = Date.now();
      const names = [...oddNames.map((name) => `${customer}:${name}`), customer];
      for (const window of names) same(await store.reserve([claim(window, { now })]), granted, `window ${JSON.stringify(window)}`);
      const counts = await store.count(names.map((window) => ({ window, since: now - 1 })));
      same(
        counts,
        names.map(() => 1),
        "every window",
      );
    },
  },
  {
    name: "reserve: windows of different customers do not touch",
    async run(store) {
      const [mine, theirs] = [randomUUID(), randomUUID()];
      const now = Date.now();
      const member = randomUUID();
      same(await store.reserve([claim(`${mine}:number:+14155550100`, { now, member })]), granted, "my window");
      await holds(store, `${theirs}:number:+14155550100`, now - 1, 0, "their window of the same name");
      same(await store.reserve([claim(`${theirs}:number:+14155550100`, { now, member })]), granted, "their window");
      same(await store.reserve([claim(`${mine}:number:+14155550100`, { now })]), refusedBy(0), "my full window");
    },
  },
  {
    name: "reserve: each claim's own limit holds, lowered or raised since the last",
    async run(store) {
      const window = newWindow();
      const now = Date.now();
      await fill(store, window, 3, { limit: 5, now });
      same(await store.reserve([claim(window, { limit: 3, now })]), refusedBy(0), "a limit lowered to what is there");
      same(await store.reserve([claim(window, { limit: 1, now })]), refusedBy(0), "a limit lowered below what is there");
      same(await store.reserve([claim(window, { limit: 4, now })]), granted, "a limit raised by one");
      same(await store.reserve([claim(window, { limit: 4, now })]), refusedBy(0), "the same limit once more");
    },
  },
  {
    name: "count: distinct members newer than `since`, in the order asked, absent windows as 0",
    async run(store, peer) {
      const customer = randomUUID();
      const [one, two] = [newWindow(customer), newWindow(customer)];
      const now = Date.now();
      for (const member of ["+14155550100", "+14155550101", "+14155550100", "+4915112345678"]) {
        same(await store.reserve([claim(one, { limit: 100, now, member })]), granted, `the number ${member}`);
      }
      await fill(store, two, 1, { now: now + 10 });
      const asked = [
        { window: newWindow(customer), since: 0 },
        { window: two, since: now },
        { window: one, since: now - 1 },
        { window: two, since: now + 10 },
        { window: one, since: 0 },
        { window: one, since: now },
      ];
      same(await store.count(asked), [0, 1, 3, 0, 3, 0], "the counts");
      same(await peer.count(asked), [0, 1, 3, 0, 3, 0], "the counts a second time, by the peer: counting charges nothing");
    },
  },
];
