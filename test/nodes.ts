// Runs tests that need no other program under each Node from 20 on, except the current one:
// `npm run test:nodes`, or `npm run test:nodes -- 22 26`.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { root } from "./package/built.js";
import { missing, nodeOf } from "./package/programs.js";

/**
 * What a version of Node can change: races and errors, the memory store, SQLite, and the wire over each framework in
 * its simplest form, except Next.js.
 */
const platform = [
  "test/engine/races.test.ts",
  "test/engine/store-faults.test.ts",
  "test/store/memory.test.ts",
  "test/store/sqlite-contract.test.ts",
  "test/store/sqlite.test.ts",
  "test/callbacks/verify-webhook.test.ts",
  "test/http/wire.test.ts",
  "test/http/mounting.test.ts",
];

/** The rules, which use the language only: run under the newest. */
const rules = ["test/spec", "test/domain", "--exclude=test/domain/lists-large.test.ts"];

/** The figures of vitest's JSON report that are printed. */
interface Report {
  readonly testResults: readonly unknown[];
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
}

const own = process.versions.node.split(".")[0];
const asked = process.argv.slice(2);
const newest = "26";
const versions = asked.length > 0 ? asked : ["20", "22", "24", newest].filter((version) => version !== own);
const rows: string[] = [];

/** Runs these tests under one Node, and adds a row with the result. Prints all output of vitest if it fails. */
async function runUnder(version: string): Promise<void> {
  const node = await nodeOf(version);
  if (node === undefined) return void rows.push(`Node ${version}: ${missing(`node@${version}`)}`);
  const report = join(root, `test-results/node-${version}.json`);
  const started = performance.now();
  const vitest = [join(root, "node_modules/vitest/vitest.mjs"), "run", "--reporter=dot", "--reporter=json", `--outputFile.json=${report}`, "--maxWorkers=1"];
  const child = spawn(node, [...vitest, ...platform, ...(version === newest ? rules : [])], { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  const [said, complained, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  if (status !== 0) {
    process.exitCode = 1;
    console.error(`${said}\n${complained}\nfailed (${status}): under Node ${version}`);
  }
  const { testResults, numPassedTests, numFailedTests, numPendingTests } = JSON.parse(await readFile(report, "utf8")) as Report;
  rows.push(`Node ${version}: ${testResults.length} files, ${numPassedTests} passed, ${numFailedTests} failed, ${numPendingTests} skipped, ${seconds} s`);
}

await mkdir(join(root, "test-results"), { recursive: true });
for (const version of versions) await runUnder(version);
console.log(rows.join("\n"));
