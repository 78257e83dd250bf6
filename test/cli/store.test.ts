import { randomUUID } from "node:crypto";
import { cp, mkdir, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { MongoClient } from "mongodb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dropDatabase, type MongoServer, mongoServer, newDatabase } from "../support/mongo.js";
import { freePort } from "../support/ports.js";
import { newDatabase as newPostgresDatabase, type PostgresServer, postgresServer, sql } from "../support/postgres.js";
import { type RedisServer, redisIsInstalled, startRedis, until } from "../support/redis.js";
import { startUpstash, type UpstashServer } from "../support/upstash.js";
import { secret } from "../support/verifier.js";
import { type BuiltCommand, buildCommand, type Demo, post, runInProcess, spawnDemo, spawnToEnd, startDemo } from "./demo.js";

let command: BuiltCommand;
beforeAll(async () => {
  command = await buildCommand();
});
afterAll(() => command?.remove());

const shared = () => ({
  PHONEPROOF_DEV_CUSTOMER_UUID: randomUUID(),
  PHONEPROOF_DEV_API_KEY: `pp_${randomUUID()}`,
  PHONEPROOF_DEV_SECRET: randomUUID(),
});

/** Runs two processes of the demo on one store; both must exit with 0. */
async function withTwo(url: string, env: Readonly<Record<string, string>>, run: (first: Demo, second: Demo) => Promise<void>): Promise<void> {
  const demos: Demo[] = [];
  try {
    for (const _ of [1, 2]) demos.push(await spawnDemo(command.path, ["--port", "0", "--store", url], env));
    await run(demos[0] as Demo, demos[1] as Demo);
  } finally {
    expect(await Promise.all(demos.map((demo) => demo.stop()))).toEqual(demos.map(() => 0));
  }
}

const wrongFor = (code: string) => (code === "000000" ? "000001" : "000000");

/** Checks that each process uses what the other has stored. */
async function shareOne(first: Demo, second: Demo): Promise<void> {
  const check = async (demo: Demo, authentication_uuid: string, check_code: string) => (await post(demo, "check", { authentication_uuid, check_code })).status;

  const { authentication_uuid: one } = (await post(first, "authentication", { phone_number: "+33612345601" })) as { authentication_uuid: string };
  const { code } = await first.sms();
  const wrong = [];
  for (const demo of [second, first, second, first, second]) wrong.push(await check(demo, one, wrongFor(code)));
  expect(wrong).toEqual(Array(5).fill("invalid"));
  expect([await check(first, one, code), await check(second, one, code)]).toEqual(["rate_limited", "rate_limited"]);

  const { authentication_uuid: two } = (await post(first, "authentication", { phone_number: "+33612345602" })) as { authentication_uuid: string };
  const right = (await first.sms()).code;
  expect([await check(first, two, wrongFor(right)), await check(second, two, right), await check(first, two, right)]).toEqual([
    "invalid",
    "valid",
    "already_validated",
  ]);

  const sent = [];
  for (const demo of [first, second, first, second, first, second]) sent.push((await post(demo, "authentication", { phone_number: "+33612345603" })).status);
  expect(sent).toEqual([...Array(5).fill("pending"), "rate_limited"]);
}

/** A start that must fail with exit code 1 and one line within 25 seconds; returns that line. */
async function refused(url: string, env: Readonly<Record<string, string>> = {}, path?: string) {
  const started = performance.now();
  const args = ["dev", "--port", "0", "--store", url];
  const ended = await (path === undefined ? runInProcess(args, env) : spawnToEnd(path, args, env));
  const ms = performance.now() - started;
  expect(ended).toMatchObject({ code: 1, stdout: "" });
  expect(ended.stderr).toMatch(/^phoneproof: --store[^\n]+\n$/);
  expect(ms).toBeLessThan(25_000);
  return ended.stderr;
}

describe.skipIf(!redisIsInstalled("dev --store on Redis"))("phoneproof dev --store on Redis", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.stop());

  test("two processes share redis://…", () => withTwo(redis.url, shared(), shareOne));

  test("names the variables to set in each process to share a store: all three, or the missing ones", async () => {
    await withTwo(redis.url, {}, async (first, second) => {
      await expect.poll(first.stderr).toContain("Ctrl+C");
      expect(first.stderr()).toContain("with Redis");
      expect(first.stderr()).toContain("set the same in each: PHONEPROOF_DEV_CUSTOMER_UUID, PHONEPROOF_DEV_API_KEY, PHONEPROOF_DEV_SECRET.");
      expect(first.customer_uuid).not.toBe(second.customer_uuid);
    });
    await withTwo(redis.url, { ...shared(), PHONEPROOF_DEV_SECRET: "" }, async (first) => {
      await expect.poll(first.stderr).toContain("Ctrl+C");
      expect(first.stderr()).toContain("set the same in each: PHONEPROOF_DEV_SECRET.");
    });
    await withTwo(redis.url, shared(), async (first) => {
      await expect.poll(first.stderr).toContain("Ctrl+C");
      expect(first.stderr()).not.toContain("set the same");
    });
  });

  test("prints no such note with the memory store", async () => {
    const demo = await startDemo();
    try {
      await expect.poll(demo.stderr).toContain("Ctrl+C");
      expect(demo.stderr()).toContain("with the memory store");
      expect(demo.stderr()).not.toContain("set the same");
    } finally {
      expect(await demo.stop()).toBe(0);
    }
  });

  test("returns 503 while the server is down and 200 after it is back, and stops on SIGINT even without it", async () => {
    const own = await startRedis();
    const demo = await spawnDemo(command.path, ["--port", "0", "--store", own.url], shared());
    const create = () => post(demo, "authentication", { phone_number: "+33612345604" });
    try {
      expect(await create()).toMatchObject({ http: 200, status: "pending" });
      await own.signal("SIGKILL");
      expect(await create()).toMatchObject({ http: 503, code: "unavailable" });
      await own.restart();
      await expect.poll(create).toMatchObject({ http: 200, status: "pending" });
    } finally {
      await own.stop();
      expect(await demo.stop("SIGINT")).toBe(0);
    }
  });

  test("exits with 1 if the port is in use, although the client is connected", async () => {
    const taken = await startDemo();
    const ended = await spawnToEnd(command.path, ["dev", "--port", new URL(taken.url).port, "--store", redis.url]);
    expect(await taken.stop()).toBe(0);
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining("is taken") });
  });

  test("a wrong password: prints the server's reason, without the password", async () => {
    const own = await startRedis();
    try {
      await own.cli("CONFIG", "SET", "requirepass", "right");
      const stderr = await refused(`redis://:hunter2@127.0.0.1:${own.port}`);
      expect(stderr).toContain("WRONGPASS");
      expect(stderr).not.toContain("hunter2");
    } finally {
      await own.stop();
    }
  });

  test("a user without a right: the fix names the rights, not a server to start", async () => {
    const own = await startRedis();
    try {
      await own.cli("ACL", "SETUSER", "app", "on", ">hunter2", "~phoneproof*", "+ping", "+@read", "+@write");
      const stderr = await refused(`redis://app:hunter2@127.0.0.1:${own.port}`);
      expect(stderr).toMatch(/\(redisStore: .+ \(NOPERM .+\)\)\. Grant .*docs\/stores\.md.* ACL SETUSER app [^\n]+\.\n$/);
      expect(stderr).not.toContain("hunter2");
    } finally {
      await own.stop();
    }
  });

  test("a cluster: the fix is one that the command has", async () => {
    const own = await startRedis(["--cluster-enabled", "yes"]);
    try {
      await own.cli("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
      await until("the cluster", async () => (await own.cli("CLUSTER", "INFO")).includes("cluster_state:ok"));
      const stderr = await refused(own.url);
      expect(stderr).toMatch(/ is a cluster \(CROSSSLOT .+\)\)\. A URL names one server: use a module .+ \(docs\/customers\.md\)\.\n$/);
    } finally {
      await own.stop();
    }
  });

  describe("through Upstash's protocol", () => {
    let upstash: UpstashServer;
    beforeAll(async () => {
      upstash = await startUpstash(redis.url);
    });
    afterAll(() => upstash?.close());

    test("two processes share it", () => withTwo(upstash.url, { ...shared(), UPSTASH_REDIS_REST_TOKEN: upstash.token }, shareOne));

    test("a wrong token: prints the server's reason, without the token", async () => {
      const stderr = await refused(upstash.url, { UPSTASH_REDIS_REST_TOKEN: "hunter2" });
      expect(stderr).toContain("Unauthorized");
      expect(stderr).not.toContain("hunter2");
    });
  });
});

