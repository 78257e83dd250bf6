/** Fastify with the memory store: `npm run example examples/fastify.ts`. */
import type { AddressInfo } from "node:net";
import Fastify from "fastify";
import { createVerifier } from "phoneproof";
import { fastifyPlugin } from "phoneproof/fastify";
import { memoryStore } from "phoneproof/memory";
import { consoleSender } from "phoneproof/senders/console";
import { invite, settings } from "./settings.js";

const verifier = createVerifier({
  store: memoryStore(),
  sender: consoleSender(),
  secret: settings.secret,
  countries: ["FR", "GB", "US"],
  customers: [{ customer_uuid: settings.customer_uuid, keys: [settings.apiKey] }],
});

const app = Fastify();
app.register(fastifyPlugin(verifier));
app.get("/", async () => "an app that verifies phone numbers under /v1");

await app.listen({ port: settings.port, host: "127.0.0.1" });
invite((app.server.address() as AddressInfo).port);
