import { Redis } from "ioredis";
import { Kysely, PostgresDialect } from "kysely";
import type { PostgresStoreOptions } from "phoneproof/postgres";
import { type RedisClient, reconnectWhenSilent } from "phoneproof/redis";
import { createClient } from "redis";
import { DataSource } from "typeorm";
import type { PostgresDriver } from "typeorm/driver/postgres/PostgresDriver.js";
import { poolOf } from "../support/postgres.js";

/** The settings of docs/stores.md, with shorter times, and one connection. */
const settings = { max: 1, connectionTimeoutMillis: 1_500, query_timeout: 300, statement_timeout: 300 };

/** A client on a pool of `pg`, as in the table of docs/stores.md. */
export interface PoolClient {
  readonly options: PostgresStoreOptions;
  close(): Promise<void>;
}

/** Each such client, with its option word for word. */
export const poolClients: Readonly<Record<string, (url: string) => Promise<PoolClient>>> = {
  async Kysely(url) {
    const pool = poolOf(url, settings);
    const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
    return { options: { pool }, close: () => db.destroy() };
  },
  async TypeORM(url) {
    const dataSource = new DataSource({ type: "postgres", url, extra: settings, poolErrorHandler: () => {} });
    await dataSource.initialize();
    return { options: { pool: (dataSource.driver as PostgresDriver).master }, close: () => dataSource.destroy() };
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
