import type { Claim, ReserveResult, Store, StoredRecord, SwapResult } from "../../../src/ports/store.js";
import { type RedisClient, recognise } from "./clients.js";
import count from "./count.lua";
import due from "./due.lua";
import { keysUnder, parseName } from "./keys.js";
import put from "./put.lua";
import read from "./read.lua";
import { corruptRecord, packRecord, packToken, parseRecord } from "./record.js";
import reserve from "./reserve.lua";
import swap from "./swap.lua";

export type { GlideClient, IoredisClient, NodeRedisClient, RedisClient, RunScript, UpstashClient } from "./clients.js";
export { fromGlide, fromIoredis, fromNodeRedis, fromUpstash } from "./clients.js";

/** Options of `redisStore`. */
export interface RedisStoreOptions {
  /** The client you have, connected and owned by you: `@upstash/redis`, `redis`, `ioredis`, `@valkey/valkey-glide`, or a function that runs a script. */
  readonly client: RedisClient;
  /** What every key starts with: 1 to 64 characters, no braces, no spaces. Default `"phoneproof"`. */
  readonly prefix?: string;
  /**
   * Number of slots that authentications are spread over, 1 to 256. Default 16 when `client` is seen to be a cluster's, else 1.
   * All processes must use the same number, and a change forgets the authentications under way.
   */
  readonly shards?: number;
}

/** "A small value (at most 64 KiB)", and the same for a record's data; in bytes. */
const maxBytes = 64 * 1024;

/**
 * How long Redis keeps what has ended, in milliseconds. Its expiry is housekeeping: nothing is decided by it, so it must never come early,
 * however far the clocks of the processes and the server are apart.
 */
const grace = 10 * 60 * 1000;

/**
 * Keeps authentications and windows in Redis 6.2 or newer, Valkey, or Upstash: a single server, Sentinel or a cluster. Every method is one script, so one round trip
 * (`due` on a cluster: one for each shard).
 *
 * What Redis acknowledged is as safe as Redis keeps it: set `appendonly yes` (and `appendfsync always` to lose nothing at all), and know that a replica
 * promoted before it caught up has forgotten the last writes, the charges to the caps among them (`min-replicas-to-write 1` narrows that). Set `maxmemory-policy noeviction`.
 *
 * The store opens nothing, retries nothing and sets no timer; the verifier's own deadline bounds every request. See the README for the reconnect options of each client.
 *
 * @throws TypeError when an option is wrong; the message names it and the mend.
 */
