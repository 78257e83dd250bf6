import { createHash } from "node:crypto";
import { has } from "../../kit/store.js";

/**
 * Runs a Lua script (EVAL) and returns Redis's reply, a string or its bytes. All keys of a call share a slot.
 * A call may reach the server more than once; it rejects if it may not have reached it.
 */
export type RunScript = (script: string, keys: string[], args: string[]) => Promise<unknown>;

/** `new Redis(…)` of `@upstash/redis`, 1.34 or newer. */
export interface UpstashClient {
  eval(script: string, keys: string[], args: string[]): Promise<unknown>;
  evalsha(sha: string, keys: string[], args: string[]): Promise<unknown>;
  createScript: unknown;
}

/**
 * `createClient`, `createClientPool`, `createSentinel` or `createCluster` of `redis` (node-redis), 5 or newer,
 * connected.
 */
export interface NodeRedisClient {
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  evalSha(sha: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** `new Redis(…)` or `new Cluster(…)` of `ioredis`, 5 or newer, or of its fork `iovalkey`. */
export interface IoredisClient {
  eval(script: string, numberOfKeys: number, ...keysAndArgs: string[]): Promise<unknown>;
  evalsha(sha: string, numberOfKeys: number, ...keysAndArgs: string[]): Promise<unknown>;
  defineCommand: unknown;
  readonly isCluster?: boolean;
}

/** `GlideClient` or `GlideClusterClient` of `@valkey/valkey-glide`, 1.3 or newer. */
export interface GlideClient {
  customCommand(command: string[]): Promise<unknown>;
}

/** Every client that `redisStore` recognises. */
export type RedisClient = UpstashClient | NodeRedisClient | IoredisClient | GlideClient | RunScript;

/** For an `@upstash/redis` client behind a wrapper. */
export function fromUpstash(client: UpstashClient): RunScript {
  return bySha((command, ...call) => client[command](...call));
}

/** For a node-redis client behind a wrapper; a cluster behind one also needs `cluster: true`. */
export function fromNodeRedis(client: NodeRedisClient): RunScript {
  return bySha((command, script, keys, args) => client[command === "evalsha" ? "evalSha" : command](script, { keys, arguments: args }));
}

/** For an ioredis client behind a wrapper; a cluster behind one also needs `cluster: true`. */
export function fromIoredis(client: IoredisClient): RunScript {
  return bySha((command, script, keys, args) => client[command](script, keys.length, ...keys, ...args));
}

/** For a Valkey GLIDE client behind a wrapper; a cluster behind one also needs `cluster: true`. */
export function fromGlide(client: GlideClient): RunScript {
  return bySha((command, script, keys, args) => client.customCommand([command.toUpperCase(), script, String(keys.length), ...keys, ...args]));
}

/** Recognises the client by its methods; throws a `TypeError` that names the option and the fix for an unknown one. */
export function recognise(client: unknown): { readonly run: RunScript; readonly cluster: boolean } {
  if (typeof client === "function") return { run: client as RunScript, cluster: false };
  if (has<GlideClient>(client, "customCommand")) return { run: fromGlide(client), cluster: has(client, "fcallWithRoute") };
  if (has<NodeRedisClient & { masters?: unknown }>(client, "evalSha", "eval")) return { run: fromNodeRedis(client), cluster: client.masters !== undefined };
  if (has<IoredisClient>(client, "evalsha", "eval", "defineCommand")) return { run: fromIoredis(client), cluster: client.isCluster === true };
  if (has<UpstashClient>(client, "evalsha", "eval", "createScript")) return { run: fromUpstash(client), cluster: false };
  const fix = has(client, "then") ? "it is a promise: await it first" : "for a wrapped client use fromUpstash, fromNodeRedis, fromIoredis or fromGlide";
  throw new TypeError(
    `redisStore: option \`client\` is not a client of @upstash/redis, redis, ioredis or @valkey/valkey-glide, nor a function (script, keys, args) => Promise; ${fix}`,
  );
}

const shas = new Map<string, string>();

/** Sends a script's SHA-1, and its text only to a server that lacks it: NOSCRIPT means that nothing was run. */
function bySha(send: (command: "evalsha" | "eval", ...call: Parameters<RunScript>) => Promise<unknown>): RunScript {
  return async (script, keys, args) => {
    const sha = shas.get(script) ?? createHash("sha1").update(script).digest("hex");
    shas.set(script, sha);
    return send("evalsha", sha, keys, args).catch((error) => {
      if (/NOSCRIPT|NoScriptError/.test(String(error))) return send("eval", script, keys, args);
      throw error;
    });
  };
}
