import type { Store, StoredRecord } from "../../../src/ports/store.js";
import { onlyOptions } from "../../kit/option-error.js";
import { CorruptRecord, refuseLarge } from "../../kit/store.js";
import { errorOf, type RedisClient, recognise } from "./clients.js";
import { commitOn, readScript, ttl } from "./commit.js";
import deleteScript from "./delete.lua";
import inspectScript from "./inspect.lua";
import { keysUnder, listName, parseMember, parseRecord, partName, windowName } from "./keys.js";
import { leaseFrom } from "./lease.js";
import membersScript from "./members.lua";
import tallyScript from "./tally.lua";

export type { GlideClient, IoredisClient, NodeRedisClient, RedisClient, RunScript, UpstashClient } from "./clients.js";
export { fromGlide, fromIoredis, fromNodeRedis, fromUpstash, type NodeRedisConnection, reconnectWhenSilent } from "./clients.js";

/** Options of `redisStore`. */
export interface RedisStoreOptions {
  /**
   * Your own connected client: `@upstash/redis`, `redis`, `ioredis`, `@valkey/valkey-glide`, or a function that runs a
   * script. The store does not close it.
   */
  readonly client: RedisClient;
  /** Prefix of every key: 1 to 64 characters without braces and spaces. Default: `"phoneproof"`. */
  readonly prefix?: string;
  /**
   * Whether keys are on several servers. Default: detected from `client`; set it for a wrapped client and for a cluster
   * behind a proxy. All processes must use the same value.
   */
  readonly cluster?: boolean;
  /**
   * Number of slots that authentications are spread over, 1 to 256. Default: 16 on a cluster, else 1.
   * All processes must use the same number. A change loses authentications in progress, but no customer.
   */
  readonly shards?: number;
}

/** Stores the value ARGV[1] for ARGV[2] milliseconds, or as long as the one that it replaces, if that is longer. */
const putScript = 'redis.call("SET", KEYS[1], ARGV[1], "PX", math.max(ARGV[2], redis.call("PTTL", KEYS[1]))) return "+"';

/** Maximum number of concurrent scripts of one `delete`: clients reject more beyond some number. */
const mostForgetting = 50;

/**
 * Stores authentications and counters in Redis 6.2 or newer, Valkey, or Upstash: a single server, Sentinel or a
 * cluster. Each method is one script and one round trip. On a cluster, a `commit` with claims and a record takes two
 * (three if the record rejects it, or if it also gives back or revokes), and `lease` takes two, each to all shards at
 * once.
 *
 * Acknowledged writes are as durable as Redis makes them: set `appendonly yes` (and `appendfsync always` to lose
 * nothing). A replica promoted before it caught up lacks the last writes, including counts; `min-replicas-to-write 1`
 * reduces that. Set `maxmemory-policy noeviction`: when memory is full, a write is then rejected as a whole.
 *
 * The store opens nothing and retries nothing; the verifier's own deadline limits every request. For each client's
 * reconnect options, see `docs/stores.md`.
 *
 * @throws TypeError if an option is invalid; the message names it and the fix.
 */
