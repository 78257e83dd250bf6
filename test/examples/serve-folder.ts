import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parse } from "yaml";
import { root } from "../package/built.js";

/** The folder of the example. */
export const example = join(root, "examples/serve");

export interface Instruction {
  readonly name: string;
  readonly rest: string;
}

/** The instructions of a Dockerfile by stage, without comments and with continued lines joined. */
export function readDockerfile(text: string): Instruction[][] {
  const stages: Instruction[][] = [];
  const lines = text.replace(/^\s*#.*\n/gm, "").replace(/\\\n\s*/g, " ");
  for (const line of lines.split("\n").filter((one) => one.trim() !== "")) {
    const [, name = "", rest = ""] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    if (name === "") throw new Error(`no instruction: ${line}`);
    if (name === "FROM") stages.push([]);
    stages.at(-1)?.push({ name, rest });
  }
  return stages;
}

/** The words of an instruction in its exec form. */
export const words = (rest: string): string[] => JSON.parse(rest.slice(rest.indexOf("["))) as string[];

interface ComposeService {
  readonly build?: string;
  readonly image?: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly volumes?: readonly string[];
}

export interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

/** The compose file with its variables filled in as by Docker: `${NAME:?why}` must be set, `${NAME:-word}` may be. */
export function readCompose(env: Readonly<Record<string, string>>): Compose {
  const text = readFileSync(join(example, "compose.yaml"), "utf8").replace(/\$\{(\w+):([?-])([^}]*)\}/g, (_, name: string, kind: string, word: string) => {
    const value = env[name] || (kind === "-" ? word : undefined);
    if (value === undefined) throw new Error(`${name}: ${word}`);
    return value;
  });
  return parse(text, { version: "1.2" }) as Compose;
}

/**
 * Creates the folder of the last stage from its COPY lines. Instead of the first stage's node_modules, it links the
 * dependencies of the example.
 */
export function layOut(lastStage: readonly Instruction[]): { readonly folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), "phoneproof-serve-"));
  for (const { rest } of lastStage.filter(({ name }) => name === "COPY")) {
    if (rest.startsWith("--from=")) continue;
    const files = rest.split(" ").slice(0, -1);
    for (const file of files) cpSync(join(example, file), join(folder, basename(file)));
  }
  const { dependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { dependencies: Record<string, string> };
  mkdirSync(join(folder, "node_modules/.bin"), { recursive: true });
  for (const name of Object.keys(dependencies))
    symlinkSync(name === "phoneproof" ? root : join(root, "node_modules", name), join(folder, "node_modules", name));
  const { bin } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { bin: Record<string, string> };
  for (const [name, file] of Object.entries(bin)) symlinkSync(join("../phoneproof", file), join(folder, "node_modules/.bin", name));
  return { folder, remove: () => rmSync(folder, { recursive: true }) };
}
