import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { run } from "./built.js";
import { passed, smoke } from "./smoke.js";

/** The path of that version's program, from the npm package `node`; `undefined` where the registry cannot be reached and nothing is cached. */
async function nodeOf(version: string): Promise<string | undefined> {
  if (process.versions.node.startsWith(`${version}.`)) return process.execPath;
  try {
    const { stdout } = await promisify(execFile)("npx", ["--yes", `--package=node@${version}`, "--", "node", "-p", "process.execPath"], { timeout: 100_000 });
    return stdout.trim();
  } catch (error) {
    if (process.env.CI) throw error;
    return undefined;
  }
}

describe.each(["20", "22", "24"])("Node %s", (version) => {
  test.for(["module", "commonjs"] as const)("verifies a number with the built package, as %s", { timeout: 120_000 }, async (format, { skip }) => {
    const node = await nodeOf(version);
    if (node === undefined) {
      const note = `the package on Node ${version} was not tried: it comes as the npm package node@${version}; connect to the npm registry and run again`;
      console.warn(`SKIPPED: ${note}`);
      return skip(note);
    }
    expect(await run("commonjs", "process.stdout.write(process.versions.node)", node)).toMatch(new RegExp(`^${version}\\.`));
    expect(await run(format, smoke[format], node)).toBe(passed);
  });
});
