import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { atMost, median, number, type Part, type Row } from "./report.js";

const rounds = 9;

/** What the entry depends on; tsyringe throws when reflect-metadata is not there before it. */
const parts = ["reflect-metadata/lite", "tsyringe", "zod", "libphonenumber-js/max", "ipaddr.js"];

const adapters = ["memory", "redis", "mongo", "express", "fastify", "next", "fetch", "node", "senders/console", "testing"].map((name) => `phoneproof/${name}`);

/** Import times in processes of their own. */
export const importsPart: Part = {
  name: "imports",
  title: "Time to import, each in a fresh process; medians of interleaved rounds",
  async measure() {
    const esm = await measureAll("import", [["phoneproof"], parts, ...parts.map(alone), ...adapters.map((name) => [name])]);
    const cjs = await measureAll("require", [["phoneproof"], parts]);
    const of = (times: ReadonlyMap<string, number>, names: readonly string[]) => times.get(names.join()) ?? Number.NaN;
    const entry = of(esm, ["phoneproof"]);
    const together = of(esm, parts);
    const required = of(cjs, ["phoneproof"]);
    const requiredTogether = of(cjs, parts);
    const rows: Row[] = [
      atMost("import phoneproof, above its dependencies", entry - together, 15, " ms", ` (${number(entry)} ms against ${number(together)} ms)`),
      atMost(
        "require phoneproof, above its dependencies",
        required - requiredTogether,
        15,
        " ms",
        ` (${number(required)} ms against ${number(requiredTogether)} ms)`,
      ),
    ];
    for (const part of parts) rows.push({ figure: alone(part).join(" + "), measured: `${number(of(esm, alone(part)))} ms` });
    for (const adapter of adapters) {
      const packages = await packagesOf(adapter);
      const wanted = adapter === "phoneproof/testing" ? {} : { target: "no package", reached: packages.length === 0 };
      rows.push({
        figure: adapter,
        measured: `${number(of(esm, [adapter]))} ms, loads ${packages.length === 0 ? "no package" : packages.join(", ")}`,
        ...wanted,
      });
    }
    return rows;
  },
};

function alone(part: string): string[] {
  return part === "tsyringe" ? ["reflect-metadata/lite", part] : [part];
}

/** Milliseconds from the start of the process until everything is there, less those of a process that loads nothing. */
async function measureAll(kind: "import" | "require", all: readonly (readonly string[])[]): Promise<Map<string, number>> {
  const times = new Map<string, number[]>();
  for (let round = 0; round < rounds; round++) {
    for (const names of [[], ...all]) {
      const list = times.get(names.join()) ?? [];
      list.push(Number(await evaluate(kind, `${names.map((name) => load(kind, name)).join(" ")} console.log(performance.now());`)));
      times.set(names.join(), list);
    }
  }
  const empty = median(times.get("") as number[]);
  return new Map([...times].map(([names, list]) => [names, median(list) - empty]));
}

function load(kind: "import" | "require", name: string): string {
  return kind === "import" ? `import ${JSON.stringify(name)};` : `require(${JSON.stringify(name)});`;
}

/** Packages that `require` loads. */
async function packagesOf(name: string): Promise<readonly string[]> {
  const files = JSON.parse(await evaluate("require", `require(${JSON.stringify(name)}); console.log(JSON.stringify(Object.keys(require.cache)));`)) as string[];
  return [...new Set(files.flatMap((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file.replaceAll("\\", "/"))?.[1] ?? []))];
}

async function evaluate(kind: "import" | "require", code: string): Promise<string> {
  const type = kind === "import" ? "module" : "commonjs";
  return (await promisify(execFile)(process.execPath, [`--input-type=${type}`, "-e", code], { cwd: fileURLToPath(new URL("..", import.meta.url)) })).stdout;
}
