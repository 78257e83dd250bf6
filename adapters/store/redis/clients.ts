import { createHash } from "node:crypto";
import { has } from "../../kit/store.js";

/**
 * Runs a Lua script (EVAL) and returns Redis's reply, a string or its bytes. On a cluster, all keys of a call share a slot.
 * A call may reach the server more than once; it rejects if it may not have reached it.
 */
export type RunScript = (script: string, keys: string[], args: string[]) => Promise<unknown>;

/** `new Redis(…)` of `@upstash/redis`, 1.34 or newer. */
export interface UpstashClient {
  eval(script: string, keys: string[], args: string[]): Promise<unknown>;
  evalsha(sha: string, keys: string[], args: string[]): Promise<unknown>;
  createScript: unknown;
}

/** A connected client, pool, sentinel or cluster of `redis` (node-redis), 5 or newer. */
export interface NodeRedisClient {
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  evalSha(sha: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  readonly isReady?: boolean;
  withCommandOptions?(options: { timeout: number }): NodeRedisClient;
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
export const fromUpstash = (client: UpstashClient): RunScript => bySha((command, ...call) => client[command](...call));

/** Reconnects a client that has `reconnectWhenSilent`. */
const reconnections = new WeakMap<object, () => void>();

/** Scripts in progress that node-redis gets without a timer. */
const mostUntimed = 1000;

/**
 * For a node-redis client behind a wrapper; a cluster behind one also needs `cluster: true`.
 *
 * By default, node-redis starts a timer for each command, which only removes it from the queue of what is not yet sent;
 * the verifier has its own deadline. A connected client gets the first thousand scripts in progress without one: the
 * timers cost a fifth of the CPU of a direct create and its check.
 */
export function fromNodeRedis(client: NodeRedisClient): RunScript {
  const untimed = client.withCommandOptions?.({ timeout: 0 });
  let inProgress = 0;
  return bySha(async (command, script, keys, args) => {
    const chosen = client.isReady && inProgress < mostUntimed && untimed ? untimed : client;
    inProgress++;
    try {
      return await chosen[command === "evalsha" ? "evalSha" : command](script, { keys, arguments: args });
    } catch (error) {
      // The address may lead to a new primary by now.
      if (/READONLY|MASTERDOWN/.test(String(error))) reconnections.get(client)?.();
      throw error;
    } finally {
      inProgress--;
    }
  });
}

/** For an ioredis client behind a wrapper; a cluster behind one also needs `cluster: true`. */
export const fromIoredis = (client: IoredisClient): RunScript => bySha((command, script, keys, args) => client[command](script, keys.length, ...keys, ...args));

/** For a Valkey GLIDE client behind a wrapper; a cluster behind one also needs `cluster: true`. */
export const fromGlide = (client: GlideClient): RunScript =>
  bySha((command, script, keys, args) => client.customCommand([command.toUpperCase(), script, String(keys.length), ...keys, ...args]));

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

/** What a client shows of itself: ioredis its status, and what it puts before each key. */
interface ClientState {
  readonly status?: unknown;
  readonly options?: { readonly keyPrefix?: unknown };
}

const toPrimary = "connect to the primary, or promote it with REPLICAOF NO ONE";

/** Client errors: the pattern, what it means, and the fix. The last one is any other reply of the server. */
const meanings = ({ status, options }: ClientState, prefix: string): readonly (readonly [pattern: RegExp, what: string, fix: string])[] => [
  // ioredis also reports a connection that broke as closed.
  [
    status === "end" ? /connection is closed/i : /client is closed/i,
    "cannot be reached through a closed client",
    "your application closed the client, or has not connected it: connect it at start, and close it after `verifier.close()`",
  ],
  [/CROSSSLOT|same slot/i, "is a cluster", "pass a client of the whole cluster, and set option `cluster: true` if it is not detected"],
  [/\bMOVED\W+\d+/i, "is one node of a cluster", "pass a client of the whole cluster"],
  [
    /NOPERM|user executing the script can't/i,
    "denies its user a right",
    `grant the rights of docs/stores.md, for example with ACL SETUSER app ~${options?.keyPrefix ?? ""}${prefix}* +eval +evalsha +ping +@read +@write`,
  ],
  [/\bBUSY\b/, "is busy with a script", "wait until it ends, or end it with SCRIPT KILL"],
  [/\bLOADING\b/, "is loading its data", "wait until it has loaded it"],
  [/\bMASTERDOWN\b/, "is a replica without its primary", toPrimary],
  [/\bNOREPLICAS\b/, "has too few replicas to accept writes", "start its replicas, or lower min-replicas-to-write"],
  [/\bMISCONF\b/, "cannot save its data to the disk, and rejects writes", "look for the reason in its log, and make room on its disk"],
  [/\b(NOAUTH|WRONGPASS)\b/, "rejects the credentials", "correct the user and password of its client"],
  [/\bREADONLY\b/, "is a replica", toPrimary],
  [/\bTRYAGAIN\b/, "is moving the slot of these keys to another node", "wait until it is moved, or repair it with redis-cli --cluster fix"],
  [/\bCLUSTERDOWN\b/, "belongs to a cluster without a node for each slot", "start its nodes, or repair it with redis-cli --cluster fix"],
  [/\bOOM\b/, "is full", "raise its maxmemory, or remove other data"],
  [/unknown (redis )?command/i, "is too old or has commands disabled", "use Redis 6.2 or newer, Valkey, or Upstash"],
  [/^(ERR|[A-Z]{5,}) [^(]/, "rejected a command", "look for the reason in its log and settings"],
];

/**
 * The error that the store throws for a client's error. Clients include the command, and with it phone numbers and
 * digests, which do not belong in a log; some have only a class name. `prefix`: of the store's keys.
 */
export function errorOf(error: unknown, client: unknown, prefix: string): Error {
  const text = wordsOf(error);
  const [, what, fix] = meanings(client as ClientState, prefix).find(([pattern]) => pattern.test(text)) ?? [];
  return new Error(what === undefined ? `redisStore: ${text}` : `redisStore: the server behind option \`client\` ${what} (${text}): ${fix}`);
}

/** The message of an error, or its code, or its class name; and those of its causes. */
function wordsOf(error: unknown): string {
  const thrown = typeof error === "object" && error !== null ? error : new Error(String(error));
  const { message, code, name, cause } = thrown as { message?: unknown; code?: unknown; name?: unknown; cause?: unknown };
  const named = thrown.constructor?.name ?? "Object";
  const [text = ""] = String(message || code || (named === "Object" ? (name ?? "an error without a message") : named)).split(/,? command was:/);
  return cause === undefined || cause === error ? text : `${text} (${wordsOf(cause)})`;
}

/** The part of a `redis` (node-redis) client that is used here. Only that of a single server has `unref`. */
export interface NodeRedisConnection {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  ping(): Promise<unknown>;
  destroy(): void;
  connect(): Promise<unknown>;
  unref(): void;
}

/**
 * Reconnects a client of `redis` (node-redis) whose connection no longer responds: it waits without limit for the reply
 * to a command that it has sent, so that a connection lost without notice would fail every request from then on. A
 * `PING` is sent every second; if none is answered within `patience`, the client is destroyed and connected again. The
 * same is done, at most once a second, if the store finds that the server has become a replica (`READONLY`,
 * `MASTERDOWN`). Call it once, after `connect()`. It ends when you close the client, and keeps no process running.
 *
 * @param patience Milliseconds. Default 1500.
 * @throws TypeError for a cluster, a sentinel or a pool: they replace their connections by themselves, and connecting
 * all of them again would wait for the server that does not respond.
 */
export function reconnectWhenSilent(client: NodeRedisConnection, patience = 1500): void {
  if (!has(client, "ping", "unref"))
    throw new TypeError("reconnectWhenSilent: not a client of createClient; leave the call out for createCluster, createSentinel and createClientPool");
  const reconnect = () => {
    client.destroy();
    // What it cannot connect to is reported by its event `error`.
    client.connect().catch(() => undefined);
  };
  let waitUntil = 0;
  reconnections.set(client, () => {
    if (!client.isReady || performance.now() < waitUntil) return;
    waitUntil = performance.now() + 1000;
    reconnect();
  });
  const timer = setInterval(async () => {
    if (!client.isOpen) return clearInterval(timer);
    if (!client.isReady) return;
    const late = setTimeout(reconnect, patience);
    await client.ping().catch(() => undefined);
    clearTimeout(late);
  }, 1000);
  timer.unref?.();
}
