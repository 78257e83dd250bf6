import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { build } from "esbuild";
import ts from "typescript";
import { freePort } from "../support/ports.js";

const root = join(import.meta.dirname, "../..");
export const customer = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
export const apiKey = randomBytes(32).toString("base64");
const environment = { PHONEPROOF_SECRET: randomBytes(32).toString("base64"), PHONEPROOF_API_KEY: apiKey, SESSION_SECRET: randomBytes(32).toString("base64") };

/** A file as a page of the documentation shows it. */
export function shown(page: string, file: string): string {
  for (const [, body = ""] of readFileSync(join(root, "docs", page), "utf8").matchAll(/```\w+\n([\s\S]*?)```/g))
    if (/^(?:\/\/|\/\*) (\S+)/.exec(body)?.[1] === file) return body;
  throw new Error(`docs/${page} shows no ${file}`);
}

/** Bundles `files`, which import each other as on the pages, into one module; packages stay external. */
export async function bundled(entry: string, files: Readonly<Record<string, string>>): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    logLevel: "error",
    plugins: [
      {
        name: "pages",
        setup(on) {
          on.onResolve({ filter: /.*/ }, ({ path, kind }) =>
            kind === "entry-point" || path.startsWith(".") ? { path: basename(path).replace(/\.js$/, ".ts"), namespace: "pages" } : { path, external: true },
          );
          on.onLoad({ filter: /.*/, namespace: "pages" }, ({ path }) => ({ contents: files[path] ?? "", loader: "ts" }));
        },
      },
    ],
  });
  return outputFiles[0]?.text ?? "";
}

export interface Program {
  readonly base: string;
  readonly process: ChildProcess;
  output(): string;
  /** Kills the process if it is still running. */
  end(): Promise<void>;
}

/** Runs a program as its user does, and waits until its port responds. */
export async function run(args: readonly string[]): Promise<Program> {
  const port = await freePort();
  const { NODE_ENV: _, ...rest } = process.env;
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...rest, ...environment, PORT: String(port) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (text += String(chunk)));
  const program: Program = {
    base: `http://127.0.0.1:${port}`,
    process: child,
    output: () => text,
    async end() {
      const exit = once(child, "exit");
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await exit;
    },
  };
  for (let tries = 0; tries < 600; tries++) {
    if (child.exitCode !== null) throw new Error(`it ended: ${text}`);
    const up = await fetch(program.base).then(
      () => true,
      () => false,
    );
    if (up) return program;
    await new Promise((done) => setTimeout(done, 50));
  }
  await program.end();
  throw new Error(`nothing listens: ${text}`);
}

/** What TypeScript reports for files that exist only in memory, as if they were next to this one. */
export function complaints(files: Readonly<Record<string, string>>, options: ts.CompilerOptions): string[] {
  const all: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    lib: ["lib.es2023.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
    types: ["node"],
    skipLibCheck: true,
    noEmit: true,
    ...options,
  };
  const texts = new Map(Object.entries(files).map(([name, text]) => [join(import.meta.dirname, name), text]));
  const host = ts.createCompilerHost(all);
  const { readFile, fileExists, getSourceFile } = host;
  host.readFile = (path) => texts.get(path) ?? readFile.call(host, path);
  host.fileExists = (path) => texts.has(path) || fileExists.call(host, path);
  host.getSourceFile = (path, ...more) => {
    const text = texts.get(path);
    return text === undefined ? getSourceFile.call(host, path, ...more) : ts.createSourceFile(path, text, more[0]);
  };
  const found = ts.getPreEmitDiagnostics(ts.createProgram([...texts.keys()], all, host));
  return found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " "));
}

/** The code of the newest message that a program printed. */
export const printedCode = (output: string): string => [...output.matchAll(/code is (\d{6})/g)].at(-1)?.[1] ?? "none";
