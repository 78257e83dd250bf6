import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { isInstalled } from "../support/programs.js";
import { parseText } from "./prometheus.js";

/** Whether promtool is there. Where it is not, the suite says what it skips and how to get it; with `CI=true` that is a failure. */
export function promtoolIsInstalled(suite: string): boolean {
  return isInstalled("promtool", "prometheus", suite);
}

/** An alert as it is to fire. */
export interface Firing {
  readonly exp_labels: Readonly<Record<string, string>>;
  readonly exp_annotations: Readonly<Record<string, string>>;
}

/** Runs a rules file in Prometheus' own engine over scrapes, one a minute: which alerts fire at the end. Answers what promtool says where that is not what is expected. */
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

/** Every series of the scrapes with its values, `_` where a scrape had none. */
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
