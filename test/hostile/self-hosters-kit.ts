import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const command = fileURLToPath(new URL("../../dist/dev.js", import.meta.url));

/** Starts `phoneproof serve` with a module on any free port. */
export function serve(module: string, env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [command, "serve", module, "--port", "0"], {
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (part) => (stdout += part));
  child.stderr.on("data", (part) => (stderr += part));
  const line = (type: string) => stdout.split("\n").find((text) => text.includes(`"type":"${type}"`));
  return { line, stderr: () => stderr, kill: () => child.kill("SIGKILL") };
}
