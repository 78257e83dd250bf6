import { Redis } from "ioredis";
import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import type { PostgresStoreOptions } from "phoneproof/postgres";
import { type RedisClient, reconnectWhenSilent } from "phoneproof/redis";
import { createClient } from "redis";
import { DataSource } from "typeorm";
import { poolOf } from "../support/postgres.js";

/** The settings of docs/stores.md, with shorter times, and one connection. */
const settings = { max: 1, connectionTimeoutMillis: 1_500, query_timeout: 300, statement_timeout: 300 };

/** A client of `pg` that passes `query`, as in the table of docs/stores.md. */
export interface QueryClient {
  readonly options: PostgresStoreOptions;
  close(): Promise<void>;
}

/** Each such client, with its `query` word for word. */
export const queryClients: Readonly<Record<string, (url: string) => Promise<QueryClient>>> = {
  async Kysely(url) {
    const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: poolOf(url, settings) }) });
    return {
      options: { query: async (text, values) => (await db.executeQuery<Record<string, unknown>>(CompiledQuery.raw(text, values))).rows },
      close: () => db.destroy(),
    };
  },
  async TypeORM(url) {
    const dataSource = new DataSource({ type: "postgres", url, extra: settings, poolErrorHandler: () => {} });
    await dataSource.initialize();
    return { options: { query: (text, values) => dataSource.query(text, values) }, close: () => dataSource.destroy() };
  },
};

/** The same database at another port of this host. */
export function at(url: string, port: number): string {
  const moved = new URL(url);
  moved.port = String(port);
  return moved.href;
}

/** The clients of a single Redis, with the settings of docs/stores.md. */
export const redisClients: Readonly<Record<string, (url: string) => Promise<{ readonly client: RedisClient; close(): void }>>> = {
  async redis(url) {
    const client = createClient({
      url,
      disableOfflineQueue: true,
      pingInterval: 1_000,
      commandOptions: { timeout: 1_000 },
      socket: { connectTimeout: 1_000, socketTimeout: 1_500, reconnectStrategy: (tries) => Math.min(tries * 50, 500) },
    }).on("error", () => {});
    await client.connect();
    reconnectWhenSilent(client);
    return { client, close: () => client.destroy() };
  },
  async ioredis(url) {
    const client = new Redis(url, {
      lazyConnect: true,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 1,
      commandTimeout: 1_000,
      connectTimeout: 1_000,
      socketTimeout: 1_500,
      retryStrategy: (tries) => Math.min(tries * 50, 500),
      reconnectOnError: (error) => /READONLY|MASTERDOWN/.test(error.message),
    }).on("error", () => {});
    await client.connect();
    return { client, close: () => client.disconnect() };
  },
};
