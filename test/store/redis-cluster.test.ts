import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { createClientPool, createCluster, createSentinel } from "redis";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { recognise } from "../../adapters/store/redis/clients.js";
import { type RunScript, reconnectWhenSilent, redisStore } from "../../adapters/store/redis/index.js";
import type { MemberClaim, RecordWrite, SumClaim } from "../../src/ports/store.js";
import { type RedisCluster, type RedisServer, redisIsInstalled, startCluster } from "../support/redis.js";
import { type Connected, clients, clusterClients } from "../support/redis-clients.js";

const installed = redisIsInstalled("what is special to a cluster");
const minute = 60_000;

function aRecord(change: Partial<RecordWrite> = {}): RecordWrite {
  const now = Date.now();
  return { customer: randomUUID(), id: randomUUID(), tokens: [randomUUID()], data: "data", now, keepUntil: now + minute, ...change };
}

function stored({ customer, id, tokens, data, keepUntil }: RecordWrite) {
  return { customer, id, tokens, data, keepUntil };
}

function aMember(window: string, change: Partial<MemberClaim> = {}): MemberClaim {
  const now = change.now ?? Date.now();
  return { window, member: randomUUID(), limit: 5, since: now - minute, now, keepUntil: now + minute, ...change };
}

function aWeight(sum: string, change: Partial<SumClaim> = {}): SumClaim {
  const now = change.now ?? Date.now();
  return { sum, weight: 10, limit: 100, part: 7, parts: 3, now, keepUntil: now + minute, ...change };
}

const done = (counts: number[] = [], asked: number[] = []) => ({ done: true, counts, asked });

it("reconnectWhenSilent rejects clients that replace their connections by themselves", () => {
  const nodes = [{ host: "127.0.0.1", port: 1 }];
  const others = [
    createCluster({ rootNodes: [{ url: "redis://127.0.0.1:1" }] }),
    createSentinel({ name: "main", sentinelRootNodes: nodes }),
    createClientPool({ url: "redis://127.0.0.1:1" }),
    new Redis({ lazyConnect: true }),
  ];
  for (const client of others) expect(() => reconnectWhenSilent(client as never)).toThrow(/^reconnectWhenSilent: not a client of createClient/);
});

