import { randomUUID } from "node:crypto";
import { claim, granted, holds, newWindow, refusedBy, type StoreCase, same } from "./fixtures.js";

const length = 1_200_000;
const limit = 1001;

/** A claim with a limit above 1,000 over twenty minutes. */
function large(window: string, now: number, member: string = randomUUID()) {
  return claim(window, { limit, now, since: now - length, keepUntil: now + 2 * length, member });
}

/** `reserve` with limits above 1,000, where a store may count in twelve sub-windows: never above the limit, and free again at most a twelfth of the length late. */
export const largeWindowCases: readonly StoreCase[] = [
  {
    name: "reserve: a limit above 1,000 is exact while all members are new, and free again a twelfth of the length late at most",
    async run(store) {
      const window = newWindow();
      const now = Date.now();
      const first = randomUUID();
      same(await store.reserve([large(window, now, first)]), granted, "the first member");
      for (let i = 1; i < limit; i++) {
        same(await store.reserve([large(window, now)]), granted, `member ${i + 1} of ${limit}`);
        if (i % 100 === 0) same(await store.reserve([large(window, now, first)]), granted, "the first member again");
      }
      await holds(store, window, now - length, limit, "the full window");
      same(await store.reserve([large(window, now)]), refusedBy(0), `a member past ${limit}`);
      same(await store.reserve([large(window, now, first)]), granted, "a member that is already in the full window");
      same(await store.reserve([large(window, now + length - 1)]), refusedBy(0), "a member a millisecond before the others leave");
      same(await store.reserve([large(window, now + length + length / 12)]), granted, "a member a twelfth of the length after the others left");
    },
  },
  {
    name: "reserve: a limit above 1,000 counts a member once that comes again in a later twelfth, and moves it",
    async run(store) {
      const window = newWindow();
      const now = Date.now();
      const members = Array.from({ length: 5 }, () => randomUUID());
      for (let twelfth = 11; twelfth >= 0; twelfth--) {
        for (const member of members) same(await store.reserve([large(window, now - (twelfth * length) / 12, member)]), granted, `${twelfth} twelfths ago`);
      }
      await holds(store, window, now - length, members.length, "the window after twelve claims of each member");
      await holds(store, window, now - length / 4, members.length, "the newest quarter of it");
    },
  },
  {
    name: "reserve: one window holds a short length with a small limit and a long one with a limit above 1,000",
    async run(store) {
      const window = newWindow();
      const start = Date.now() - 600_000;
      const both = (now: number) => {
        const long = large(window, now);
        return [{ ...long, limit: 2, since: now - 1_000 }, long];
      };
      for (let i = 0; i < 4; i++) {
        const now = start + i * 2_000;
        same(await store.reserve(both(now)), granted, `the first of second ${2 * i}`);
        same(await store.reserve(both(now)), granted, `the second of second ${2 * i}`);
        same(await store.reserve(both(now)), refusedBy(0), `the third of second ${2 * i}`);
      }
      await holds(store, window, start - length / 2, 8, "the window after eight grants");
    },
  },
  {
    name: "reserve: members count alike when a window's limit crosses 1,000 either way",
    async run(store) {
      const window = newWindow();
      const now = Date.now();
      const small = () => ({ ...large(window, now), limit: 3 });
      for (let i = 0; i < 3; i++) same(await store.reserve([small()]), granted, `member ${i + 1} under a limit of 3`);
      same(await store.reserve([small()]), refusedBy(0), "a fourth under a limit of 3");
      same(await store.reserve([large(window, now)]), granted, "a fourth, the limit raised above 1,000");
      await holds(store, window, now - length, 4, "the window after four grants");
      same(await store.reserve([small()]), refusedBy(0), "a fifth, the limit lowered to 3 again");
      same(await store.reserve([{ ...small(), limit: 5 }]), granted, "a fifth under a limit of 5");
      await holds(store, window, now - length, 5, "the window after five grants");
    },
  },
  {
    name: "reserve: a refusal by a window with a limit above 1,000 charges nothing, nor does it when another refuses",
    async run(store) {
      const customer = randomUUID();
      const [small, big] = [newWindow(customer), newWindow(customer)];
      const now = Date.now();
      same(await store.reserve([claim(small, { now })]), granted, "the small window's only member");
      for (let i = 0; i < 3; i++) same(await store.reserve([large(big, now), claim(small, { now })]), refusedBy(1), "the small window is full");
      await holds(store, big, now - length, 0, "the large window after refusals by the small one");
    },
  },
];
