import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, it } from "vitest";
import { recognise } from "../../adapters/store/redis/clients.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { storeContract } from "../../src/testing/store-contract.js";
import { type RedisCluster, type RedisServer, redisIsInstalled, startCluster, startRedis } from "../support/redis.js";
import { type Connected, clients, clusterClients } from "../support/redis-clients.js";

const installed = redisIsInstalled("the store contract on Redis");

describe.runIf(installed)("the store contract on Redis", () => {
  let server: RedisServer;
  let cluster: RedisCluster;

  beforeAll(async () => {
    [server, cluster] = await Promise.all([startRedis(), startCluster()]);
  }, 60_000);

  afterAll(async () => {
    await Promise.all([server?.stop(), cluster?.stop()]);
  });

  const single = (name: string) => () => clients[name]?.(server) as Promise<Connected>;
  const stores: Record<string, () => Promise<Connected>> = {};
  for (const name of Object.keys(clients)) stores[name] = single(name);
  for (const [name, connect] of Object.entries(clusterClients)) stores[`${name}, three-node cluster`] = () => connect(cluster);
  stores["ioredis 6, every script sent twice"] = async () => {
    const { client, close } = await single("ioredis 6")();
    const { run } = recognise(client);
    return {
      async client(script, keys, args) {
        await run(script, keys, args);
        return run(script, keys, args);
      },
      close,
    };
  };

  describe.each(Object.keys(stores))("through %s", (name) => {
    let first: Connected;
    let second: Connected;

    beforeAll(async () => {
      const connect = stores[name] as () => Promise<Connected>;
      first = await connect();
      second = await connect();
    });

    afterAll(async () => {
      await first?.close();
      await second?.close();
    });

    describe.each([50, 1_000])("%i racers", (racers) => {
      for (const { name: sentence, run } of storeContract({ racers })) {
        it(sentence, async () => {
          const prefix = randomUUID();
          await run({ store: redisStore({ client: first.client, prefix }), peer: redisStore({ client: second.client, prefix }) });
        }, 60_000);
      }
    });
  });
});