const mongo: MongoServer | undefined = await mongoServer("dev --store on MongoDB");
afterAll(() => mongo?.stop());

describe.skipIf(mongo === undefined)("phoneproof dev --store on MongoDB", () => {
  const { url } = mongo ?? { url: "" };

  test("two processes share mongodb://…, and its indexes are created", async () => {
    const name = newDatabase();
    const own = new URL(url);
    own.pathname = `/${name}`;
    try {
      await withTwo(own.href, shared(), shareOne);
      const client = await MongoClient.connect(url);
      const indexes = await client.db(name).collection("phoneproof_state").indexes();
      await client.close();
      expect(indexes.map((index) => index.name)).toContain("wakeAt");
    } finally {
      await dropDatabase(url, name);
    }
  });
});

const postgres: PostgresServer | undefined = await postgresServer("dev --store on PostgreSQL");
afterAll(() => postgres?.stop());

test.skipIf(postgres === undefined)("two processes share postgres://…, and its schema is created", async () => {
  const url = await newPostgresDatabase(postgres);
  await withTwo(url, shared(), shareOne);
  expect(await sql(url, "select number from phoneproof.step")).toEqual([{ number: 1 }]);
});

test("the error for an invalid PostgreSQL schema name names --prefix", async () => {
  const args = ["stats", "--store", "postgres://127.0.0.1:1", "--prefix", "Shop-X"];
  const ended = await runInProcess(args, { PHONEPROOF_SECRET: secret });
  expect(ended).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(/^phoneproof: --prefix must be a lower-case letter or `_`, [^\n]+\n$/) });
});

