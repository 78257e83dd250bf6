import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const dist = new URL("../../dist/", import.meta.url);

/** The address of a built file, for a module outside the repository. */
export const built = (file: string): string => new URL(file, dist).href;

export interface Command {
  /** What it has written, on both outputs. */
  output(): string;
  /** Whether it still runs. */
  runs(): boolean;
  /** Ends it, and deletes its folder. */
  stop(): Promise<void>;
}

/** Runs a command of phoneproof for a module with this text, in a folder of its own. */
export async function command(name: "serve" | "worker", module: string, ...options: readonly string[]): Promise<Command> {
  const folder = await mkdtemp(join(tmpdir(), "phoneproof-second-week-"));
  await writeFile(join(folder, "verifier.mjs"), module);
  const child = spawn(process.execPath, [fileURLToPath(built("dev.js")), name, "./verifier.mjs", ...options], { cwd: folder });
  let output = "";
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => void (output += chunk.toString()));
  const runs = () => child.exitCode === null && child.signalCode === null;
  return {
    output: () => output,
    runs,
    async stop() {
      if (runs()) child.kill("SIGKILL");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
