import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "../support/ports.js";
import { type RedisServer, startRedis, until } from "../support/redis.js";

const stores = readFileSync(join(import.meta.dirname, "../../docs/stores.md"), "utf8");

/** A section of docs/stores.md. */
function section(title: string): string {
  const text = stores.split(/^## /m).find((one) => one.startsWith(`${title}\n`));
  if (text === undefined) throw new Error(`docs/stores.md has no section ${title}`);
  return text;
}

/** The rights that docs/stores.md lists for an ACL user of Redis. */
export function documentedRights(): string[] {
  const line = /`ACL SETUSER app on >PASSWORD ([^`]+)`/.exec(section("Redis"))?.[1];
  if (line === undefined) throw new Error("docs/stores.md has no line of rights for Redis");
  return line.split(" ");
}

/** All rights that docs/stores.md names for Redis, including those for a cluster. */
export function rightsOfCluster(): string[] {
  const near = `${section("Redis")}${section("The client is yours")}`;
  return [...new Set([...documentedRights(), ...(near.match(/(?<=[`\s])\+@?[a-z]+(\|[a-z]+)?/g) ?? [])])];
}

/** The grants of docs/stores.md for the role `app` of PostgreSQL. */
export function documentedGrants(): string {
  const grants = /```sql\n(grant usage[\s\S]*?)```/.exec(section("PostgreSQL"))?.[1];
  if (grants === undefined) throw new Error("docs/stores.md has no grants for PostgreSQL");
  return grants;
}

/** Whether docs/stores.md says to delete the log of an SQLite file before a backup is restored. */
export const deletesLogBeforeRestore = /- \*\*Backup\.\*\*[^\n]*(delete|remove)[^\n]*-wal/i.test(section("SQLite"));

/** A cluster of three masters without replicas. */
export async function startMasters(): Promise<RedisServer[]> {
  const masters: RedisServer[] = [];
  for (let i = 0; i < 3; i++) masters.push(await startRedis(["--cluster-enabled", "yes", "--cluster-port", String(await freePort())]));
  await promisify(execFile)("redis-cli", ["--cluster", "create", ...masters.map(({ port }) => `127.0.0.1:${port}`), "--cluster-yes"]);
  await until("the cluster serves all slots", async () => {
    const infos = await Promise.all(masters.map((one) => one.cli("CLUSTER", "INFO")));
    return infos.every((info) => info.includes("cluster_state:ok"));
  });
  return masters;
}

/** The Redis commands in a fix that doctor gives. */
export const commandsIn = (fix: string): string[][] => [...fix.matchAll(/CONFIG (?:SET [a-z-]+ [a-z]+|REWRITE)/g)].map(([command]) => command.split(" "));
