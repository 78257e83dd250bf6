import { execFileSync } from "node:child_process";
import { copyFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { postgresStore } from "phoneproof/postgres";
import { type RedisClient, reconnectWhenSilent, redisStore } from "phoneproof/redis";
import { sqliteStore } from "phoneproof/sqlite";
import postgres from "postgres";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newDatabase, type PostgresServer, postgresServer, sql } from "../support/postgres.js";
import { isInstalled } from "../support/programs.js";
import { type RedisServer, redisIsInstalled, startRedis, until } from "../support/redis.js";
import { address, folder, newNumber, operated, phoneproof, serve, within } from "./stores-bad-days-kit.js";

const hasRedis = redisIsInstalled("stores-bad-days");
const hasShell = isInstalled("sqlite3", "sqlite3", "stores-bad-days");
let [pg, redis]: [PostgresServer | undefined, RedisServer[]] = [undefined, []];
beforeAll(async () => {
  [pg, redis] = await Promise.all([postgresServer("stores-bad-days"), hasRedis ? Promise.all([startRedis(), startRedis(), startRedis(), startRedis()]) : []]);
});
afterAll(async () => {
  await Promise.all([pg, ...redis].map((one) => one?.stop()));
});

describe.concurrent("the documented client of a store", () => {
  const nodeRedis = async (url: string) => {
    const client = createClient({
      url,
      disableOfflineQueue: true,
      pingInterval: 1000,
      commandOptions: { timeout: 1000 },
      socket: { connectTimeout: 1000, socketTimeout: 1500, reconnectStrategy: (tries) => Math.min(tries * 50, 500) },
    });
    client.on("error", () => {});
    await client.connect();
    reconnectWhenSilent(client);
    return { client: client as unknown as RedisClient, end: () => client.destroy() };
  };
  const ioredis = async (url: string) => {
    const client = new Redis(url, {
      enableOfflineQueue: false,
      maxRetriesPerRequest: 1,
      commandTimeout: 1000,
      connectTimeout: 1000,
      socketTimeout: 1500,
      retryStrategy: (tries) => Math.min(tries * 50, 500),
    });
    client.on("error", () => {});
    await new Promise((done) => client.once("ready", done));
    return { client: client as RedisClient, end: () => client.disconnect() };
  };

  it.skipIf(!hasRedis).each([
    ["redis", 0, nodeRedis],
    ["ioredis", 2, ioredis],
  ] as const)(
    "%s with the documented settings leaves a Redis that became a replica for the new primary (docs/stores.md#the-client-is-yours)",
    async (_, first, open) => {
      const atEnd: (() => void | Promise<void>)[] = [];
      try {
        const [old, next] = [redis[first], redis[first + 1]] as [RedisServer, RedisServer];
        let primary = old;
        await next.cli("REPLICAOF", "127.0.0.1", String(old.port));
        const { port } = await address(
          (work) => atEnd.push(work),
          () => primary.port,
        );
        const { client, end } = await open(`redis://127.0.0.1:${port}`);
        atEnd.push(end);
        const { create } = operated(redisStore({ client }));
        expect(await create()).toBe("pending");
        await until("the replica has caught up", async () => (await next.cli("INFO", "replication")).includes("master_link_status:up"));
        primary = next;
        await next.cli("REPLICAOF", "NO", "ONE");
        await old.cli("REPLICAOF", "127.0.0.1", String(next.port));
        expect(await within(3_000, async () => (await create()) === "pending"), "a create within 3 s of the failover").toBe(true);
      } finally {
        for (const work of atEnd) await work();
      }
    },
  );

  it("postgres with the documented settings works again once the database is no longer read-only (docs/stores.md#postgresql, Failover)", async ({
    skip,
    onTestFinished: atEnd,
  }) => {
    if (pg === undefined) return skip();
    const url = await newDatabase(pg);
    const name = new URL(url).pathname.slice(1);
    const open = () => postgres(url, { connect_timeout: 2, backoff: () => 0.2, fetch_types: false, connection: { statement_timeout: 1500 } });
    const first = open();
    await postgresStore({ pool: first }).ensureSchema();
    await first.end();
    // As a standby, or as a host that protects a full disk: new sessions can only read.
    await sql(pg.url, `alter database ${name} set default_transaction_read_only = on`);
    const pool = open();
    atEnd(() => pool.end({ timeout: 1 }));
    // All connections of the pool.
    await Promise.all(Array.from({ length: 10 }, () => pool`select pg_sleep(0.2)`));
    const { create } = operated(postgresStore({ pool }));
    expect(await create()).toBe("unavailable");
    await sql(pg.url, `alter database ${name} reset default_transaction_read_only`);
    expect(await within(3_000, async () => (await create()) === "pending"), "a create within 3 s").toBe(true);
  });
});