describe("a server that cannot be used: an error that names --store, exit code 1, within a few seconds", () => {
  const token = { UPSTASH_REDIS_REST_TOKEN: "hunter2" };
  const sockets = new Set<Socket>();
  /** Accepts connections and sends nothing. */
  const silent = createServer((socket) => void sockets.add(socket.on("error", () => {})));
  beforeAll(() => new Promise<void>((done) => silent.listen(0, "127.0.0.1", done)));
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((done) => silent.close(done));
  });

  test.concurrent.each([
    "redis://127.0.0.1",
    "rediss://user:hunter2@127.0.0.1",
    "postgres://user:hunter2@127.0.0.1",
    "mongodb://user:hunter2@127.0.0.1",
    "http://127.0.0.1",
  ])("%s: no server listens", async (url) => {
    const stderr = await refused(`${url}:${await freePort()}`, token);
    expect(stderr).toContain("ECONNREFUSED");
    expect(stderr).toContain("Start it, or correct the URL.");
    expect(stderr).not.toContain("hunter2");
  });

  test.concurrent.each(["redis://127.0.0.1", "rediss://127.0.0.1", "postgres://127.0.0.1", "mongodb://127.0.0.1", "http://127.0.0.1"])(
    "%s: the server does not respond",
    async (url) => {
      expect(await refused(`${url}:${(silent.address() as AddressInfo).port}`, token)).toContain("Start it, or correct the URL.");
    },
  );

  test.concurrent.each([
    "mongodb://user:hunter2@127.0.0.1:port",
    "mongodb://user:hun/ter2@127.0.0.1",
    "mongodb://user:ter2@127.0.0.1/?nonsense=hunter2",
    "redis://user:hunter2@127.0.0.1/nonsense",
    "redis://user:hun%ter2@127.0.0.1",
  ])("the password is not shown if the driver rejects the URL: %s", async (url) => {
    expect(await refused(url)).not.toContain("ter2");
  });
});

describe("without an installed driver", () => {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "phoneproof-dev-"));
    await cp(command.folder, join(folder, "dist"), { recursive: true });
    const { dependencies } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { dependencies: Record<string, string> };
    await mkdir(join(folder, "node_modules"));
    for (const name of Object.keys(dependencies)) await symlink(join(root, "node_modules", name), join(folder, "node_modules", name));
    await cp(join(root, "package.json"), join(folder, "package.json"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  test.each([
    ["redis", "redis://127.0.0.1"],
    ["redis", "rediss://127.0.0.1"],
    ["pg", "postgres://127.0.0.1"],
    ["mongodb", "mongodb://127.0.0.1"],
    ["mongodb", "mongodb+srv://cluster.example"],
    ["@upstash/redis", "https://eu1-example.upstash.io"],
  ])("the error names npm install %s for %s", async (name, url) => {
    const stderr = await refused(url, { UPSTASH_REDIS_REST_TOKEN: "hunter2" }, join(folder, "dist/dev.js"));
    expect(stderr).toMatch(new RegExp(`npm install ${name}\n$`));
  });

  test("the memory store works", async () => {
    const demo = await spawnDemo(join(folder, "dist/dev.js"));
    expect(await demo.stop()).toBe(0);
  });
});
