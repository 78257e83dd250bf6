import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { pipeline } from "node:stream";
import * as neon from "@neondatabase/serverless";
import { PrismaPg } from "@prisma/adapter-pg";
import { sql as bind } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import { DataSource } from "typeorm";
import type { PostgresDriver } from "typeorm/driver/postgres/PostgresDriver.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createWebSocketStream, WebSocket, WebSocketServer } from "ws";
import { type PostgresStore, postgresStore, schemaSql } from "../../adapters/store/postgres/index.js";
import { freePort } from "../support/ports.js";
import { failing, newDatabase, poolOf, postgresServer, sql } from "../support/postgres.js";
import { PrismaClient } from "../support/prisma.js";
import { newNumber, serviceOn } from "../support/redis-service.js";
import { ofClient } from "./of-client.js";

const server = await postgresServer("the clients of docs/stores.md on PostgreSQL");

/** A store on a client, set up as an application would. */
interface Connected {
  readonly store: PostgresStore;
  /** Runs work inside a transaction of the application, which is then rolled back. */
  rollBack?(work: () => Promise<unknown>): Promise<unknown>;
  close(): Promise<unknown>;
}

const max = 20;

/** Makes the application's transaction fail after the work. */
const thenFail = async (work: () => Promise<unknown>): Promise<never> => {
  await work();
  throw new Error("the application rolls back");
};

/** `@vercel/postgres` has its own copy of Neon's client, another release with separate settings. */
const requireOf = createRequire(createRequire(import.meta.url).resolve("@vercel/postgres"));
const vercel = requireOf("@vercel/postgres") as typeof import("@vercel/postgres");
const neonOfVercel = requireOf("@neondatabase/serverless") as typeof neon;

/** Neon's proxy, and the settings that use it: each connection to the server is a WebSocket. */
const proxy = new WebSocketServer({ host: "127.0.0.1", port: 0 });
await once(proxy, "listening");
proxy.on("connection", (socket, { url = "" }) => {
  const [host, port] = (new URL(url, "ws://proxy").searchParams.get("address") as string).split(":");
  const stream = createWebSocketStream(socket);
  pipeline(stream, connect(Number(port), host), stream, () => {});
});
for (const { neonConfig } of [neon, neonOfVercel]) {
  neonConfig.webSocketConstructor = WebSocket;
  neonConfig.wsProxy = (host, port) => `127.0.0.1:${(proxy.address() as AddressInfo).port}/?address=${host}:${port}`;
  neonConfig.useSecureWebSocket = false;
  neonConfig.pipelineConnect = false; // The server is asked how it authenticates; Neon's own always uses a password.
}
afterAll(async () => {
  proxy.close();
  await server?.stop();
});

const clients: Readonly<Record<string, (url: string) => Connected | Promise<Connected>>> = {
  "Drizzle on `pg`"(url) {
    const pool = poolOf(url, { max });
    const db = drizzle(pool);
    return { store: postgresStore({ pool: db.$client }), rollBack: (work) => db.transaction(() => thenFail(work)), close: () => pool.end() };
  },
  Kysely(url) {
    const pool = poolOf(url, { max });
    const db = new Kysely<object>({ dialect: new PostgresDialect({ pool }) });
    return { store: postgresStore({ pool }), rollBack: (work) => db.transaction().execute(() => thenFail(work)), close: () => db.destroy() };
  },
  async TypeORM(url) {
    const dataSource = new DataSource({ type: "postgres", url, poolSize: max });
    await dataSource.initialize();
    const store = postgresStore({ pool: (dataSource.driver as PostgresDriver).master });
    return { store, rollBack: (work) => dataSource.transaction(() => thenFail(work)), close: () => dataSource.destroy() };
  },
  Prisma(url) {
    const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max }) });
    const store = postgresStore({ query: (text, values) => prisma.$queryRawUnsafe(text, ...values) });
    return { store, rollBack: (work) => prisma.$transaction(() => thenFail(work)), close: () => prisma.$disconnect() };
  },
  "`@neondatabase/serverless`"(connectionString) {
    const { Pool } = neon;
    const pool = new Pool({ connectionString });
    pool.on("error", () => {});
    return { store: postgresStore({ pool }), close: () => pool.end() };
  },
  "`@vercel/postgres`"(url) {
    const { createPool } = vercel;
    // It only accepts addresses of Neon's poolers, or `localhost`.
    const connectionString = url.replace("127.0.0.1", "localhost");
    const pool = createPool({ connectionString });
    pool.on("error", () => {});
    return { store: postgresStore({ pool }), close: () => pool.end() };
  },
};

/** Whose rows name `query` beside `pool`. */
const queried: typeof clients = {
  "Kysely by `query`"(url) {
    const db = new Kysely<object>({ dialect: new PostgresDialect({ pool: poolOf(url, { max }) }) });
    const store = postgresStore({ query: async (text, values) => (await db.executeQuery(CompiledQuery.raw(text, values))).rows });
    return { store, rollBack: (work) => db.transaction().execute(() => thenFail(work)), close: () => db.destroy() };
  },
  async "TypeORM by `query`"(url) {
    const dataSource = new DataSource({ type: "postgres", url, poolSize: max });
    await dataSource.initialize();
    const store = postgresStore({ query: (text, values) => dataSource.query(text, values) });
    return { store, rollBack: (work) => dataSource.transaction(() => thenFail(work)), close: () => dataSource.destroy() };
  },
};

