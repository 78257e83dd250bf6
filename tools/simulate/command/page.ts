import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { SimulationResult } from "../simulate.js";
import { legendLines, type TableRow } from "./table.js";

/** One table of the report. */
export interface Table {
  readonly title: string;
  readonly stories: readonly { readonly about: string; readonly row: TableRow; readonly result: SimulationResult }[];
}

/** The report as one file without network requests. */
export function pageOf(tables: readonly Table[], seed: number): string {
  // The package does not export its bundle, which is in the same folder as the module.
  const charts = readFileSync(join(dirname(createRequire(import.meta.url).resolve("chart.js")), "chart.umd.min.js"), "utf8");
  const results = tables.flatMap(({ stories }) => stories.map(({ result }) => result));
  const own = (name: string) => readFileSync(new URL(name, import.meta.url), "utf8");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>phoneproof: the simulation</title>
<style>${own("./page.css")}</style>
</head>
<body>
<header><h1>The simulation</h1><p>Honest people and attackers in virtual time, seed ${seed}.</p><pre>${legendLines(results).join("\n").trim().replaceAll("<", "&lt;")}</pre></header>
<main></main>
<script type="application/json" id="tables">${JSON.stringify(tables.map(slim)).replaceAll("<", "\\u003c")}</script>
<script>${charts.replaceAll("</script", "<\\/script")}</script>
<script>${own("./page.js")}</script>
</body>
</html>
`;
}

/** Rounds numbers to four decimals. */
function slim({ title, stories }: Table): Table {
  return JSON.parse(JSON.stringify({ title, stories }, (_, value) => (typeof value === "number" ? Math.round(value * 10_000) / 10_000 : value)));
}
