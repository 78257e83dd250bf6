import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import type { PostgresStoreOptions } from "phoneproof/postgres";
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
