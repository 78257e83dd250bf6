import { Client, type Pool, type PoolConfig } from "pg";
import { onTestFinished } from "vitest";
import { newStore, type PostgresServer, poolOf, startPgbouncer } from "../support/postgres.js";

/** The settings of docs/stores.md for `pg`. */
export const settings: PoolConfig = { connectionTimeoutMillis: 1_500, query_timeout: 1_500, statement_timeout: 1_500, max: 16 };

/** A pool without deadlines, for tests whose services wait long: two loaded cores may need more than 1.5 s. */
export const patient: PoolConfig = { max: 16 };

export const nameOf = (url: string): string => new URL(url).pathname.slice(1);

/** The address of a new database that has the store's schema. */
export async function database(server: PostgresServer | undefined): Promise<string> {
  const { url, close } = await newStore(server);
  await close();
  return url;
}

/** The address of a database through a PgBouncer that ends with the test. */
export async function bounced(server: PostgresServer, url: string): Promise<string> {
  const bouncer = await startPgbouncer(server, 3);
  onTestFinished(() => bouncer.stop());
  const through = new URL(bouncer.url);
  through.pathname = nameOf(url);
  return through.href;
}

/** A pool that ends with the test. */
export function pool(url: string, options: PoolConfig = settings): Pool {
  const made = poolOf(url, options);
  onTestFinished(() => made.end());
  return made;
}

/** Locks the row that a customer's commits wait for. Returns a function that releases it. */
export async function hold(url: string, customer: string): Promise<() => Promise<void>> {
  const other = new Client({ connectionString: url });
  await other.connect();
  onTestFinished(() => other.end());
  await other.query("begin");
  const { rowCount } = await other.query("select from phoneproof.customer where name like $1 for update", [`%${customer}%`]);
  if (rowCount !== 1) throw new Error("the customer has no row");
  return async () => void (await other.query("rollback"));
}

/** Ends one busy session of a database after another until the returned function is called. */
export function chaos(server: PostgresServer, url: string): () => Promise<void> {
  const admin = pool(server.url, { max: 1 });
  const one = "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and state = 'active' order by random() limit 1";
  let going = true;
  const work = (async () => {
    while (going) {
      await admin.query(one, [nameOf(url)]);
      await new Promise((done) => setImmediate(done));
    }
  })();
  return async () => {
    going = false;
    await work;
  };
}
