import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { root } from "./built.js";

/** The environment of a user's shell: without the variables that npm and vitest set. */
const shell: NodeJS.ProcessEnv = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(npm_(?!config_)|npm_config_legacy_peer_deps$|VITEST|NODE_ENV$|NODE_OPTIONS$|INIT_CWD$)/.test(name)),
  ),
  NEXT_TELEMETRY_DISABLED: "1",
};

/** Returns what the command prints. Rejects with all its output if it fails. */
export async function command(cwd: string, program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
  try {
    return (await promisify(execFile)(program, args, { cwd, env: { ...shell, ...env }, maxBuffer: 1 << 26 })).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${program} ${args.join(" ")} failed in ${cwd}\n${stdout}\n${stderr}`);
  }
}

/** A repository with the files that a commit of everything here would contain. */
export async function makeClone(folder: string): Promise<string> {
  const { stdout } = await promisify(execFile)("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"], { cwd: root });
  const { stdout: deleted } = await promisify(execFile)("git", ["ls-files", "-z", "--deleted"], { cwd: root });
  const gone = new Set(deleted.split("\0"));
  for (const file of stdout.split("\0").filter((name) => name !== "" && !gone.has(name))) await cp(join(root, file), join(folder, file));
  await command(folder, "git", ["init", "--quiet"]);
  await command(folder, "git", ["add", "--all"]);
  const settings = { "user.name": "test", "user.email": "test@example.com", "commit.gpgsign": "false", "core.hooksPath": "/dev/null" };
  await command(folder, "git", [...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]), "commit", "--quiet", "--message=all"]);
  return folder;
}

interface Packed {
  readonly tarball: string;
  /** Paths in the package. */
  readonly files: readonly string[];
}

/** Files of an older build: one that is built again, the one that marks a build, one no longer built, and the site. */
const leavings = ["dist/dev.js", "dist/index.d.ts", "dist/gone.js", "docs/.vitepress/dist/llms.txt"];

/** Runs `npm pack` in a clone that contains files of an older build. It uses the dependencies installed here. */
export async function packOverLeavings(clone: string): Promise<Packed> {
  await symlink(join(root, "node_modules"), join(clone, "node_modules"));
  for (const file of leavings) {
    await mkdir(dirname(join(clone, file)), { recursive: true });
    await writeFile(join(clone, file), "of an older build");
  }
  const [packed] = JSON.parse(await command(clone, "npm", ["pack", "--json"])) as [{ filename: string; files: { path: string }[] }];
  return { tarball: join(clone, packed.filename), files: packed.files.map(({ path }) => path) };
}

/** A project with these packages installed and these files: their paths in it, and their sources here. */
export async function makeProject(
  folder: string,
  type: "module" | undefined,
  files: Readonly<Record<string, string>>,
  packages: readonly string[],
): Promise<string> {
  await mkdir(folder);
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "project", private: true, type }));
  for (const [file, source] of Object.entries(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await cp(join(root, "test/package", source), join(folder, file), { recursive: true });
  }
  await command(folder, "npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", ...packages]);
  return folder;
}

/** Whether packages can be installed at all. With CI=true it fails if they cannot. */
export async function registryAnswers(): Promise<boolean> {
  // Without a network, npm would spend more than a minute on its retries.
  const asked = command(root, "npm", ["view", "zod", "version"], process.env.CI ? {} : { npm_config_fetch_retries: "0" });
  return asked.then(
    () => true,
    (error) => (process.env.CI ? Promise.reject(error) : false),
  );
}

/** Links packages of this project into another project. */
export async function linkFromHere(project: string, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    await mkdir(dirname(join(project, "node_modules", name)), { recursive: true });
    await symlink(join(root, "node_modules", name), join(project, "node_modules", name));
  }
}

/** A program that was started. */
export interface Started {
  /** Returns the first group of a match in the output as soon as there is one. Rejects if the program ends before. */
  seen(pattern: RegExp): Promise<string>;
  stop(): Promise<void>;
}

export function startCommand(cwd: string, program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Started {
  const child = spawn(program, args, { cwd, env: { ...shell, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "exit");
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (printed += chunk));
  return {
    seen: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const match = pattern.exec(printed)?.[1];
          if (match !== undefined) resolve(match);
        };
        for (const stream of [child.stdout, child.stderr]) stream.on("data", look);
        ended.then(() => reject(new Error(`${program} ${args.join(" ")} ended:\n${printed}`)), reject);
        look();
      }),
    async stop() {
      child.kill();
      await ended;
    },
  };
}
