import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { isInstalled } from "../support/programs.js";
import { parseText } from "./prometheus.js";

/**
 * Whether promtool is installed. If not, the suite prints what it skips and how to install it; with `CI=true` that is a
 * failure.
 */
export function promtoolIsInstalled(suite: string): boolean {
  return isInstalled("promtool", "prometheus", suite);
}

/** An alert that is expected to fire. */
export interface Firing {
  readonly exp_labels: Readonly<Record<string, string>>;
  readonly exp_annotations: Readonly<Record<string, string>>;
}

/**
 * Runs a rules file in Prometheus' own engine over scrapes, one a minute, and compares the alerts that fire at the end.
 * Returns promtool's output if they differ from those expected, else nothing.
 */
export async function evaluate(rules: string, scrapes: readonly string[], expected: Readonly<Record<string, readonly Firing[]>>): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "phoneproof-rules-"));
  try {
    const test = join(folder, "test.json");
    const tests = [
      {
        interval: "1m",
        input_series: seriesOf(scrapes),
        alert_rule_test: Object.entries(expected).map(([alertname, exp_alerts]) => ({ eval_time: `${scrapes.length - 1}m`, alertname, exp_alerts })),
      },
    ];
    writeFileSync(test, JSON.stringify({ rule_files: [rules], evaluation_interval: "1m", tests }));
    await promisify(execFile)("promtool", ["test", "rules", test]);
    return "";
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    return stdout + stderr;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Each series of the scrapes with its values, `_` if a scrape has none. */
function seriesOf(scrapes: readonly string[]): { readonly series: string; readonly values: string }[] {
  const all = new Map<string, string[]>();
  for (const [at, text] of scrapes.entries()) {
    for (const { name, labels, value } of parseText(text)) {
      const series = `${name}{${Object.entries(labels)
        .map(([label, one]) => `${label}=${JSON.stringify(one)}`)
        .join(",")}}`;
      const values = all.get(series) ?? new Array<string>(scrapes.length).fill("_");
      values[at] = String(value);
      all.set(series, values);
    }
  }
  return Array.from(all, ([series, values]) => ({ series, values: values.join(" ") }));
}
