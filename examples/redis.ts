/** Fastify with Redis, several processes side by side: `REDIS_URL=redis://127.0.0.1:6379 npm run example examples/redis.ts`. */
import type { AddressInfo } from "node:net";
import Fastify from "fastify";
import { createVerifier } from "phoneproof";
import { fastifyPlugin } from "phoneproof/fastify";
import { redisStore } from "phoneproof/redis";
import { consoleSender } from "phoneproof/senders/console";
import { createClient } from "redis";
import { invite, settings } from "./settings.js";

const client = createClient({ url: process.env.REDIS_URL ?? "redis://127.0.0.1:6379", disableOfflineQueue: true });
client.on("error", (error) => console.error("redis:", error.message)); // it reconnects automatically; until then requests return 503
await client.connect();

const verifier = createVerifier({
  store: redisStore({ client }),
  sender: consoleSender(),
  secret: settings.secret, // the same in every process
  countries: ["FR", "GB", "US"],
  customers: [{ customer_uuid: settings.customer_uuid, keys: [settings.apiKey] }],
});

const app = Fastify();
app.register(fastifyPlugin(verifier));
await app.listen({ port: settings.port, host: "127.0.0.1" });
invite((app.server.address() as AddressInfo).port);
