/** Fastify with an SQLite file: `npm run example examples/sqlite.ts`. After a restart, codes that were sent are still valid. */
import type { AddressInfo } from "node:net";
import fastify from "fastify";
import { createVerifier } from "phoneproof";
import { fastifyPlugin } from "phoneproof/fastify";
import { consoleSender } from "phoneproof/senders/console";
import { sqliteStore } from "phoneproof/sqlite";
import { invite, settings } from "./settings.js";

const verifier = createVerifier({
  store: sqliteStore({ file: process.env.SQLITE_FILE ?? "phoneproof.db" }),
  sender: consoleSender(),
  secret: settings.secret,
  countries: ["FR", "GB", "US"],
  customers: [{ customer_uuid: settings.customer_uuid, keys: [settings.apiKey] }],
});

const app = fastify();
app.register(fastifyPlugin(verifier));
await app.listen({ port: settings.port, host: "127.0.0.1" });
invite((app.server.address() as AddressInfo).port);
