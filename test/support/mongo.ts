import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { MongoClient, type MongoClientOptions } from "mongodb";
import { MongoMemoryServer } from "mongodb-memory-server";
import { MongoClient as MongoClient6 } from "mongodb6";
import type { MongoDb } from "../../adapters/store/mongo/index.js";
import { freePort } from "./ports.js";
import { childrenOf } from "./programs.js";

/** A MongoDB server for a test file. */
export interface MongoServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** A separate server for one test, which may stop and restart it. */
export interface OwnMongoServer extends MongoServer {
  readonly port: number;
  /** `SIGSTOP` pauses it and `SIGCONT` resumes it. */
  signal(name: "SIGSTOP" | "SIGCONT"): void;
  /** Kills it at once: nothing more is written to disk. */
  kill(): Promise<void>;
  /** Starts it again on its port, with the data of its directory. */
  restart(): Promise<void>;
}

/** The server for tests of MongoDB: the one in MONGODB_URL, else a separate one through mongodb-memory-server. */
export function mongoServer(suite: string): Promise<MongoServer | undefined> {
  const url = process.env["MONGODB_URL"];
  return url ? Promise.resolve({ url, stop: async () => {} }) : ownMongoServer(suite);
}

/** `launchTimeout`: on a loaded machine, a start takes longer than the default of 10 s. */
const start = async (again?: { readonly port: number; readonly dbPath: string }) =>
  MongoMemoryServer.create({ instance: { ip: "127.0.0.1", storageEngine: "wiredTiger", launchTimeout: 120_000, ...(again ?? { port: await freePort() }) } });

/**
 * A server through mongodb-memory-server, which reads its own environment variables. If it cannot start, prints what is
 * skipped and how to get it; with `CI=true` it throws.
 */
export async function ownMongoServer(suite: string): Promise<OwnMongoServer | undefined> {
  let server: MongoMemoryServer;
  try {
    server = await start();
  } catch (cause) {
    const why = (cause as Error).message.split("\n")[0];
    const fix =
      "mongodb-memory-server downloads one where it can; else set MONGOMS_SYSTEM_BINARY to a mongod, or MONGODB_URL to a server that may be filled with test data";
    const message = `no MongoDB server could be started: ${suite} cannot run (${why}). ${fix}`;
    if (process.env["CI"] === "true") throw new Error(message, { cause });
    console.warn(`SKIPPED: ${message}`);
    return undefined;
  }
  const { port, dbPath } = server.instanceInfo as { port: number; dbPath: string };
  const pid = () => server.instanceInfo?.instance.mongodProcess?.pid as number;
  return {
    url: server.getUri(),
    port,
    signal(name) {
      for (const one of [pid(), ...childrenOf(pid())]) process.kill(one, name);
    },
    async kill() {
      const gone = new Promise((done) => server.instanceInfo?.instance.mongodProcess?.once("exit", done));
      process.kill(pid(), isScript() ? "SIGTERM" : "SIGKILL");
      await gone;
    },
    async restart() {
      await server.stop({ doCleanup: false });
      server = await start({ port, dbPath });
    },
    async stop() {
      await server.stop({ doCleanup: true, force: true });
    },
  };
}

/** Whether the binary is a script, which needs time to end the processes that it started. */
function isScript(): boolean {
  const binary = process.env["MONGOMS_SYSTEM_BINARY"];
  return binary !== undefined && readFileSync(binary).subarray(0, 2).toString() === "#!";
}

/** A connected client and its own database. */
export interface Connected {
  readonly db: MongoDb;
  /** The whole driver, for calls that only tests make. */
  readonly client: MongoClient;
  close(): Promise<void>;
}

/** Connects to a database; the same name gives the same database. */
export type Connect = (url: string, name: string, options?: MongoClientOptions) => Promise<Connected>;

/** The drivers that the store supports. */
export const drivers = {
  "mongodb 7": async (url: string, name: string, options: MongoClientOptions = {}): Promise<Connected> => {
    const client = await MongoClient.connect(url, options);
    return { db: client.db(name), client, close: () => client.close() };
  },
  "mongodb 6": async (url: string, name: string, options: MongoClientOptions = {}): Promise<Connected> => {
    const client = await MongoClient6.connect(url, options as object);
    return { db: client.db(name), client: client as unknown as MongoClient, close: () => client.close() };
  },
} satisfies Record<string, Connect>;

/** The name of a database that no other test uses. */
export function newDatabase(): string {
  return `phoneproof-${randomUUID()}`;
}

/** Drops a database. */
export async function dropDatabase(url: string, name: string): Promise<void> {
  const client = await MongoClient.connect(url);
  await client.db(name).dropDatabase();
  await client.close();
}
