import { randomUUID } from "node:crypto";
import { MongoClient } from "mongodb";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { type MongoServer, mongoServer } from "../support/mongo.js";
import { newDatabase, type PostgresServer, poolOf, postgresServer } from "../support/postgres.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { setUp } from "../support/verifier.js";

const callbacks = { worker: false, sender: { post: async () => ({ status: 410 }) } };
const callback_url = "https://example.com/hook";

describe("ping: round trip to the store, clock difference, persistence, backlog", () => {
  it("memory: due, dead and waiting callbacks", async () => {
    const set = setUp({ callbacks });
    expect(await set.verifier.ping()).toEqual({
      ok: true,
      store: { kind: "memory", round_trip: 0, settings: {}, missing: [] },
      callbacks: { due: 0, dead: 0, waiting: 0 },
    });
    await set.create({ callback_url });
    expect((await set.verifier.ping()).callbacks).toEqual({ due: 1, dead: 0, waiting: 0 });
    await set.verifier.flush();
    expect((await set.verifier.ping()).callbacks).toEqual({ due: 0, dead: 1, waiting: 0 });
  });

  it("brief: one read, and no counts", async () => {
    const set = setUp({ callbacks });
    const get = vi.spyOn(set.store, "get");
    await set.create({ callback_url });
    get.mockClear();
    expect(await set.verifier.ping({ brief: true })).toEqual({ ok: true, store: { round_trip: 0, settings: {}, missing: [] }, callbacks: { waiting: 0 } });
    expect(get).toHaveBeenCalledTimes(1);
  });

  it("a store that is down: not ok, with the reason, and no rejection", async () => {
    const set = setUp();
    (set.store as { get: unknown }).get = async () => Promise.reject(new Error("ECONNREFUSED"));
    expect(await set.verifier.ping()).toEqual({ ok: false, store: { settings: {}, missing: [], fault: "ECONNREFUSED" }, callbacks: { waiting: 0 } });
  });

  it("what may be a phone number in a store's error is masked, as in the log", async () => {
    const set = setUp();
    (set.store as { get: unknown }).get = async () => Promise.reject(new Error("a proxy rejected +33612345678"));
    expect((await set.verifier.ping()).store.fault).toBe("a proxy rejected +…");
  });

  it("diagnose takes the fix for an SQLite file from the store's error, since there is no server to start", async () => {
    const set = setUp();
    (set.store as { get: unknown }).get = async () => Promise.reject(new Error("sqliteStore: the database is full (disk: full): make room on the disk"));
    expect(await set.verifier.diagnose()).toContainEqual({
      level: "fault",
      about: "store",
      message: "the store does not respond: sqliteStore: the database is full (disk: full)",
      fix: "make room on the disk",
    });
  });

  it.each([
    ["redisStore: the server behind option `client` is a cluster (CROSSSLOT keys)", "set option `cluster: true`"],
    ["postgresStore: cannot execute INSERT (25006)", "the server is read-only: connect to the primary"],
  ])("diagnose takes the fix from an error that ends with it: %s", async (fault, fix) => {
    const set = setUp();
    (set.store as { get: unknown }).get = async () => Promise.reject(new Error(`${fault}: ${fix}`));
    expect(await set.verifier.diagnose(null as never)).toContainEqual({ level: "fault", about: "store", message: `the store does not respond: ${fault}`, fix });
  });

  it.each(["get", "members", "inspect"] as const)("a store whose %s hangs: a response within `storeTimeout`", async (method) => {
    const set = setUp();
    (set.store as unknown as Record<string, unknown>)[method] = () => new Promise(() => {});
    const pinging = set.verifier.ping();
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
    set.clock.advance(2_000);
    expect((await pinging).store.fault).toContain("no response within 2000 ms");
  });

  it("a store that fails to be inspected, or cannot be, is still ok", async () => {
    const set = setUp();
    (set.store as { inspect?: unknown }).inspect = async () => Promise.reject(new Error("not allowed"));
    expect(await set.verifier.ping()).toMatchObject({ ok: true, store: { fault: "it could not be inspected: not allowed" }, callbacks: { dead: 0 } });
    (set.store as { inspect?: unknown }).inspect = undefined;
    expect(await set.verifier.ping()).toMatchObject({ ok: true, store: { round_trip: 0 } });
  });

  describe.skipIf(!redisIsInstalled("ping on Redis"))("Redis", () => {
    let redis: RedisServer;
    let client: ReturnType<typeof createClient>;
    beforeAll(async () => {
      redis = await startRedis(["--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"]);
      client = createClient({ url: redis.url });
      client.on("error", () => {});
      await client.connect();
    });
    afterAll(async () => {
      client?.destroy();
      await redis?.stop();
    });

    it("reports the clock difference, persistence and the backlog over all shards", async () => {
      const set = setUp({ store: redisStore({ client, prefix: randomUUID(), shards: 4 }), callbacks });
      for (const last of "1234567") await set.create({ phone_number: `+3361200000${last}`, callback_url });
      set.clock.set(Date.now());
      const { ok, store, callbacks: backlog } = await set.verifier.ping();
      expect(ok).toBe(true);
      expect(store).toMatchObject({ kind: "redis", settings: { appendonly: "yes", "maxmemory-policy": "allkeys-lru" }, missing: [] });
      expect(Math.abs(store.clock_difference as number)).toBeLessThan(5_000);
      expect(backlog).toEqual({ due: 7, dead: 0, waiting: 0 });
    });

    it("without permission for CONFIG and INFO, the settings are left out and nothing fails", async () => {
      await redis.cli("ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "-config", "-info");
      const app = createClient({ url: redis.url.replace("redis://", "redis://app:secret@") });
      app.on("error", () => {});
      await app.connect();
      const set = setUp({ store: redisStore({ client: app, prefix: randomUUID() }) });
      expect(await set.verifier.ping()).toMatchObject({ ok: true, store: { kind: "redis", settings: {}, clock_difference: expect.any(Number) } });
      app.destroy();
    });
  });

  describe("MongoDB", () => {
    let server: MongoServer | undefined;
    let client: MongoClient;
    beforeAll(async () => {
      server = await mongoServer("ping on MongoDB");
      if (server !== undefined) client = await new MongoClient(server.url).connect();
    });
    afterAll(async () => {
      await client?.close();
      await server?.stop();
    });

    it("reports the clock difference, what is due, and missing indexes", async (test) => {
      if (server === undefined) return test.skip();
      const store = mongoStore({ db: client.db("phoneproof-ping"), prefix: `p${randomUUID().slice(0, 8)}_` });
      const set = setUp({ store, callbacks });
      await set.create({ callback_url });
      const before = await set.verifier.ping();
      expect(before.store.missing).toEqual([expect.stringMatching(/state\.wakeAt, .*state\.expireAt.*: call await store\.ensureIndexes\(\)/)]);
      expect(before).toMatchObject({ ok: true, store: { kind: "mongodb", clock_difference: expect.any(Number) }, callbacks: { due: 1 } });
      await store.ensureIndexes();
      expect((await set.verifier.ping()).store.missing).toEqual([]);
    });
  });

  describe("PostgreSQL", () => {
    let server: PostgresServer | undefined;
    beforeAll(async () => {
      server = await postgresServer("ping on PostgreSQL");
    });
    afterAll(() => server?.stop());

    it("reports the clock difference, what is due, and a missing schema", async (test) => {
      if (server === undefined) return test.skip();
      const pool = poolOf(await newDatabase(server));
      const store = postgresStore({ pool });
      expect(await store.inspect?.(0)).toMatchObject({
        kind: "postgresql",
        missing: [expect.stringMatching(/^the schema "phoneproof" is missing: call await store\.ensureSchema\(\)/)],
      });
      await store.ensureSchema();
      const set = setUp({ store, callbacks });
      await set.create({ callback_url });
      expect(await set.verifier.ping()).toMatchObject({
        ok: true,
        store: { kind: "postgresql", clock_difference: expect.any(Number), missing: [], settings: { synchronous_commit: "on" } },
        callbacks: { due: 1 },
      });
      await set.verifier.close();
      await pool.end();
    });
  });
});
