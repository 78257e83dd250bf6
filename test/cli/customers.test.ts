import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { systemClock } from "../../src/core/clocks.js";
import type { Store } from "../../src/ports/store.js";
import { startProcess } from "../customers/life.js";
import { type Connected as ConnectedMongo, drivers, dropDatabase, type MongoServer, mongoServer, newDatabase } from "../support/mongo.js";
import { type NewStore, newStore, type PostgresServer, postgresServer } from "../support/postgres.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { type Connected, clients } from "../support/redis-clients.js";
import { startUpstash, type UpstashServer } from "../support/upstash.js";
import { secret } from "../support/verifier.js";
import { type BuiltCommand, buildCommand, runInProcess, spawnToEnd } from "./demo.js";

let command: BuiltCommand;
beforeAll(async () => {
  command = await buildCommand();
});
afterAll(() => command?.remove());

const env = { PHONEPROOF_SECRET: secret };

/** Runs a command that must exit with 0; returns its lines of JSON. */
async function json(store: readonly string[], words: string, more: readonly string[] = [], variables: Readonly<Record<string, string>> = {}) {
  const ended = await runInProcess([...words.split(" "), ...store, "--json", ...more], { ...env, ...variables });
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  const lines = ended.stdout.split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Record<string, string>);
}

/**
 * A verifier of the store accepts the customer and key that commands create, and another command lists the customer.
 * The life of a key is tested on Redis only: the other stores are tested in test/customers.
 */
async function opens(args: readonly string[], store: Store): Promise<void> {
  const service = await startProcess(store, systemClock() as never);
  try {
    const [made] = await json(args, "customers create");
    const [issued] = await json(args, `keys issue ${made?.["customer_uuid"]}`);
    expect(await service.create(issued?.["key"] as string, made?.["customer_uuid"] as string)).toBe("200 pending");
    expect(await json(args, "customers list")).toEqual([made]);
  } finally {
    await service.close();
  }
}

/** Takes a key and its customer through every command, and calls a verifier of the same store after each. */
async function life(args: readonly string[], store: Store): Promise<void> {
  const service = await startProcess(store, systemClock() as never);
  try {
    const ask = async (words: string, more?: readonly string[], variables?: Readonly<Record<string, string>>) =>
      (await json(args, words, more, variables))[0] ?? {};
    const { customer_uuid = "" } = await ask("customers create", ["--name", "Søn", "--policy", '{"checks":3}']);
    const { key = "", key_id = "" } = await ask(`keys issue ${customer_uuid}`);
    expect(await service.create(key, customer_uuid)).toBe("200 pending");
    const next = await ask(`keys rotate ${customer_uuid} ${key_id}`, ["--overlap", "60", "--name", "next"]);
    expect(await service.create(next["key"] as string, customer_uuid)).toBe("200 pending");
    expect(await ask(`keys revoke ${customer_uuid} ${key_id}`)).toMatchObject({ status: "revoked" });
    expect(await json(args, `keys list ${customer_uuid}`)).toMatchObject([
      { key_id: next["key_id"], status: "active", name: "next" },
      { key_id, status: "revoked" },
    ]);
    // The verifier caches a customer for up to a second.
    await expect.poll(() => service.create(key, customer_uuid)).toBe("403 forbidden");
    await ask(`customers suspend ${customer_uuid}`);
    await expect.poll(() => service.create(next["key"] as string, customer_uuid)).toBe("403 forbidden");
    await ask(`customers resume ${customer_uuid}`);
    await expect.poll(() => service.create(next["key"] as string, customer_uuid)).toBe("200 pending");
    const own = [`whsec_${"a".repeat(32)}`, `whsec_${"b".repeat(32)}`];
    const updated = await ask(`customers update ${customer_uuid}`, ["--webhook-secrets", "--name", "", "--policy", "null"], {
      PHONEPROOF_WEBHOOK_SECRETS: own.join(","),
    });
    expect(updated).toEqual({ customer_uuid, status: "active", created_at: expect.any(String), webhook_secrets: 2 });
    await expect.poll(() => service.verifier.webhookSecrets(customer_uuid)).toEqual(own);
    expect(await json(args, "customers list", ["--limit", "10"])).toEqual([await ask(`customers get ${customer_uuid}`)]);
  } finally {
    await service.close();
  }
}

