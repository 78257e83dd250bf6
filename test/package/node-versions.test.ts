import { describe, expect, test } from "vitest";
import { run } from "./built.js";
import { missing, nodeOf } from "./programs.js";
import { passed, smoke } from "./smoke.js";

/** The lowest version that `engines` in package.json allows, and every release line above it. */
describe.each(["20.19.0", "20", "22", "24", "26"])("Node %s", (version) => {
  test.for(["module", "commonjs"] as const)("verifies a number with the built package, as %s", async (format, { skip }) => {
    const node = await nodeOf(version);
    if (node === undefined) {
      console.warn(`SKIPPED: ${missing(`node@${version}`)}`);
      return skip(missing(`node@${version}`));
    }
    const ran = await run("commonjs", "process.stdout.write(process.versions.node)", node);
    expect(`${ran}.`.startsWith(`${version}.`), ran).toBe(true);
    expect(await run(format, smoke[format], node)).toBe(passed);
  });
});
