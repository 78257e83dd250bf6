/** Fastify with PostgreSQL: `POSTGRES_URL=postgres://127.0.0.1:5432/phoneproof npm run example examples/postgres.ts`. */
import type { AddressInfo } from "node:net";
import fastify from "fastify";
import { Pool } from "pg";
import { createVerifier } from "phoneproof";
import { fastifyPlugin } from "phoneproof/fastify";
import { postgresStore } from "phoneproof/postgres";
import { consoleSender } from "phoneproof/senders/console";
import { invite, settings } from "./settings.js";

const pool = new Pool({
  connectionString: process.env.POSTGRES_URL ?? "postgres://127.0.0.1:5432/phoneproof",
  connectionTimeoutMillis: 1500,
  query_timeout: 1500,
});
pool.on("error", (error) => console.error("postgres:", error.message)); // it reconnects automatically; until then requests return 503
const store = postgresStore({ pool });
await store.ensureSchema(); // once, at start or in a migration

const verifier = createVerifier({
  store,
  sender: consoleSender(),
  secret: settings.secret,
  countries: ["FR", "GB", "US"],
  customers: [{ customer_uuid: settings.customer_uuid, keys: [settings.apiKey] }],
});

const app = fastify();
app.register(fastifyPlugin(verifier));
await app.listen({ host: "127.0.0.1", port: settings.port });
invite((app.server.address() as AddressInfo).port);
