import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Runtimes, as exact versions of npm packages, so that a new release of a runtime cannot break our tests. */
export const runtimes = { Bun: "bun@1.4.5", Deno: "deno@2.9.6", Workers: "miniflare@4.20260730.0" } as const;
export type Runtime = keyof typeof runtimes;

/** The command that prints the path of a runtime's program, or of miniflare's folder for Workers. */
const locate: Readonly<Record<Runtime, readonly string[]>> = {
  Bun: ["bun", "-p", "process.execPath"],
  Deno: ["deno", "eval", "console.log(Deno.execPath())"],
  Workers: ["node", "-p", `process.env.PATH.split(path.delimiter).map((bin) => path.join(bin, "../miniflare")).find(fs.existsSync)`],
};

/**
 * Arguments that run a file. The package needs only these permissions of Deno: the network and, for https callbacks,
 * the certificates, which are found through `sys` and `env`.
 */
export const runFile = { Bun: ["--no-install"], Deno: ["run", "--no-prompt", "--no-lock", "--allow-net=127.0.0.1", "--allow-sys", "--allow-env"] } as const;

const asked = new Map<string, Promise<string | undefined>>();

/**
 * The path of a runtime's program, looked up once. `undefined` if the registry is unreachable and nothing is cached;
 * with CI=true that is an error.
 */
export function runtimeOf(runtime: Runtime): Promise<string | undefined> {
  return once(runtimes[runtime], locate[runtime]);
}

/** The same for a version of Node: `"22"`, `"20.19.0"`. */
export function nodeOf(version: string): Promise<string | undefined> {
  if (`${process.versions.node}.`.startsWith(`${version}.`)) return Promise.resolve(process.execPath);
  return once(`node@${version}`, ["node", "-p", "process.execPath"]);
}

/** The message if a package could not be installed. */
export function missing(name: string): string {
  return `this was not tried: it needs the npm package ${name}; connect to the npm registry and run again`;
}

function once(name: string, command: readonly string[]): Promise<string | undefined> {
  const path = asked.get(name) ?? withPackage(name, command);
  asked.set(name, path);
  return path;
}

/** What a command prints with an npm package on its path. */
async function withPackage(name: string, command: readonly string[]): Promise<string | undefined> {
  // Without a network, npm would spend more than a minute on its retries.
  const env = process.env.CI ? process.env : { ...process.env, npm_config_fetch_retries: "0" };
  try {
    const { stdout } = await promisify(execFile)("npx", ["--yes", `--package=${name}`, "--", ...command], { env, timeout: 300_000 });
    return stdout.trim();
  } catch (error) {
    if (process.env.CI) throw error;
    return undefined;
  }
}
