import { createServer, request } from "node:http";
import { createVerifier, generateApiKey } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { mongoStore } from "phoneproof/mongo";
import { nodeHandler } from "phoneproof/node";
import { openTelemetry } from "phoneproof/otel";
import { postgresStore } from "phoneproof/postgres";
import { redisStore } from "phoneproof/redis";
import { smppSender } from "phoneproof/senders/smpp";
import { twilioSender } from "phoneproof/senders/twilio";

const customer_uuid = "5f0c7f3e-1d2b-4c3a-9e8f-7a6b5c4d3e2f";

const options = () => ({
  store: memoryStore(),
  secret: generateApiKey().key,
  countries: "all",
  customers: [{ customer_uuid, keys: [generateApiKey().key] }],
  callbacks: { worker: false },
});

/** Runs one verification with these parts. Throws if it does not succeed. */
async function verify({ sender, ...parts }) {
  const codes = [];
  const verifier = createVerifier({
    ...options(),
    ...parts,
    sender: {
      async send(message, context) {
        codes.push(message.code);
        return sender === undefined ? { outcome: "accepted" } : sender.send(message, context);
      },
    },
  });
  try {
    const { authentication_uuid, status } = await verifier.createAuthentication({ customer_uuid, phone_number: "+33612345678" });
    const checked = await verifier.check({ customer_uuid, authentication_uuid, check_code: codes[0] ?? "000000" });
    if (status !== "pending" || checked.status !== "valid") throw new Error(`${status}, ${checked.status}`);
  } finally {
    await verifier.close();
  }
}

/** A sender that throws unless the message was accepted. */
const strict = (sender) => ({
  async send(message, context) {
    const sent = await sender.send(message, context);
    if (sent.outcome !== "accepted") throw new Error(JSON.stringify(sent));
    return sent;
  },
});

/** The parts that a runtime may lack, by their names in docs/runtimes.md. Each gets the addresses of the servers. */
export const parts = {
  async "Redis: `redis`"({ redis }) {
    const { createClient } = await import("redis");
    const client = await createClient({ url: redis })
      .on("error", () => {})
      .connect();
    await verify({ store: redisStore({ client, prefix: "redis" }) }).finally(() => client.destroy());
  },
  async "Redis: `ioredis`"({ redis }) {
    const { Redis } = await import("ioredis");
    const client = new Redis(redis, { lazyConnect: true, maxRetriesPerRequest: 1 }).on("error", () => {});
    await client.connect();
    await verify({ store: redisStore({ client, prefix: "ioredis" }) }).finally(() => client.disconnect());
  },
  async "Redis: `@upstash/redis`"({ upstash }) {
    const { Redis } = await import("@upstash/redis");
    await verify({ store: redisStore({ client: new Redis({ ...upstash, automaticDeserialization: false }), prefix: "upstash" }) });
  },
  async "MongoDB: `mongodb`"({ mongo }) {
    const { MongoClient } = await import("mongodb");
    const client = new MongoClient(mongo, { serverSelectionTimeoutMS: 3000 });
    await verify({ store: mongoStore({ db: client.db("runtimes") }) }).finally(() => client.close());
  },
  async "PostgreSQL: `pg`"({ postgres: connectionString }) {
    const { Pool } = await import("pg");
    const pool = new Pool({ connectionString });
    await verify({ store: postgresStore({ pool }) }).finally(() => pool.end());
  },
  async "PostgreSQL: `postgres`"({ postgres: url }) {
    const { default: postgres } = await import("postgres");
    const sql = postgres(url);
    await verify({ store: postgresStore({ pool: sql }) }).finally(() => sql.end());
  },
  async "carriers over HTTP"({ carrier }) {
    await verify({
      sender: strict(twilioSender({ accountSid: "AC00000000000000000000000000000000", authToken: "x".repeat(32), from: "+15005550006", baseUrl: carrier })),
    });
  },
  async "carriers over SMPP"({ smpp }) {
    const sender = smppSender({ host: "127.0.0.1", port: smpp.port, systemId: smpp.systemId, password: smpp.password, from: "Acme" });
    await verify({ sender: strict(sender) }).finally(() => sender.close());
  },
  async "a server: `node:http`, Express, Fastify"() {
    const verifier = createVerifier({ ...options(), sender: { send: async () => ({ outcome: "accepted" }) } });
    const server = createServer(nodeHandler(verifier));
    await new Promise((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
    try {
      const status = await new Promise((resolve, reject) => {
        request({ port: server.address().port, host: "127.0.0.1", path: "/v1/check", method: "POST" }, (response) => resolve(response.resume().statusCode))
          .on("error", reject)
          .end("{}");
      });
      if (status !== 403) throw new Error(`answered ${status}`);
    } finally {
      server.close();
      await verifier.close();
    }
  },
  async OpenTelemetry() {
    await verify({ telemetry: openTelemetry() });
  },
};

/** The result of each part: "works", or the reason why not. */
export async function tryParts(servers) {
  const found = {};
  for (const [name, part] of Object.entries(parts)) {
    const late = new Promise((_, reject) => setTimeout(() => reject(new Error("nothing came of it in six seconds")), 6000));
    found[name] = await Promise.race([part(servers), late]).then(
      () => "works",
      (error) => `${error?.name}: ${error?.message}${error?.cause ? ` (${error.cause.message ?? error.cause})` : ""}`,
    );
  }
  return found;
}
