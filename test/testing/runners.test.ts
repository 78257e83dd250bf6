import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "../package/built.js";
import { linkFromHere } from "../package/projects.js";
import { executablePath } from "../support/chromium.js";

const run = promisify(execFile);

/** A project with the packed package in its node_modules and the blocks of docs/testing.md as its files. */
let project: string;

/** Dependencies of the package and of the page's files. */
const beside = ["ipaddr.js", "libphonenumber-js", "reflect-metadata", "tslib", "tsyringe", "zod", "express", "vitest", "@jest/globals", "@playwright/test"];

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), "phoneproof-runners-"));
  const modules = join(project, "node_modules");
  await mkdir(join(modules, "phoneproof"), { recursive: true });
  const { stdout } = await run("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", project], { cwd: root });
  await run("tar", ["-xzf", join(project, stdout.trim()), "-C", join(modules, "phoneproof"), "--strip-components=1"]);
  await linkFromHere(project, ...beside);
  const page = await readFile(join(root, "docs/testing.md"), "utf8");
  for (const [, name = "", body = ""] of page.matchAll(/```(?:js|ts)\n\/\/ (\S+)\n([\s\S]*?)```/g)) await writeFile(join(project, name), body);
  const jest = { testMatch: ["**/*.jest.test.?(c|m)js"], transform: {} };
  await writeFile(join(project, "package.json"), JSON.stringify({ name: "project", type: "module", jest }));
});
afterAll(() => rm(project, { recursive: true, force: true }));

/** What a runner prints for the project; rejects if a test fails. */
async function printed(program: string, args: readonly string[], options = ""): Promise<string> {
  const path = program === "" ? [] : [join(root, "node_modules", program)];
  const env = { ...process.env, NODE_OPTIONS: options, NO_COLOR: "1", VITEST: undefined, NODE_ENV: "test" as const, NODE_TEST_CONTEXT: undefined };
  const { stdout, stderr } = await run(process.execPath, [...path, ...args], { cwd: project, env });
  return stdout + stderr;
}

describe("createTestVerifier from the packed package, in the tests of docs/testing.md, under", () => {
  it("vitest", async () => {
    expect(await printed("vitest/vitest.mjs", ["run", "sign-up.vitest.test.js"])).toMatch(/Tests {2}2 passed/);
  });

  it("node:test", async () => {
    const said = await printed("", ["--test", "sign-up.node.test.js"]);
    expect(said).toMatch(/(#|ℹ) pass 2\n(#|ℹ) fail 0/);
  });

  it("jest, with ES modules", async () => {
    expect(await printed("jest/bin/jest.js", ["sign-up.jest.test.mjs"], "--experimental-vm-modules")).toMatch(/Tests: +2 passed, 2 total/);
  });

  it("jest, in CommonJS, where both entries have the same error class", async () => {
    expect(await printed("jest/bin/jest.js", ["sign-up.jest.test.cjs"])).toMatch(/Tests: +2 passed, 2 total/);
  });

  it.skipIf(executablePath === undefined)("Playwright, with the forms of the page", async () => {
    const config = `export default { testMatch: "*.spec.js", reporter: "line", use: { launchOptions: { executablePath: ${JSON.stringify(executablePath)}, args: ["--no-sandbox"] } } };`;
    await writeFile(join(project, "playwright.config.js"), config);
    expect(await printed("@playwright/test/cli.js", ["test"])).toContain("1 passed");
  });

  it("node:test, with the contracts of stores and senders", async () => {
    const said = await printed("", ["--test", "store.test.js", "sender.test.js"]);
    expect(said).toMatch(/(#|ℹ) fail 0/);
  });
});