export function redisStore(options: RedisStoreOptions): Store {
  if (typeof options !== "object" || options === null || "eval" in options || "customCommand" in options) {
    throw new TypeError("redisStore: option `client` is missing: call redisStore({ client })");
  }
  onlyOptions("redisStore", options, { client: true, prefix: true, cluster: true, shards: true });
  const { prefix = "phoneproof" } = options;
  if (typeof prefix !== "string" || !/^[^{}\s]{1,64}$/.test(prefix)) {
    throw new TypeError("redisStore: option `prefix` must be 1 to 64 characters without braces and spaces: braces would move keys of a cluster to other slots");
  }
  const { run, cluster: seen } = recognise(options.client);
  const { cluster = seen } = options;
  if (typeof cluster !== "boolean") throw new TypeError("redisStore: option `cluster` must be true or false; leave it out where `client` is a cluster's own");
  const { shards = cluster ? 16 : 1 } = options;
  if (!Number.isInteger(shards) || shards < 1 || shards > 256) {
    throw new TypeError("redisStore: option `shards` must be an integer from 1 to 256; leave it out for 1, or 16 on a cluster");
  }
  const keys = keysUnder(prefix, shards);
  /** Two keys of different slots: a cluster rejects a script that names both, as it would a commit. */
  const spread = cluster ? [] : [keys.counter(""), ...keys.wakes.slice(0, 1)];

  async function ask(script: string, scriptKeys: string[], args: string[]): Promise<string> {
    let reply: unknown;
    try {
      reply = await run(script, scriptKeys, args);
    } catch (error) {
      throw errorOf(error, options.client, prefix);
    }
    const text = reply instanceof Uint8Array ? new TextDecoder().decode(reply) : reply;
    if (typeof text !== "string" || !/^[-+=!]/.test(text)) throw new TypeError("redisStore: option `client` does not return the reply of a script unchanged");
    return text;
  }

  /** A window has limits, or it is a list. */
  const windowKeys = (window: string) => [windowName, listName].map((name) => keys.customer(window) + name(window));

  return {
    async find(customer, id): Promise<StoredRecord | undefined> {
      const reply = await ask(readScript, [keys.record(customer, id).record], []).catch((error) => {
        throw String(error).includes("WRONGTYPE") ? new CorruptRecord("redisStore", customer, id) : error;
      });
      return reply === "-" ? undefined : parseRecord({ customer, id }, reply.slice(1));
    },

    commit: commitOn(ask, keys, cluster),

    async members(window, limit): Promise<string[]> {
      if (limit < 1) return [];
      const reply = await ask(membersScript, windowKeys(window), [String(limit)]);
      return reply === "-" ? [] : (JSON.parse(reply.slice(1)) as string[]).map(parseMember);
    },

    async tally(adds, reads): Promise<number[]> {
      if (adds.length + reads.length === 0) return [];
      const counters = [...adds.map(({ counter }) => counter), ...reads].map(keys.counter);
      const args = adds.flatMap((add) => [String(add.by), String(ttl(add))]);
      const reply = await ask(tallyScript, counters, args);
      return reads.length === 0 ? [] : reply.slice(1).split(",").map(Number);
    },

    lease: leaseFrom(ask, keys),

    async get(key): Promise<string | undefined> {
      const reply = await ask(readScript, [keys.value(key), ...spread], []);
      return reply === "-" ? undefined : reply.slice(1);
    },

    /**
     * Reports what the server shows to scripts, so that every client can ask and none needs CONFIG permission. On a
     * cluster, the time is that of the first shard's node, and a setting is that of the node where it is worst.
     */
    async inspect(until) {
      const answers = await Promise.all(keys.wakes.map(async (wake) => (await ask(inspectScript, [wake], [String(until)])).slice(1).split("\n")));
      const [time = "", , aof = "", policy = ""] = answers[0] ?? [];
      const appendonly = answers.every(([, , aof]) => aof === "1") ? "yes" : "no";
      const evicting = answers.map(([, , , policy]) => policy).find((policy) => policy !== "" && policy !== "noeviction");
      const settings = { ...(aof !== "" && { appendonly }), ...(policy !== "" && { "maxmemory-policy": evicting ?? policy }) };
      const due = answers.reduce((sum, [, due]) => sum + Number(due), 0);
      const rejections = new Set(answers.flatMap(([, , , , rejection = ""]) => (rejection === "" ? [] : errorOf(rejection, options.client, prefix).message)));
      const missing = Array.from(rejections, (rejection) => rejection.replace("redisStore: ", ""));
      return { kind: "redis", due, ...(time !== "" && { time: Number(time) }), settings, ...(missing.length > 0 && { missing }) };
    },

    async put(key, value, expiry): Promise<void> {
      refuseLarge("redisStore", "a value", value);
      await ask(putScript, [keys.value(key)], [value, String(ttl(expiry))]);
    },

    async delete({ records = [], windows = [], sums = [], values = [] }) {
      const work: [keys: string[], names: string[]][] = values.map((key) => [[keys.value(key)], []]);
      for (const { customer, id } of records) {
        const { record, wake, name } = keys.record(customer, id);
        work.push([[wake, record], [name]]);
      }
      for (const window of windows) work.push([windowKeys(window), []]);
      for (const { sum, part, parts } of sums)
        work.push([Array.from({ length: parts + 1 }, (_, at) => keys.customer(sum) + partName(sum) + (part + 1 - at)), []]);
      const worker = async () => {
        for (let next = work.pop(); next !== undefined; next = work.pop()) await ask(deleteScript, ...next);
      };
      await Promise.all(Array.from({ length: mostForgetting }, worker));
    },
  };
}
