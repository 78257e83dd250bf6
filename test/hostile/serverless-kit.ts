import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { transform } from "esbuild";
import { createVerifier, type Store, type VerifierOptions } from "phoneproof";
import { fixedClock } from "phoneproof/testing";
import { secret } from "../support/verifier.js";

const root = new URL("../../", import.meta.url).pathname;

/** The code block of a page of `docs/` that begins with a comment of its file name. */
export function blockOf(page: string, file: string): string {
  const text = readFileSync(join(root, "docs", page), "utf8");
  const block = text.split("```").find((part) => part.startsWith(`ts\n// ${file}\n`));
  if (!block) throw new Error(`docs/${page} has no block ${file}`);
  return block.slice("ts\n".length);
}

/** A folder with files of the documentation, in which the built package is installed. */
export async function documentedApp(files: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(tmpdir(), "phoneproof-serverless-"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(root, join(folder, "node_modules/phoneproof"));
  for (const [file, text] of Object.entries(files)) {
    const { code } = await transform(text, { loader: "ts" });
    writeFileSync(join(folder, file.replace(/\.ts$/, ".js")), code);
  }
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Starts a program of the folder. */
export function startProgram(folder: string, file: string, env: Readonly<Record<string, string>>): ChildProcess {
  return spawn(process.execPath, [join(folder, file)], { env: { ...process.env, ...env }, stdio: "ignore" });
}

/** A connection that sends nothing. */
export async function connection(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** Whether the program ends within `ms`. */
export async function endsWithin(program: ChildProcess, ms: number): Promise<boolean> {
  if (program.exitCode !== null || program.signalCode !== null) return true;
  return once(program, "exit", { signal: AbortSignal.timeout(ms) }).then(
    () => true,
    () => false,
  );
}

const inRequest = (store: Store, more: Partial<VerifierOptions> = {}) =>
  createVerifier({ store, sender: { send: async () => ({ outcome: "accepted" }) }, secret, countries: ["FR"], ...more });

/**
 * Creates, each in a request with its own verifier, as on Workers (docs/runtimes.md). A request ends when its response
 * and all that was passed to `waitUntil` are done; its timers never run.
 */
export async function createInRequests(store: Store, count: number) {
  const statuses: string[] = [];
  const alarms: string[] = [];
  for (let index = 0; index < count; index++) {
    const work: Promise<unknown>[] = [];
    const verifier = inRequest(store, {
      clock: fixedClock(Date.now()),
      callbacks: { worker: false, waitUntil: (more) => void work.push(more) },
      onEvent: (event) => void (event.type === "alarm" && alarms.push(event.alarm)),
    });
    const { status } = await verifier.createAuthentication({ phone_number: `+3361${2_000_000 + index * 40_009}` });
    statuses.push(status);
    for (const one of work) await one; // work may add more
  }
  return { statuses, alarms };
}

/** The statistics of the last hours, as another process reads them. */
export function statisticsOf(store: Store) {
  const hour = 3_600_000;
  return inRequest(store).stats({ from: new Date(Date.now() - hour), to: new Date(Date.now() + hour) });
}
