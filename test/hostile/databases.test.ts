import { execFile } from "node:child_process";
import { appendFileSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { MongoClient } from "mongodb";
import type { Pool } from "pg";
import { createClient, createCluster } from "redis";
import { createClient as createClient5 } from "redis5";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { postgresStore, schemaSql } from "../../adapters/store/postgres/index.js";
import { type RedisClient, reconnectWhenSilent, redisStore } from "../../adapters/store/redis/index.js";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import type { Store } from "../../src/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { mongoServer, newDatabase as newMongoDatabase } from "../support/mongo.js";
import { freePort } from "../support/ports.js";
import { newDatabase, type PostgresServer, poolOf, postgresIsInstalled, sql, startPostgres } from "../support/postgres.js";
import { spawnServer } from "../support/programs.js";
import { ask, type RedisServer, redisIsInstalled, startRedis, until } from "../support/redis.js";
import { newFolder, openSqlite } from "../support/sqlite.js";
import { customer, ordinary, place, run } from "./command-kit.js";
import { commandsIn, deletesLogBeforeRestore, documentedGrants, documentedRights, rightsOfCluster, startMasters } from "./databases-kit.js";
import { aboutStore, counted, flow, newNumber, outcome, processOn, rightFlow } from "./store-users-kit.js";

/** The settings of docs/stores.md for node-redis. */
const settings = {
  disableOfflineQueue: true,
  pingInterval: 1000,
  commandOptions: { timeout: 1000 },
  socket: { connectTimeout: 1000, socketTimeout: 1500, reconnectStrategy: (tries: number) => Math.min(tries * 50, 500) },
};

describe.skipIf(!redisIsInstalled("databases"))("Redis, as operators run it", () => {
  let server: RedisServer;
  let masters: RedisServer[];
  beforeAll(async () => {
    [server, masters] = await Promise.all([startRedis(["--appendonly", "yes"]), startMasters()]);
    for (const one of masters) await one.cli("CONFIG", "SET", "appendonly", "yes");
  });
  afterAll(async () => {
    await Promise.all([server, ...masters].map((one) => one.stop()));
  });

  it.each([
    ["redis 6", createClient],
    ["redis 5", createClient5 as unknown as typeof createClient],
  ])("an ACL user with the documented rights and settings causes no error: %s (docs/stores.md#redis)", async (_, make) => {
    await server.cli("ACL", "SETUSER", "app", "reset", "on", ">p", ...documentedRights());
    const errors: string[] = [];
    const client = make({ url: `redis://app:p@127.0.0.1:${server.port}`, ...settings });
    onTestFinished(() => client.destroy());
    const pinged = new Promise((done) => client.on("ping-interval", done));
    const failed = new Promise((done) => client.on("error", (error: Error) => done(errors.push(error.message))));
    await client.connect();
    reconnectWhenSilent(client);
    expect(await flow(processOn(redisStore({ client: client as unknown as RedisClient })))).toBe(rightFlow);
    await Promise.race([pinged, failed]);
    expect(errors).toEqual([]);
  });

  it("an ACL user with all documented rights can use a cluster (docs/stores.md#redis)", async () => {
    for (const one of masters) await one.cli("ACL", "SETUSER", "app", "reset", "on", ">p", ...rightsOfCluster());
    const errors: string[] = [];
    const client = createCluster({ rootNodes: masters.map(({ url }) => ({ url })), defaults: { username: "app", password: "p", ...settings } });
    client.on("error", (error: Error) => errors.push(error.message));
    onTestFinished(() => client.destroy());
    const connected = await client.connect().then(
      () => "connected",
      (error: Error) => `${error.message}: ${errors}`,
    );
    expect(connected).toBe("connected");
    expect(await flow(processOn(redisStore({ client: client as unknown as RedisClient })))).toBe(rightFlow);
  });

  it("doctor reports each master of a cluster that evicts, since each holds authentications (docs/stores.md#redis, docs/watching.md#ping-doctor-why-explain)", async () => {
    const client = createCluster({ rootNodes: masters.map(({ url }) => ({ url })) }).on("error", () => {});
    await client.connect();
    onTestFinished(() => client.destroy());
    const { verifier } = processOn(redisStore({ client: client as unknown as RedisClient }));
    expect(await aboutStore(verifier)).toEqual([]);
    for (const [index, master] of masters.entries()) {
      await master.cli("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
      const found = await aboutStore(verifier);
      await master.cli("CONFIG", "SET", "maxmemory-policy", "noeviction");
      expect
        .soft(
          found.map(({ level }) => level),
          `master ${index + 1} of 3 evicts`,
        )
        .toEqual(["fault"]);
    }
  });

  it("after doctor's advice was followed, acknowledged data survives a restart (docs/stores.md#redis, docs/watching.md#ping-doctor-why-explain)", async () => {
    const folder = mkdtempSync(join(tmpdir(), "phoneproof-redis-"));
    const file = join(folder, "redis.conf");
    const port = await freePort();
    writeFileSync(file, [`port ${port}`, "bind 127.0.0.1", `dir ${folder}`, 'save ""', ""].join("\n"));
    const client = createClient({ url: `redis://127.0.0.1:${port}` }).on("error", () => {});
    const begin = async () => {
      const child = spawnServer("redis-server", [file]);
      const gone = new Promise((done) => child.once("exit", done));
      await until("redis-server answers", async () => (await ask(port, "PING")) === "PONG");
      return () => {
        child.kill("SIGKILL");
        return gone;
      };
    };
    let end = await begin();
    onTestFinished(async () => {
      client.destroy();
      await end();
      rmSync(folder, { recursive: true, force: true });
    });
    await client.connect();
    const one = processOn(redisStore({ client: client as unknown as RedisClient }), { customers: "store" });
    for (const { fix } of await aboutStore(one.verifier)) {
      for (const command of commandsIn(fix)) await client.sendCommand(command);
      if (fix.includes("redis.conf")) appendFileSync(file, "appendonly yes\n");
    }
    expect(await aboutStore(one.verifier)).toEqual([]);
    const { customer_uuid } = await one.verifier.customers.create({ name: "ACME" });
    const { authentication_uuid } = await one.verifier.createAuthentication({ customer_uuid, phone_number: newNumber() });
    // A server that is still writing its first file has not stored anything yet.
    await until("the file is written", async () => !/aof_rewrite_(in_progress|scheduled):1/.test(await client.info("persistence")));
    await end();
    end = await begin();
    await until("the client is connected", async () => client.isReady);
    expect((await one.verifier.customers.list()).map((each) => each.customer_uuid)).toEqual([customer_uuid]);
    const check_code = one.codeOf(authentication_uuid);
    expect(await outcome(one.verifier.check({ customer_uuid, authentication_uuid, check_code }))).toBe("valid");
  });
});

describe.skipIf(!postgresIsInstalled("databases"))("PostgreSQL, as operators run it", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
    await sql(server.url, "create role app login");
  });
  afterAll(() => server.stop());

  /** A database whose owner has created the schema, and a process with the role `app` and the documented rights. */
  async function withRole(...before: readonly string[]) {
    const url = await newDatabase(server);
    const owner = poolOf(url);
    const asApp = new URL(url);
    asApp.username = "app";
    const pool = poolOf(asApp.href);
    onTestFinished(async () => {
      await Promise.all([owner.end(), pool.end()]);
    });
    for (const statement of before) await owner.query(statement);
    await owner.query(schemaSql());
    await owner.query(documentedGrants());
    return { url, owner, one: processOn(postgresStore({ pool })) };
  }

  /** Applies a fix as the owner of the database. */
  async function follow(owner: Pool, fix: string): Promise<string> {
    const statement = /(delete from \S+)/.exec(fix)?.[1];
    const steps = /schemaSql\(\)|ensureSchema\(\)/.test(fix) ? [...(statement === undefined ? [] : [statement]), schemaSql()] : [fix];
    for (const step of steps) {
      const failed = await owner.query(step).then(
        () => undefined,
        (error: Error) => error.message,
      );
      if (failed !== undefined) return `${fix}: ${failed}`;
    }
    return "done";
  }

  it.each([
    ["usage of the schema", "revoke usage on schema phoneproof from app"],
    ["insert in a table", "revoke insert on phoneproof.record from app"],
  ])("the statement that doctor gives restores a missing right: %s (docs/stores.md#postgresql)", async (_, revoke) => {
    const { owner, one } = await withRole();
    await owner.query(revoke);
    const found = await aboutStore(one.verifier);
    expect(found).toHaveLength(1);
    for (const { fix } of found) expect(await follow(owner, fix)).toBe("done");
    expect(await aboutStore(one.verifier)).toEqual([]);
    expect(await flow(one)).toBe(rightFlow);
  });

  it("the documented rights are enough even if not everyone may execute functions (docs/stores.md#postgresql)", async () => {
    const { one } = await withRole("alter default privileges revoke execute on functions from public");
    expect(await flow(one).catch((error: Error) => error.message)).toBe(rightFlow);
  });

  it("ping and doctor report a function that the role may not execute (docs/stores.md#postgresql)", async () => {
    const { owner, one } = await withRole();
    await owner.query("revoke execute on all functions in schema phoneproof from public, app");
    expect(await outcome(one.verifier.createAuthentication({ phone_number: newNumber() }))).toBe("unavailable");
    expect((await one.verifier.ping()).store.missing).not.toEqual([]);
    expect((await aboutStore(one.verifier)).map(({ level }) => level)).toContain("fault");
  });

  it("doctor's advice restores each missing function, and ensureSchema() still works (docs/stores.md#postgresql)", async () => {
    const url = await newDatabase(server);
    const owner = poolOf(url);
    onTestFinished(() => owner.end());
    const store = postgresStore({ pool: owner });
    const { verifier } = processOn(store);
    await store.ensureSchema();
    const { rows } = await owner.query("select p.oid::regprocedure::text as name from pg_proc p where pronamespace = 'phoneproof'::regnamespace");
    expect(rows.length).toBeGreaterThan(0);
    for (const { name } of rows as { name: string }[]) {
      await owner.query("drop schema phoneproof cascade");
      await store.ensureSchema();
      await owner.query(`drop function ${name}`);
      const [found] = await aboutStore(verifier);
      expect.soft(found?.level, name).toBe("fault");
      expect.soft(await follow(owner, found?.fix ?? ""), name).toBe("done");
      expect.soft(await aboutStore(verifier), name).toEqual([]);
      expect.soft(await outcome(store.ensureSchema().then(() => ({}))), name).toBe("done");
    }
  });

  it("doctor's advice restores each missing table, and ensureSchema() still works (docs/stores.md#postgresql)", async () => {
    const url = await newDatabase(server);
    const owner = poolOf(url);
    onTestFinished(() => owner.end());
    const store = postgresStore({ pool: owner });
    const one = processOn(store);
    await store.ensureSchema();
    const { rows } = await owner.query("select tablename as name from pg_tables where schemaname = 'phoneproof'");
    expect(rows.length).toBeGreaterThan(0);
    for (const { name } of rows as { name: string }[]) {
      await owner.query("drop schema phoneproof cascade");
      await store.ensureSchema();
      await owner.query(`drop table phoneproof.${name}`);
      const found = await aboutStore(one.verifier);
      expect.soft(found, name).not.toEqual([]);
      for (const { fix } of found) expect.soft(await follow(owner, fix), name).toBe("done");
      expect.soft(await aboutStore(one.verifier), name).toEqual([]);
      expect.soft(await flow(one), name).toBe(rightFlow);
      expect.soft(await outcome(store.ensureSchema().then(() => ({}))), name).toBe("done");
    }
  });

  it("ping and doctor report a primary key that a restore left out, without which requests return 503 (docs/stores.md#postgresql)", async () => {
    const { owner, one } = await withRole();
    await owner.query("alter table phoneproof.member drop constraint member_pkey");
    expect(await outcome(one.verifier.createAuthentication({ phone_number: newNumber() }))).toBe("unavailable");
    expect((await one.verifier.ping()).store.missing).not.toEqual([]);
    expect(await aboutStore(one.verifier)).not.toEqual([]);
  });

  it("a dump taken while a service sends has everything acknowledged before it, and works in another database", async () => {
    const [from, to] = [await newDatabase(server), await newDatabase(server)];
    const [pool, restored] = [poolOf(from), poolOf(to)];
    onTestFinished(async () => {
      await Promise.all([pool.end(), restored.end()]);
    });
    const store = postgresStore({ pool });
    await store.ensureSchema();
    const one = processOn(store);
    const made: string[] = [];
    const create = async () => made.push((await one.verifier.createAuthentication({ phone_number: newNumber() })).authentication_uuid);
    await Promise.all(Array.from({ length: 40 }, create));
    const before = [...made];
    let going = true;
    const load = (async () => {
      while (going) await create();
    })();
    const { stdout } = await promisify(execFile)("pg_dump", ["--dbname", from, "--schema=phoneproof", "--no-owner"], { maxBuffer: 100_000_000 });
    going = false;
    await load;
    const folder = mkdtempSync(join(tmpdir(), "phoneproof-dump-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, "dump.sql");
    writeFileSync(file, stdout);
    await promisify(execFile)("psql", ["--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", to, "--file", file]);
    const other = postgresStore({ pool: restored });
    await other.ensureSchema();
    const { verifier } = processOn(other);
    expect(await aboutStore(verifier)).toEqual([]);
    const checks = before.map((authentication_uuid) => outcome(verifier.check({ authentication_uuid, check_code: one.codeOf(authentication_uuid) })));
    expect(counted(await Promise.all(checks))).toEqual({ valid: 40 });
  });

  it("doctor, why and stats create nothing in a database without a store (docs/contract.md#ping, docs/no-code.md#settings)", async () => {
    const cwd = place({ "verifier.js": ordinary });
    const schemas = "select nspname from pg_namespace where nspname !~ '^(pg_|information_schema|public)'";
    for (const args of [
      ["doctor", "./verifier.js"],
      ["why", "+33612345678", "--customer", customer],
      ["stats", "--customer", customer, "--prefix", "shpo"],
    ]) {
      const url = await newDatabase(server);
      const command = await run(args, { cwd, env: { PHONEPROOF_STORE: url } });
      expect.soft(await sql(url, schemas), `${args.join(" ")}: ${command.out}${command.err}`).toEqual([]);
    }
  });
});

const mongo = await mongoServer("databases");

describe.skipIf(!mongo)("MongoDB, as operators run it", () => {
  afterAll(() => mongo?.stop());

  it("why creates nothing in a database without a store (docs/no-code.md#settings)", async () => {
    const client = await MongoClient.connect(mongo?.url as string);
    const db = client.db(newMongoDatabase());
    onTestFinished(async () => {
      await db.dropDatabase();
      await client.close();
    });
    const url = new URL(mongo?.url as string);
    url.pathname = db.databaseName;
    const command = await run(["why", "+33612345678", "--customer", customer], { cwd: place({}), env: { PHONEPROOF_STORE: url.href } });
    expect(command.out + command.err).toContain("+33612345678");
    expect((await db.listCollections().toArray()).map(({ name }) => name)).toEqual([]);
  });
});

describe.skipIf(!openSqlite)("SQLite, as operators run it", () => {
  it("a backup that is restored as documented after a crash has all its authentications (docs/stores.md#sqlite, Backup)", async () => {
    const { file, folder, remove } = newFolder();
    onTestFinished(remove);
    const codes = new Map<string, string>();
    /** A process that creates `count` authentications and may take a backup; `end` closes it. */
    const service = async (count: number, copy: string | undefined) => {
      const store = sqliteStore({ file });
      const one = processOn(store);
      const made: string[] = [];
      const create = async () => (await one.verifier.createAuthentication({ phone_number: newNumber() })).authentication_uuid;
      while (made.length < count) made.push(...(await Promise.all(Array.from({ length: 25 }, create))));
      for (const id of made) codes.set(id, one.codeOf(id));
      if (copy !== undefined) {
        const reader = openSqlite(file);
        reader.exec(`vacuum into '${copy}'`); // as `.backup` does: a whole copy at one moment
        reader.close();
      }
      const end = async () => {
        await one.verifier.close();
        await store.close?.();
      };
      return { made, end };
    };
    const copy = join(folder, "copy.db");
    const { made: before, end } = await service(100, copy);
    await end();
    await (await service(500, undefined)).end();
    const last = await service(200, undefined);
    onTestFinished(last.end);
    // Every process is stopped, and the last one crashed: its log is still there.
    const crashed = join(folder, "crashed.db");
    copyFileSync(file, crashed);
    copyFileSync(`${file}-wal`, `${crashed}-wal`);
    copyFileSync(copy, crashed);
    if (deletesLogBeforeRestore) rmSync(`${crashed}-wal`);
    const other = sqliteStore({ file: crashed });
    const { verifier } = processOn(other);
    onTestFinished(async () => {
      await verifier.close();
      await other.close?.();
    });
    const checks = before.map((authentication_uuid) => outcome(verifier.check({ authentication_uuid, check_code: codes.get(authentication_uuid) as string })));
    expect(counted(await Promise.all(checks))).toEqual({ valid: 100 });
  });
});

describe("customers created at the same moment", () => {
  it("are each listed once, page by page, in memory, SQLite and Redis (docs/customers.md)", async () => {
    const { file, remove } = newFolder();
    const stores: Record<string, Store> = { memory: memoryStore(), ...(openSqlite !== undefined && { sqlite: sqliteStore({ file }) }) };
    onTestFinished(async () => {
      for (const store of Object.values(stores)) await store.close?.();
      remove();
    });
    if (redisIsInstalled("databases")) {
      const server = await startRedis();
      const client = await createClient({ url: server.url }).connect();
      onTestFinished(async () => {
        client.destroy();
        await server.stop();
      });
      stores["redis"] = redisStore({ client: client as unknown as RedisClient });
    }
    for (const [name, store] of Object.entries(stores)) {
      const { customers } = processOn(store, { customers: "store", clock: fixedClock(Date.now()) }).verifier;
      const made = Array.from({ length: 10 }, (_, at) => `0000000${at}-0000-4000-8000-000000000000`);
      await Promise.all(made.map((customer_uuid) => customers.create({ customer_uuid })));
      const seen: string[] = [];
      for (let page = await customers.list({ limit: 4 }); page.length > 0; page = await customers.list({ limit: 4, after: seen.at(-1) as string }))
        seen.push(...page.map(({ customer_uuid }) => customer_uuid));
      expect(seen, name).toEqual(made);
    }
  });
});
