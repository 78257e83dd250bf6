import { type ChildProcessByStdio, execFileSync, type SpawnOptions, spawn } from "node:child_process";
import type { Readable } from "node:stream";

/** Whether a program is installed. If not, prints what is skipped and how to get it; with `CI=true` it throws. */
export function isInstalled(program: string, debian: string, suite: string, version = "--version"): boolean {
  try {
    execFileSync(program, [version], { stdio: "ignore" });
    return true;
  } catch {
    const message = `${debian} is missing: ${suite} cannot run. Get it with: apt-get install ${debian}`;
    if (process.env["CI"] === "true") throw new Error(message);
    console.warn(`SKIPPED: ${message}`);
    return false;
  }
}

/** Starts a server that always ends with this process: a shell waits for the end of its input, and sends it `end`. */
export function spawnServer(
  program: string,
  args: readonly string[],
  end: "KILL" | "QUIT" = "KILL",
  options: SpawnOptions = {},
): ChildProcessByStdio<null, Readable, Readable> {
  const server = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] }) as ChildProcessByStdio<null, Readable, Readable>;
  for (const stream of [server.stdout, server.stderr]) stream.resume();
  const watch = spawn("sh", ["-c", `read _; kill -${end} ${server.pid}`], { stdio: ["pipe", "ignore", "ignore"] });
  watch.unref();
  server.once("exit", () => watch.kill("SIGKILL"));
  return server;
}

/** The processes that a process has started. */
export function childrenOf(pid: number): number[] {
  const rows = execFileSync("ps", ["-A", "-o", "ppid=,pid="], { encoding: "utf8" }).trim().split("\n");
  return rows.map((row) => row.trim().split(/\s+/).map(Number)).flatMap(([parent, child]) => (parent === pid && child !== undefined ? [child] : []));
}
