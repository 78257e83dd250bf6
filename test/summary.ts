// The last step of `.ci/run`: prints a row for each tier and each other Node, from the reports in `test-results`, and
// the totals. Fails if a tier has no tests, or if a test failed or was skipped.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { root } from "./package/built.js";
import { tierOf, tiers } from "./tiers.js";

/** The part of vitest's JSON reports that is read. */
interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

/** Tests in this file are skipped on a MongoDB server that lacks a replica set with test commands, or `explain`. */
const maySkip = "test/store/mongo.test.ts";

const folder = join(root, "test-results");
const faults: string[] = [];
const rows: Record<string, { files: number; passed: number; failed: number; skipped: number }> = {};

for (const report of readdirSync(folder).filter((file) => file.endsWith(".json"))) {
  const { testResults } = JSON.parse(readFileSync(join(folder, report), "utf8")) as Report;
  for (const { name, status, message, assertionResults } of testResults) {
    const file = relative(root, name);
    const place = report.startsWith("node-") ? report.replace(".json", "") : tierOf(relative("test", file));
    rows[place] ??= { files: 0, passed: 0, failed: 0, skipped: 0 };
    const row = rows[place];
    row.files += 1;
    // A file that cannot be loaded has no failed tests.
    if (status === "failed" && assertionResults.every((test) => test.status !== "failed")) faults.push(`${place}: ${file} failed: ${message}`);
    for (const test of assertionResults) {
      const outcome = test.status === "passed" || test.status === "failed" ? test.status : "skipped";
      row[outcome] += 1;
      if (outcome === "failed" || (outcome === "skipped" && file !== maySkip)) faults.push(`${place}: ${file} ${outcome}: ${test.fullName}`);
    }
  }
}

faults.push(...tiers.filter((tier) => rows[tier] === undefined).map((tier) => `${tier}: no report`));
const sum = (figure: keyof (typeof rows)[string]) => Object.values(rows).reduce((all, row) => all + row[figure], 0);
console.table({ ...rows, total: { files: sum("files"), passed: sum("passed"), failed: sum("failed"), skipped: sum("skipped") } });
if (faults.length > 0) {
  console.error(faults.join("\n"));
  process.exitCode = 1;
}
