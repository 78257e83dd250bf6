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

/** A server of the test's own, which it may do anything to. */
export interface OwnMongoServer extends MongoServer {
  readonly port: number;
  /** `SIGSTOP` holds it and `SIGCONT` lets it go on. */
  signal(name: "SIGSTOP" | "SIGCONT"): void;
  /** Ends it at once: nothing is written to disk any more. */
  kill(): Promise<void>;
  /** Starts it again on its port, with what its directory holds. */
  restart(): Promise<void>;
}

/** What a test of MongoDB uses: the server that MONGODB_URL names, else one of its own through mongodb-memory-server. */
export function mongoServer(suite: string): Promise<MongoServer | undefined> {
  const url = process.env["MONGODB_URL"];
  return url ? Promise.resolve({ url, stop: async () => {} }) : ownMongoServer(suite);
}

/** `launchTimeout`: on a loaded machine a start takes longer than the 10 s it would have. */
const start = async (again?: { readonly port: number; readonly dbPath: string }) =>
  MongoMemoryServer.create({ instance: { ip: "127.0.0.1", storageEngine: "wiredTiger", launchTimeout: 120_000, ...(again ?? { port: await freePort() }) } });

/**
 * A server through mongodb-memory-server, with the variables it reads from the environment. Where none can be started, the suite says what it skips and how to
 * get it; with `CI=true` that is a failure.
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

/** Whether the binary only starts other processes, which it must have the time to end. */
function isScript(): boolean {
  const binary = process.env["MONGOMS_SYSTEM_BINARY"];
  return binary !== undefined && readFileSync(binary).subarray(0, 2).toString() === "#!";
}

/** A connected client and a database of its own. */
export interface Connected {
  readonly db: MongoDb;
  /** The whole driver, for what only tests do. */
  readonly client: MongoClient;
  close(): Promise<void>;
}

/** Connects to a database; two that name the same one share it. */
export type Connect = (url: string, name: string, options?: MongoClientOptions) => Promise<Connected>;

/** The drivers the store is made for. */
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

/** Takes a database away again. */
export async function dropDatabase(url: string, name: string): Promise<void> {
  const client = await MongoClient.connect(url);
  await client.db(name).dropDatabase();
  await client.close();
}
