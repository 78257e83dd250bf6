import { Redis as Upstash } from "@upstash/redis";
import { Redis, type RedisOptions } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { createClient, type RedisClientOptions } from "redis";
import { createClient as createClient5 } from "redis5";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type RedisClient, redisStore } from "../../adapters/store/redis/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { startUpstash } from "../support/upstash.js";
import { aboutStore, counted, flow, newNumber, outcome, processOn, rightFlow, wrongFor } from "./store-users-kit.js";

const hour = 3_600_000;

describe.skipIf(!redisIsInstalled("redis-users"))("Redis as self-hosters run it", () => {
  let server: RedisServer;
  let admin: Redis;
  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis(server.port);
  });
  afterAll(async () => {
    admin.disconnect();
    await server.stop();
  });
  beforeEach(async () => {
    await admin.flushall();
    await admin.config("SET", "maxmemory", "0", "maxmemory-policy", "noeviction");
  });

  function io(options: RedisOptions = {}): Redis {
    const client = new Redis({ port: server.port, ...options } as RedisOptions & { replyMapping: "legacy" }).on("error", () => {});
    onTestFinished(() => client.disconnect());
    return client;
  }
  async function node(options: RedisClientOptions & Record<string, unknown> = {}, make: typeof createClient = createClient) {
    const client = make({ url: server.url, ...options } as object).on("error", () => {});
    await client.connect();
    onTestFinished(() => client.destroy());
    return client;
  }
  const ends = async () => Promise.all((await admin.keys("*")).map(async (key) => [key, await admin.pttl(key)] as const));

  const clients: Record<string, () => Promise<RedisClient> | RedisClient> = {
    "ioredis, keyPrefix": () => io({ keyPrefix: "app:" }),
    "ioredis, keyPrefix with a hash tag": () => io({ keyPrefix: "{app}:" }),
    "ioredis, autopipelining and a database": () => io({ enableAutoPipelining: true, db: 3, keyPrefix: "*" }),
    "ioredis, lazyConnect": () => io({ lazyConnect: true }),
    "ioredis, stringNumbers": () => io({ stringNumbers: true }),
    "ioredis 5, autopipelining": () => {
      const client = new Redis5({ port: server.port, enableAutoPipelining: true, keyPrefix: "x:" });
      onTestFinished(() => client.disconnect());
      return client;
    },
    "node-redis 6, RESP2, keyPrefix": () => node({ RESP: 2 as 3, keyPrefix: "x:" }),
    "node-redis 6, RESP3, a type mapping to Buffer": async () =>
      (await node({ RESP: 3 })).withTypeMapping({ 36: Buffer, 43: Buffer } as never) as unknown as RedisClient,
    "node-redis 6, a database": () => node({ database: 4 }),
    "node-redis 5, RESP3": () => node({ RESP: 3 }, createClient5 as unknown as typeof createClient),
    "a function that returns a Uint8Array": () => {
      const client = io();
      return async (script, keys, args) => new Uint8Array((await client.callBuffer("EVAL", script, keys.length, ...keys, ...args)) as Buffer);
    },
  };

  it("supports every operation and the worker through clients with all kinds of options (docs/stores.md#the-client-is-yours)", async () => {
    for (const [name, client] of Object.entries(clients)) {
      const posted: string[] = [];
      const clock = fixedClock(Date.now());
      const sender = { post: async ({ url }: { readonly url: string }) => ({ status: posted.push(url) && 204 }) };
      const one = processOn(redisStore({ client: await client() }), { clock, callbacks: { worker: false, sender } });
      expect(await flow(one), name).toBe(rightFlow);
      const phone_number = newNumber();
      await one.verifier.createAuthentication({ phone_number, callback_url: "https://receiver.example/hook" });
      clock.advance(20_000);
      expect((await one.verifier.ping()).callbacks.due, name).toBe(1);
      await one.verifier.flush();
      expect(posted, name).toEqual(["https://receiver.example/hook"]);
      expect(await one.verifier.history({ phone_number }), name).toHaveLength(1);
      expect((await one.verifier.erase({ phone_number })).erased, name).toBe(1);
      expect(await one.verifier.history({ phone_number }), name).toEqual([]);
    }
  });

  it("works through @upstash/redis with every option that changes its replies (docs/stores.md#the-client-is-yours)", async () => {
    const rest = await startUpstash(server.url);
    onTestFinished(() => rest.close());
    const options = [{}, { automaticDeserialization: false }, { responseEncoding: false as const }, { enableAutoPipelining: false }, { readYourWrites: false }];
    for (const more of options) {
      const one = processOn(redisStore({ client: new Upstash({ url: rest.url, token: rest.token, retry: { retries: 2, backoff: () => 5 }, ...more }) }));
      expect(await flow(one), JSON.stringify(more)).toBe(rightFlow);
      rest.cutNextAnswer();
      const { authentication_uuid } = await one.verifier.createAuthentication({ phone_number: newNumber() });
      const wrong = wrongFor(one.codeOf(authentication_uuid));
      rest.cutNextAnswer();
      expect(await outcome(one.verifier.check({ authentication_uuid, check_code: wrong })), JSON.stringify(more)).toBe("invalid");
      expect((await one.verifier.explain({ authentication_uuid })).wrong_codes, JSON.stringify(more)).toBe(1);
    }
  });

  it("returns 503 and sends nothing if the client is not connected, closed, failing or returns no valid reply (docs/contract.md#fail-closed)", async () => {
    const never = createClient({ url: server.url, disableOfflineQueue: true }).on("error", () => {});
    const closed = io();
    await closed.quit();
    const broken: Record<string, RedisClient> = {
      never: never as unknown as RedisClient,
      closed,
      nothing: async () => undefined,
      throwing: () => {
        throw new Error("sync");
      },
      rejecting: () => Promise.reject(undefined),
      hanging: () => new Promise(() => {}),
      parsing: async () => ({ ok: 1 }),
    };
    for (const [name, client] of Object.entries(broken)) {
      const one = processOn(redisStore({ client }), { storeTimeout: 0.3 });
      expect(await outcome(one.verifier.createAuthentication({ phone_number: newNumber() })), name).toBe("unavailable");
      expect(one.sent, name).toEqual([]);
      expect((await one.verifier.ping()).ok, name).toBe(false);
    }
  });

  it("changes nothing while the server is full, and continues from there when it has room (docs/stores.md, noeviction)", async () => {
    const one = processOn(redisStore({ client: io() }));
    const phone_number = newNumber();
    const { authentication_uuid } = await one.verifier.createAuthentication({ phone_number });
    const code = one.codeOf(authentication_uuid);
    await admin.config("SET", "maxmemory", "1");
    const before = (await admin.keys("*")).length;
    for (let i = 0; i < 8; i++) {
      expect(await outcome(one.verifier.createAuthentication({ phone_number }))).toBe("unavailable");
      expect(await outcome(one.verifier.check({ authentication_uuid, check_code: wrongFor(code) }))).toBe("unavailable");
    }
    expect(await outcome(one.verifier.check({ authentication_uuid, check_code: code }))).toBe("unavailable");
    expect(one.sent).toHaveLength(1);
    expect((await admin.keys("*")).length).toBe(before);
    await admin.config("SET", "maxmemory", "0");
    expect(await outcome(one.verifier.check({ authentication_uuid, check_code: code }))).toBe("valid");
    const sends = [];
    for (let i = 0; i < 5; i++) sends.push(await outcome(one.verifier.createAuthentication({ phone_number })));
    expect(counted(sends)).toEqual({ pending: 4, rate_limited: 1 });
  });

  it("doctor reports every eviction policy with the level `fault` (docs/stores.md#redis)", async () => {
    for (const policy of ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-ttl", "volatile-random"]) {
      await admin.config("SET", "maxmemory-policy", policy);
      const found = await aboutStore(processOn(redisStore({ client: io() })).verifier);
      expect(
        found.filter(({ level, message }) => level === "fault" && message.includes(policy)),
        policy,
      ).toHaveLength(1);
    }
  });

  it("loses nothing while scripts are flushed all the time, and works from scratch after a FLUSHALL (docs/operations.md#when-something-is-down)", async () => {
    const one = processOn(redisStore({ client: io() }));
    let flushing = true;
    const flushes = (async () => {
      while (flushing) await admin.script("FLUSH");
    })();
    const flows = await Promise.all(Array.from({ length: 40 }, () => flow(one)));
    flushing = false;
    await flushes;
    expect(counted(flows)).toEqual({ [rightFlow]: 40 });
    const { authentication_uuid } = await one.verifier.createAuthentication({ phone_number: newNumber() });
    await admin.flushall();
    const check_code = one.codeOf(authentication_uuid);
    expect(await outcome(one.verifier.check({ authentication_uuid, check_code }))).toBe("invalid_auth_uuid");
    expect(await outcome(one.verifier.retry({ authentication_uuid }))).toBe("invalid_auth_uuid");
    expect(await flow(one)).toBe(rightFlow);
  });

  it("returns 503 while another client's script keeps the server busy, and works after SCRIPT KILL (docs/stores.md#the-client-is-yours)", async () => {
    await admin.config("SET", "busy-reply-threshold", "20");
    const one = processOn(redisStore({ client: io() }));
    expect(await flow(one)).toBe(rightFlow);
    const other = io();
    const loop = other.eval("while true do end", 0).catch((error: Error) => error.message);
    await expect.poll(() => outcome(one.verifier.createAuthentication({ phone_number: newNumber() }))).toBe("unavailable");
    const sent = one.sent.length;
    expect((await one.verifier.ping()).ok).toBe(false);
    await admin.script("KILL");
    await loop;
    expect(one.sent).toHaveLength(sent);
    expect(await flow(one)).toBe(rightFlow);
  });

  it("needs only the rights to EVALSHA, EVAL, read and write under its prefix, and doctor notes that it cannot read settings", async () => {
    await admin.call("ACL", "SETUSER", "app", "reset", "on", ">p", "~phoneproof*", "+eval", "+evalsha", "+@read", "+@write");
    onTestFinished(async () => {
      await admin.call("ACL", "DELUSER", "app");
    });
    const one = processOn(redisStore({ client: io({ username: "app", password: "p", enableReadyCheck: false }) }));
    expect(await flow(one)).toBe(rightFlow);
    expect(await one.verifier.ping()).toMatchObject({ ok: true, store: { settings: {}, missing: [] } });
    expect(await aboutStore(one.verifier)).toMatchObject([{ level: "note", message: "Redis does not show its settings to this client" }]);
    const elsewhere = processOn(redisStore({ client: io({ username: "app", password: "p", enableReadyCheck: false }), prefix: "other" }));
    expect(await outcome(elsewhere.verifier.createAuthentication({ phone_number: newNumber() }))).toBe("unavailable");
    expect(elsewhere.sent).toEqual([]);
  });

  it("works if a managed service has disabled CONFIG, INFO, TIME, KEYS, SCAN, SCRIPT and COMMAND", async () => {
    const disabled = ["CONFIG", "INFO", "TIME", "KEYS", "SCAN", "SCRIPT", "COMMAND"].flatMap((name) => ["--rename-command", name, ""]);
    const managed = await startRedis(disabled);
    onTestFinished(() => managed.stop());
    const one = processOn(redisStore({ client: io({ port: managed.port, enableReadyCheck: false }) }));
    expect(await flow(one)).toBe(rightFlow);
    expect((await one.verifier.ping()).ok).toBe(true);
  });

  it("sends nothing through a read-only replica, and doctor names the primary as the fix", async () => {
    const replica = await startRedis(["--replicaof", `127.0.0.1 ${server.port}`]);
    onTestFinished(() => replica.stop());
    const one = processOn(redisStore({ client: io({ port: replica.port }) }));
    expect(await outcome(one.verifier.createAuthentication({ phone_number: newNumber() }))).toBe("unavailable");
    expect(one.sent).toEqual([]);
    expect((await aboutStore(one.verifier)).filter(({ level }) => level === "fault")).toMatchObject([
      { message: expect.stringContaining("replica"), fix: expect.stringContaining("primary") },
    ]);
  });

  it("keeps apps with look-alike prefixes apart, erasure included (docs/customers.md)", async () => {
    const prefixes = ["a", "a*", "a?", "[a]", "a:", "A", "%s$1", "\\", "é", "e\u0301"];
    const apps = prefixes.map((prefix) => processOn(redisStore({ client: admin, prefix })));
    const phone_number = newNumber();
    const made = await Promise.all(apps.map(({ verifier }) => verifier.createAuthentication({ phone_number })));
    await apps[1]?.verifier.erase({ phone_number });
    for (const [index, { verifier, codeOf }] of apps.entries()) {
      const id = made[index]?.authentication_uuid as string;
      expect(await outcome(verifier.check({ authentication_uuid: id, check_code: codeOf(id) })), prefixes[index]).toBe(
        index === 1 ? "invalid_auth_uuid" : "valid",
      );
      const next = prefixes[(index + 1) % prefixes.length];
      expect(await outcome(apps[(index + 1) % apps.length]?.verifier.retry({ authentication_uuid: id }) as Promise<object>), next).toBe("invalid_auth_uuid");
    }
  });

  it("gives every key an expiry that does not depend on a process's clock (docs/contract.md#early-end)", async () => {
    for (const ahead of [0, 72, -8_766]) {
      await admin.flushall();
      const one = processOn(redisStore({ client: io() }), { clock: fixedClock(Date.now() + ahead * hour), policy: { tombstone: 3_600 } });
      expect(await flow(one)).toBe(rightFlow);
      for (let i = 0; i < 7; i++) await one.verifier.createAuthentication({ phone_number: newNumber(), device_id: "one", ip: "192.0.2.1" });
      for (const [key, left] of await ends()) {
        expect(left, key).toBeGreaterThan(0);
        // Records: `lifetime` and `tombstone`, and the 20 minutes of docs/privacy.md.
        if (key.includes("{0}r")) expect(left, key).toBeLessThanOrEqual((600 + 3_600 + 1_200) * 1_000);
      }
    }
  });

  it("stores the wrong codes of a number for up to 36 hours and 20 minutes (docs/privacy.md, the table)", async () => {
    const one = processOn(redisStore({ client: io() }), { clock: fixedClock(Date.UTC(2026, 0, 5, 9)) });
    const { authentication_uuid } = await one.verifier.createAuthentication({ phone_number: newNumber() });
    const before = new Set(await admin.keys("*"));
    await one.verifier.check({ authentication_uuid, check_code: wrongFor(one.codeOf(authentication_uuid)) });
    const added = (await ends()).filter(([key]) => !before.has(key));
    expect(added).toHaveLength(1);
    for (const [key, left] of added) expect(left / hour, key).toBeLessThanOrEqual(36 + 1 / 3);
  });
});
