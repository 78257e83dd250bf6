/** `npm run bench`, or `npm run bench -- counted ratios` for some parts. Ends with 1 where a counted figure is above its gate. */
import { countedPart } from "./counted.js";
import { enginePart } from "./engine.js";
import { expiryPart } from "./expiry.js";
import { importsPart } from "./imports.js";
import { memoryPart } from "./memory.js";
import { mongoPart } from "./mongo.js";
import { ratiosPart } from "./ratios.js";
import { machine, type Part, print } from "./report.js";
import { spendPart } from "./spend.js";

const parts: readonly Part[] = [countedPart, ratiosPart, enginePart, importsPart, memoryPart, expiryPart, mongoPart, spendPart];

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !parts.some((part) => part.name === name));
if (unknown.length > 0) throw new Error(`no part ${unknown.join(", ")}; the parts are ${parts.map((part) => part.name).join(", ")}`);

console.log(machine());
const started = performance.now();
for (const part of parts) {
  if (asked.length > 0 && !asked.includes(part.name)) continue;
  const rows = await part.measure();
  print(part.title, rows);
  if (part.gates && rows.some(({ reached }) => reached === false)) process.exitCode = 1;
}
console.log(`\n${Math.round((performance.now() - started) / 1000)} s; ${machine()}`);
