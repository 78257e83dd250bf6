import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import { fromNodeRedis, type RunScript, reconnectWhenSilent, redisStore } from "../../adapters/store/redis/index.js";
import { isStoreFile } from "../../adapters/store/sqlite/file.js";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import { withFix } from "../operations/diagnose.js";
import type { Store } from "../ports/store.js";
import type { DataSettings, Place, StoreSettings } from "./settings.js";

/** The demo's store and its client. */
export interface OpenStore {
  readonly store: Store;
  /** For the banner. */
  readonly name: string;
  /** Closes the client. */
  close(): Promise<void>;
}

/** A store whose server has not responded yet. */
interface Candidate extends OpenStore {
  /** Settles once the server has executed a command for the store. */
  probe(): Promise<unknown>;
  /** The same, and makes tables or indexes. */
  prepare?(): Promise<unknown>;
  /** The client's last error while connecting. */
  error?(): unknown;
}

/** Milliseconds to wait at the start for a server that does not respond. */
const startTimeout = 3_000;

/** The fix for a Redis Cluster: the clients made here are of one server. */
const ofCluster = "a URL names one server: use a module whose store has a client of the cluster, or the calls in code (docs/customers.md)";

export interface Opening {
  /** Fails where there is no file, or one without the store's tables: it is left as it is. Implies `readsOnly`. Default: false. */
  readonly mustExist?: boolean;
  /** Makes no tables and indexes in a server. Default: false. */
  readonly readsOnly?: boolean;
  /** Waits in the background for a server that is down; until it responds, requests are rejected. Default: false. */
  readonly waits?: boolean;
}

/** Opens what the options or the environment name. Throws as the functions below do. */
export function openPlace(place: Place, warn: (line: string) => void, opening: Opening = {}): Promise<OpenStore> {
  return "driver" in place ? openStore(place, warn, opening) : openData(place, warn, opening);
}

/**
 * Opens the file that `--data` names, or a store in memory: for `memory`, or if the file is only the default and this
 * Node.js has no SQLite. In that case `warn` gets a line.
 *
 * @throws Error if the file cannot be used. The message names the option or variable, and the fix.
 */
async function openData({ by, file, isAsked }: DataSettings, warn: (line: string) => void, { mustExist = false }: Opening): Promise<OpenStore> {
  const inMemory: OpenStore = { store: memoryStore(), name: "the memory store", async close() {} };
  const fix = "name the store with PHONEPROOF_STORE or PHONEPROOF_DATA, or with --store or --data";
  if (file === undefined) {
    if (!mustExist) return inMemory;
    throw new Error(`data in memory is empty: ${fix}`);
  }
  if (mustExist && !existsSync(file)) throw new Error(`there is no file ${file}: ${fix}`);
  const store = sqliteStore({ file });
  let holdsData = true;
  try {
    if (mustExist) holdsData = await isStoreFile(file);
    if (holdsData) await store.get("probe");
  } catch (error) {
    const { message, cause } = error as Error;
    if (!isAsked && (cause as NodeJS.ErrnoException | undefined)?.code === "ERR_MODULE_NOT_FOUND") {
      warn("Data lives in memory until this process ends: this Node.js has no SQLite. To keep it, use Node.js 22.13 or newer, or npm install libsql.");
      return inMemory;
    }
    throw new Error(`${by ?? "--data"} ${file}: ${message.replace(/^sqliteStore: /, "")}`);
  }
  if (!holdsData) throw new Error(`${file} holds no data of phoneproof: ${fix}`);
  return { store, name: `its data in ${file}`, close: async () => store.close?.() };
}

/**
 * Opens the store that `--store` names, and checks that its server responds.
 *
 * @throws Error if the driver is not installed or the server cannot be used. The message names the option or variable, and the fix.
 * The URL may contain a password, which no driver includes in its errors.
 */
