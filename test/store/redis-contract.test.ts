import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, it } from "vitest";
import { recognise } from "../../adapters/store/redis/clients.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import lease from "../../adapters/store/redis/lease.lua";
import tally from "../../adapters/store/redis/tally.lua";
import { storeContract } from "../../src/testing/store-contract.js";
import { type RedisCluster, type RedisServer, redisIsInstalled, startCluster, startRedis } from "../support/redis.js";
import { type Connected, clients, clusterClients } from "../support/redis-clients.js";
import { ofClient } from "./of-client.js";

const installed = redisIsInstalled("the store contract on Redis");

describe.runIf(installed)("the store contract on Redis", () => {
  let server: RedisServer;
  let cluster: RedisCluster;

  beforeAll(async () => {
    [server, cluster] = await Promise.all([startRedis(), startCluster()]);
  });

  afterAll(async () => {
    await Promise.all([server?.stop(), cluster?.stop()]);
  });

  const single = (name: string) => () => clients[name]?.(server) as Promise<Connected>;
  const stores: Record<string, () => Promise<Connected>> = {};
  for (const name of Object.keys(clients)) stores[name] = single(name);
  for (const [name, connect] of Object.entries(clusterClients)) stores[`${name}, cluster of six`] = () => connect(cluster);
  /**
   * Scripts that lease or only add are sent once: a lost lease comes back when it ends, and for tally "a call that the
   * transport repeats may count twice".
   */
  const sentTwice = async (connecting: Promise<Connected>): Promise<Connected> => {
    const { client, close } = await connecting;
    const { run } = recognise(client);
    return {
      async client(script, keys, args) {
        if (![lease, tally].some((once) => script.includes(once))) await run(script, keys, args);
        return run(script, keys, args);
      },
      close,
    };
  };
  stores["ioredis 6, every script sent twice"] = () => sentTwice(single("ioredis 6")());
  stores["ioredis 6, cluster of six, every script sent twice"] = () => sentTwice(clusterClients["ioredis 6"]?.(cluster) as Promise<Connected>);

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

    for (const { name: sentence, run } of /^ioredis 6(, cluster of six)?$/.test(name) ? storeContract({ racers: 200 }) : ofClient) {
      it(sentence, async () => {
        const prefix = randomUUID();
        const options = name.includes("cluster") ? { cluster: true } : {};
        await run({ store: redisStore({ client: first.client, prefix, ...options }), peer: redisStore({ client: second.client, prefix, ...options }) });
      });
    }
  });
});
