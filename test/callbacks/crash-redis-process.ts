import { Redis } from "ioredis";
import { redisStore } from "../../adapters/store/redis/index.js";
import { serveOrders } from "./crash-worker.js";

await serveOrders(async (url) => redisStore({ client: new Redis(url) }));
