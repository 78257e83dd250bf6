import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

/** The project's folder. A program that runs here can import the package by its name, as if it were installed. */
export const root = join(import.meta.dirname, "../..");

/** The part of package.json that these tests need. */
export const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly bin: Readonly<Record<string, string>>;
  readonly main: string;
  readonly module: string;
  readonly types: string;
  readonly exports: Readonly<Record<string, string | Readonly<Record<"import" | "require", Readonly<Record<"types" | "default", string>>>>>>;
};

/** Subpaths that are modules: `.`, `./memory`, … */
export const modules = Object.keys(manifest.exports).filter((subpath) => !/\.(json|yml)$/.test(subpath));

/** `./memory` → `phoneproof/memory`. */
export function nameOf(subpath: string): string {
  return `phoneproof${subpath.slice(1)}`;
}

export type Format = "module" | "commonjs";

/** Returns what the program prints. Rejects with its standard error if it fails. */
export async function run(format: Format, source: string, node = process.execPath): Promise<string> {
  const { stdout } = await promisify(execFile)(node, [`--input-type=${format}`, "-e", source], { cwd: root, env: { ...process.env, NODE_OPTIONS: "" } });
  return stdout;
}

/** Every built declaration file, including those for CommonJS. */
export function declarationFiles(): string[] {
  return readdirSync(join(root, "dist"), { recursive: true, encoding: "utf8" })
    .filter((path) => /\.d\.c?ts$/.test(path))
    .map((path) => join(root, "dist", path));
}
