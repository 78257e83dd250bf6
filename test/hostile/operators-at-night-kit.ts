import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const command = join(root, "dist/dev.js");

const secret = "q7Xn2LrV0tZc9Hk4WbYs8MfGd3JpAe6U";
const customer = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the built command in `cwd`. `to` is where a shell sends its standard output, for example `/dev/full`. */
export function phoneproof(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  { to, cwd = root }: { to?: string; cwd?: string } = {},
): Promise<Ended> {
  const line = to === undefined ? 'exec "$@"' : `exec "$@" >${to}`;
  const child = spawn("sh", ["-c", line, "sh", process.execPath, command, ...args], {
    cwd,
    env: { PATH: process.env.PATH, PHONEPROOF_SECRET: secret, ...env },
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

/** A folder with a module that doctor finds no fault with. */
export async function service(): Promise<{ readonly folder: string; readonly module: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), "phoneproof-night-"));
  const module = join(folder, "verifier.mjs");
  const library = pathToFileURL(join(root, "dist/index.js")).href;
  await writeFile(
    module,
    `import { randomBytes } from "node:crypto";
import { createVerifier, generateApiKey } from ${JSON.stringify(library)};
export const verifier = ({ store }) => createVerifier({
  store,
  sender: { name: "own", send: async () => ({ outcome: "accepted" }) },
  secret: randomBytes(32).toString("base64"),
  countries: ["FR"],
  customers: [{ customer_uuid: "${customer}", keys: [generateApiKey().digest] }],
});
`,
  );
  return { folder, module, remove: () => rm(folder, { recursive: true, force: true }) };
}
