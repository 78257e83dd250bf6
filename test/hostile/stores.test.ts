import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import type { SendOutcome } from "../../src/index.js";
import type { Store } from "../../src/ports/store.js";
import { fixedClock } from "../../src/testing/index.js";
import { drivers, mongoServer, newDatabase } from "../support/mongo.js";
import { newStore, poolOf, postgresServer } from "../support/postgres.js";
import { redisIsInstalled, startCluster, startRedis } from "../support/redis.js";
import { clients, clusterClients } from "../support/redis-clients.js";
import { newFolder } from "../support/sqlite.js";
import { ending, sender, service, tallied, wide } from "./kit.js";
import { twoDaysAhead } from "./two-days-ahead.js";

/** A store, another process's view of it, and how to close both. */
interface Opened {
  readonly store: Store;
  readonly peer: Store;
  close(): Promise<unknown>;
}

const redis = redisIsInstalled("the hostile tests on Redis");
const mongo = await mongoServer("the hostile tests on MongoDB");
const postgres = await postgresServer("the hostile tests on PostgreSQL");
afterAll(() => postgres?.stop());
afterAll(() => mongo?.stop());

const opens: Record<string, () => Promise<Opened>> = {
  async memory() {
    const name = randomUUID();
    return { store: memoryStore({ name }), peer: memoryStore({ name }), close: async () => {} };
  },
  async SQLite() {
    const { file, remove } = newFolder();
    const [store, peer] = [sqliteStore({ file }), sqliteStore({ file })];
    return { store, peer, close: async () => [await store.close?.(), await peer.close?.(), remove()] };
  },
  ...(redis && {
    async Redis() {
      const server = await startRedis();
      const [a, b] = await Promise.all([clients["ioredis 6"]?.(server), clients["redis 6"]?.(server)]);
      const opened = (one: typeof a) => redisStore({ client: (one as NonNullable<typeof a>).client });
      return { store: opened(a), peer: opened(b), close: async () => [await a?.close(), await b?.close(), await server.stop()] };
    },
    async "a cluster"() {
      const cluster = await startCluster();
      const [a, b] = await Promise.all([clusterClients["ioredis 6"]?.(cluster), clusterClients["redis 6"]?.(cluster)]);
      const opened = (one: typeof a) => redisStore({ client: (one as NonNullable<typeof a>).client });
      return { store: opened(a), peer: opened(b), close: async () => [await a?.close(), await b?.close(), await cluster.stop()] };
    },
  }),
  ...(postgres && {
    async PostgreSQL() {
      const { url, store, close } = await newStore(postgres);
      const pool = poolOf(url);
      return { store, peer: postgresStore({ pool }), close: async () => void (await Promise.all([close(), pool.end()])) };
    },
  }),
  ...(mongo && {
    async MongoDB() {
      const name = newDatabase();
      const [a, b] = await Promise.all([drivers["mongodb 7"](mongo.url, name), drivers["mongodb 7"](mongo.url, name)]);
      const store = mongoStore({ db: a.db });
      await store.ensureIndexes();
      return {
        store,
        peer: mongoStore({ db: b.db }),
        close: async () => {
          await a.client.db(name).dropDatabase();
          await Promise.all([a.close(), b.close()]);
        },
      };
    },
  }),
};

/** Outcomes of carriers, and their cost when the planned price is 1. */
const outcomes: readonly [() => Promise<SendOutcome>, number][] = [
  [async () => ({ outcome: "accepted" }), 1],
  [async () => ({ outcome: "accepted", price: 0.25 }), 0.25],
  [async () => ({ outcome: "rejected" }), 0],
  [async () => ({ outcome: "unknown" }), 1],
  [() => Promise.reject(new Error("socket hang up")), 1],
  [() => Promise.reject(Object.assign(new Error("no credit"), { outcome: "rejected" })), 0],
];

