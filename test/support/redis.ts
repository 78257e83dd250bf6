import { type ChildProcess, execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { freePort } from "./ports.js";
import { isInstalled, spawnServer } from "./programs.js";

/** A separate redis-server for the tests, on a free loopback port. */
export interface RedisServer {
  readonly port: number;
  readonly url: string;
  /** Runs a command on a connection of its own, and returns the reply as redis-cli prints it. */
  cli(...command: string[]): Promise<string>;
  /** `SIGKILL` ends the process; `SIGSTOP` and `SIGCONT` pause and resume it. */
  signal(name: "SIGKILL" | "SIGSTOP" | "SIGCONT"): Promise<void>;
  /** Starts it again on its port, with the data of its directory. */
  restart(): Promise<void>;
  /** Empties its directory, so that `restart` starts without data. */
  forget(): void;
  stop(): Promise<void>;
}

/** Whether redis-server is installed. If not, prints what is skipped and how to get it; with `CI=true` it throws. */
export function redisIsInstalled(suite: string): boolean {
  return isInstalled("redis-server", "redis-server", suite);
}

/** Polls until `ready` is true; fails after `ms` milliseconds. */
export async function until(what: string, ready: () => Promise<boolean>, ms = 60_000): Promise<void> {
  const end = Date.now() + ms;
  while (!(await ready().catch(() => false))) {
    if (Date.now() > end) throw new Error(`gave up waiting: ${what}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** A line for each member of a list. */
function printed(reply: unknown): string {
  if (Array.isArray(reply)) return reply.map(printed).join("\n");
  if (typeof reply === "object" && reply !== null) return printed(Object.entries(reply).flat());
  return String(reply ?? "");
}

/** Runs a command on a connection of its own, and returns the reply as redis-cli prints it: a process takes longer. */
export async function ask(port: number, ...[name = "", ...args]: string[]): Promise<string> {
  const client = new Redis(port, "127.0.0.1", { enableReadyCheck: false, disableClientInfo: true, retryStrategy: () => null });
  client.on("error", () => undefined);
  try {
    return printed(await client.call(name, ...args)).trim();
  } catch (error) {
    if ((error as Error).name === "ReplyError") return (error as Error).message;
    throw error;
  } finally {
    client.disconnect();
  }
}

/** Starts a server that stores nothing on disk, unless changed by `options`. */
export function startRedis(options: readonly string[] = []): Promise<RedisServer> {
  return withFreePorts(async () => startOn(await freePort(), options));
}

/** A port that was free may be taken by the time the server starts: then tries once more with other ports. */
async function withFreePorts<T>(start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch {
    return start();
  }
}

async function startOn(port: number, options: readonly string[]): Promise<RedisServer> {
  const directory = mkdtempSync(join(tmpdir(), "phoneproof-redis-"));
  const base = ["--port", String(port), "--bind", "127.0.0.1", "--dir", directory, "--save", "", "--loglevel", "warning", "--enable-debug-command", "local"];
  let child: ChildProcess;

  const cli = (...command: string[]) => ask(port, ...command);

  async function start(): Promise<void> {
    child = spawnServer("redis-server", [...base, ...options]);
    let told = "";
    child.stdout?.on("data", (text) => {
      told = `${told}${text}`.slice(-2_000);
    });
    await until(`redis-server on ${port} answers`, async () => child.exitCode !== null || (await cli("PING")) === "PONG");
    if (child.exitCode !== null) throw new Error(`redis-server ended with ${child.exitCode}: ${options.join(" ")}\n${told}`);
  }

  async function signal(name: "SIGKILL" | "SIGSTOP" | "SIGCONT"): Promise<void> {
    if (name === "SIGKILL" && child.exitCode === null && child.signalCode === null) {
      const gone = new Promise((done) => child.once("exit", done));
      child.kill(name);
      await gone;
    } else child.kill(name);
  }

  await start();
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    cli,
    signal,
    restart: start,
    forget() {
      rmSync(directory, { recursive: true, force: true });
      mkdirSync(directory);
    },
    async stop() {
      await signal("SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** A cluster of three masters with a replica each. */
export interface RedisCluster {
  readonly nodes: readonly RedisServer[];
  readonly masters: readonly RedisServer[];
  /** The replica of `master`, which has caught up. */
  replicaOf(master: RedisServer): Promise<RedisServer>;
  stop(): Promise<void>;
}

/**
 * Starts the cluster and waits until every node serves all slots. A master that does not respond for `nodeTimeout`
 * milliseconds is replaced; default: a minute.
 */
export async function startCluster(nodeTimeout = 60_000): Promise<RedisCluster> {
  const nodes = await Promise.all(
    Array.from({ length: 6 }, () =>
      withFreePorts(async () => {
        const bus = String(await freePort());
        return startOn(await freePort(), [
          "--cluster-enabled",
          "yes",
          "--cluster-port",
          bus,
          "--cluster-node-timeout",
          String(nodeTimeout),
          "--appendonly",
          "yes",
        ]);
      }),
    ),
  );
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
  await promisify(execFile)("redis-cli", ["--cluster", "create", ...addresses, "--cluster-replicas", "1", "--cluster-yes"]);
  await until("the cluster serves all slots", async () => {
    const infos = await Promise.all(nodes.map((node) => node.cli("CLUSTER", "INFO")));
    return infos.every((info) => info.includes("cluster_state:ok") && info.includes(`cluster_known_nodes:${nodes.length}`));
  });
  const roles = async () => Promise.all(nodes.map(async (node) => ({ node, role: (await node.cli("ROLE")).split("\n") })));
  await until(
    "the replicas are in sync",
    async () => (await roles()).filter(({ role: [name, , , state] }) => name === "slave" && state === "connected").length === 3,
  );
  return {
    nodes,
    masters: (await roles()).filter(({ role: [name] }) => name === "master").map(({ node }) => node),
    async replicaOf(master) {
      const replica = (await roles()).find(({ role: [name, , port] }) => name === "slave" && port === String(master.port))?.node;
      if (!replica) throw new Error("the master has no replica");
      await until("the replica has all", async () => {
        const offset = /master_repl_offset:(\d+)/.exec(await master.cli("INFO", "replication"))?.[1];
        return (await replica.cli("INFO", "replication")).includes(`slave_repl_offset:${offset}`);
      });
      return replica;
    },
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

/** A sentinel that watches `master` under the name `main` and fails over to a replica that is connected to it. */
export async function startSentinel(master: RedisServer): Promise<{ readonly port: number; stop(): void }> {
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), "phoneproof-sentinel-"));
  const file = join(directory, "sentinel.conf");
  const settings = [
    `port ${port}`,
    "bind 127.0.0.1",
    `dir ${directory}`,
    `sentinel monitor main 127.0.0.1 ${master.port} 1`,
    "sentinel down-after-milliseconds main 500",
    "sentinel failover-timeout main 3000",
  ];
  writeFileSync(file, settings.join("\n"));
  const child = spawnServer("redis-server", [file, "--sentinel"]);
  await until("the sentinel knows the replica", async () => (await ask(port, "SENTINEL", "REPLICAS", "main")).includes("127.0.0.1"));
  return {
    port,
    stop() {
      child.kill("SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
