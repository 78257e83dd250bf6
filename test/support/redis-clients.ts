import { Redis as Upstash } from "@upstash/redis";
import { GlideClient, GlideClusterClient } from "@valkey/valkey-glide";
import { Cluster, Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { createClient, createClientPool, createCluster, createSentinel } from "redis";
import { createClient as createClient5 } from "redis5";
import type { RedisClient } from "../../adapters/store/redis/index.js";
import type { RedisCluster, RedisServer } from "./redis.js";
import { startUpstash } from "./upstash.js";

/** A client the way its users make it, and how to let go of it. */
export interface Connected {
  readonly client: RedisClient;
  close(): Promise<void> | void;
}

const quiet = () => {};

/** How long the clients of a test file wait for an answer, in milliseconds: as docs/stores.md has it. A file that races thousands gives a loaded machine more. */
export const patience = { command: 1_000 };

/** Every client of a single server, with the settings that docs/stores.md names: fail fast, come back soon. */
export const clients: Readonly<Record<string, (server: Pick<RedisServer, "port" | "url">) => Promise<Connected>>> = {
  async "redis 6"({ url }) {
    const client = await createClient({ url, ...nodeRedisOptions() })
      .on("error", quiet)
      .connect();
    return { client, close: () => client.destroy() };
  },
  async "redis 6 pool"({ url }) {
    const client = createClientPool({ url, ...nodeRedisOptions() }, { minimum: 2, maximum: 4 }).on("error", quiet);
    await client.connect();
    return { client, close: () => client.destroy() };
  },
  async "redis 5"({ url }) {
    const client = await createClient5({ url, ...nodeRedisOptions() })
      .on("error", quiet)
      .connect();
    return { client, close: () => client.destroy() };
  },
  async "ioredis 6"({ port }) {
    const client = new Redis({ port, host: "127.0.0.1", ...ioredisOptions() }).on("error", quiet);
    await client.connect();
    return { client, close: () => client.disconnect() };
  },
  async "ioredis 5"({ port }) {
    const client = new Redis5({ port, host: "127.0.0.1", ...ioredisOptions() }).on("error", quiet);
    await client.connect();
    return { client, close: () => client.disconnect() };
  },
  async "valkey-glide 2"({ port }) {
    const client = await GlideClient.createClient({ addresses: [{ host: "127.0.0.1", port }], ...glideOptions() });
    return { client, close: () => client.close() };
  },
  async "@upstash/redis 1"({ url }) {
    const server = await startUpstash(url);
    return { client: new Upstash({ url: server.url, token: server.token, ...upstashOptions }), close: () => server.close() };
  },
  async "a function"({ port }) {
    const client = new Redis({ port, host: "127.0.0.1", ...ioredisOptions() }).on("error", quiet);
    await client.connect();
    return { client: (script, keys, args) => client.eval(script, keys.length, ...keys, ...args), close: () => client.disconnect() };
  },
};

/** Every client of a cluster. */
export const clusterClients: Readonly<Record<string, (cluster: RedisCluster) => Promise<Connected>>> = {
  async "redis 6"({ nodes }) {
    const client = createCluster({
      rootNodes: nodes.map(({ url }) => ({ url })),
      defaults: nodeRedisOptions(),
      topologyRefreshOnReconnectionAttemptStrategy: 100,
    }).on("error", quiet);
    await client.connect();
    return { client, close: () => client.destroy() };
  },
  async "ioredis 6"({ nodes }) {
    const client = new Cluster(
      nodes.map(({ port }) => ({ host: "127.0.0.1", port })),
      {
        lazyConnect: true,
        enableOfflineQueue: false,
        clusterRetryStrategy: () => 100,
        retryDelayOnFailover: 100,
        redisOptions: { commandTimeout: patience.command, maxRetriesPerRequest: 1 },
      },
    ).on("error", quiet);
    await client.connect();
    return { client, close: () => client.disconnect() };
  },
  async "valkey-glide 2"({ nodes }) {
    const client = await GlideClusterClient.createClient({ addresses: nodes.map(({ port }) => ({ host: "127.0.0.1", port })), ...glideOptions() });
    return { client, close: () => client.close() };
  },
};

/** Every client that goes through a sentinel, for the master `main`. */
export const sentinelClients: Readonly<Record<string, (sentinel: { readonly port: number }) => Promise<Connected>>> = {
  async "redis 6"({ port }) {
    const client = createSentinel({
      name: "main",
      sentinelRootNodes: [{ host: "127.0.0.1", port }],
      nodeClientOptions: nodeRedisOptions(),
      scanInterval: 500,
    }).on("error", quiet);
    await client.connect();
    return { client, close: () => client.destroy() };
  },
  async "ioredis 6"({ port }) {
    const client = new Redis({ sentinels: [{ host: "127.0.0.1", port }], name: "main", sentinelRetryStrategy: () => 100, ...ioredisOptions() }).on(
      "error",
      quiet,
    );
    await client.connect();
    return { client, close: () => client.disconnect() };
  },
};

const nodeRedisOptions = () => ({
  disableOfflineQueue: true,
  commandOptions: { timeout: patience.command },
  socket: { connectTimeout: 1_000, socketTimeout: 1.5 * patience.command, reconnectStrategy: (tries: number) => Math.min(tries * 50, 500) },
  pingInterval: 1_000,
});

const ioredisOptions = () => ({
  lazyConnect: true,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 1,
  commandTimeout: patience.command,
  connectTimeout: 1_000,
  retryStrategy: (tries: number) => Math.min(tries * 50, 500),
});

const glideOptions = () => ({ requestTimeout: patience.command, connectionBackoff: { numberOfRetries: 5, factor: 50, exponentBase: 2 } });

const upstashOptions = { retry: { retries: 2, backoff: () => 50 }, signal: () => AbortSignal.timeout(1.5 * patience.command) };