async function openStore(
  settings: StoreSettings,
  warn: (line: string) => void,
  { waits = false, mustExist, readsOnly = mustExist }: Opening,
): Promise<OpenStore> {
  const { by: name = "--store", driver, url, prefix } = settings;
  let opened: Candidate | undefined;
  let timer: NodeJS.Timeout | undefined;
  try {
    const candidate = await candidates[driver](url, prefix === undefined ? {} : { prefix }, "token" in settings ? settings.token : "");
    opened = candidate;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(candidate.error?.() ?? new Error(`no response within ${startTimeout / 1000} s`)), startTimeout);
    });
    await Promise.race([readsOnly ? candidate.probe() : prepared(candidate), late]);
    return candidate;
  } catch (error) {
    if (error instanceof DriverMissing) throw new Error(`${name} ${error.message}`);
    const { message, code } = error as { message?: string; code?: string };
    const ofPrefix = /^\w+Store: option `\w+` (.+)/.exec(message ?? "")?.[1];
    if (opened === undefined && ofPrefix) throw new Error(`--prefix ${ofPrefix}`);
    const { fault, fix = "start it, or correct the URL" } = withFix(message || code || String(error));
    const advice = / cluster \(/.test(fault) ? ofCluster : fix;
    const problem = `${name}: the server cannot be used (${fault}). ${advice.charAt(0).toUpperCase()}${advice.slice(1)}.`;
    if (opened === undefined || !waits) {
      await opened?.close();
      throw new Error(problem);
    }
    warn(`${problem} It is tried again until it responds; until then, requests get 503.`);
    void keepTrying(opened);
    return opened;
  } finally {
    clearTimeout(timer);
  }
}

async function prepared({ probe, prepare = probe }: Candidate): Promise<void> {
  await prepare();
}

/** Prepares the store as soon as its server responds. */
async function keepTrying(candidate: Candidate): Promise<void> {
  for (;;) {
    await sleep(startTimeout, undefined, { ref: false });
    const works = await prepared(candidate).then(
      () => true,
      () => false,
    );
    if (works) return;
  }
}

/**
 * The clients have the options that `docs/stores.md` lists: they reconnect automatically and fail fast while
 * disconnected.
 */
const candidates: Readonly<Record<StoreSettings["driver"], (url: string, naming: { readonly prefix?: string }, token: string) => Promise<Candidate>>> = {
  async redis(url, naming) {
    const { createClient } = await driver("redis", () => import("redis"));
    let error: unknown;
    const client = createClient({ url, disableOfflineQueue: true, commandOptions: { timeout: 1_000 } });
    // Without a listener an error would end the process. The verifier reports requests that fail because of it.
    client.on("error", (failure) => (error = failure));
    const run = fromNodeRedis(client);
    // A client that is not connected reports only that it is offline.
    const runOrSayWhy: RunScript = (...call) =>
      run(...call).catch((failure) => {
        throw client.isReady ? failure : (error ?? failure);
      });
    const store = redisStore({ client: runOrSayWhy, ...naming });
    return {
      store,
      name: "Redis",
      probe: async () => {
        // An open client connects by itself until it succeeds.
        if (!client.isOpen) {
          const connected = client.connect();
          reconnectWhenSilent(client);
          await connected;
        }
        await store.get("probe");
      },
      error: () => error,
      close: async () => void (client.isOpen && client.destroy()),
    };
  },

  async mongodb(url, naming) {
    const { MongoClient } = await driver("mongodb", () => import("mongodb"));
    const client = new MongoClient(url, {
      serverSelectionTimeoutMS: 1_500,
      connectTimeoutMS: 1_500,
      socketTimeoutMS: 1_500,
      waitQueueTimeoutMS: 1_500,
      minPoolSize: 8,
      maxConnecting: 8,
    });
    const store = mongoStore({ db: client.db(), ...naming });
    return { store, name: "MongoDB", probe: () => store.get("probe"), prepare: () => store.ensureIndexes(), close: () => client.close() };
  },

  async pg(url, { prefix }) {
    const { Pool } = (await driver("pg", () => import("pg"))).default;
    const pool = new Pool({ connectionString: url, max: 16, connectionTimeoutMillis: 1_500, query_timeout: 1_500 });
    // Without a listener, the process would end when the server closes an idle connection.
    pool.on("error", () => {});
    const store = postgresStore({ pool, ...(prefix !== undefined && { schema: prefix }) });
    // Without the schema, `inspect` works too.
    const probe = async () => store.inspect?.(Date.now());
    return { store, name: "PostgreSQL", probe, prepare: () => store.ensureSchema(), close: () => pool.end() };
  },

  async "@upstash/redis"(url, naming, token) {
    const { Redis } = await driver("@upstash/redis", () => import("@upstash/redis"));
    const store = redisStore({
      client: new Redis({ url, token, retry: { retries: 2, backoff: () => 50 }, signal: () => AbortSignal.timeout(1_500) }),
      ...naming,
    });
    return { store, name: "Upstash", probe: () => store.get("probe"), async close() {} };
  },
};

/** Its message names the fix, after the option or variable. */
class DriverMissing extends Error {}

async function driver<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new DriverMissing(`needs the package ${name}, which is not installed next to phoneproof. Install it with: npm install ${name}`);
  }
}
