import { randomUUID } from "node:crypto";
import { Redis as Upstash } from "@upstash/redis";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recognise } from "../../adapters/store/redis/clients.js";
import { fromGlide, fromIoredis, fromNodeRedis, fromUpstash, type RedisClient, type RunScript, redisStore } from "../../adapters/store/redis/index.js";
import type { Clock } from "../../src/ports/clock.js";
import type { Claim, Store, StoredRecord } from "../../src/ports/store.js";
import { type RedisCluster, type RedisServer, redisIsInstalled, startCluster, startRedis } from "../support/redis.js";
import { type Connected, clients, clusterClients } from "../support/redis-clients.js";
import { type Answer, newNumber, serviceOn } from "../support/redis-service.js";
import { startUpstash } from "../support/upstash.js";

const installed = redisIsInstalled("what is special to Redis");
const never: RunScript = () => Promise.reject(new Error("not to be called"));

function aRecord(change: Partial<StoredRecord> = {}): StoredRecord {
  return { customer: randomUUID(), id: randomUUID(), tokens: ["one"], data: "data", keepUntil: Date.now() + 60_000, ...change };
}

describe("options that cannot work are told at construction, with the mend", () => {
  it.each([
    ["nothing", undefined, "fromUpstash"],
    ["an object that is no client", { get() {} }, "fromUpstash"],
    ["a mongodb client", { db() {}, connect() {} }, "fromUpstash"],
    ["a client that was not awaited", Promise.resolve({}), "await it"],
  ])("client: %s", (_, client, mend) => {
    expect(() => redisStore({ client: client as unknown as RedisClient })).toThrow(/option `client`/);
    expect(() => redisStore({ client: client as unknown as RedisClient })).toThrow(mend);
  });

  it.each([
    ["the client itself", { eval() {}, evalsha() {}, defineCommand() {}, client() {} }],
    ["a function itself", never],
    ["nothing", undefined],
  ])("options: %s", (_, options) => {
    expect(() => redisStore(options as unknown as Parameters<typeof redisStore>[0])).toThrow(/option `client` is missing: call redisStore\(\{ client \}\)/);
  });

  it.each(["{app}", "a}", "", "a b", "x".repeat(65), 7])("prefix: %j", (prefix) => {
    expect(() => redisStore({ client: never, prefix: prefix as string })).toThrow(/option `prefix` .* without braces/);
  });

  it.each([0, 1.5, 257, "16"])("shards: %j", (shards) => {
    expect(() => redisStore({ client: never, shards: shards as number })).toThrow(/option `shards` .* 16 on a cluster/);
  });

  it("a function that changes the reply is told at first use", async () => {
    const store = redisStore({ client: async () => 1 });
    await expect(store.get("key")).rejects.toThrow(/option `client`/);
  });
});