describe.runIf(installed)("on a cluster", () => {
  let cluster: RedisCluster;
  let connected: Connected;

  beforeAll(async () => {
    cluster = await startCluster();
    connected = await (clusterClients["ioredis 6"] as (typeof clusterClients)[string])(cluster);
  });

  afterAll(async () => {
    await connected?.close();
    await cluster?.stop();
  });

  describe.each(Object.keys(clusterClients))("through %s", (name) => {
    const connect = () => (clusterClients[name] as (typeof clusterClients)[string])(cluster);

    it("the client is recognised as a cluster: 16 shards, spread over the nodes, each record with its wake entry (docs/contract.md#shards)", async () => {
      const { client, close } = await connect();
      const prefix = `p${randomUUID()}`;
      const store = redisStore({ client, prefix });
      // With 100 random ids, one run in forty leaves a shard empty; with 400 none does.
      const records = Array.from({ length: 400 }, (_, turn) => aRecord({ wakeAt: turn }));
      for (const record of records) await store.commit({ record });
      // On a loaded machine a shard may respond too late for a lease: its records are due again when the lease ends.
      const leased = new Map<string, unknown>();
      for (let until = 1_000; leased.size < 400 && until < 10_000; until += 1_000)
        for (const record of await store.lease(until, 400, until + 1_000)) leased.set(record.id, record);
      expect(leased).toEqual(new Map(records.map((record) => [record.id, stored(record)])));
      const keys = await Promise.all(cluster.masters.map(async (node) => (await node.cli("KEYS", `${prefix}*`)).split("\n").filter(Boolean)));
      expect(keys.flat().filter((key) => key.endsWith("}w"))).toHaveLength(16);
      expect(keys.flat()).toHaveLength(416);
      for (const names of keys) expect(names.length).toBeGreaterThan(0);
      await close();
    });

    it("values have separate slots, counters share one", async () => {
      const { client, close } = await connect();
      const store = redisStore({ client });
      const names = ["plain", "{}x", "a{b}c", "{", "12345", "{customer}:a"];
      for (const key of names) {
        await store.put(key, key, { now: 0, keepUntil: minute });
        expect(await store.get(key)).toBe(key);
      }
      const counters = names.map((name) => `${name}${randomUUID()}`);
      const adds = counters.map((counter, at) => ({ counter, by: at, now: 0, keepUntil: minute }));
      expect(await store.tally(adds, counters)).toEqual(counters.map((_, at) => at));
      await close();
    });

    it("a cluster that is not recognised as one gives an error; `cluster: true` fixes it", async () => {
      const { client, close } = await connect();
      const { run } = recognise(client);
      const { customer, ...record } = aRecord();
      const change = { claims: [aMember(`${customer}:a`)], record: { customer, ...record } };
      await expect(redisStore({ client: run }).commit(change)).rejects.toThrow(/option `client` is a cluster .*set option `cluster: true`/);
      await expect(redisStore({ client, cluster: false }).commit(change)).rejects.toThrow(/set option `cluster: true`/);
      // What `ping` reads, so that doctor and /healthz find it.
      await expect(redisStore({ client: run }).get("ping")).rejects.toThrow(/set option `cluster: true`/);
      expect(await redisStore({ client: run, cluster: true }).commit(change)).toEqual(done([1]));
      await close();
    });

    it("claims whose record a full node rejects are taken back at once", async () => {
      const { client, close } = await connect();
      const store = redisStore({ client, prefix: `p${randomUUID()}` });
      const [full] = cluster.masters as [RedisServer];
      await full.cli("CONFIG", "SET", "maxmemory", "1");
      onTestFinished(async () => void (await full.cli("CONFIG", "SET", "maxmemory", "0")));
      const ends: string[] = [];
      for (let turn = 0; turn < 30; turn++) {
        const record = aRecord();
        const window = `${record.customer}:a`;
        const made = await store.commit({ claims: [aMember(window)], record }).catch((error: Error) => error.message);
        ends.push(typeof made === "string" && made.includes("OOM") ? "rejected" : "done");
        expect(await store.members(window, 10)).toHaveLength(ends.at(-1) === "done" ? 1 : 0);
      }
      expect(new Set(ends)).toEqual(new Set(["done", "rejected"]));
      await close();
    });

    it("claims stay if the record has landed, and a client that sends it again is rejected", async () => {
      const { client, close } = await connect();
      const { run } = recognise(client);
      const twice: RunScript = async (script, keys, args) => {
        const reply = await run(script, keys, args);
        if (args[0]?.startsWith("record ")) throw new Error("TRYAGAIN Multiple keys request during rehashing of slot");
        return reply;
      };
      const record = aRecord();
      const window = `${record.customer}:a`;
      const store = redisStore({ client: twice, cluster: true });
      await expect(store.commit({ claims: [aMember(window)], record })).rejects.toThrow(/TRYAGAIN.*wait until it is moved/);
      expect(await store.find(record.customer, record.id)).toEqual(stored(record));
      expect(await store.members(window, 10)).toHaveLength(1);
      await close();
    });

    it("a node that does not respond does not hold up leases from the others", async () => {
      const { client, close } = await connect();
      const store = redisStore({ client, prefix: `p${randomUUID()}` });
      const records = Array.from({ length: 60 }, (_, turn) => aRecord({ wakeAt: turn }));
      for (const record of records) await store.commit({ record });
      const [first] = cluster.masters as [RedisServer];
      await first.signal("SIGSTOP");
      const leased: unknown[] = [];
      try {
        for (let turn = 0; turn < 2; turn++) {
          const started = performance.now();
          const found = await store.lease(1_000, 20, 2_000);
          expect(found.length).toBeLessThanOrEqual(20);
          leased.push(...found);
          expect(performance.now() - started).toBeLessThan(15_000);
        }
      } finally {
        await first.signal("SIGCONT");
      }
      expect(leased.length).toBeGreaterThan(20);
      expect(leased.length).toBeLessThan(60);
      // Every leased record was handed out: the rest are due at once.
      await expect.poll(() => store.get("key").catch(() => "not yet")).toBeUndefined();
      let more = 1;
      while (more > 0) {
        const found = await store.lease(1_000, 20, 2_000);
        leased.push(...found);
        more = found.length;
      }
      expect(new Set(leased.map((record) => (record as RecordWrite).id)).size).toBe(60);
      expect(leased).toHaveLength(60);
      await close();
    });
  });

  it("a client of a single node is reported as such", async () => {
    const { client, close } = await (clients["ioredis 6"] as (typeof clients)[string])(cluster.masters[0] as RedisServer);
    const store = redisStore({ client, cluster: true });
    const faults = await Promise.all(Array.from({ length: 20 }, (_, turn) => store.get(String(turn)).then(String, ({ message }: Error) => message)));
    expect(faults.find((fault) => fault !== "undefined")).toMatch(/is one node of a cluster \(MOVED .*pass a client of the whole cluster/);
    await close();
  });

  /** The client function, counted: `steps` counts calls in sequence, `scripts` all calls. */
  function counted(): { client: RunScript; count: { steps: number; scripts: number } } {
    const { run } = recognise(connected.client);
    const count = { steps: 0, scripts: 0 };
    return {
      count,
      async client(script, keys, args) {
        count.scripts += 1;
        const step = count.steps + 1;
        const reply = await run(script, keys, args);
        count.steps = Math.max(count.steps, step);
        return reply;
      },
    };
  }

  it("a commit takes 2 steps with claims and a record, 1 with either, 1 if a claim is rejected, 3 if the record is", async () => {
    const { client, count } = counted();
    const store = redisStore({ client, cluster: true });
    const record = aRecord();
    const { customer } = record;
    const [window, sum] = [`${customer}:a`, `${customer}:b`];
    const paid = aWeight(sum);
    const seen: Record<string, number> = {};
    const step = async (what: string, change: Parameters<typeof store.commit>[0]) => {
      count.steps = 0;
      const { done } = await store.commit(change);
      seen[`${what}, ${done ? "done" : "refused"}`] = count.steps;
    };
    await step("create", { claims: [aMember(window), aMember(window), paid], asks: [{ sum, part: 7, parts: 3 }], record });
    await step("create sent again", { claims: [aMember(window), paid], record });
    await step("claim", { claims: [aMember(window, { limit: 1 })], record: aRecord({ customer }) });
    await step("record", { claims: [aMember(window), aWeight(sum)], record: { ...record, tokens: ["two"] } });
    await step("claims alone", { claims: [aMember(window), aWeight(sum)], asks: [{ sum, part: 7, parts: 3 }] });
    await step("record alone", { record: { ...record, tokens: ["two", ...record.tokens] }, expected: record.tokens[0] as string });
    const next = { ...record, tokens: ["three", "two"] };
    await step("record that gives back", { claims: [{ ...paid, weight: -4 }], asks: [{ sum, part: 7, parts: 3 }], record: next, expected: "two" });
    expect(seen).toEqual({
      "create, done": 2,
      "create sent again, done": 2,
      "claim, refused": 1,
      "record, refused": 3,
      "claims alone, done": 1,
      "record alone, done": 1,
      "record that gives back, done": 2,
    });
  });

  it("counts and sums come in the order given, including what the same commit gives back", async () => {
    const store = redisStore({ client: connected.client });
    const record = aRecord();
    const { customer } = record;
    const names = ["a", "b", "c", "d"].map((name) => `${customer}:${name}`) as [string, string, string, string];
    const [first, second, third, fourth] = names;
    const [stays, old] = [aMember(third), aMember(third)];
    const paid = aWeight(fourth, { weight: 20 });
    await store.commit({ claims: [stays, old, paid] });
    const claims = [{ ...paid, weight: -5 }, aMember(first), { ...old, out: true as const }, aWeight(second, { weight: 7 })];
    const asks = [fourth, second].map((sum) => ({ sum, part: 7, parts: 3 }));
    expect(await store.commit({ claims, asks, record })).toEqual(done([15, 1, 1, 7], [15, 7]));
    const refusing = [{ ...paid, weight: -5 }, aMember(first), aMember(third, { limit: 1 })];
    expect(await store.commit({ claims: refusing, record: aRecord({ customer }) })).toEqual({ done: false, refusedBy: 2, count: 1, roomSince: stays.now });
    expect(await store.commit({ asks })).toEqual(done([], [15, 7]));
  });

  describe.each(["is lost", "is cut off after it was run"])("a script that %s", (fault) => {
    it.each([0, 1, 2, 3])(
      "as the one at %i of a commit: what landed is counted, nothing is given back twice, and repeating a commit that is done changes nothing",
      async (at) => {
        const { run } = recognise(connected.client);
        let left = Number.POSITIVE_INFINITY;
        const store = redisStore({
          cluster: true,
          async client(script, keys, args) {
            const fails = left-- === 0;
            if (fails && fault === "is lost") throw new Error("lost");
            const reply = await run(script, keys, args);
            if (fails) throw new Error("cut off");
            return reply;
          },
        });
        const first = aRecord();
        const { customer, id } = first;
        const [window, sum, other] = [`${customer}:a`, `${customer}:b`, `${customer}:c`];
        const paid = aWeight(other, { weight: 20 });
        await store.commit({ claims: [paid], record: first });
        const record = { ...first, tokens: [randomUUID(), ...first.tokens], data: "next" };
        const claim = aMember(window);
        const change = { claims: [claim, aWeight(sum), { ...paid, weight: -5 }], record, expected: first.tokens[0] as string };
        const look = async () => (await store.commit({ asks: [sum, other].map((sum) => ({ sum, part: 7, parts: 3 })) })) as { asked: readonly number[] };
        left = at;
        const result = await store.commit(change).catch(() => "rejected");
        left = Number.POSITIVE_INFINITY;
        // Claims, then the record, then what is given back.
        expect(result).toEqual(at < 3 ? "rejected" : done([1, 10, 15]));
        const landed = (await store.find(customer, id))?.data === "next";
        const [spent = 0, kept = 0] = (await look()).asked;
        if (landed) {
          expect([await store.members(window, 2), spent]).toEqual([[claim.member], 10]);
          expect(kept).toBeGreaterThanOrEqual(15);
        } else expect(kept).toBe(20);
        expect(await store.commit(change)).toMatchObject({ done: true });
        const again = (await look()).asked;
        expect(again[0]).toBeGreaterThanOrEqual(10);
        expect(again[0]).toBeLessThanOrEqual(20);
        expect(again[1]).toBeGreaterThanOrEqual(15);
        expect(await store.members(window, 2)).toEqual([claim.member]);
        expect(await store.commit(change)).toMatchObject({ done: true });
        expect((await look()).asked).toEqual(again);
      },
    );
  });

  it("a commit that loses a race with an identical claim leaves the winner's claim, whichever claimed first", async () => {
    const { run } = recognise(connected.client);
    for (const winner of [0, 1]) {
      const records = [aRecord(), aRecord()] as [RecordWrite, RecordWrite];
      const { customer, id, now } = records[0];
      const window = `${customer}:a`;
      const claims = [aMember(window, { member: "m", now }), aWeight(`${customer}:b`, { now })];
      // Both claim, in turn; then one writes the record, then the other.
      const waiting: (() => void)[] = [];
      const store = redisStore({
        cluster: true,
        async client(script, keys, args) {
          if (args[0]?.startsWith("record")) await new Promise<void>((go) => waiting.push(go));
          return run(script, keys, args);
        },
      });
      const first = store.commit({ claims, record: records[0] });
      await expect.poll(() => waiting.length).toBe(1);
      const second = store.commit({ claims, record: { ...records[1], customer, id } });
      await expect.poll(() => waiting.length).toBe(2);
      const both = [first, second];
      waiting[winner]?.();
      expect(await both[winner]).toMatchObject({ done: true });
      waiting[1 - winner]?.();
      expect(await both[1 - winner]).toMatchObject({ done: false, current: { tokens: records[winner]?.tokens } });
      expect([await store.members(window, 2), await store.commit({ asks: [{ sum: `${customer}:b`, part: 7, parts: 3 }] })]).toEqual([["m"], done([], [10])]);
    }
  });
});
