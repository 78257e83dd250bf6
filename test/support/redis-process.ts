import { Redis } from "ioredis";
import { redisStore } from "../../adapters/store/redis/index.js";
import { serveBatches } from "../store/processes-worker.js";

await serveBatches(async (url) => redisStore({ client: new Redis(url) }));
