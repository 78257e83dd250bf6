import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { Redis as Upstash } from "@upstash/redis";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { createClient as createClient5 } from "redis5";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recognise } from "../../adapters/store/redis/clients.js";
import { fromGlide, fromIoredis, fromNodeRedis, fromUpstash, type RedisClient, type RunScript, redisStore } from "../../adapters/store/redis/index.js";
import type { Clock } from "../../src/ports/clock.js";
import type { Change, MemberClaim, RecordWrite, StoredRecord, SumClaim } from "../../src/ports/store.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { type Connected, clients, hurried } from "../support/redis-clients.js";
import { type Answer, newNumber, serviceOn } from "../support/redis-service.js";
import { startUpstash } from "../support/upstash.js";
import { logger } from "../support/verifier.js";

const installed = redisIsInstalled("what is special to Redis");
const never: RunScript = () => Promise.reject(new Error("not to be called"));

const minute = 60_000;
const day = 24 * 60 * minute;

function aRecord(change: Partial<RecordWrite> = {}): RecordWrite {
  const now = Date.now();
  return { customer: randomUUID(), id: randomUUID(), tokens: ["one"], data: "data", now, keepUntil: now + minute, ...change };
}

/** The record as `find` and `lease` return it. */
function stored({ customer, id, tokens, data, keepUntil }: RecordWrite): StoredRecord {
  return { customer, id, tokens, data, keepUntil };
}

function aMember(window: string, change: Partial<MemberClaim> = {}): MemberClaim {
  const now = change.now ?? Date.now();
  return { window, member: randomUUID(), limit: 5, since: now - minute, now, keepUntil: now + minute, ...change };
}

function aWeight(sum: string, change: Partial<SumClaim> = {}): SumClaim {
  const now = change.now ?? Date.now();
  return { sum, weight: 1, part: 7, parts: 3, now, keepUntil: now + 2 * day, ...change };
}

const done = (counts: number[] = [], asked: number[] = []) => ({ done: true, counts, asked });

