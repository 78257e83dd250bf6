import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

/** Which tests run together: `npm test` is `unit`, `npm run test:contract` and so on are the others, `npm run test:all` is all of them. */
export type Tier = "unit" | "contract" | "package" | "hostile";

const root = import.meta.dirname;

/** Faults, crashes, thousands of racers and entries, days of simulated traffic. */
const hostile =
  /^(hostile\/|callbacks\/crash-|store\/(faults-|processes-|crash-|wrong-stores)|engine\/(races|spend-model|remembered)|routing\/(simulation|exchange)|testing\/simulate-channels|privacy\/hostile|customers\/hostile|domain\/lists-large)/;

/** Stores that write to a disk. */
const onDisk = /^store\/sqlite/;

/** The build and what is made of it, the command, the pages. */
const packaged = /^(package|docs|examples|cli|otp-input|client)\//;

/** What a unit test does not use, nor the helpers it imports: processes, sockets, servers, clients of servers, the build. */
const outside =
  /^(node:(child_process|cluster|dgram|http|http2|https|net|tls|worker_threads)|@upstash|@valkey|express|better-auth|fastify|ioredis|libsql|mongodb|next|pg$|phoneproof|playwright|postgres$|redis)/;

const imported = /(?:\bfrom\s+|\bimport\s+|\bimport\()\s*"([^"]+)"/g;

/** Those that take more than half a minute, the longest first. */
const longest: readonly string[] = [
  "docs/next.test.ts",
  "examples/signup.test.ts",
  "package/packed.test.ts",
  "cli/page.test.ts",
  "cli/serve.test.ts",
  "docs/snippets.test.ts",
  "cli/operators.test.ts",
  "otp-input/element.test.ts",
  "examples/examples.test.ts",
  "cli/store.test.ts",
  "cli/cli.test.ts",
  "testing/simulate.test.ts",
  "http/wire-awkward.test.ts",
  "store/mongo-contract.test.ts",
  "store/redis-contract.test.ts",
  "testing/simulate-command.test.ts",
  "store/postgres-clients.test.ts",
  "store/postgres-contract.test.ts",
  "http/next.test.ts",
  "hostile/callbacks-http.test.ts",
  "hostile/deliveries-stores.test.ts",
  "store/faults-mongo.test.ts",
  "hostile/soak.test.ts",
  "testing/simulate-channels.test.ts",
  "hostile/stores.test.ts",
  "hostile/fallback-stores.test.ts",
  "hostile/money.test.ts",
  "hostile/redis.test.ts",
  "hostile/command.test.ts",
  "store/faults-redis.test.ts",
  "hostile/sqlite-clients.test.ts",
  "callbacks/crash-redis.test.ts",
  "hostile/deliveries.test.ts",
  "hostile/one-commit-mongo.test.ts",
  "hostile/one-commit-attacks.test.ts",
  "hostile/one-commit-redis.test.ts",
  "hostile/one-commit.test.ts",
];

/** Where a file stands among those that are to start first. */
export function placeOf(file: string): number {
  const place = longest.indexOf(relative(root, file));
  return place < 0 ? longest.length : place;
}

/** Test files by their tier, each in one. */
export function testsOf(tier: Tier): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".test.ts") && !file.includes("node_modules") && tierOf(file) === tier)
    .map((file) => join("test", file));
}

function tierOf(file: string): Tier {
  if (hostile.test(file)) return "hostile";
  if (staysInside(resolve(root, file)) && !onDisk.test(file)) return "unit";
  return packaged.test(file) ? "package" : "contract";
}

/** Whether a file and the helpers that it imports use nothing but sources. */
function staysInside(file: string, seen = new Set<string>()): boolean {
  if (seen.has(file) || relative(root, file).startsWith("..")) return true;
  seen.add(file);
  if (!existsSync(file)) return false;
  const names = [...readFileSync(file, "utf8").matchAll(imported)].map(([, name = ""]) => name);
  return names.every((name) => {
    if (!name.startsWith(".")) return !outside.test(name);
    return !name.includes("dist/") && staysInside(resolve(dirname(file), name.replace(/\.js$/, ".ts")), seen);
  });
}
