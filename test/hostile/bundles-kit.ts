/** Installs the built package in a separate app, as `npm install` of the packed file does. */
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const root = join(import.meta.dirname, "../..");
const require = createRequire(import.meta.url);

export interface App {
  readonly folder: string;
  /** Writes a file of the app and returns its path. */
  write(name: string, text: string): string;
  /** Runs a program of the app and returns what it prints. */
  run(file: string): Promise<string>;
  /** Removes all packages from the app. */
  uninstall(): void;
  remove(): void;
}

/** A new app with phoneproof, its dependencies and `packages` installed. */
export function newApp(packages: readonly string[] = []): App {
  const folder = mkdtempSync(join(tmpdir(), "bundles-"));
  const own = join(folder, "node_modules/phoneproof");
  mkdirSync(own, { recursive: true });
  cpSync(join(root, "package.json"), join(own, "package.json"));
  cpSync(join(root, "dist"), join(own, "dist"), { recursive: true });
  const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { dependencies: Record<string, string> };
  for (const name of [...Object.keys(dependencies), ...packages]) {
    const link = join(folder, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(root, "node_modules", name), link);
  }
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "app", type: "module" }));
  return {
    folder,
    write(name, text) {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    },
    async run(file) {
      const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], { cwd: folder, timeout: 20_000 });
      return stdout + stderr;
    },
    uninstall: () => rmSync(join(folder, "node_modules"), { recursive: true }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The text of every built file, by its path in the package. */
export function builtFiles(): { readonly path: string; readonly text: string }[] {
  return readdirSync(join(root, "dist"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(js|cjs|d\.ts|d\.cts)$/.test(entry.name))
    .map((entry) => ({ path: join(entry.parentPath, entry.name).slice(root.length + 1), text: readFileSync(join(entry.parentPath, entry.name), "utf8") }));
}

interface Stats {
  toJson(options: object): { errors: { message: string }[]; warnings: { message: string }[] };
}

export interface Bundled {
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

/** Bundles one file with the webpack 5 that Next.js ships. `libsql`, a native package, stays external, as in Next.js. */
export async function webpackBundle(folder: string, entry: string, filename: string): Promise<Bundled> {
  const { webpack } = require("next/dist/compiled/webpack/bundle5.js")();
  const stats = await promisify<object, Stats>(webpack)({
    mode: "production",
    optimization: { minimize: false },
    target: "node20",
    context: folder,
    entry,
    experiments: { outputModule: true },
    externals: { libsql: "import libsql" },
    output: { path: folder, filename, module: true, chunkFormat: "module" },
  });
  const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
  return { errors: errors.map(({ message }) => message), warnings: warnings.map(({ message }) => message) };
}