describe.each(Object.keys(opens))("on %s", (name) => {
  let opened: Opened;
  beforeAll(async () => {
    opened = await (opens[name] as () => Promise<Opened>)();
  });
  afterAll(() => opened?.close());

  it("a process whose clock is two days ahead erases nothing that the others need", () => twoDaysAhead(opened.store), 30_000);

  it("two processes that race to a spend ceiling count exactly what was paid", async () => {
    const clock = fixedClock(Date.now());
    let paid = 0;
    let i = 0;
    const policy = {
      limits: {
        ...wide,
        spend: [
          { amount: 30, per: "hour" as const },
          { amount: 30, per: "day" as const },
        ],
      },
    };
    const one = service({ store: opened.store, clock, sender: sender(1), policy, storeTimeout: 20 });
    const two = service({ store: opened.peer, clock, sender: sender(1), policy, storeTimeout: 20, customer: one.customer });
    for (const { sender: carrier } of [one, two]) {
      carrier.answer = () => {
        const [answer, cost] = outcomes[i++ % outcomes.length] as (typeof outcomes)[number];
        paid += cost;
        return answer();
      };
    }
    const endings = await Promise.all(Array.from({ length: 120 }, (_, n) => ending((n % 2 ? one : two).create(n))));
    expect(Object.keys(tallied(endings)).sort()).toEqual(["pending", "rate_limited"]);
    expect(paid).toBeLessThanOrEqual(30);
    const cheap = service({ store: opened.peer, clock, sender: sender(0.25), policy, storeTimeout: 20, customer: one.customer });
    let rest = 0;
    while ((await ending(cheap.create(10_000 + rest * 4))) === "pending") rest += 0.25;
    expect(paid + rest).toBe(30);
  });

  it("200 identical creates of two processes send one message and count once", async () => {
    const clock = fixedClock(Date.now());
    const policy = { limits: { ...wide, perCustomer: [{ limit: 2, window: 3600 }], spend: [{ amount: 2, per: "day" as const }] } };
    const one = service({ store: opened.store, clock, sender: sender(1), policy, storeTimeout: 20 });
    const two = service({ store: opened.peer, clock, sender: sender(1), policy, storeTimeout: 20, customer: one.customer });
    const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => (n % 2 ? one : two).create(1, { device_id: "device" }, { idempotencyKey: "k" })));
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0]?.status).toBe("pending");
    expect(one.sender.messages.length + two.sender.messages.length).toBe(1);
    expect([await ending(one.create(2)), await ending(two.create(3))]).toEqual(["pending", "rate_limited"]);
  });

  it("of the concurrent checks of two processes, exactly five wrong codes are evaluated, and one right code is `valid`", async () => {
    const clock = fixedClock(Date.now());
    const one = service({ store: opened.store, clock, storeTimeout: 20 });
    const two = service({ store: opened.peer, clock, storeTimeout: 20, customer: one.customer });
    const { authentication_uuid: wrong } = await one.create(1);
    const { authentication_uuid: right } = await one.create(2);
    const code = one.sender.codeOf(right);
    const judged = tallied(await Promise.all(Array.from({ length: 200 }, (_, n) => ending((n % 2 ? one : two).check(wrong, one.wrong(wrong))))));
    expect(judged["invalid"]).toBe(5);
    expect((judged["invalid"] ?? 0) + (judged["rate_limited"] ?? 0) + (judged["unavailable"] ?? 0)).toBe(200);
    expect(await ending(one.check(wrong, one.sender.codeOf(wrong)))).toBe("rate_limited");
    const valid = tallied(await Promise.all(Array.from({ length: 100 }, (_, n) => ending((n % 2 ? one : two).check(right, code)))));
    expect(valid["valid"]).toBe(1);
  });

  it("a number's cap is exact for 100 concurrent creates of two processes", async () => {
    const clock = fixedClock(Date.now());
    const one = service({ store: opened.store, clock, storeTimeout: 20, policy: { limits: wide } });
    const two = service({ store: opened.peer, clock, storeTimeout: 20, customer: one.customer, policy: { limits: wide } });
    const endings = tallied(await Promise.all(Array.from({ length: 100 }, (_, n) => ending((n % 2 ? one : two).create(1)))));
    const sent = one.sender.messages.length + two.sender.messages.length;
    expect(endings["pending"] ?? 0).toBe(sent);
    expect(sent).toBeLessThanOrEqual(5);
    let more = 0;
    while ((await ending(two.create(1))) === "pending") more++;
    expect(sent + more).toBe(5);
  });
});
