import { execFile } from "node:child_process";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { atMost, median, number, type Part, type Row } from "./report.js";

const rounds = 9;

const root = fileURLToPath(new URL("..", import.meta.url));

const adapters = ["memory", "redis", "mongo", "express", "fastify", "next", "fetch", "node", "senders/console", "testing"].map((name) => `phoneproof/${name}`);

/** Import times, measured in separate processes. */
export const importsPart: Part = {
  name: "imports",
  title: "Time to import, each in a fresh process; medians of interleaved rounds",
  async measure() {
    const esm = await measureAll("import", [whole, ...adapters.map((name) => [name])]);
    const cjs = await measureAll("require", [whole]);
    const of = (times: ReadonlyMap<string, number>, names: readonly string[]) => times.get(names.join()) ?? Number.NaN;
    const [imported, required] = [of(esm, whole), of(cjs, whole)];
    const rows: Row[] = [
      atMost(
        `${whole.join(" and ")}, dependencies included: import against require`,
        imported / required,
        1,
        " ×",
        ` (${number(imported)} ms against ${number(required)})`,
      ),
    ];
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

/** What a user imports: the entry and a store. */
const whole = ["phoneproof", "phoneproof/memory"];

/** The files that a user's import reads, including dependencies. */
export async function loadRows(): Promise<Row[]> {
  const hook = `export async function load(url, context, next) { process._rawDebug(url); return next(url, context); }`;
  const code = `import { createRequire, register } from "node:module";
        register("data:text/javascript,${encodeURIComponent(hook)}");
    for (const name of ${JSON.stringify(whole)}) await import(name);
    for (const file of Object.keys(createRequire(import.meta.url).cache)) process._rawDebug("file://" + file);`;
  const { stderr } = await run(["--input-type=module", "-e", code]);
  const files = new Set(stderr.split("\n").filter((line) => line.startsWith("file:")));
  return [atMost(`files loaded by the ESM import of ${whole.join(" and ")}`, files.size, 60, "")];
}

/** The size of the production `node_modules`: packages that the lock file does not mark as development or peer. */
export async function packageRows(): Promise<Row[]> {
  const lock = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8")) as { packages: Record<string, Partial<Record<string, unknown>>> };
  const spared = ["dev", "devOptional", "optional", "peer", "link"];
  const folders = Object.keys(lock.packages).filter((folder) => folder.startsWith("node_modules/") && !spared.some((mark) => lock.packages[folder]?.[mark]));
  let [bytes, files] = [0, 0];
  for (const folder of folders) {
    for (const entry of await readdir(join(root, folder), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      files++;
      bytes += (await stat(join(entry.parentPath, entry.name))).size;
    }
  }
  return [atMost("production node_modules: files", files, 2_122, ""), atMost("production node_modules: megabytes", bytes / 1e6, 24, "")];
}

/** Milliseconds from the start of a process until everything is loaded, minus those of one that loads nothing. */
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
  return (await run([`--input-type=${type}`, "-e", code])).stdout;
}

function run(args: readonly string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
  return promisify(execFile)(process.execPath, args, { cwd: root });
}
