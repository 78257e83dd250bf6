import { redisStore } from "../../adapters/store/redis/index.js";
import { dumpOfRedis } from "../support/dump.js";
import { redisIsInstalled, startRedis } from "../support/redis.js";
import { clients } from "../support/redis-clients.js";
import { privacyCases } from "./cases.js";

if (redisIsInstalled("privacy on Redis")) {
  privacyCases("Redis", async () => {
    const server = await startRedis();
    const { client, close } = await (clients["ioredis 6"] as (typeof clients)[string])(server);
    return {
      store: redisStore({ client }),
      dump: () => dumpOfRedis(server),
      async close() {
        await close();
        await server.stop();
      },
    };
  });
}