describe("doctor and an SQLite file", () => {
  it("diagnose gives a fix that applies to a file that is no database, and to one that was deleted (docs/contract.md#ping)", async ({
    onTestFinished: atEnd,
  }) => {
    const cwd = folder(atEnd);
    writeFileSync(join(cwd, "text.db"), "no database ".repeat(100));
    const wrong = operated(sqliteStore({ file: join(cwd, "text.db") }));
    const deleted = operated(sqliteStore({ file: join(cwd, "deleted.db") }));
    expect(await deleted.create()).toBe("pending");
    rmSync(join(cwd, "deleted.db"));
    for (const { verifier } of [wrong, deleted]) {
      const faults = (await verifier.diagnose()).filter(({ about, level }) => about === "store" && level === "fault");
      expect(faults).toHaveLength(1);
      // No server can be started, and the client has no credentials.
      expect(faults[0]?.fix).not.toMatch(/start it|credentials/);
    }
  });
});

describe.concurrent("the command", () => {
  it("serve, whose -wal and -shm were deleted: requests return 503, or another process finds what was acknowledged (docs/contract.md#stored-first)", async ({
    onTestFinished: atEnd,
  }) => {
    const cwd = folder(atEnd);
    const forgotten = await serve(atEnd, cwd);
    expect((await forgotten.post("authentication", { phone_number: newNumber() })).is).toBe("200 pending");
    for (const end of ["-wal", "-shm"]) rmSync(join(cwd, `phoneproof.db${end}`));
    const created = await forgotten.post("authentication", { phone_number: newNumber() });
    const other = await serve(atEnd, cwd);
    const found = created.is.startsWith("200") ? (await other.post("check", { authentication_uuid: created.id, check_code: "x" })).is : "nothing to find";
    expect([created.is, found]).toEqual(created.is.startsWith("503") ? ["503 unavailable", "nothing to find"] : ["200 pending", "200 invalid"]);
  });

  it.skipIf(!hasShell)(
    "serve, over whose file a backup was copied: requests return 503, as for every file that was replaced (docs/stores.md#sqlite, Errors)",
    async ({ onTestFinished: atEnd }) => {
      const cwd = folder(atEnd);
      const forgotten = await serve(atEnd, cwd);
      expect((await forgotten.post("authentication", { phone_number: newNumber() })).is).toBe("200 pending");
      execFileSync("sqlite3", ["phoneproof.db", ".backup copy.db"], { cwd });
      expect((await forgotten.post("authentication", { phone_number: newNumber() })).is).toBe("200 pending");
      for (const end of ["-wal", "-shm"]) rmSync(join(cwd, `phoneproof.db${end}`));
      copyFileSync(join(cwd, "copy.db"), join(cwd, "phoneproof.db"));
      expect((await forgotten.post("authentication", { phone_number: newNumber() })).is).toBe("503 unavailable");
    },
  );

  it.skipIf(!hasShell)(
    "why, stats and erase change nothing in the database of another application (docs/no-code.md#settings)",
    async ({ onTestFinished: atEnd }) => {
      const cwd = folder(atEnd);
      execFileSync("sqlite3", ["app.db", "create table users (phone text)"], { cwd });
      const state = () => execFileSync("sqlite3", ["app.db", "select group_concat(name) from sqlite_schema; pragma journal_mode"], { cwd, encoding: "utf8" });
      const before = state();
      for (const words of [["why", newNumber()], ["stats"], ["erase", newNumber(), "--yes"]]) await phoneproof(atEnd, cwd, [...words, "--data", "app.db"]).end;
      expect(state()).toBe(before);
    },
  );
});
