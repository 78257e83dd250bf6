import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { GlideClient } from "@valkey/valkey-glide";
import { Redis } from "ioredis";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { postgresStore, schemaSql } from "../../adapters/store/postgres/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { openFile } from "../../adapters/store/sqlite/file.js";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import { verifierOf } from "../../src/cli/module.js";
import { newDatabase, newStore, poolOf, postgresServer, sql } from "../support/postgres.js";
import { type RedisServer, redisIsInstalled, startRedis, until } from "../support/redis.js";
import { setUp } from "../support/verifier.js";
import { application, blockOf, doctor, faultOf, findingsOn, storesPage } from "./store-operators-kit.js";

const suite = "the tests of what operators of stores do";
const startTheServer = /start it, or correct the address/;

describe.skipIf(!redisIsInstalled(suite))("operators of Redis", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.stop());

  const connected = async (options: { username?: string } = {}) => {
    const client = new Redis({ host: "127.0.0.1", port: server.port, password: options.username ? "pw" : "", ...options, enableReadyCheck: false });
    onTestFinished(() => client.disconnect());
    await client.ping();
    return client;
  };

  it("doctor finds no fault in the documented ioredis module while Redis runs", async () => {
    const { folder, remove } = application();
    onTestFinished(remove);
    const { code, printed } = await doctor(folder, "redis.cjs", blockOf("// redis.cjs"), { REDIS_URL: server.url });
    expect({ code, fault: /^fault.*/m.exec(printed)?.[0] }).toEqual({ code: 0, fault: undefined });
  });

  it("a command that does not wait for its store gives up the documented module of redis while the server is down", async () => {
    const { folder, remove } = application();
    onTestFinished(remove);
    const file = join(folder, "redis.js");
    writeFileSync(join(folder, "required.js"), 'export const required = () => "redis://127.0.0.1:1";');
    writeFileSync(file, blockOf("// redis.ts"));
    const opened = verifierOf(file, { file: undefined, isAsked: false }, () => undefined, [], { patience: 300 });
    await expect(opened).rejects.toThrow(/has not settled for 0.3 s: it probably waits for its store/);
  });

  it("the documented rights are enough for each client of the table, Valkey GLIDE too", async () => {
    const rule = /`ACL SETUSER app on >PASSWORD ([^`]*)`/.exec(storesPage)?.[1] ?? "";
    const line = storesPage.split("\n").find((one) => one.startsWith("- **Rights.**")) ?? "";
    const more = line
      .split(/[.;,]/)
      .filter((one) => /glide/i.test(one))
      .flatMap((one) => one.match(/\+[a-z|]+/g) ?? []);
    await server.cli("ACL", "SETUSER", "app", "on", ">pw", ...rule.split(" "), ...more);
    const client = await GlideClient.createClient({
      addresses: [{ host: "127.0.0.1", port: server.port }],
      credentials: { username: "app", password: "pw" },
      requestTimeout: 1000,
      connectionBackoff: { numberOfRetries: 5, factor: 50, exponentBase: 2 },
    });
    onTestFinished(() => client.close());
    expect(await faultOf(redisStore({ client }))).toBe("");
  });

  it("the error about a right that is missing names the prefix of the store", async () => {
    await server.cli("ACL", "SETUSER", "shop", "on", ">pw", "~phoneproof*", "+eval", "+evalsha", "+ping", "+@read", "+@write");
    const fault = await faultOf(redisStore({ client: await connected({ username: "shop" }), prefix: "shop" }));
    expect(fault).toContain("NOPERM");
    expect(fault).toContain("~shop*");
  });

  it("the error of a Redis that lacks replicas to write names the setting", async () => {
    const client = await connected();
    await server.cli("CONFIG", "SET", "min-replicas-to-write", "1");
    onTestFinished(async () => void (await server.cli("CONFIG", "SET", "min-replicas-to-write", "0")));
    const fault = await faultOf(redisStore({ client }));
    expect(fault).toContain("NOREPLICAS");
    expect(fault).toContain("min-replicas-to-write");
    expect(await findingsOn(redisStore({ client }))).toContainEqual(expect.stringContaining("lower min-replicas-to-write"));
  });

  it("doctor reports a Redis that is full, and writes nothing to find out", async () => {
    const client = await connected();
    const before = await server.cli("DBSIZE");
    await server.cli("CONFIG", "SET", "maxmemory", "1");
    onTestFinished(async () => void (await server.cli("CONFIG", "SET", "maxmemory", "0")));
    expect(await findingsOn(redisStore({ client }))).toContainEqual(expect.stringContaining("raise its maxmemory"));
    expect(await server.cli("DBSIZE")).toBe(before);
  });

  it("doctor does not say to start a Redis that is busy with a script", async () => {
    const client = await connected();
    const other = await connected();
    await server.cli("CONFIG", "SET", "busy-reply-threshold", "50");
    other.eval("while true do end", 0).catch(() => undefined);
    onTestFinished(async () => void (await server.cli("SCRIPT", "KILL")));
    await until("Redis says that it is busy", async () => (await server.cli("PING")).startsWith("BUSY"));
    const [finding = ""] = await findingsOn(redisStore({ client }));
    expect(finding).toContain("BUSY");
    expect(finding).not.toMatch(startTheServer);
  });
});

describe("operators of SQLite", () => {
  it("doctor reports a file that the process may only read", async () => {
    const { folder, remove } = application();
    onTestFinished(remove);
    const file = join(folder, "restored.db");
    const store = sqliteStore({ file });
    await setUp({ store }).create();
    await store.close?.();
    for (const name of ["", "-wal", "-shm"]) chmodSync(`${file}${name}`, 0o444);
    chmodSync(folder, 0o555);
    const module = `
      import { createVerifier } from "phoneproof";
      import { consoleSender } from "phoneproof/senders/console";
      import { sqliteStore } from "phoneproof/sqlite";
      const store = sqliteStore({ file: ${JSON.stringify(file)} });
      export const verifier = createVerifier({ store, sender: consoleSender(), secret: process.env.PHONEPROOF_SECRET, countries: ["FR"] });
    `;
    const { code, printed } = await doctor(folder, "verifier.mjs", module);
    expect(printed).toMatch(/read-only/);
    expect(code).toBe(1);
  });
});

describe("operators of SQLite while another process writes", () => {
  it("inspect returns at once, and does not report the database as read-only", async () => {
    const { folder, remove } = application();
    onTestFinished(remove);
    const file = join(folder, "busy.db");
    const store = sqliteStore({ file, busyTimeout: 5_000 });
    await store.get("any");
    const other = await openFile(file);
    onTestFinished(() => other.close());
    other.exec("BEGIN IMMEDIATE");
    const began = performance.now();
    expect((await store.inspect?.(0))?.missing).toBeUndefined();
    expect(performance.now() - began).toBeLessThan(1_000);
  });
});

describe("operators of MongoDB", () => {
  it("doctor does not say to start a MongoDB that rejects the name of the database", async () => {
    const rejected = Object.assign(new Error("Invalid namespace specified"), { name: "MongoServerError", code: 73 });
    const db = { databaseName: "app", collection: () => ({}), command: () => Promise.reject(rejected) };
    const [finding = ""] = await findingsOn(mongoStore({ db: db as never }));
    expect(finding).toContain("(MongoServerError 73: Invalid namespace specified): shorten the database's name to 63 bytes");
    expect(finding).not.toMatch(startTheServer);
  });
});

const postgres = await postgresServer(suite);

describe.skipIf(!postgres)("operators of PostgreSQL", () => {
  afterAll(() => postgres?.stop());

  it("a migration file may hold schemaSql() and then the documented grants", async () => {
    const url = await newDatabase(postgres);
    await sql(url, "do $$ begin create role app; exception when duplicate_object then null; end $$");
    const migration = `${schemaSql()}\n\n${/```sql\n(grant usage on schema phoneproof[^`]*)```/.exec(storesPage)?.[1]}`;
    await sql(url, migration);
    expect(await sql(url, "select has_schema_privilege('app', 'phoneproof', 'usage') as granted")).toEqual([{ granted: true }]);
  });

  it("a schema that was renamed is repaired by ensureSchema(), and is the one that is written", async () => {
    const { url, pool, close } = await newStore(postgres);
    onTestFinished(close);
    await pool.query("alter schema phoneproof rename to shop");
    await postgresStore({ pool }).ensureSchema();
    const shop = postgresStore({ pool, schema: "shop" });
    await shop.ensureSchema();
    await setUp({ store: shop }).create();
    const count = "(select count(*)::int from shop.record) as shop, (select count(*)::int from phoneproof.record) as phoneproof";
    expect(await sql(url, `select ${count}`)).toEqual([{ shop: 1, phoneproof: 0 }]);
  });

  it("ping reports a renamed schema whose functions still name the old one", async () => {
    const { pool, close } = await newStore(postgres);
    onTestFinished(close);
    await pool.query("alter schema phoneproof rename to shop");
    const store = postgresStore({ pool, schema: "shop" });
    expect(await faultOf(store)).toContain("does not exist");
    expect(await findingsOn(store)).not.toEqual([]);
  });

  it("ensureSchema() replaces functions that an earlier commit made", async () => {
    const { url, pool, store, close } = await newStore(postgres);
    onTestFinished(close);
    const find = "select pg_get_functiondef(oid) as text from pg_proc where pronamespace = 'phoneproof'::regnamespace and proname = 'commit'";
    const [made] = await sql<{ text: string }>(url, find);
    const earlier = made?.text.replace(/\bbegin\b/i, "begin raise exception 'this is the function of an earlier commit';") ?? "";
    await pool.query(earlier);
    expect(await faultOf(store)).toContain("P0001");
    await store.ensureSchema();
    expect(await faultOf(store)).toBe("");
  });

  it("functions of a newer step are neither replaced nor reported, and a role that owns nothing may call ensureSchema() when nothing differs", async () => {
    const { url, pool, store, close } = await newStore(postgres);
    onTestFinished(close);
    await sql(url, "do $$ begin create role app; exception when duplicate_object then null; end $$");
    await sql(url, "grant usage on schema phoneproof to app", "grant select on all tables in schema phoneproof to app");
    await sql(url, `set role app; ${store.schemaSql()}`);
    const newer = "create or replace function phoneproof.tally(adds text, reads text) returns text language sql as $$ select 'of a newer release' $$";
    await pool.query(`insert into phoneproof.step (number) values (1000); ${newer}`);
    await store.ensureSchema();
    expect(await findingsOn(store)).toEqual([]);
    expect(await sql(url, "select phoneproof.tally('', '') as it")).toEqual([{ it: "of a newer release" }]);
  });

  it("ensureSchema() that rejects does not say to call ensureSchema()", async () => {
    const { pool, store, close } = await newStore(postgres);
    onTestFinished(close);
    await pool.query("alter table phoneproof.record drop column wake_at");
    const reason = await store.ensureSchema().then(
      () => "",
      (error: Error) => error.message,
    );
    expect(reason).not.toContain("call await store.ensureSchema()");
  });

  it("doctor does not say to start a PostgreSQL that has too many connections", async () => {
    const { url, close } = await newStore(postgres);
    onTestFinished(close);
    await sql(url, "drop role if exists operator", "create role operator login connection limit 1");
    onTestFinished(async () => void (await sql(url, "drop owned by operator", "drop role operator")));
    await sql(url, "grant usage on schema phoneproof to operator", "grant all on all tables in schema phoneproof to operator");
    const address = new URL(url);
    address.username = "operator";
    const held = new Client({ connectionString: address.href });
    await held.connect();
    const pool = poolOf(address.href);
    onTestFinished(() => Promise.all([held.end(), pool.end()]).then(() => undefined));
    const found = (await findingsOn(postgresStore({ pool }))).join("\n");
    expect(found).toContain("53300");
    expect(found).not.toMatch(startTheServer);
  });
});
