import { Redis as Upstash } from "@upstash/redis";
import { GlideClient, GlideClusterClient } from "@valkey/valkey-glide";
import { Cluster, Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { createClient, createClientPool, createCluster, createSentinel } from "redis";
import { createClient as createClient5 } from "redis5";
import { type RedisClient, reconnectWhenSilent } from "../../adapters/store/redis/index.js";
import type { RedisCluster, RedisServer } from "./redis.js";
import { startUpstash } from "./upstash.js";

/** A client as its users create it, and a function to close it. */
export interface Connected {
  readonly client: RedisClient;
  close(): Promise<void> | void;
}

const quiet = () => {};

/** Milliseconds that clients wait: enough for a loaded machine or, if a server is to hang, as in docs/stores.md. */
export const patient = 30_000;
export const hurried = 1_000;

/** Every client of a single server, with the settings of docs/stores.md: fail fast, reconnect soon. */
export const clients: Readonly<Record<string, (server: Pick<RedisServer, "port" | "url">, patience?: number) => Promise<Connected>>> = {
  async "redis 6"({ url }, patience) {
    const client = await createClient({ url, ...nodeRedisOptions(patience) })
      .on("error", quiet)
      .connect();
    reconnectWhenSilent(client, 1.5 * (patience ?? patient));
    return { client, close: () => client.destroy() };
  },
  async "redis 6 pool"({ url }, patience) {
    const client = createClientPool({ url, ...nodeRedisOptions(patience) }, { minimum: 2, maximum: 4 }).on("error", quiet);
    await client.connect();
    return { client, close: () => client.destroy() };
  },
  async "redis 5"({ url }, patience) {
    const client = await createClient5({ url, ...nodeRedisOptions(patience) })
      .on("error", quiet)
      .connect();
    reconnectWhenSilent(client, 1.5 * (patience ?? patient));
    return { client, close: () => client.destroy() };
  },
  async "ioredis 6"({ port }, patience) {
    const client = new Redis({ port, host: "127.0.0.1", ...ioredisOptions(patience) }).on("error", quiet);
    await client.connect();
    return { client, close: () => client.disconnect() };
  },
  async "ioredis 5"({ port }, patience) {
    const client = new Redis5({ port, host: "127.0.0.1", ...ioredisOptions(patience) }).on("error", quiet);
    await client.connect();
    return { client, close: () => client.disconnect() };
  },
  async "valkey-glide 2"({ port }, patience) {
    const client = await GlideClient.createClient({ addresses: [{ host: "127.0.0.1", port }], ...glideOptions(patience) });
    return { client, close: () => client.close() };
  },
  async "@upstash/redis 1"({ url }, patience) {
    const server = await startUpstash(url);
    return { client: new Upstash({ url: server.url, token: server.token, ...upstashOptions(patience) }), close: () => server.close() };
  },
  async "a function"({ port }, patience) {
    const client = new Redis({ port, host: "127.0.0.1", ...ioredisOptions(patience) }).on("error", quiet);
    await client.connect();
    return { client: (script, keys, args) => client.eval(script, keys.length, ...keys, ...args), close: () => client.disconnect() };
  },
};

/** Every client of a cluster. */
export const clusterClients: Readonly<Record<string, (cluster: RedisCluster, patience?: number) => Promise<Connected>>> = {
  async "redis 6"({ nodes }, patience) {
    const client = createCluster({
      rootNodes: nodes.map(({ url }) => ({ url })),
      defaults: nodeRedisOptions(patience),
      topologyRefreshOnReconnectionAttemptStrategy: 100,
    }).on("error", quiet);
    await client.connect();
    return { client, close: () => client.destroy() };
  },
  async "ioredis 6"({ nodes }, patience) {
    const client = new Cluster(
      nodes.map(({ port }) => ({ host: "127.0.0.1", port })),
      {
        lazyConnect: true,
        enableOfflineQueue: false,
        clusterRetryStrategy: () => 100,
        retryDelayOnFailover: 100,
        redisOptions: { commandTimeout: patience ?? patient, maxRetriesPerRequest: 1 },
      },
    ).on("error", quiet);
    await client.connect();
    return { client, close: () => client.disconnect() };
  },
  async "valkey-glide 2"({ nodes }, patience) {
    const client = await GlideClusterClient.createClient({ addresses: nodes.map(({ port }) => ({ host: "127.0.0.1", port })), ...glideOptions(patience) });
    return { client, close: () => client.close() };
  },
};

/** Every client that connects through a sentinel, to the master `main`. */
export const sentinelClients: Readonly<Record<string, (sentinel: { readonly port: number }, patience?: number) => Promise<Connected>>> = {
  async "redis 6"({ port }, patience) {
    const client = createSentinel({
      name: "main",
      sentinelRootNodes: [{ host: "127.0.0.1", port }],
      nodeClientOptions: nodeRedisOptions(patience),
      scanInterval: 500,
    }).on("error", quiet);
    await client.connect();
    return { client, close: () => client.destroy() };
  },
  async "ioredis 6"({ port }, patience) {
    const client = new Redis({ sentinels: [{ host: "127.0.0.1", port }], name: "main", sentinelRetryStrategy: () => 100, ...ioredisOptions(patience) }).on(
      "error",
      quiet,
    );
    await client.connect();
    return { client, close: () => client.disconnect() };
  },
};

const nodeRedisOptions = (patience = patient) => ({
  disableOfflineQueue: true,
  commandOptions: { timeout: patience },
  socket: { connectTimeout: patience, socketTimeout: 1.5 * patience, reconnectStrategy: (tries: number) => Math.min(tries * 50, 500) },
  pingInterval: 1_000,
});

const ioredisOptions = (patience = patient) => ({
  lazyConnect: true,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 1,
  commandTimeout: patience,
  connectTimeout: patience,
  socketTimeout: 1.5 * patience,
  retryStrategy: (tries: number) => Math.min(tries * 50, 500),
  reconnectOnError: (error: Error) => /READONLY|MASTERDOWN/.test(error.message),
});

const glideOptions = (patience = patient) => ({
  requestTimeout: patience,
  advancedConfiguration: { connectionTimeout: 20_000 },
  connectionBackoff: { numberOfRetries: 5, factor: 50, exponentBase: 2 },
});

const upstashOptions = (patience = patient) => ({ retry: { retries: 2, backoff: () => 50 }, signal: () => AbortSignal.timeout(1.5 * patience) });
