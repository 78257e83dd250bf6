import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { PassThrough, type Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { build } from "tsup";
import { readCommand } from "../../src/cli/command.js";
import { rawText } from "../../src/cli/demo/raw-text.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

export interface Demo {
  readonly url: string;
  readonly api_key: string;
  readonly customer_uuid: string;
  /** The next line of this type. */
  next(type: "call" | "callback" | "hint"): Promise<Readonly<Record<string, unknown>>>;
  /** The next "sms" line. */
  sms(): Promise<{ readonly type: string; readonly to: string; readonly text: string; readonly code: string; readonly authentication_uuid: string }>;
  /** Everything written to stderr so far. */
  stderr(): string;
  /** Stops the demo if it still runs, as a process with the signal; returns the exit code. */
  stop(signal?: "SIGTERM" | "SIGINT"): Promise<number | null>;
}

export interface BuiltCommand {
  /** The file to run. */
  readonly path: string;
  /** Its folder, which also contains the other entries. */
  readonly folder: string;
  remove(): Promise<void>;
}

/**
 * Bundles the command from the sources, as the package does, into a folder where it finds its dependencies.
 * `more`: further entries, by their names in that folder.
 */
export async function buildCommand(more: Readonly<Record<string, string>> = {}): Promise<BuiltCommand> {
  const cache = join(root, "node_modules/.cache");
  await mkdir(cache, { recursive: true });
  const outDir = await mkdtemp(join(cache, "phoneproof-dev-"));
  await build({
    entry: { dev: join(root, "src/cli/cli.ts"), ...more },
    outDir,
    format: "esm",
    target: "node20",
    config: false,
    silent: true,
    noExternal: ["zod", "libphonenumber-js", "tsyringe", "ipaddr.js", "reflect-metadata"],
    loader: { ".lua": "text" },
    esbuildPlugins: [rawText()],
  });
  return { path: join(outDir, "dev.js"), folder: outDir, remove: () => rm(outDir, { recursive: true }) };
}

/** No test sees the data of another. */
const withData = (args: readonly string[]) =>
  args[0] === "dev" && !args.includes("--data") && !args.includes("--store") ? [...args, "--data", "memory"] : args;

/** Starts the command as a separate process, without the environment of the test runner. */
export function spawnCommand(path: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcessByStdio<null, Readable, Readable> {
  return spawn(process.execPath, [path, ...withData(args)], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { NODE_ENV: "development", PATH: process.env.PATH, ...env },
  });
}

/** Calls the demo's service; returns the fields of the response, with the HTTP status as `http`. */
export async function post(demo: Demo, path: string, fields: object): Promise<Record<string, unknown>> {
  const response = await fetch(`${demo.url}/v1/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": demo.api_key },
    body: JSON.stringify({ customer_uuid: demo.customer_uuid, ...fields }),
  });
  return { http: response.status, ...((await response.json()) as Record<string, unknown>) };
}

/** Runs the command to its end, as a separate process. */
export async function spawnToEnd(path: string, args: readonly string[], env?: Readonly<Record<string, string>>) {
  const child = spawnCommand(path, args, env);
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout, stderr };
}

/** Runs the command to its end, in this process: for commands that import no module and ask nothing. */
export async function runInProcess(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { code, stdout, stderr } = start(args, env);
  return { code: await code, stdout: stdout(), stderr: stderr() };
}

/** Starts the command in this process. */
function start(args: readonly string[], env: Readonly<Record<string, string>>) {
  const stopping = new AbortController();
  const lines = new PassThrough();
  let stdout = "";
  let stderr = "";
  const output = {
    out(text: string) {
      stdout += text;
      lines.write(text);
    },
    err: (text: string) => void (stderr += text),
  };
  const code = readCommand(withData(args), env)
    .run(output, stopping.signal)
    .finally(() => lines.end());
  return { code, stop: () => stopping.abort(), lines, stdout: () => stdout, stderr: () => stderr };
}

/** Starts the demo with `--json` in this process, and reads its first line. */
export async function startDemo(args: readonly string[] = ["--port", "0"], env: Readonly<Record<string, string>> = {}): Promise<Demo> {
  const { code, stop, lines, stderr } = start(["dev", "--json", ...args], env);
  return demoOf(lines, stderr, async () => {
    stop();
    return code;
  });
}

/** Starts the demo with `--json` as a separate process, and reads its first line. */
export async function spawnDemo(path: string, args: readonly string[] = ["--port", "0"], env?: Readonly<Record<string, string>>): Promise<Demo> {
  const child = spawnCommand(path, ["dev", "--json", ...args], env);
  let stderr = "";
  child.stderr.on("data", (chunk) => (stderr += chunk));
  return demoOf(
    child.stdout,
    () => stderr,
    async (signal) => {
      if (child.exitCode !== null) return child.exitCode;
      const exited = once(child, "exit") as Promise<[number | null]>;
      child.kill(signal);
      return (await exited)[0];
    },
  );
}

async function demoOf(stdout: Readable, stderr: Demo["stderr"], stop: Demo["stop"]): Promise<Demo> {
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  const line = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`the demo ended: ${stderr()}`);
    return JSON.parse(value);
  };
  const next = async (type: string) => {
    for (let read = await line(); ; read = await line()) if (read.type === type) return read;
  };
  const ready = await line();
  if (ready.type !== "ready") throw new Error(`the first line is ${JSON.stringify(ready)}`);
  return { ...ready, next, sms: () => next("sms"), stderr, stop: (signal = "SIGTERM") => stop(signal) };
}