export function redisStore(options: RedisStoreOptions): Store {
  if (typeof options !== "object" || options === null || "eval" in options || "customCommand" in options) {
    throw new TypeError("redisStore: option `client` is missing: call redisStore({ client })");
  }
  const { prefix = "phoneproof" } = options;
  if (typeof prefix !== "string" || !/^[^{}\s]{1,64}$/.test(prefix)) {
    throw new TypeError("redisStore: option `prefix` must be 1 to 64 characters without braces and spaces: braces would move keys of a cluster to other slots");
  }
  const { run, cluster } = recognise(options.client);
  const { shards = cluster ? 16 : 1 } = options;
  if (!Number.isInteger(shards) || shards < 1 || shards > 256) {
    throw new TypeError("redisStore: option `shards` must be an integer from 1 to 256; leave it out for 1, or 16 on a cluster");
  }
  const keys = keysUnder(prefix, shards);

  /** The reply's kind is its first character, which also keeps every client from reading it as a number or as JSON. */
  async function ask(script: string, scriptKeys: string[], args: string[]): Promise<string> {
    let reply: unknown;
    try {
      reply = await run(script, scriptKeys, args);
    } catch (error) {
      throw withoutArguments(error);
    }
    const text = reply instanceof Uint8Array ? new TextDecoder().decode(reply) : reply;
    if (typeof text !== "string" || !/^[-+=]/.test(text)) throw new TypeError("redisStore: option `client` does not give a script's reply as it came");
    return text;
  }

  async function askRecord(customer: string, id: string, script: string, scriptKeys: string[], args: string[]): Promise<string> {
    try {
      return await ask(script, scriptKeys, args);
    } catch (error) {
      throw String(error).includes("WRONGTYPE") ? corruptRecord(customer, id) : error;
    }
  }

  return {
    async find(customer, id): Promise<StoredRecord | undefined> {
      const reply = await askRecord(customer, id, read, [keys.record(customer, id).record], []);
      return reply === "-" ? undefined : parseRecord(customer, id, reply.slice(1));
    },

    async compareAndSwap(next, expected): Promise<SwapResult> {
      refuseLarge("data", next.data);
      const { customer, id } = next;
      const { record, wake, name } = keys.record(customer, id);
      const args = [
        packToken(expected),
        packToken(next.tokens[0]),
        packRecord(next),
        String(ttl(next.keepUntil)),
        name,
        next.wakeAt === undefined ? "" : String(next.wakeAt),
      ];
      const reply = await askRecord(customer, id, swap, [record, wake], args);
      if (reply === "+") return { swapped: true };
      return reply === "-" ? { swapped: false } : { swapped: false, current: parseRecord(customer, id, reply.slice(1)) };
    },

    async reserve(claims): Promise<ReserveResult> {
      if (claims.length === 0) return { granted: true };
      const windows: string[] = [];
      const args: string[] = [];
      for (const claim of claims) {
        const key = keys.window(claim.window);
        if (!windows.includes(key)) windows.push(key);
        const { member, limit, since, now, keepUntil } = claim;
        args.push(member, `${windows.indexOf(key) + 1} ${limit} ${since} ${now} ${forgettable(claim)} ${ttl(keepUntil)}`);
      }
      const reply = await ask(reserve, windows, args);
      return reply === "+" ? { granted: true } : { granted: false, refusedBy: Number(reply.slice(1)) };
    },

    async count(windows): Promise<number[]> {
      const counts: number[] = [];
      await Promise.all(
        slots(windows.map(({ window }) => keys.window(window))).map(async (slot) => {
          const reply = await ask(
            count,
            slot.map(({ key }) => key),
            slot.map(({ at }) => String(windows[at]?.since)),
          );
          for (const [turn, answer] of reply.slice(1).split(",").entries()) counts[slot[turn]?.at ?? 0] = Number(answer);
        }),
      );
      return counts;
    },

    async due(until, limit): Promise<StoredRecord[]> {
      const visits = await Promise.allSettled(
        keys.wakes.map(async (wake) => {
          const reply = await ask(due, [wake], [String(until), String(limit)]);
          return reply === "-" ? [] : (JSON.parse(reply.slice(1)) as string[]);
        }),
      );
      const records: StoredRecord[] = [];
      const faults: unknown[] = [];
      for (const visit of visits) {
        if (visit.status === "rejected") faults.push(visit.reason);
        else {
          for (let at = 0; at < visit.value.length; at += 2) {
            try {
              const { customer, id } = parseName(visit.value[at] ?? "");
              records.push(parseRecord(customer, id, visit.value[at + 1] ?? ""));
            } catch (error) {
              faults.push(error);
            }
          }
        }
      }
      // One corrupt record, or one node that is down, must not hold up the work on the others: it is told when nothing else is left to do.
      if (records.length === 0 && faults.length > 0) throw faults[0];
      return records.sort((a, b) => (a.wakeAt ?? 0) - (b.wakeAt ?? 0)).slice(0, limit);
    },

    async get(key): Promise<string | undefined> {
      const reply = await ask(read, [keys.value(key)], []);
      return reply === "-" ? undefined : reply.slice(1);
    },

    async put(key, value, keepUntil): Promise<void> {
      refuseLarge("value", value);
      await ask(put, [keys.value(key)], [value, String(ttl(keepUntil))]);
    },
  };
}

/** Keys with their places, those of one hash tag together. */
function slots(keys: readonly string[]): { readonly key: string; readonly at: number }[][] {
  const groups = new Map<string, { key: string; at: number }[]>();
  for (const [at, key] of keys.entries()) {
    const tag = key.slice(0, key.indexOf("}"));
    const group = groups.get(tag);
    if (group) group.push({ key, at });
    else groups.set(tag, [{ key, at }]);
  }
  return [...groups.values()];
}

/** Milliseconds until Redis may drop what must be kept until `keepUntil`. */
function ttl(keepUntil: number): number {
  return Math.ceil(Math.max(keepUntil - Date.now(), 0) + grace);
}

/** Members up to this time are past the keepUntil they came with, taking this claim's span for theirs. */
function forgettable({ now, keepUntil }: Claim): number {
  return now - Math.max(keepUntil - now, 0) - grace;
}

function refuseLarge(what: string, text: string): void {
  if (Buffer.byteLength(text) > maxBytes) throw new RangeError(`redisStore: ${what} is larger than ${maxBytes} bytes`);
}

/** Clients put the command into their errors, and with it phone numbers and digests, which do not belong in a log. */
function withoutArguments(error: unknown): Error {
  const { message, code } = error as { message?: unknown; code?: unknown };
  const text = String(message || code || error).split(/,? command was:/)[0] ?? "";
  if (/unknown (redis )?command/i.test(text)) {
    return new Error(
      `redisStore: the server behind option \`client\` is too old or has commands disabled (${text}): use Redis 6.2 or newer, Valkey, or Upstash`,
    );
  }
  return new Error(`redisStore: ${text}`);
}
