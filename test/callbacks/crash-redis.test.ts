import { afterAll, describe } from "vitest";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { crashCases } from "./crash-cases.js";

const installed = redisIsInstalled("killed processes on Redis");

describe.runIf(installed)("killed processes on Redis", () => {
  let server: Promise<RedisServer> | undefined;
  let databases = 0;

  crashCases("Redis", 800, 20, new URL("crash-redis-process.ts", import.meta.url), async () => {
    server ??= startRedis();
    return `${(await server).url}/${databases++}`;
  });

  afterAll(async () => {
    await (await server)?.stop();
  });
});
