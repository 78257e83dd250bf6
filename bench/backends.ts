import type { Store } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { mongoStore } from "phoneproof/mongo";
import { redisStore } from "phoneproof/redis";
import type { Backend } from "./apps.js";
import { handmadeInMemory, handmadeOnRedis, validNumber } from "./handmade.js";

/** Answers as long as the service's own. */
const created = {
  authentication_uuid: "0f9b7c1e-52a6-4d0b-9a38-6f1d2c3b4a59",
  created_at: "2026-03-01T12:00:00.000Z",
  expires_at: "2026-03-01T12:10:00.000Z",
  status: "pending",
};
const checked = { authentication_uuid: created.authentication_uuid, status: "valid" };

/** A store by its URL: `memory:`, `redis://…` or `mongodb://…`. */
export async function storeOf(url: string): Promise<Store> {
  if (url === "memory:") return memoryStore();
  if (url.startsWith("mongodb:")) {
    const { MongoClient } = await import("mongodb");
    const store = mongoStore({ db: (await MongoClient.connect(url)).db() });
    await store.ensureIndexes();
    return store;
  }
  return redisStore({ client: await redisClient(url) });
}

/** What the bare routes do beside the store at `url`: they look at the number; then nothing in memory, in Redis one script each. */
export async function backendOf(url: string): Promise<Backend> {
  const backend: Backend = url.startsWith("redis:") ? await oneScriptEach(url) : { create: () => created, check: () => checked };
  return {
    create: (body) => (validNumber((body as { phone_number?: unknown }).phone_number) === undefined ? { code: "invalid_phone_number" } : backend.create(body)),
    check: backend.check,
  };
}

/** The service made by hand beside the store at `url`. */
export async function handmadeOf(url: string, send: (id: string, code: string) => void): Promise<Backend> {
  if (!url.startsWith("redis:")) return handmadeInMemory(send);
  const { Redis } = await import("ioredis");
  return handmadeOnRedis(new Redis(url), send);
}

async function redisClient(url: string) {
  const { createClient } = await import("redis");
  return createClient({ url }).connect();
}

/** The least that create can do: one script that counts the send in two windows and writes the code. */
const createScript = `
if redis.call("ZCOUNT", KEYS[2], ARGV[4], "+inf") >= 5 or redis.call("ZCOUNT", KEYS[3], ARGV[4], "+inf") >= 10000 then return "-" end
redis.call("ZADD", KEYS[2], ARGV[5], ARGV[6])
redis.call("PEXPIRE", KEYS[2], ARGV[3])
redis.call("ZADD", KEYS[3], ARGV[5], ARGV[6])
redis.call("PEXPIRE", KEYS[3], ARGV[3])
redis.call("SET", KEYS[1], ARGV[1] .. ARGV[2], "PX", ARGV[3])
return "+"`;

/** The least that check can do: one script that reads the code and writes the verdict. */
const checkScript = `
local stored = redis.call("GET", KEYS[1])
redis.call("SET", KEYS[1], ARGV[1] .. ARGV[2], "PX", ARGV[3])
return stored and "+" or "-"`;

/** Two scripts with arguments as long as those of a record and its windows, on the client that the store has. */
async function oneScriptEach(url: string): Promise<Backend> {
  const client = await redisClient(url);
  const [createSha, checkSha] = await Promise.all([client.scriptLoad(createScript), client.scriptLoad(checkScript)]);
  const life = String(25 * 3_600_000);
  let count = 0;
  return {
    async create(body) {
      const { customer_uuid, phone_number } = body as { customer_uuid: string; phone_number: string };
      const name = `bare-${count++}`;
      const now = Date.now();
      const data = `[1,"${phone_number}",${now},600000,0,0,0,1,1,0,0,[1,"dGhlIGRpZ2VzdCBvZiBpdA",0]]`;
      await client.evalSha(createSha, {
        keys: [`bare{${customer_uuid}}r${name}`, `bare{${customer_uuid}}:n:${phone_number}`, `bare{${customer_uuid}}:c`],
        arguments: ["aAAAAAAAAAAAA|mqxyzabc||", data, life, String(now - 600_000), String(now), `${created.authentication_uuid}/1`],
      });
      return created;
    },
    async check(body) {
      const { customer_uuid, authentication_uuid } = body as { customer_uuid: string; authentication_uuid: string };
      const data = `[1,"+33612000000",${Date.now()},600000,0,0,2,1,1,0,0,[1,"",0]]`;
      await client.evalSha(checkSha, {
        keys: [`bare{${customer_uuid}}r${authentication_uuid}`],
        arguments: ["aAAAAAAAAAAAA,BBBBBBBBBBB|mqxyzabc||", data, life],
      });
      return checked;
    },
  };
}