describe.skipIf(!redisIsInstalled("phoneproof customers on Redis"))("phoneproof customers and keys on Redis", () => {
  let redis: RedisServer;
  let connected: Connected;
  let upstash: UpstashServer;
  beforeAll(async () => {
    redis = await startRedis();
    connected = await (clients["ioredis 6"] as (typeof clients)[string])(redis);
    upstash = await startUpstash(redis.url);
  });
  afterAll(async () => {
    await upstash?.close();
    await connected?.close();
    await redis?.stop();
  });

  test("a verifier of the store follows issue, rotate, revoke, suspend, resume and update", () =>
    life(["--store", redis.url, "--prefix", "one"], redisStore({ client: connected.client, prefix: "one" })));

  test("customers create works over Upstash's REST API", async () => {
    const [made] = await json(["--store", upstash.url, "--prefix", "two"], "customers create", [], { UPSTASH_REDIS_REST_TOKEN: upstash.token });
    expect(await json(["--store", redis.url, "--prefix", "two"], "customers list")).toEqual([made]);
  });

  test("without --json, prints text for people, and the key once, on stdout only", async () => {
    const store = ["--store", redis.url];
    const customer_uuid = randomUUID();
    const created = await spawnToEnd(command.path, ["customers", "create", "--uuid", customer_uuid, ...store], env);
    expect(created.stdout).toMatch(new RegExp(`^customer_uuid +${customer_uuid}\nstatus +active\n`));
    const issued = await spawnToEnd(command.path, ["keys", "issue", customer_uuid, ...store], { ...env, NODE_ENV: "production" });
    expect(issued.stdout.match(/pp_[0-9A-Za-z]{49}/g)).toHaveLength(1);
    expect(issued).toMatchObject({ code: 0, stderr: "This key is shown only once; the store keeps only its SHA-256.\n" });
  });

  test.each([
    [["customers", "get", "x"], "phoneproof: customer_uuid must be a UUID\n"],
    [["customers", "get", randomUUID()], "phoneproof: customer_uuid is not a customer in the store.\n"],
    [["customers", "create", "--policy", '{"codeLength":4}'], "phoneproof: policy: the guess budget is broken"],
    [["customers", "create", "--policy", '{"__proto__":{"checks":1}}'], "phoneproof: policy.__proto__ is not an option: remove it"],
  ])("%j exits with 1 and prints the reason", async (words, message) => {
    const ended = await runInProcess([...words, "--store", redis.url], env);
    expect(ended).toMatchObject({ code: 1, stdout: "" });
    expect(ended.stderr.startsWith(message), ended.stderr).toBe(true);
  });
});

test.each([
  [["customers"], "customers needs an action: create, list, get, update, suspend or resume\n"],
  [["keys", "constructor"], 'keys needs an action: issue, rotate, revoke or list, not "constructor"\n'],
  [["keys", "revoke", "x"], "keys revoke needs the customer's UUID and the key's KEY_ID\n"],
  [["keys", "rotate"], "keys rotate needs the customer's UUID\n"],
  [["customers", "get", "x", "more"], 'unexpected argument "more"'],
  [["customers", "list", "--name", "x"], "--name has no effect with customers list"],
  [["customers", "list"], "customers needs PHONEPROOF_STORE or PHONEPROOF_DATA in the environment, or --store or --data"],
  [["customers", "list", "--store", "redis://127.0.0.1:1"], "customers needs the environment variable PHONEPROOF_SECRET"],
  [["keys", "list", "x", "--store", "ftp://x"], "--store takes a URL"],
  [["customers", "create", "--policy", "{"], "--policy takes JSON"],
  [["customers", "list", "--limit", "0"], "--limit takes a whole number"],
])("%j is a usage error: exits with 2 and prints the usage", async (words, message) => {
  const needed = message.includes("PHONEPROOF_SECRET") ? {} : env;
  const store = words.includes("--store") || message.includes("--store") ? [] : ["--store", "redis://127.0.0.1:1"];
  const ended = await runInProcess([...words, ...store], needed);
  expect(ended).toMatchObject({ code: 2, stdout: "" });
  expect(ended.stderr.startsWith(`phoneproof: ${message}`), ended.stderr).toBe(true);
  expect(ended.stderr).toContain(`Usage: phoneproof ${words[0]} ACTION [options]\n`);
});

test("exits with 1 if the store is unreachable, without showing its password", async () => {
  const ended = await runInProcess(["customers", "list", "--store", "redis://user:hunter2@127.0.0.1:1"], env);
  expect(ended).toMatchObject({ code: 1, stdout: "" });
  expect(ended.stderr).toMatch(/^phoneproof: --store[^\n]+\n$/);
  expect(ended.stderr).not.toContain("hunter2");
});

describe("phoneproof customers and keys on MongoDB", () => {
  let server: MongoServer | undefined;
  let connected: ConnectedMongo;
  const name = newDatabase();
  beforeAll(async () => {
    server = await mongoServer("phoneproof customers on MongoDB");
    if (server !== undefined) connected = await drivers["mongodb 7"](server.url, name);
  });
  afterAll(async () => {
    await connected?.close();
    if (server !== undefined) await dropDatabase(server.url, name);
    await server?.stop();
  });

  test("create a customer and a key that a verifier of the store accepts", async ({ skip }) => {
    if (server === undefined) return skip();
    const url = new URL(server.url);
    url.pathname = `/${name}`;
    await opens(["--store", url.href], mongoStore({ db: connected.db }));
  });
});

describe("phoneproof customers and keys on PostgreSQL", () => {
  let server: PostgresServer | undefined;
  let opened: NewStore | undefined;
  beforeAll(async () => {
    server = await postgresServer("phoneproof customers on PostgreSQL");
    if (server !== undefined) opened = await newStore(server);
  });
  afterAll(async () => {
    await opened?.close();
    await server?.stop();
  });

  test("create a customer and a key that a verifier of the store accepts", async ({ skip }) => {
    if (opened === undefined) return skip();
    await opens(["--store", opened.url], opened.store);
  });
});