describe("invalid options are rejected at construction, with the fix", () => {
  it.each([
    ["nothing", undefined, "fromUpstash"],
    ["an object that is no client", { get() {} }, "fromUpstash"],
    ["a mongodb client", { db() {}, connect() {} }, "fromUpstash"],
    ["a client that was not awaited", Promise.resolve({}), "await it"],
  ])("client: %s", (_, client, fix) => {
    expect(() => redisStore({ client: client as unknown as RedisClient })).toThrow(/option `client`/);
    expect(() => redisStore({ client: client as unknown as RedisClient })).toThrow(fix);
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

  it.each(["yes", 1, null])("cluster: %j", (cluster) => {
    expect(() => redisStore({ client: never, cluster: cluster as unknown as boolean })).toThrow(/option `cluster` must be true or false/);
  });

  it.each([0, 1.5, 257, "16"])("shards: %j", (shards) => {
    expect(() => redisStore({ client: never, shards: shards as number })).toThrow(/option `shards` .* 16 on a cluster/);
  });

  it("a client function that changes the reply is reported at first use", async () => {
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
  });

  afterAll(async () => {
    await connected?.close();
    await server?.stop();
  });

  /** The client function, with its calls recorded. */
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

  it("accepts each client wrapped by its own function", async () => {
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
      await store.put(key, String(turn), { now: 0, keepUntil: minute });
      expect(await store.get(key)).toBe(String(turn));
    }
    await Promise.all([node?.close(), glide?.close(), upstash?.close()]);
  });

  it("starts no timer of node-redis for the first thousand scripts in progress; further ones have its own time limit", async () => {
    const { client, close } = await (clients["redis 6"] as (typeof clients)[string])(server);
    let [timed, untimed] = [0, 0];
    const node = client as Parameters<typeof fromNodeRedis>[0];
    const observed: typeof node = {
      isReady: true,
      eval: (script, options) => node.eval(script, options),
      async evalSha(sha, options) {
        timed++;
        return node.evalSha(sha, options);
      },
      withCommandOptions: (options) => {
        const without = (node.withCommandOptions as NonNullable<typeof node.withCommandOptions>)(options);
        return {
          eval: (script, call) => without.eval(script, call),
          async evalSha(sha, call) {
            untimed++;
            return without.evalSha(sha, call);
          },
        };
      },
    };
    const store = redisStore({ client: fromNodeRedis(observed) });
    await store.get("loads the script");
    [timed, untimed] = [0, 0];
    await Promise.all(Array.from({ length: 1_500 }, () => store.get("key")));
    expect([timed, untimed]).toEqual([500, 1_000]);
    await store.get("key");
    expect([timed, untimed]).toEqual([500, 1_001]);
    await close();
  });

  it("while node-redis reconnects, the time limit of its commands applies", async () => {
    const own = await startRedis();
    const client = await createClient({ url: own.url, commandOptions: { timeout: 20 } })
      .on("error", () => {})
      .connect();
    const store = redisStore({ client });
    await store.put("key", "value", { now: 0, keepUntil: minute });
    const lost = new Promise((resolve) => client.once("reconnecting", resolve));
    await own.stop();
    await lost;
    await expect(store.get("key")).rejects.toThrow(/timeout/i);
    client.destroy();
  });

  it.each(Object.keys(clients))("works through %s after the server has lost its scripts", async (name) => {
    const { client, close } = await (clients[name] as (typeof clients)[string])(server);
    const store = redisStore({ client });
    const record = aRecord();
    expect(await store.commit({ record })).toEqual(done());
    await server.cli("SCRIPT", "FLUSH");
    expect(await store.find(record.customer, record.id)).toEqual(stored(record));
    expect(await store.commit({ record: { ...record, tokens: ["two", "one"] }, expected: "one" })).toEqual(done());
    await close();
  });

  it("calls Redis once for each call, and not at all if there is nothing to do", async () => {
    const { client, calls } = counted();
    const store = redisStore({ client });
    const record = aRecord({ wakeAt: 5 });
    const { customer, id } = record;
    const [window, sum] = [`${customer}:a`, `${customer}:b`];
    const claims = [
      aMember(window),
      aMember(window, { limit: 9 }),
      aMember(`${customer}:c`, { out: true }),
      aWeight(sum),
      aWeight(`${customer}:d`, { weight: -1 }),
    ];
    const steps: (() => Promise<unknown>)[] = [
      () => store.commit({ claims, asks: [{ sum, part: 7, parts: 3 }], record }),
      () => store.commit({ claims, asks: [{ sum, part: 7, parts: 3 }] }),
      () => store.commit({ asks: [{ sum, part: 7, parts: 3 }] }),
      () => store.find(customer, id),
      () => store.members(window, 10),
      () => store.tally([{ counter: "a", by: 1, now: 0, keepUntil: minute }], ["a", "b"]),
      () => store.lease(Date.now(), 10, Date.now()),
      () => store.put("key", "value", { now: 0, keepUntil: minute }),
      () => store.get("key"),
    ];
    for (const step of steps) {
      calls.length = 0;
      await step();
      expect(calls).toHaveLength(1);
    }
    calls.length = 0;
    expect([await store.commit({}), await store.tally([], []), await store.members(window, 0), await store.lease(5, 0, 9)]).toEqual([done(), [], [], []]);
    expect(calls).toHaveLength(0);
  });

  it("commands inside Redis: a create 5 (a window under two limits, a sum, the record), a further window 1, a further sum 1, a wake time at most 3, a check at most 4", async () => {
    const own = await startRedis();
    const { client, close } = await (clients["ioredis 6"] as (typeof clients)[string])(own);
    const store = redisStore({ client });
    /** Counts the second of two similar commits: the server has the script, and the windows and sums exist. */
    const commandsOf = async (change: () => Change): Promise<number> => {
      await store.commit(change());
      await own.cli("CONFIG", "RESETSTAT");
      expect((await store.commit(change())).done).toBe(true);
      const calls = [...(await own.cli("INFO", "commandstats")).matchAll(/^cmdstat_(?!config|info|hello)[^:]+:calls=(\d+)/gm)];
      return calls.reduce((sum, [, count]) => sum + Number(count), 0);
    };
    const claimed = (customer: string, windows: number, sums: number) => {
      const member = randomUUID();
      const claims = [];
      for (let turn = 0; turn < windows; turn++) {
        const claim = aMember(`${customer}:w${turn}`, { member, limit: 5 });
        claims.push(claim, { ...claim, since: claim.since - minute, limit: 10 });
      }
      for (let turn = 0; turn < sums; turn++) claims.push(aWeight(`${customer}:${turn}`, { limit: 10_000 }));
      return claims;
    };
    const create = (windows: number, sums: number, wakeAt?: number) => {
      const customer = randomUUID();
      return () => ({ claims: claimed(customer, windows, sums), record: aRecord({ customer, ...(wakeAt !== undefined && { wakeAt }) }) });
    };
    let checked = aRecord();
    const check = () => {
      const expected = checked.tokens[0] as string;
      checked = { ...checked, tokens: [randomUUID(), expected] };
      return { record: checked, expected };
    };
    await store.commit({ record: checked });
    checked = { ...checked, tokens: ["one"] };
    const seen = {
      create: await commandsOf(create(1, 1)),
      "create, five windows": await commandsOf(create(5, 1)),
      "create, three sums": await commandsOf(create(1, 3)),
      "create, to wake": await commandsOf(create(1, 1, 5)),
      check: await commandsOf(check),
    };
    console.log("commands inside Redis, the script itself included:\n", seen);
    expect(seen.create).toBe(5);
    expect(seen["create, five windows"]).toBe(seen.create + 4);
    expect(seen["create, three sums"]).toBe(seen.create + 2);
    expect(seen["create, to wake"]).toBeLessThanOrEqual(seen.create + 3);
    expect(seen.check).toBeLessThanOrEqual(4);
    await close();
    await own.stop();
  });

  it.each([
    ["no ceiling", {}],
    ["a spend ceiling", { policy: { limits: { spend: [{ amount: 1e6, per: "day" as const }] } } }],
  ])("round trips of the service under %s: create 1, retry 2, check 2, and 1 if the process still holds the record", async (_, options) => {
    const { run } = recognise(connected.client);
    /** Calls outside the request do not count, nor do calls made in parallel with others. */
    const operation = new AsyncLocalStorage<{ trips: number }>();
    const client: RunScript = async (script, keys, args) => {
      const own = operation.getStore() ?? { trips: 0 };
      const trip = own.trips + 1;
      const reply = await run(script, keys, args);
      own.trips = Math.max(own.trips, trip);
      return reply;
    };
    let now = Date.now();
    const clock: Clock = {
      now: () => now,
      after(ms, run) {
        const timer = setTimeout(run, ms);
        return () => clearTimeout(timer);
      },
    };
    const service = serviceOn(redisStore({ client }), { clock, ...options });
    const other = serviceOn(redisStore({ client }), { clock, ...options }, service.customer);
    const counted: Record<string, number> = {};
    const count = async (what: string, status: string, step: () => Promise<Answer>) => {
      const own = { trips: 0 };
      const answer = await operation.run(own, step);
      expect(answer.body.status).toBe(status);
      counted[what] = own.trips;
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
    const fourth = await count("fourth create", "pending", () => service.create(newNumber()));
    now += 31_000;
    await count("retry, another process", "approved", () => other.retry(fourth));
    console.log("round trips:\n", counted);
    expect(counted).toEqual({
      create: 1,
      "second create": 1,
      "third create": 1,
      "fourth create": 1,
      retry: 1,
      "retry, another process": 2,
      "wrong check, same process": 1,
      "wrong check, another process": 2,
      "right check, same process": 1,
      "right check, another process": 2,
    });
  });

  it("gives every key its prefix and an expiry, which only ever moves later and ignores a caller's clock two days ahead", async () => {
    const prefix = `p${randomUUID()}`;
    const store = redisStore({ client: connected.client, prefix });
    const customer = randomUUID();
    const id = randomUUID();
    const keepUntil = Date.now() + 3 * 60 * minute;
    const writes = (now: number): (() => Promise<unknown>)[] => [
      () => store.commit({ claims: [aMember(`${customer}:a`, { now, keepUntil }), aWeight(`${customer}:b`, { now, keepUntil })] }),
      () => store.tally([{ counter: "a", by: 1, now, keepUntil }], []),
      () => store.put("key", "value", { now, keepUntil }),
    ];
    const ends = async () => {
      const keys = (await server.cli("KEYS", `${prefix}*`)).split("\n").filter((key) => !key.includes("!"));
      return Promise.all(keys.map(async (key) => Number(await server.cli("PTTL", key))));
    };
    await store.commit({ record: aRecord({ customer, id, wakeAt: 5, keepUntil }) });
    for (const write of writes(Date.now())) await write();
    expect(await ends()).toHaveLength(6);
    const ahead = Date.now() + 2 * day;
    await store.commit({ record: aRecord({ customer, id, tokens: ["two", "one"], wakeAt: 6, now: ahead, keepUntil }), expected: "one" });
    for (const write of writes(ahead)) await write();
    const after = await ends();
    expect(after).toHaveLength(6);
    expect(Math.min(...after)).toBeGreaterThan(3 * 60 * minute);
    expect(Math.max(...after)).toBeLessThan(4 * 60 * minute);
  });

  it("a record ends as much later or earlier as a write says, whatever the caller's clock", async () => {
    const prefix = `p${randomUUID()}`;
    const store = redisStore({ client: connected.client, prefix });
    const before = aRecord({ keepUntil: Date.now() + 7 * day });
    await store.commit({ record: before });
    const [key = ""] = (await server.cli("KEYS", `${prefix}*`)).split("\n");
    let [expected = ""] = before.tokens;
    for (const [now, days] of [
      [Date.now(), 1],
      [Date.now() + 2 * day, 1],
      [Date.now(), 3],
    ] as const) {
      const tokens = [randomUUID()];
      await store.commit({ record: { ...before, tokens, now, keepUntil: before.keepUntil + (days - 7) * day }, expected });
      [expected = ""] = tokens;
      const left = Number(await server.cli("PTTL", key));
      expect(left).toBeGreaterThan(days * day);
      expect(left).toBeLessThan(days * day + 60 * minute);
    }
  });

  it("a window created by one write with several claims lives until the latest of their ends, in any order", async () => {
    const prefix = `p${randomUUID()}`;
    const store = redisStore({ client: connected.client, prefix });
    const now = Date.now();
    const [short, long] = [now + minute, now + 3 * 60 * minute];
    for (const [at, lives] of [
      [short, long],
      [long, short],
      [long, short, short],
    ].entries()) {
      for (const member of [undefined, "one"]) {
        const window = `${randomUUID()}:${at}`;
        await store.commit({ claims: lives.map((keepUntil) => aMember(window, { now, keepUntil, ...(member !== undefined && { member }) })) });
      }
    }
    const keys = (await server.cli("KEYS", `${prefix}*`)).split("\n");
    expect(keys).toHaveLength(6);
    for (const key of keys) expect(Number(await server.cli("PTTL", key))).toBeGreaterThan(3 * 60 * minute);
  });

  it("the ticket of a commit that only changes sums lives a minute", async () => {
    const prefix = `p${randomUUID()}`;
    const store = redisStore({ client: connected.client, prefix });
    await store.commit({ claims: [aWeight(`${randomUUID()}:a`)] });
    const [ticket = ""] = (await server.cli("KEYS", `${prefix}*!*`)).split("\n");
    expect(Number(await server.cli("PTTL", ticket))).toBeGreaterThan(50_000);
    expect(Number(await server.cli("PTTL", ticket))).toBeLessThanOrEqual(minute);
  });

  it("a value never overwrites a record, an index, a window, a sum or a counter, whatever its key", async () => {
    const { client, calls } = counted();
    const prefix = `p${randomUUID()}`;
    const store = redisStore({ client, prefix });
    const record = aRecord({ wakeAt: 5 });
    const claims = [aMember(`${record.customer}:a`), aWeight(`${record.customer}:a`)];
    await store.commit({ claims, record });
    await store.tally([{ counter: "a", by: 1, now: 0, keepUntil: minute }], []);
    for (const key of calls.flat()) await store.put(key.slice(prefix.length), "value", { now: 0, keepUntil: minute });
    expect(await store.commit({ claims, record })).toEqual(done([1, 1]));
    expect(await store.lease(5, 1, 9)).toEqual([stored(record)]);
    expect(await store.tally([], ["a"])).toEqual([1]);
  });

  it("accepts replies as bytes, and clients that prefix keys", async () => {
    const bytes = redisStore({ client: async (script, keys, args) => Buffer.from((await recognise(connected.client).run(script, keys, args)) as string) });
    const prefixed = new Redis({ port: server.port, host: "127.0.0.1", keyPrefix: "app:" });
    for (const store of [bytes, redisStore({ client: prefixed, prefix: `p${randomUUID()}` })]) {
      const record = aRecord({ wakeAt: 5, data: "é 😀" });
      expect(await store.commit({ record })).toEqual(done());
      expect(await store.find(record.customer, record.id)).toEqual(stored(record));
      expect((await store.lease(5, 100, 9)).filter(({ id }) => id === record.id)).toEqual([stored(record)]);
    }
    prefixed.disconnect();
  });

  /** The size of each sorted set among a customer's keys. */
  async function lengths(customer: string): Promise<number[]> {
    const keys = await server.cli("KEYS", `*{${Buffer.from(customer.replaceAll("-", ""), "hex").toString("base64url")}}*`);
    return Promise.all(keys.split("\n").map(async (key) => Number(await server.cli("ZCARD", key))));
  }

  it("a window stores its newest members, a few more than its largest limit", async () => {
    const store = redisStore({ client: connected.client });
    for (const limit of [3, 100]) {
      const customer = randomUUID();
      const start = Date.now();
      for (let turn = 0; turn < 150; turn++) {
        const now = start + turn * minute;
        const claim = aMember(`${customer}:a`, { now, limit });
        expect(await store.commit({ claims: [claim, { ...claim, limit: 2 }] })).toEqual(done([1, 1]));
      }
      const { length } = await store.members(`${customer}:a`, 1_000);
      expect(length).toBeGreaterThanOrEqual(limit);
      expect(length).toBeLessThanOrEqual(limit + 16);
    }
  });

  it("members are returned unchanged, whatever they start with", async () => {
    const store = redisStore({ client: connected.client });
    const customer = randomUUID();
    const members = [
      "~",
      "~~a",
      `~${customer}`,
      customer,
      `${customer}/1`,
      `${customer}${customer}`,
      customer.toUpperCase(),
      customer.slice(1),
      `~${"a".repeat(22)}`,
      "",
      " ",
      "a b",
      "a%20b",
      "~a b",
      "~=a%20b",
      `${customer} b`,
      "a\tb\nc",
    ];
    for (const [now, member] of members.entries()) {
      const claim = { window: `${customer}:a`, member, since: -1, now, keepUntil: now + minute };
      expect(await store.commit({ claims: [claim] })).toEqual(done([now + 1]));
    }
    expect(await store.members(`${customer}:a`, 100)).toEqual(members.toReversed());
  });

  it("a list stores its newest 10,000 members", async () => {
    const store = redisStore({ client: connected.client });
    const customer = randomUUID();
    const start = Date.now();
    for (let batch = 0; batch < 101; batch++) {
      const claims = Array.from({ length: 100 }, (_, at): MemberClaim => {
        const now = start + batch * 100 + at;
        return { window: `${customer}:a`, member: `${batch * 100 + at}`, since: 0, now, keepUntil: now + minute };
      });
      await Promise.all(claims.map((claim) => store.commit({ claims: [claim] })));
    }
    const [length = 0] = await lengths(customer);
    expect(length).toBeGreaterThanOrEqual(10_000);
    expect(length).toBeLessThanOrEqual(10_016);
    expect(await store.members(`${customer}:a`, 2)).toEqual(["10099", "10098"]);
  });

  describe("a corrupt record", () => {
    it("gives 503 for that request and logs an error with its id, and is left unchanged", async () => {
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
      // The second within the minute is counted, not logged again.
      expect(events).toEqual([expect.stringContaining(id)]);
      expect(await server.cli("GET", key)).toBe("nonsense");
    });

    it.each([
      ["text of another kind", ["SET"], "nonsense"],
      ["no tokens", ["SET"], "s|1:|data"],
      ["an empty text", ["SET"], ""],
      ["a token cut short", ["SET"], "sone%E|1:|data"],
      ["no time", ["SET"], "szero|!|data"],
      ["another type", ["RPUSH"], "x"],
    ])("%s: the error names it and it is left unchanged", async (_, command, value) => {
      const { client, calls } = counted();
      const store = redisStore({ client });
      const { customer, id } = aRecord();
      await store.find(customer, id);
      const key = calls[0]?.[0] as string;
      await server.cli(...command, key, value);
      const dumped = await server.cli("DUMP", key);
      const claims = [aMember(`${customer}:a`), aWeight(`${customer}:a`)];
      await expect(store.find(customer, id)).rejects.toThrow(id);
      await expect(store.commit({ claims, record: aRecord({ customer, id }) })).rejects.toThrow(id);
      await expect(store.commit({ claims, record: aRecord({ customer, id, tokens: ["b", "a"] }), expected: "a" })).rejects.toThrow(id);
      expect(await server.cli("DUMP", key)).toBe(dumped);
      expect([await store.members(`${customer}:a`, 1), await store.commit({ asks: [{ sum: `${customer}:a`, part: 7, parts: 3 }] })]).toEqual([
        [],
        done([], [0]),
      ]);
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

    it.each([
      ["text of another kind", ["SET"]],
      ["another type", ["RPUSH"]],
    ])("%s: it does not hold up leases of other records, is moved as they are, and is reported when nothing else is due", async (_, command) => {
      const { client, calls } = counted();
      const store = redisStore({ client, prefix: `p${randomUUID()}` });
      const sound = aRecord({ wakeAt: 200 });
      const corrupt = Array.from({ length: 10 }, () => aRecord({ wakeAt: 100 }));
      for (const record of corrupt) {
        await store.commit({ record });
        const key = calls.at(-1)?.[0] as string;
        await server.cli("DEL", key);
        await server.cli(...command, key, "nonsense");
      }
      await store.commit({ record: sound });
      const ids = new RegExp(corrupt.map(({ id }) => id).join("|"));
      await expect(store.lease(300, 10, 1_000)).rejects.toThrow(ids);
      expect(await store.lease(300, 10, 1_000)).toEqual([stored(sound)]);
      expect(await store.lease(300, 10, 1_000)).toEqual([]);
      expect(await store.lease(1_000, 11, 2_000)).toEqual([stored(sound)]);
    });
  });

  it("removes the wake entry of a record that Redis has dropped, and the index once it is empty", async () => {
    const { client, calls } = counted();
    const store = redisStore({ client, prefix: `p${randomUUID()}` });
    await store.commit({ record: aRecord({ wakeAt: 100 }) });
    const [record, wake] = calls[0] as [string, string];
    await server.cli("DEL", record);
    expect(await store.lease(300, 10, 1_000)).toEqual([]);
    expect(await server.cli("EXISTS", wake)).toBe("0");
  });

  describe("when memory is full, under noeviction", () => {
    it("every write is rejected as a whole, memory does not grow, and existing data stays", async () => {
      const full = await startRedis(["--maxmemory-policy", "noeviction"]);
      const { client, close } = await (clients["ioredis 6"] as (typeof clients)[string])(full);
      const store = redisStore({ client });
      const { customer, id } = aRecord();
      const [window, sum] = [`${customer}:a`, `${customer}:b`];
      const start = Date.now();
      const keepUntil = start + 60 * minute;
      const member = (change: Partial<MemberClaim> = {}) => aMember(window, { since: 0, keepUntil, ...change });
      // A window due for trimming, a record due to leave the wake index, a wake entry without a record.
      for (let turn = 0; turn < 25; turn++) await store.commit({ claims: [member({ now: start + turn, since: start + turn - 1, member: `${turn}` })] });
      await store.commit({ claims: [aWeight(sum, { now: start, keepUntil })], record: aRecord({ customer, id, wakeAt: 5, keepUntil }) });
      const gone = aRecord({ wakeAt: 4 });
      await store.commit({ record: gone });
      await full.cli("DEL", ...(await full.cli("KEYS", `*${Buffer.from(gone.id.replaceAll("-", ""), "hex").toString("base64url")}`)).split("\n"));
      const keys = (await full.cli("KEYS", "*")).split("\n").sort();
      const dump = async () => Promise.all(keys.map((key) => full.cli("DUMP", key)));
      const before = await dump();
      await full.cli("CONFIG", "SET", "maxmemory", "1");
      const longer = { now: start + 100, since: start + 99, keepUntil: keepUntil + 60 * minute };
      const writes: (() => Promise<unknown>)[] = [
        () => store.commit({ claims: [member(longer)] }),
        () => store.commit({ claims: [member(longer)], record: aRecord({ customer }) }),
        () => store.commit({ record: aRecord({ customer, id, tokens: ["two", "one"] }), expected: "one" }),
        () => store.commit({ claims: [member({ member: "24", now: start + 24, out: true }), member(longer)] }),
        () => store.commit({ claims: [aWeight(sum, { now: start, weight: -1 }), member({ member: "24", now: start + 24, out: true })] }),
        () => store.lease(5, 10, 9),
        () => store.tally([{ counter: "a", by: 1, now: 0, keepUntil: minute }], []),
        () => store.put("key", "value", { now: 0, keepUntil: minute }),
      ];
      const usedMemory = async () => Number(/used_memory:(\d+)/.exec(await full.cli("INFO", "memory"))?.[1]);
      for (const write of writes) await expect(write()).rejects.toThrow(/redisStore: .*OOM/);
      const used = await usedMemory();
      for (let turn = 0; turn < 200; turn++) await Promise.all(writes.map((write) => write().catch(() => {})));
      expect(await usedMemory()).toBeLessThan(used + 100_000);
      expect((await full.cli("KEYS", "*")).split("\n").sort()).toEqual(keys);
      expect(await dump()).toEqual(before);
      expect(await store.find(customer, id)).toMatchObject({ tokens: ["one"] });
      await full.cli("CONFIG", "SET", "maxmemory", "0");
      for (const write of writes) await write();
      await close();
      await full.stop();
    });

    it("creates return 503, nothing is sent, and the number is not charged", async () => {
      const full = await startRedis(["--maxmemory-policy", "noeviction"]);
      const { client, close } = await (clients["ioredis 6"] as (typeof clients)[string])(full);
      const service = serviceOn(redisStore({ client }));
      const number = newNumber();
      await full.cli("CONFIG", "SET", "maxmemory", "1");
      for (let turn = 0; turn < 20; turn++) expect((await service.create(number)).status).toBe(503);
      expect(service.sent).toHaveLength(0);
      expect(await full.cli("DBSIZE")).toBe("0");
      await full.cli("CONFIG", "SET", "maxmemory", "0");
      const answers = [];
      for (let turn = 0; turn < 6; turn++) answers.push((await service.create(number)).body.status);
      expect(answers).toEqual([...Array.from({ length: 5 }, () => "pending"), "rate_limited"]);
      await close();
      await full.stop();
    });
  });

  it("reports an error without a message by its class and its cause", async () => {
    class TimeoutError extends Error {}
    const faults: [unknown, string][] = [
      [new TimeoutError(), "redisStore: TimeoutError"],
      [new TypeError("fetch failed", { cause: Object.assign(new Error(), { code: "ECONNREFUSED" }) }), "redisStore: fetch failed (ECONNREFUSED)"],
      [Object.assign(new AggregateError([], ""), { code: "ECONNRESET" }), "redisStore: ECONNRESET"],
      [{ name: "Odd" }, "redisStore: Odd"],
      ["a text", "redisStore: a text"],
      [undefined, "redisStore: undefined"],
      [
        new Error('ERR no, command was: ["+33612345678"]', { cause: new Error("x command was: +33612345678") }),
        `redisStore: the server behind option \`client\` rejected a command (ERR no (x)): look for the reason in its log and settings`,
      ],
    ];
    for (const [fault, words] of faults) {
      const store = redisStore({ client: () => Promise.reject(fault) });
      expect(await store.get("key").catch(({ message }: Error) => message)).toBe(words);
    }
  });

  it("serves a process that was frozen for longer than the `socketTimeout` of redis 6, if commands may wait (docs/frameworks.md#aws-lambda)", async () => {
    const client = createClient({
      url: server.url,
      disableOfflineQueue: false,
      commandOptions: { timeout: 1000 },
      socket: { socketTimeout: 100, reconnectStrategy: 0 },
    });
    const lost: Error[] = [];
    await client.on("error", (error) => lost.push(error)).connect();
    const store = redisStore({ client });
    for (let thaws = 1; thaws <= 3; thaws++) {
      await new Promise(setImmediate);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
      await new Promise(setImmediate); // timers run before a request is read
      expect(await store.commit({ claims: [aMember(randomUUID())] })).toEqual(done([1]));
      expect(lost).toHaveLength(thaws);
    }
    client.destroy();
  });

  it("reports a server that does not respond in time, through redis 6", async () => {
    const own = await startRedis();
    const { client, close } = await (clients["redis 6"] as (typeof clients)[string])(own, hurried);
    await own.signal("SIGSTOP");
    await expect(redisStore({ client }).get("key")).rejects.toThrow(/redisStore: (.*[Tt]imeout|Disconnects client)/);
    await close();
    await own.stop();
  });

  it.each([
    ["6", createClient],
    ["5", createClient5 as unknown as typeof createClient],
  ])("a command that redis %s gives up after its `timeout`, with an error without a message, is named in the log", async (_version, make) => {
    const own = await startRedis();
    const client = make({ url: own.url, commandOptions: { timeout: 100 }, socket: { reconnectStrategy: 50 } }).on("error", () => undefined);
    await client.connect();
    const log = logger();
    const service = serviceOn(redisStore({ client }), { logger: log });
    const lost = new Promise((resolve) => client.once("reconnecting", resolve));
    await own.signal("SIGKILL");
    await lost;
    expect((await service.create(newNumber())).status).toBe(503);
    expect(log.lines).toMatchObject([{ message: "the store failed", fields: { err: expect.stringContaining("redisStore: TimeoutError") } }]);
    client.destroy();
    await own.stop();
  });

  it("puts neither data nor members into errors, which are logged", async () => {
    const data = "+33612345678";
    const wrong = await startRedis(["SET", "ZADD"].flatMap((command) => ["--rename-command", command, `OLD-${command}`]));
    const singly = async (): Promise<Connected> => {
      const proxy = await startUpstash(wrong.url);
      return { client: new Upstash({ url: proxy.url, token: proxy.token, enableAutoPipelining: false }), close: () => proxy.close() };
    };
    for (const connect of [...Object.values(clients), singly]) {
      const { client, close } = await connect(wrong);
      const store = redisStore({ client });
      const customer = randomUUID();
      const faults = await Promise.all([
        store.commit({ record: aRecord({ data }) }).catch((error: unknown) => error),
        store.commit({ claims: [aMember(`${customer}:a`, { member: data })] }).catch((error: unknown) => error),
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
  });

  it("a response of Upstash cut off after the write counts once when the client repeats the request", async () => {
    const proxy = await startUpstash(server.url);
    const store = redisStore({ client: new Upstash({ url: proxy.url, token: proxy.token, retry: { retries: 2, backoff: () => 10 } }) });
    const record = aRecord();
    const [window, sum] = [`${record.customer}:a`, `${record.customer}:b`];
    const claims = () => [aMember(window, { limit: 2 }), aWeight(sum, { weight: 5, limit: 20 })];
    proxy.cutNextAnswer();
    expect(await store.commit({ claims: claims(), asks: [{ sum, part: 7, parts: 3 }], record })).toEqual(done([1, 5], [5]));
    proxy.cutNextAnswer();
    expect(await store.commit({ claims: claims(), record: { ...record, tokens: ["two", "one"] }, expected: "one" })).toEqual(done([2, 10]));
    proxy.cutNextAnswer();
    expect(await store.commit({ claims: claims() })).toMatchObject({ done: false, refusedBy: 0, count: 2 });
    proxy.cutNextAnswer();
    expect(await store.commit({ claims: [aWeight(sum, { weight: 7, limit: 20 })] })).toEqual(done([17]));
    await proxy.close();
  });
});
