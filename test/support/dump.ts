import { existsSync, readFileSync } from "node:fs";
import { Session } from "node:inspector";
import type { MongoClient } from "mongodb";
import type { Pool } from "pg";
import type { RedisServer } from "./redis.js";
import { openSqlite } from "./sqlite.js";

/** Every text that a store contains, each with the key under which it is stored. */
export type Dump = readonly string[];

const place = Symbol.for("phoneproof.test.dump");

/** Properties that lead out of the store: a timer links to the next one of the process. */
const others: ReadonlySet<string | undefined> = new Set(["__proto__", "_idleNext", "_idlePrev"]);

/** Every string in an object of this process, including private fields. */
export function dumpOfMemory(store: object): Dump {
  const session = new Session();
  session.connect();
  type Remote = { readonly type: string; readonly value?: unknown; readonly objectId?: string };
  type Property = { readonly name?: string; readonly value?: Remote };
  const ask = (method: string, params: object): Record<string, unknown> => {
    let answer: object | undefined;
    // The inspector of the current thread responds synchronously.
    session.post(method, params, (_error, result) => (answer = result as object));
    return (answer ?? {}) as Record<string, unknown>;
  };
  const home = globalThis as { [place]?: object };
  home[place] = store;
  const texts: string[] = [];
  const visit = ({ type, value, objectId }: Remote, depth: number): void => {
    if (type === "string") texts.push(String(value));
    if (type !== "object" || objectId === undefined || depth > 12) return;
    const {
      result,
      privateProperties = [],
      internalProperties = [],
    } = ask("Runtime.getProperties", { objectId, ownProperties: true }) as Record<"result" | "privateProperties" | "internalProperties", Property[]>;
    const inner = internalProperties.filter(({ name }) => name === "[[Entries]]");
    for (const { name, value } of [...result, ...privateProperties, ...inner]) if (value !== undefined && !others.has(name)) visit(value, depth + 1);
  };
  const { result } = ask("Runtime.evaluate", { expression: `globalThis[Symbol.for("phoneproof.test.dump")]` }) as { result: Remote };
  visit(result, 0);
  delete home[place];
  session.disconnect();
  return texts;
}

/** Every key of a Redis server with its value. */
export async function dumpOfRedis(server: Pick<RedisServer, "cli">): Promise<Dump> {
  const keys = (await server.cli("KEYS", "*")).split("\n").filter((key) => key !== "");
  const readers: Readonly<Record<string, (key: string) => Promise<string>>> = {
    string: (key) => server.cli("GET", key),
    zset: (key) => server.cli("ZRANGE", key, "0", "-1", "WITHSCORES"),
    hash: (key) => server.cli("HGETALL", key),
  };
  const texts = keys.map(async (key) => {
    const type = await server.cli("TYPE", key);
    // It has expired in the meantime.
    if (type === "none") return [];
    const read = readers[type];
    if (read === undefined) throw new Error(`a key of a kind that nobody reads: ${key}`);
    return [`${key} ${await read(key)}`];
  });
  return (await Promise.all(texts)).flat();
}

/** Every document of a MongoDB database. */
export async function dumpOfMongo(client: MongoClient, name: string): Promise<Dump> {
  const collections = await client.db(name).collections();
  const all = await Promise.all(
    collections.map(async (one) => (await one.find({}).toArray()).map((document) => `${one.collectionName} ${JSON.stringify(document)}`)),
  );
  return all.flat();
}

/** Every row of an SQLite file, and the text in its bytes and in its log, which may still contain deleted data. */
export function dumpOfSqlite(file: string): Dump {
  const database = openSqlite(file);
  const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all() as { readonly name: string }[];
  const rows = tables.flatMap(({ name }) => (database.prepare(`SELECT * FROM ${name}`).all() as object[]).map((row) => `${name} ${JSON.stringify(row)}`));
  database.close();
  const files = [file, `${file}-wal`].filter((one) => existsSync(one));
  return [...rows, ...files.flatMap((one) => readFileSync(one, "latin1").match(/[\x20-\x7e]{4,400}/g) ?? [])];
}

/** Every row of the store's tables in a PostgreSQL database. */
export async function dumpOfPostgres(pool: Pool): Promise<Dump> {
  const { rows: tables } = await pool.query<{ name: string }>("select tablename as name from pg_tables where schemaname = 'phoneproof'");
  const all = await Promise.all(
    tables.map(async ({ name }) =>
      (await pool.query<{ row: string }>(`select row_to_json(t)::text as row from phoneproof.${name} t`)).rows.map(({ row }) => `${name} ${row}`),
    ),
  );
  return all.flat();
}

/** The spellings of a number: without its plus, nationally, masked for people, and as encoded bytes. */
export function spellingsOf(number: string, masked: string): readonly string[] {
  const digits = number.slice(1);
  const bytes = [number, digits].flatMap((text) => [Buffer.from(text).toString("hex"), Buffer.from(text).toString("base64url").slice(0, -1)]);
  return [digits, digits.slice(2), `0${digits.slice(2)}`, masked, ...bytes];
}

/** The spellings of an authentication's id. */
export function spellingsOfId(id: string): readonly string[] {
  const hex = id.replaceAll("-", "");
  return [id, hex, Buffer.from(hex, "hex").toString("base64url")];
}

/** The parts of a dump that contain one of the texts. */
export function traces(dump: Dump, texts: readonly string[]): string[] {
  return dump.filter((one) => texts.some((text) => one.includes(text)));
}
