import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { redisStore } from "../../adapters/store/redis/index.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { type RedisCluster, type RedisServer, redisIsInstalled, startCluster, startRedis } from "../support/redis.js";
import { type Connected, clients, clusterClients } from "../support/redis-clients.js";
import { start } from "../support/verifier.js";
import { lifeOfAKey, storedVerifier } from "./life.js";
import { raceCustomers } from "./races.js";

describe.runIf(redisIsInstalled("the life of a key over Redis"))("the life of a key on Redis", () => {
  let server: RedisServer;
  let cluster: RedisCluster;
  beforeAll(async () => {
    [server, cluster] = await Promise.all([startRedis(), startCluster()]);
  });
  afterAll(() => Promise.all([server?.stop(), cluster?.stop()]));

  const connecting: Record<string, () => Promise<Connected>> = {
    "ioredis 6": () => (clients["ioredis 6"] as (typeof clients)[string])(server),
    "redis 6": () => (clients["redis 6"] as (typeof clients)[string])(server),
    "@upstash/redis 1": () => (clients["@upstash/redis 1"] as (typeof clients)[string])(server),
    "ioredis 6, cluster of six": () => (clusterClients["ioredis 6"] as (typeof clusterClients)[string])(cluster),
  };

  describe.each(Object.keys(connecting))("through %s", (name) => {
    let one: Connected;
    let two: Connected;
    beforeAll(async () => {
      const connect = connecting[name] as () => Promise<Connected>;
      [one, two] = [await connect(), await connect()];
    });
    afterAll(async () => {
      await one?.close();
      await two?.close();
    });
    const handles = () => {
      const prefix = `p${randomUUID()}`;
      return { store: redisStore({ client: one.client, prefix }), peer: redisStore({ client: two.client, prefix }) };
    };

    it("create customer → issue → use over HTTP → rotate with overlap → old revoked → rejected within two seconds → suspend → rejected → resume", () =>
      lifeOfAKey(handles()));

    it("a revocation is never undone, and there are never three keys in use", () => raceCustomers(handles()));

    it("a different number of shards loses no customer", async () => {
      const prefix = `p${randomUUID()}`;
      const clock = fixedClock(start);
      const { verifier: few } = storedVerifier(redisStore({ client: one.client, prefix, shards: 1 }), clock);
      const { customer_uuid } = await few.customers.create();
      const { verifier: many } = storedVerifier(redisStore({ client: two.client, prefix, shards: 64 }), clock);
      expect(await many.customers.list()).toEqual([await few.customers.get({ customer_uuid })]);
    });
  });

  it("nothing expires too early: a key, its customer and the list are stored for fifty years", async () => {
    const { client, close } = await (clients["ioredis 6"] as (typeof clients)[string])(server);
    const prefix = `p${randomUUID()}`;
    const { verifier } = storedVerifier(redisStore({ client, prefix }), fixedClock(start));
    const { customer_uuid } = await verifier.customers.create();
    await verifier.customers.keys.issue({ customer_uuid });
    const keys = (await server.cli("KEYS", `${prefix}*`)).split("\n");
    expect(keys).toHaveLength(3);
    for (const key of keys) expect(Number(await server.cli("PTTL", key))).toBeGreaterThan(49 * 365 * 86_400_000);
    await close();
  });
});
