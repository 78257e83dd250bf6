import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { redisStore } from "../../adapters/store/redis/index.js";
import type { Store } from "../../src/ports/store.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import type { Connected } from "../support/redis-clients.js";
import { tallied } from "./kit.js";
import { asUsed, type Call, count, mixed, turn } from "./together-kit.js";

const installed = redisIsInstalled("the hostile tests of store calls that go together");

/** Calls go together after a turn in which several came. */
async function crowded(store: Store): Promise<Store> {
  await Promise.all(count(3, () => store.get("none")));
  return store;
}

describe.runIf(installed)("store calls of one turn", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.stop());

  describe.each(Object.keys(asUsed))("through %s", (name) => {
    let connected: Connected;
    beforeAll(async () => {
      connected = await (asUsed[name] as (typeof asUsed)[string])(server);
    });
    afterAll(() => connected?.close());

    it("each get their own answer, whatever their texts hold, under two prefixes of one client", async () => {
      const tag = randomUUID();
      const stores = await Promise.all(["a", "b"].map((prefix) => crowded(redisStore({ client: connected.client, prefix: `${tag}${prefix}` }))));
      const phases = stores.map((store) => mixed(store, tag));
      await server.cli("CONFIG", "RESETSTAT");
      for (let phase = 0; phase < 4; phase++) await turn(phases.flatMap((calls) => calls[phase] as readonly Call[]));
      // They did go together: this is what is tested here.
      const scripts = [...(await server.cli("INFO", "commandstats")).matchAll(/cmdstat_(?:eval|evalsha|fcall):calls=(\d+)/g)].map(([, calls]) => Number(calls));
      const asked = phases.flat(2).length;
      expect(scripts.reduce((sum, calls) => sum + calls, 0)).toBeLessThan(asked / 8);
    });

    it("have answers and arguments by the thousand, beside small ones", async () => {
      const store = await crowded(redisStore({ client: connected.client, prefix: randomUUID() }));
      const now = Date.now();
      const life = { now, keepUntil: now + 600_000 };
      const customer = randomUUID();
      const names = (n: number, most: number) => count(most, (i) => `${customer}:${n}:${i}`);
      const sizes = count(24, (n) => (n % 6 === 0 ? 1_500 : n));
      await turn(
        sizes.flatMap((size, n): Call[] => [
          [
            () =>
              store.tally(
                names(n, size).map((counter, by) => ({ counter, by, ...life })),
                names(n, size),
              ),
            count(size, (i) => i),
          ],
          [
            () => store.commit({ claims: names(n, Math.min(size, 200)).map((window) => ({ window, member: "m", since: now - 1000, ...life })) }),
            { done: true },
          ],
          [
            () => store.commit({ claims: [], asks: names(n, Math.min(size, 200)).map((sum) => ({ sum, since: 0 })) }),
            { asked: count(Math.min(size, 200), () => 0) },
          ],
          [() => store.forget({ windows: names(-1 - n, size) }), undefined],
        ]),
      );
      const crowd = `${customer}:crowd`;
      const claim = (i: number) => ({
        window: crowd,
        member: `member ${i}`,
        limit: 1_000,
        since: now - 5_000,
        now: now - 1_000 + i,
        keepUntil: life.keepUntil,
      });
      await turn(count(1_000, (i): Call => [() => store.commit({ claims: [claim(i)] }), { done: true }]));
      await turn(count(40, (i): Call => [() => store.commit({ claims: [claim(1_000 + i)] }), { done: false, refusedBy: 0, count: 1_000 }]));
      await turn(count(40, (i): Call => [() => store.members(crowd, i % 4 ? i : 1_000), count(i % 4 ? i : 1_000, (n) => `member ${999 - n}`)]));
      await turn(sizes.map((size, n): Call => [() => store.members(`${customer}:${n}:0`, 5), size ? ["m"] : []]));
    });

    it("count together as they would alone: racers of one turn, leases, and one call that fails beside them", async () => {
      const prefix = randomUUID();
      const store = await crowded(redisStore({ client: connected.client, prefix }));
      const now = Date.now();
      const life = { now, keepUntil: now + 600_000 };
      const customer = randomUUID();
      const window = `${customer}:race`;
      const claim = (n: number) => ({ window, member: `${n}`, since: now - 1, limit: 10, ...life });
      const won = await Promise.all(
        count(60, (n) => store.commit({ claims: [claim(n), { sum: `${customer}:sum`, weight: 3, since: now - 12_000, ...life }] })),
      );
      expect(won.flatMap((one) => (one.done ? [one.counts] : [])).sort(([a], [b]) => (a as number) - (b as number))).toEqual(
        count(10, (n) => [n + 1, 3 * n + 3]),
      );
      const records = count(60, (n) => ({ customer, id: randomUUID(), tokens: [`t${n}`], data: `${n}`, wakeAt: now - n, ...life }));
      await Promise.all(records.map((record) => store.commit({ record })));
      const leases = await Promise.all(count(9, () => store.lease(now, 7, now + 60_000)));
      expect(leases.map(({ length }) => length).sort()).toEqual([4, 7, 7, 7, 7, 7, 7, 7, 7].sort());
      expect(new Set(leases.flat().map(({ id }) => id)).size).toBe(60);
      const same = await Promise.all(
        count(60, (n) => store.commit({ record: { ...records[0], tokens: [`n${n}`, "t0"], wakeAt: "unchanged" } as never, expected: "t0" })),
      );
      expect(same.filter(({ done }) => done)).toHaveLength(1);

      const key = (await server.cli("KEYS", `*${prefix}*race*`)).split("\n")[0] as string;
      await server.cli("SET", key, "~1 junk");
      for (const at of [0, 1, 15, 31, 32, 39]) {
        const calls = await Promise.allSettled(count(40, (n) => (n === at ? store.members(window, 5) : store.members(`${customer}:none`, 5))));
        expect(calls.map(({ status }) => status)).toEqual(count(40, (n) => (n === at ? "rejected" : "fulfilled")));
        const commits = await Promise.allSettled(
          count(40, (n) => store.commit({ claims: [n === at ? claim(99) : { ...claim(n), window: `${customer}:${at}.${n}` }] })),
        );
        expect(commits.map(({ status }) => status)).toEqual(count(40, (n) => (n === at ? "rejected" : "fulfilled")));
      }
    });
  });

  it.each(["throws", "rejects", "answers nonsense", "answers nothing"])("each fail where a client of one's own %s, and the next are answered", async (how) => {
    const { client, close } = await (asUsed["a function"] as (typeof asUsed)[string])(server);
    const own = client as (script: string, keys: string[], args: string[]) => Promise<unknown>;
    let isBroken = false;
    const store = await crowded(
      redisStore({
        prefix: randomUUID(),
        client: (script, keys, args) => {
          if (!isBroken) return own(script, keys, args);
          if (how === "throws") throw new Error("not connected");
          if (how === "rejects") return Promise.reject(new Error("not connected"));
          return Promise.resolve(how === "answers nonsense" ? '+["1"]' : undefined);
        },
      }),
    );
    const all = () => Promise.allSettled(count(80, (i) => (i % 2 ? store.get(`${i}`) : store.tally([], [`${i}`]))));
    isBroken = true;
    expect(tallied((await all()).map(({ status }) => status))).toEqual({ rejected: 80 });
    expect(tallied((await all()).map(({ status }) => status))).toEqual({ rejected: 80 });
    isBroken = false;
    expect(tallied((await all()).map(({ status }) => status))).toEqual({ fulfilled: 80 });
    await close();
  });
});