describe.runIf(installed)("on a single server", () => {
  let server: RedisServer;
  let connected: Connected;

  beforeAll(async () => {
    server = await startRedis();
    connected = await (clients["ioredis 6"] as (typeof clients)[string])(server);
  }, 30_000);

  afterAll(async () => {
    await connected?.close();
    await server?.stop();
  });

  /** The seam itself, counted. */
  function counted(): { client: RunScript; calls: string[][] } {
    const { run } = recognise(connected.client);
    const calls: string[][] = [];
    return {
      calls,
      client(script, keys, args) {
        calls.push(keys);
        return run(script, keys, args);
      },
    };
  }

  it("takes a wrapped client through its own function", async () => {
    const [node, glide] = await Promise.all([clients["redis 6"]?.(server), clients["valkey-glide 2"]?.(server)]);
    const upstash = await clients["@upstash/redis 1"]?.(server);
    const wrapped = [
      fromNodeRedis(node?.client as Parameters<typeof fromNodeRedis>[0]),
      fromIoredis(connected.client as Parameters<typeof fromIoredis>[0]),
      fromGlide(glide?.client as Parameters<typeof fromGlide>[0]),
      fromUpstash(upstash?.client as Parameters<typeof fromUpstash>[0]),
    ];
    const key = randomUUID();
    for (const [turn, client] of wrapped.entries()) {
      const store = redisStore({ client });
      await store.put(key, String(turn), Date.now() + 60_000);
      expect(await store.get(key)).toBe(String(turn));
    }
    await Promise.all([node?.close(), glide?.close(), upstash?.close()]);
  });

  it.each(Object.keys(clients))("goes on through %s when the server has forgotten its scripts", async (name) => {
    const { client, close } = await (clients[name] as (typeof clients)[string])(server);
    const store = redisStore({ client });
    const record = aRecord();
    expect(await store.compareAndSwap(record, null)).toEqual({ swapped: true });
    await server.cli("SCRIPT", "FLUSH");
    expect(await store.find(record.customer, record.id)).toEqual(record);
    expect(await store.compareAndSwap({ ...record, tokens: ["two", "one"] }, "one")).toEqual({ swapped: true });
    await close();
  });

  it("asks Redis once for each call", async () => {
    const { client, calls } = counted();
    const store = redisStore({ client });
    const record = aRecord({ wakeAt: 5 });
    const { customer, id } = record;
    const claim = { window: `${customer}:a`, member: "m", limit: 3, since: 0, now: Date.now(), keepUntil: Date.now() + 60_000 };
    const steps: (() => Promise<unknown>)[] = [
      () => store.compareAndSwap(record, null),
      () => store.find(customer, id),
      () => store.reserve([claim, { ...claim, limit: 9 }, { ...claim, window: `${customer}:b` }]),
      () => store.count([claim, claim]),
      () => store.due(Date.now(), 10),
      () => store.put("key", "value", Date.now() + 60_000),
      () => store.get("key"),
    ];
    for (const step of steps) {
      calls.length = 0;
      await step();
      expect(calls).toHaveLength(1);
    }
    calls.length = 0;
    expect([await store.reserve([]), await store.count([])]).toEqual([{ granted: true }, []]);
    expect(calls).toHaveLength(0);
  });

  it("round trips of the service: create 1, retry 2, check 2, and 1 where the process still holds the record", async () => {
    const { run } = recognise(connected.client);
    let trips = 0;
    let underWay = 0;
    const client: RunScript = async (script, keys, args) => {
      // What goes out while another is under way shares its trip.
      if (underWay === 0) trips += 1;
      underWay += 1;
      try {
        return await run(script, keys, args);
      } finally {
        underWay -= 1;
      }
    };
    let now = Date.now();
    const clock: Clock = {
      now: () => now,
      after(ms, run) {
        const timer = setTimeout(run, ms);
        return () => clearTimeout(timer);
      },
    };
    const service = serviceOn(redisStore({ client }), { clock });
    const other = serviceOn(redisStore({ client }), { clock }, service.customer);
    const counted: Record<string, number> = {};
    const count = async (what: string, status: string, step: () => Promise<Answer>) => {
      trips = 0;
      const answer = await step();
      expect(answer.body.status).toBe(status);
      counted[what] = trips;
      return answer.body.authentication_uuid;
    };
    const fields = { device_id: "0123456789abcdef", ip: "192.0.2.1" };
    const id = await count("create", "pending", () => service.create(newNumber(), fields));
    now += 31_000;
    await count("retry", "approved", () => service.retry(id));
    await count("wrong check, same process", "invalid", () => service.check(id, service.wrongCodeFor(id)));
    await count("wrong check, another process", "invalid", () => other.check(id, service.wrongCodeFor(id)));
    const second = await count("second create", "pending", () => service.create(newNumber(), fields));
    await count("right check, same process", "valid", () => service.check(second, service.codeOf(second)));
    const third = await count("third create", "pending", () => service.create(newNumber(), fields));
    await count("right check, another process", "valid", () => other.check(third, service.codeOf(third)));
    console.log("round trips:\n", counted);
    expect(counted).toEqual({
      create: 1,
      "second create": 1,
      "third create": 1,
      retry: 2,
      "wrong check, same process": 1,
      "wrong check, another process": 2,
      "right check, same process": 1,
      "right check, another process": 2,
    });
  });

  it("gives every key its prefix and an end, the wake index and the windows too", async () => {
    const prefix = `p${randomUUID()}`;
    const store = redisStore({ client: connected.client, prefix });
    const now = Date.now();
    const customer = randomUUID();
    await store.compareAndSwap(aRecord({ wakeAt: now, keepUntil: now + 3_600_000 }), null);
    await store.compareAndSwap(aRecord({ wakeAt: now, keepUntil: now + 60_000 }), null);
    await store.reserve([{ window: `${customer}:a`, member: "m", limit: 3, since: 0, now, keepUntil: now + 3_600_000 }]);
    await store.reserve([{ window: `${customer}:a`, member: "n", limit: 3, since: 0, now, keepUntil: now + 60_000 }]);
    await store.put("key", "value", now + 3_600_000);
    const keys = (await server.cli("KEYS", `${prefix}*`)).split("\n");
    expect(keys).toHaveLength(5);
    const ends = await Promise.all(keys.map(async (key) => Number(await server.cli("PTTL", key))));
    expect(ends.filter((end) => end > 3_600_000)).toHaveLength(4);
    expect(Math.min(...ends)).toBeGreaterThan(60_000);
  });

  it("a member that left the window long ago has to fit in again", async () => {
    const store = redisStore({ client: connected.client });
    const window = `${randomUUID()}:a`;
    const now = Date.now();
    const claim = { window, limit: 2, since: now - 1_000, now, keepUntil: now + 60_000 };
    await store.reserve([{ ...claim, member: "old", since: now - 60_000, now: now - 30_000 }]);
    for (const member of ["a", "b"]) expect(await store.reserve([{ ...claim, member }])).toEqual({ granted: true });
    expect(await store.reserve([{ ...claim, member: "old" }])).toEqual({ granted: false, refusedBy: 0 });
  });

  it("a value never stands where a record, an index or a window is, whatever its key", async () => {
    const { client, calls } = counted();
    const prefix = `p${randomUUID()}`;
    const store = redisStore({ client, prefix });
    const customer = randomUUID();
    const record = aRecord({ customer, wakeAt: 5 });
    const claim = { window: `${customer}:a`, member: "m", limit: 1, since: 0, now: Date.now(), keepUntil: Date.now() + 60_000 };
    await store.compareAndSwap(record, null);
    await store.reserve([claim]);
    for (const key of calls.flat()) await store.put(key.slice(prefix.length), "value", Date.now() + 60_000);
    expect(await store.find(customer, record.id)).toEqual(record);
    expect(await store.due(5, 1)).toEqual([record]);
    expect(await store.count([claim])).toEqual([1]);
  });

  it("keeps fractions of a millisecond", async () => {
    const store = redisStore({ client: connected.client });
    const record = aRecord({ keepUntil: Date.now() + 60_000.25, wakeAt: 1.5 });
    await store.compareAndSwap(record, null);
    expect(await store.find(record.customer, record.id)).toEqual(record);
    await store.compareAndSwap({ ...aRecord(record), tokens: ["two", "one"], wakeAt: Date.now() + 60_000 }, "one");
  });

  it("takes replies as bytes, and keys that the client prefixes", async () => {
    const bytes = redisStore({ client: async (script, keys, args) => Buffer.from((await recognise(connected.client).run(script, keys, args)) as string) });
    const prefixed = new Redis({ port: server.port, host: "127.0.0.1", keyPrefix: "app:" });
    for (const store of [bytes, redisStore({ client: prefixed, prefix: `p${randomUUID()}` })]) {
      const record = aRecord({ wakeAt: 5, data: "é 😀" });
      expect(await store.compareAndSwap(record, null)).toEqual({ swapped: true });
      expect(await store.find(record.customer, record.id)).toEqual(record);
      expect((await store.due(5, 100)).filter(({ id }) => id === record.id)).toEqual([record]);
    }
    prefixed.disconnect();
  });

  it("forgets the members of a window that can no longer count", async () => {
    const store = redisStore({ client: connected.client });
    const customer = randomUUID();
    const day = 86_400_000;
    const start = 1_700_000_000_000;
    for (let turn = 0; turn < 40; turn++) {
      const now = start + turn * day;
      await store.reserve([{ window: `${customer}:a`, member: String(turn), limit: 10, since: now - day, now, keepUntil: now + day }]);
    }
    const [key = ""] = (await server.cli("KEYS", `*${Buffer.from(customer.replaceAll("-", ""), "hex").toString("base64url")}*`)).split("\n");
    expect(Number(await server.cli("ZCARD", key))).toBeLessThanOrEqual(2);
  });

  it("keeps a record whose times are long past on the server's clock", async () => {
    const store = redisStore({ client: connected.client });
    const record = aRecord({ keepUntil: 1_000, wakeAt: 500 });
    await store.compareAndSwap(record, null);
    expect(await store.find(record.customer, record.id)).toEqual(record);
  });

  describe("a corrupt record", () => {
    it("503 for that request, an error event with its id, the record left as it is", async () => {
      const { client, calls } = counted();
      const events: unknown[] = [];
      const logger = { info() {}, warn() {}, error: (fields: Record<string, unknown>) => void events.push(`${JSON.stringify(fields)} ${fields["err"]}`) };
      const store = redisStore({ client });
      const service = serviceOn(store);
      const { authentication_uuid: id } = (await service.create(newNumber())).body;
      await store.find(service.customer, id);
      const key = calls.at(-1)?.[0] as string;
      await server.cli("SET", key, "nonsense");
      const other = serviceOn(store, { logger }, service.customer);
      const answers = [await other.check(id, "000000"), await other.retry(id)];
      expect(answers.map(({ status, retryAfter }) => [status, retryAfter])).toEqual([
        [503, "2"],
        [503, "2"],
      ]);
      expect(events).toHaveLength(2);
      for (const event of events) expect(event).toContain(id);
      expect(await server.cli("GET", key)).toBe("nonsense");
    });

    it.each([
      ["text of another kind", ["SET"], "nonsense"],
      ["no tokens", ["SET"], "a||1|data"],
      ["an empty text", ["SET"], ""],
      ["a token cut short", ["SET"], "aone%E|1||data"],
      ["no time", ["SET"], "azero|!||data"],
      ["another type", ["RPUSH"], "x"],
    ])("%s: the error names it and it stays as it is", async (_, command, value) => {
      const { client, calls } = counted();
      const store = redisStore({ client });
      const { customer, id } = aRecord();
      await store.find(customer, id);
      const key = calls[0]?.[0] as string;
      await server.cli(...command, key, value);
      const dumped = await server.cli("DUMP", key);
      await expect(store.find(customer, id)).rejects.toThrow(id);
      await expect(store.compareAndSwap(aRecord({ customer, id }), null)).rejects.toThrow(id);
      await expect(store.compareAndSwap(aRecord({ customer, id, tokens: ["b", "a"] }), "a")).rejects.toThrow(id);
      expect(await server.cli("DUMP", key)).toBe(dumped);
    });

    it.each(Object.keys(clients))("another type: the error names it through %s", async (name) => {
      const { client: counting, calls } = counted();
      const { customer, id } = aRecord();
      await redisStore({ client: counting }).find(customer, id);
      await server.cli("RPUSH", calls[0]?.[0] as string, "x");
      const { client, close } = await (clients[name] as (typeof clients)[string])(server);
      await expect(redisStore({ client }).find(customer, id)).rejects.toThrow(id);
      await close();
    });

    it("does not hold up the work on others, and is told when nothing else is due", async () => {
      const { client, calls } = counted();
      const store = redisStore({ client, prefix: `p${randomUUID()}` });
      const sound = aRecord({ wakeAt: 200 });
      const corrupt = aRecord({ wakeAt: 100 });
      await store.compareAndSwap(sound, null);
      await store.compareAndSwap(corrupt, null);
      await server.cli("SET", calls[1]?.[0] as string, "nonsense", "PX", "60000");
      expect(await store.due(300, 10)).toEqual([sound]);
      await expect(store.due(150, 10)).rejects.toThrow(corrupt.id);
    });
  });

  it("lets go of a wake entry whose record Redis has dropped", async () => {
    const { client, calls } = counted();
    const store = redisStore({ client, prefix: `p${randomUUID()}` });
    await store.compareAndSwap(aRecord({ wakeAt: 100 }), null);
    const [record, wake] = calls[0] as [string, string];
    await server.cli("DEL", record);
    expect(await store.due(300, 10)).toEqual([]);
    expect(await server.cli("EXISTS", wake)).toBe("0");
  });

  it("puts neither data nor members into its errors, which get logged", async () => {
    const data = "+33612345678";
    const wrong = await startRedis(["SET", "ZCOUNT"].flatMap((command) => ["--rename-command", command, `OLD-${command}`]));
    const singly = async (): Promise<Connected> => {
      const proxy = await startUpstash(wrong.url);
      return { client: new Upstash({ url: proxy.url, token: proxy.token, enableAutoPipelining: false }), close: () => proxy.close() };
    };
    for (const connect of [...Object.values(clients), singly]) {
      const { client, close } = await connect(wrong);
      const store = redisStore({ client });
      const customer = randomUUID();
      const faults = await Promise.all([
        store.compareAndSwap(aRecord({ data }), null).catch((error: unknown) => error),
        store.reserve([{ window: `${customer}:a`, member: data, limit: 1, since: 0, now: 1, keepUntil: 2 }]).catch((error: unknown) => error),
      ]);
      for (const fault of faults) {
        expect(fault).toBeInstanceOf(Error);
        const { stack, ...rest } = fault as Error & Record<string, unknown>;
        expect(`${stack} ${JSON.stringify(rest)} ${String((fault as Error).cause)}`).not.toContain(data);
        expect((fault as Error).message).toMatch(/option `client` is too old.* use Redis 6\.2/);
      }
      await close();
    }
    await wrong.stop();
  }, 60_000);

  it("an answer of Upstash cut off after the write counts once: the client sends it again", async () => {
    const proxy = await startUpstash(server.url);
    const store = redisStore({ client: new Upstash({ url: proxy.url, token: proxy.token, retry: { retries: 2, backoff: () => 10 } }) });
    const record = aRecord();
    const claim = { window: `${record.customer}:a`, member: "m", limit: 1, since: 0, now: Date.now(), keepUntil: Date.now() + 60_000 };
    proxy.cutNextAnswer();
    expect(await store.compareAndSwap(record, null)).toEqual({ swapped: true });
    proxy.cutNextAnswer();
    expect(await store.compareAndSwap({ ...record, tokens: ["two", "one"] }, "one")).toEqual({ swapped: true });
    proxy.cutNextAnswer();
    expect(await store.reserve([claim])).toEqual({ granted: true });
    expect(await store.count([claim])).toEqual([1]);
    expect(await store.reserve([{ ...claim, member: "n" }])).toEqual({ granted: false, refusedBy: 0 });
    await proxy.close();
  });

  it("300 B of Redis memory for a pending authentication with one code and no callback", async () => {
    // What the engine writes, taken down once and then written again and again with ids and numbers of their own.
    const written: { record?: StoredRecord; claims: readonly Claim[] } = { claims: [] };
    const taking: Store = {
      ...redisStore({ client: never }),
      async find() {
        return written.record;
      },
      async compareAndSwap(record) {
        written.record = record;
        return { swapped: true };
      },
      async reserve(claims) {
        written.claims = claims;
        return { granted: true };
      },
    };
    let now = Date.now();
    const service = serviceOn(taking, { clock: { now: () => now, after: () => () => {} } });
    const taken = async (fields: Record<string, string>, retried: boolean) => {
      const number = newNumber();
      const created = await service.create(number, fields);
      const { claims } = written;
      now += 31_000;
      if (retried) expect((await service.retry(created.body.authentication_uuid)).body.status).toBe("approved");
      return { number, id: created.body.authentication_uuid, record: written.record as StoredRecord, claims };
    };
    const plain = await taken({}, false);
    const rich = await taken({ callback_url: "https://app.example.com/hooks/sms", device_id: "0123456789abcdef", ip: "198.51.100.77" }, true);
    const own = await startRedis();
    const { client, close } = await (clients["ioredis 6"] as (typeof clients)[string])(own);
    const store = redisStore({ client });
    const write =
      ({ record }: typeof plain, change: Partial<StoredRecord>) =>
      (id: string) =>
        store.compareAndSwap({ ...record, ...change, id }, null);
    const charge =
      ({ id, number, claims }: typeof plain) =>
      (newId: string, otherNumber: string) => {
        const renew = (text: string) =>
          text
            .replace(id, newId)
            .replace(number, otherNumber)
            .replace(/:(d|dn|i|in):.*/, `:$1:${newId.slice(0, 16)}`);
        return store.reserve(claims.map((claim) => ({ ...claim, window: renew(claim.window), member: renew(claim.member), limit: 1_000_000 })));
      };
    const kinds: Record<string, (id: string, number: string) => Promise<unknown>> = {
      "pending, one code, no callback": write(plain, {}),
      "the same with a wake entry": write(plain, { wakeAt: now }),
      "callback and two codes, with a wake entry": write(rich, { wakeAt: now }),
      "windows of a number and the customer": charge(plain),
      "windows of a number, the customer, a device and an ip": charge(rich),
    };
    const usedMemory = async () => Number(/used_memory:(\d+)/.exec(await own.cli("INFO", "memory"))?.[1]);
    const perOne: Record<string, number> = {};
    for (const [kind, make] of Object.entries(kinds)) {
      await own.cli("FLUSHALL");
      await make(randomUUID(), newNumber());
      const before = await usedMemory();
      const thousands = kind === "pending, one code, no callback" ? 100 : 20;
      for (let batch = 0; batch < thousands; batch++) await Promise.all(Array.from({ length: 1_000 }, () => make(randomUUID(), newNumber())));
      perOne[kind] = Math.round(((await usedMemory()) - before) / (thousands * 1_000));
    }
    console.log("bytes of Redis memory each, over 100,000 (the first) and 20,000:\n", perOne);
    await close();
    await own.stop();
    expect(perOne["pending, one code, no callback"]).toBeLessThanOrEqual(300);
  }, 120_000);
});

