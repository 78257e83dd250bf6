import { afterAll, describe } from "vitest";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { processCases } from "./processes-cases.js";

const installed = redisIsInstalled("several processes on Redis");

describe.runIf(installed)("several processes on Redis", () => {
  let server: Promise<RedisServer> | undefined;

  afterAll(async () => {
    await (await server)?.stop();
  });

  processCases(
    new URL("../support/redis-process.ts", import.meta.url),
    async () => {
      server ??= startRedis();
      return (await server).url;
    },
    2,
    250,
  );
});
