import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const command = fileURLToPath(new URL("../../dist/dev.js", import.meta.url));

export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** An empty folder, as a new machine has it. */
export function folder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "phoneproof-self-hosted-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Runs the built command in `cwd`, with nothing but `env` set. */
export function phoneproof(cwd: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const child = spawn(process.execPath, [command, ...args], {
    cwd,
    env: { PATH: process.env["PATH"], PHONEPROOF_SECRET: "q7Xn2LrV0tZc9Hk4WbYs8MfGd3JpAe6U", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (part) => (stdout += part));
  child.stderr.on("data", (part) => (stderr += part));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (status) => resolve({ status, stdout, stderr }));
  });
}

/** Starts `phoneproof serve` on any free port, with a module as docs/serve.md has it. */
export async function serve(cwd: string, env: Readonly<Record<string, string>>) {
  const library = pathToFileURL(join(root, "dist/index.js")).href;
  writeFileSync(
    join(cwd, "verifier.mjs"),
    `import { createVerifier, generateApiKey } from ${JSON.stringify(library)};
export const verifier = ({ store }) => createVerifier({
  store,
  sender: { name: "own", send: async () => ({ outcome: "accepted" }) },
  secret: process.env.PHONEPROOF_SECRET,
  countries: ["FR"],
  customers: [{ customer_uuid: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f", keys: [generateApiKey().digest] }],
});
`,
  );
  const child = spawn(process.execPath, [command, "serve", "./verifier.mjs", "--port", "0"], {
    cwd,
    env: { PATH: process.env["PATH"], PHONEPROOF_SECRET: "q7Xn2LrV0tZc9Hk4WbYs8MfGd3JpAe6U", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (part) => (stdout += part));
  child.stderr.on("data", (part) => (stderr += part));
  const line = (type: string) => stdout.split("\n").find((text) => text.includes(`"type":"${type}"`));
  return { line, stderr: () => stderr, kill: () => child.kill("SIGKILL") };
}