describe.runIf(installed)("on a cluster", () => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await startCluster();
  }, 60_000);

  afterAll(async () => {
    await cluster?.stop();
  });

  it.each(Object.keys(clusterClients))("%s is seen to be one: 16 shards, spread over the nodes, a record and its wake entry together", async (name) => {
    const { client, close } = await (clusterClients[name] as (typeof clusterClients)[string])(cluster);
    const prefix = `p${randomUUID()}`;
    const store = redisStore({ client, prefix });
    const records = Array.from({ length: 100 }, (_, turn) => aRecord({ wakeAt: turn }));
    for (const record of records) await store.compareAndSwap(record, null);
    expect(await store.due(1_000, 100)).toEqual(records);
    const keys = (await Promise.all(cluster.nodes.map(async (node) => (await node.cli("KEYS", `${prefix}*`)).split("\n")))).map((names) =>
      names.filter(Boolean),
    );
    expect(keys.flat().filter((key) => key.endsWith("}w"))).toHaveLength(16);
    expect(keys.flat()).toHaveLength(116);
    for (const names of keys) expect(names.length).toBeGreaterThan(0);
    await close();
  });

  it.each(Object.keys(clusterClients))("%s: windows of several customers are counted together, values have slots of their own", async (name) => {
    const { client, close } = await (clusterClients[name] as (typeof clusterClients)[string])(cluster);
    const store = redisStore({ client });
    const customers = Array.from({ length: 20 }, () => randomUUID());
    const now = Date.now();
    for (const customer of customers.slice(5)) {
      await store.reserve([{ window: `${customer}:a`, member: "m", limit: 1, since: 0, now, keepUntil: now + 60_000 }]);
    }
    expect(await store.count(customers.map((customer) => ({ window: `${customer}:a`, since: 0 })))).toEqual(customers.map((_, turn) => (turn < 5 ? 0 : 1)));
    for (const key of ["plain", "{}x", "a{b}c", "{", "12345", "{customer}:a"]) {
      await store.put(key, key, now + 60_000);
      expect(await store.get(key)).toBe(key);
    }
    await close();
  });
});
