// The last step of `.ci/run`: prints a row for each report in `test-results`, and the totals. Fails if a tier has no
// report, or if a test failed or was skipped.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { root } from "./package/built.js";

/** The part of vitest's JSON reports that is read. Times are in milliseconds since the epoch. */
interface Report {
  readonly startTime: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly endTime: number;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

/** Tests in this file are skipped on a MongoDB server that lacks a replica set with test commands, or `explain`. */
const maySkip = "test/store/mongo.test.ts";

const folder = join(root, "test-results");
const found = readdirSync(folder).filter((file) => file.endsWith(".json"));
const faults = ["unit", "contract", "package", "hostile"].filter((tier) => !found.includes(`${tier}.json`)).map((tier) => `${tier}: no report`);
const rows: Record<string, { files: number; passed: number; failed: number; skipped: number; minutes: number }> = {};

for (const report of found) {
  const tier = report.replace(".json", "");
  const { startTime, testResults } = JSON.parse(readFileSync(join(folder, report), "utf8")) as Report;
  const minutes = (Math.max(...testResults.map(({ endTime }) => endTime)) - startTime) / 60_000;
  const row = { files: testResults.length, passed: 0, failed: 0, skipped: 0, minutes: Number(minutes.toFixed(1)) };
  rows[tier] = row;
  for (const { name, status, message, assertionResults } of testResults) {
    const file = relative(root, name);
    // A file that cannot be loaded has no failed tests.
    if (status === "failed" && assertionResults.every((test) => test.status !== "failed")) faults.push(`${tier}: ${file} failed: ${message}`);
    for (const test of assertionResults) {
      const outcome = test.status === "passed" || test.status === "failed" ? test.status : "skipped";
      row[outcome] += 1;
      if (outcome === "failed" || (outcome === "skipped" && file !== maySkip)) faults.push(`${tier}: ${file} ${outcome}: ${test.fullName}`);
    }
  }
}

const sum = (figure: keyof (typeof rows)[string]) => Object.values(rows).reduce((all, row) => all + row[figure], 0);
const total = { files: sum("files"), passed: sum("passed"), failed: sum("failed"), skipped: sum("skipped"), minutes: Number(sum("minutes").toFixed(1)) };
console.table({ ...rows, total });
if (faults.length > 0) {
  console.error(faults.join("\n"));
  process.exitCode = 1;
}
