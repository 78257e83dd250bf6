// `npm run bench`, or `npm run bench -- counted redis` for some parts. Exits with 1 if a counted figure is too high.
import { countedPart } from "./counted.js";
import { directPart } from "./direct.js";
import { importsPart } from "./imports.js";
import { overHttpParts } from "./over-http.js";
import { postgresGrowthPart } from "./postgres-growth.js";
import { machine, type Part, print } from "./report.js";

const parts: readonly Part[] = [countedPart, ...overHttpParts, postgresGrowthPart, directPart, importsPart];

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !parts.some((part) => part.name === name));
if (unknown.length > 0) throw new Error(`no part ${unknown.join(", ")}; the parts are ${[...new Set(parts.map((part) => part.name))].join(", ")}`);

console.log(machine());
for (const part of parts) {
  if (asked.length > 0 && !asked.includes(part.name)) continue;
  const started = performance.now();
  const rows = await part.measure();
  print(`${part.title}; ${Math.round((performance.now() - started) / 1000)} s`, rows);
  if (part.gates && rows.some(({ reached }) => reached === false)) process.exitCode = 1;
}
console.log(`\n${machine()}`);