it("docs/stores.md has the options tested here, and those for Bun and Deno", () => {
  const read = (file: string) => readFileSync(join(import.meta.dirname, file), "utf8");
  const table = read("../../docs/stores.md").split("<!-- clients: ")[1]?.split("\n\n")[0] ?? "";
  const rows = [...table.matchAll(/^\| (.+?) \| `(query|pool): (.+?)` \|/gm)];
  expect(rows.map(([, client]) => client)).toEqual([...Object.keys(clients), "Bun", "Deno"]);
  const here = read("postgres-clients.test.ts");
  const besides = [...table.matchAll(/; or `(query: .+?)` \|$/gm)].map(([, option]) => `postgresStore({ ${option} })`);
  expect(besides).toHaveLength(Object.keys(queried).length);
  for (const call of besides) expect(here).toContain(call);
  const there = read("../package/runtimes/contract-postgres.js");
  for (const [, client = "", option, value] of rows) {
    const isMade = [`postgresStore({ ${option}: ${value} })`, `const ${option} = ${value};`].some((line) => (client in clients ? here : there).includes(line));
    expect({ client, isMade }).toEqual({ client, isMade: true });
  }
});

describe.runIf(server)("the clients of docs/stores.md on PostgreSQL", () => {
  describe.each(Object.entries({ ...clients, ...queried }))("%s", (name, connected) => {
    let url: string;
    let first: Connected;
    let second: Connected;
    beforeAll(async () => {
      url = await newDatabase(server);
      [first, second] = [await connected(url), await connected(url)];
      await first.store.ensureSchema();
    });
    afterAll(() => Promise.all([first?.close(), second?.close()]));

    for (const { name: sentence, run } of ofClient) it(sentence, () => run({ store: first.store, peer: second.store }));

    it("verifies a number, and inspect reports nothing missing", async () => {
      const service = serviceOn(first.store);
      const { authentication_uuid: id } = (await service.create(newNumber())).body;
      expect((await service.check(id, service.wrongCodeFor(id))).body.status).toBe("invalid");
      expect((await service.check(id, service.codeOf(id))).body.status).toBe("valid");
      expect((await first.store.inspect?.(0))?.missing).toBeUndefined();
    });

    it("runs its statements outside the application's transaction", async () => {
      const key = randomUUID();
      const put = () => first.store.put(key, "value", { now: Date.now(), keepUntil: Date.now() + 60_000 });
      await expect((first.rollBack ?? thenFail)(put)).rejects.toThrow("the application rolls back");
      expect(await first.store.get(key)).toBe("value");
    });

    it("a statement that the server rolls back is repeated; any other error has its code and no values", () => expectErrors(first.store, url));

    it("reports why a server that is read-only or unreachable fails", async () => {
      let missing: readonly string[] | undefined;
      const put = async (at: string) => {
        const { store, close } = await connected(at);
        const error = await store.put("key", "value", { now: 0, keepUntil: 60_000 }).catch((error: Error) => error);
        missing = (await store.inspect?.(0).catch(() => undefined))?.missing;
        await close();
        return String(error);
      };
      const readOnly = await newDatabase(server);
      await sql(readOnly, schemaSql(), `alter database ${new URL(readOnly).pathname.slice(1)} set default_transaction_read_only = on`);
      expect(await put(readOnly)).toMatch(/^Error: postgresStore: cannot execute INSERT in a read-only transaction \(25006\): the server is read-only/);
      expect(missing).toEqual([expect.stringContaining("default_transaction_read_only is on")]);
      const away = new URL(url);
      away.port = String(await freePort());
      // TypeORM connects before it can be used.
      if (!name.startsWith("TypeORM"))
        expect(await put(away.href)).toMatch(/^Error: postgresStore: (connect ECONNREFUSED|DatabaseNotReachable|Connection terminated)/);
    });
  });

  it("errors of the server that Drizzle's `execute` wraps are recognised", async () => {
    const url = await newDatabase(server);
    const pool = poolOf(url);
    const db = drizzle(pool);
    const bound = (text: string, values: unknown[]) =>
      text.split(/\$(\d+)/).map((part, at) => (at % 2 ? bind.param(values[Number(part) - 1]) : bind.raw(part)));
    const store = postgresStore({ query: async (text, values) => (await db.execute(bind.join(bound(text, values)))).rows });
    await store.ensureSchema();
    await expectErrors(store, url);
    await pool.end();
  });
});

/** A statement that the server rolls back is repeated; any other error has its code and no values. */
async function expectErrors(store: PostgresStore, url: string): Promise<void> {
  await failing(url);
  const put = (value: string) => store.put(randomUUID(), value, { now: 0, keepUntil: 60_000 });
  for (const code of ["40001", "40P01"]) await put(`fail ${code}`);
  expect(await sql(url, "select last_value::integer as tries from tries")).toEqual([{ tries: 6 }]);
  const errorOf = (value: string) => put(value).catch((error: Error) => error);
  const canceled = "the statement was canceled, as by statement_timeout or lock_timeout: see what keeps the server busy or holds a lock";
  expect(await errorOf("fail 57014")).toEqual(Object.assign(new Error(`postgresStore: no fail 57014 (57014): ${canceled}`), { code: "57014" }));
  expect(await errorOf("bad +33612345678")).toEqual(Object.assign(new Error("postgresStore: the server rejected a value (23514)"), { code: "23514" }));
}
