import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

/** Tests that run together: `npm test` runs `unit`, `npm run test:contract` and so on the others, `test:all` all. */
export type Tier = "unit" | "contract" | "package" | "hostile";

const root = import.meta.dirname;

/** Errors, crashes, thousands of concurrent calls and entries, days of simulated traffic. */
const hostile =
  /^(hostile\/|callbacks\/crash-|store\/(faults-|processes-|crash-|wrong-stores)|engine\/(races|spend-model|remembered)|routing\/(simulation|exchange)|testing\/simulate|privacy\/hostile|customers\/hostile|domain\/lists-large)/;

/** Stores that write to a disk. */
const onDisk = /^store\/sqlite/;

/** The build and everything based on it, the command, the pages. */
const packaged = /^(package|docs|examples|cli|otp-input|client)\//;

/** Modules that unit tests and their helpers do not use: processes, sockets, servers and their clients, the build, compilers. */
const outside =
  /^(node:(child_process|cluster|dgram|http|http2|https|net|tls|worker_threads)|@upstash|@valkey|express|better-auth|fastify|google-libphonenumber|ioredis|libsql|mongodb|next|pg$|phoneproof|playwright|postgres$|redis|typescript)/;

const imported = /(?:\bfrom\s+|\bimport\s+|\bimport\()\s*"([^"]+)"/g;

/** Test files that take more than half a minute, the longest first. */
const longest: readonly string[] = [
  "examples/signup.test.ts",
  "docs/next.test.ts",
  "otp-input/element.test.ts",
  "docs/snippets.test.ts",
  "hostile/fallback-stores.test.ts",
  "hostile/soak.test.ts",
  "cli/page.test.ts",
  "cli/cli.test.ts",
  "store/faults-redis.test.ts",
  "package/packed.test.ts",
  "store/faults-mongo.test.ts",
  "examples/examples.test.ts",
  "cli/operators.test.ts",
  "store/mongo-contract.test.ts",
  "cli/serve.test.ts",
  "hostile/redis.test.ts",
  "hostile/command.test.ts",
  "testing/simulate.test.ts",
  "store/postgres-clients.test.ts",
  "store/redis-contract.test.ts",
  "http/wire-awkward.test.ts",
  "store/postgres-contract.test.ts",
  "testing/simulate-command.test.ts",
  "store/processes-mongo.test.ts",
  "hostile/callbacks-http.test.ts",
  "cli/store.test.ts",
  "store/faults-postgres.test.ts",
  "hostile/money.test.ts",
  "package/exports.test.ts",
  "hostile/deliveries.test.ts",
  "cli/customers.test.ts",
  "hostile/one-commit-redis.test.ts",
  "hostile/deliveries-stores.test.ts",
  "docs/front-end.test.ts",
  "hostile/one-commit-heap.test.ts",
  "http/next.test.ts",
  "hostile/one-commit-attacks.test.ts",
  "hostile/sqlite-clients.test.ts",
  "package/runtime-parts.test.ts",
  "testing/runners.test.ts",
  "privacy/redis.test.ts",
  "store/mongo.test.ts",
  "routing/simulation.test.ts",
  "hostile/postgres-faults.test.ts",
  "hostile/postgres-schemas.test.ts",
  "hostile/one-commit-mongo.test.ts",
  "callbacks/crash-redis.test.ts",
  "store/processes-postgres.test.ts",
];

/** The position of a file among those that start first. */
export function placeOf(file: string): number {
  const place = longest.indexOf(relative(root, file));
  return place < 0 ? longest.length : place;
}

/** The test files of a tier. Each file belongs to one. */
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

/** Whether a file and the helpers that it imports use only sources. */
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
