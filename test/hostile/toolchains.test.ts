/** What test runners, stricter runtimes and dependency injection do around a verifier. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { createTestVerifier } from "phoneproof/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type App, newApp } from "./bundles-kit.js";

const root = join(import.meta.dirname, "../..");
const number = "+33612345678";
const realTimeout = setTimeout;

function app(packages?: readonly string[]): App {
  const made = newApp(packages);
  onTestFinished(() => made.remove());
  return made;
}

/** A file as a page of the documentation shows it. */
function shown(page: string, file: string): string {
  for (const [, body = ""] of readFileSync(join(root, "docs", page), "utf8").matchAll(/```js\n([\s\S]*?)```/g))
    if (body.startsWith(`// ${file}\n`)) return body;
  throw new Error(`docs/${page} shows no ${file}`);
}

/** What a promise gives within `ms` of real time, whatever timers are faked. */
const within = <T>(ms: number, promise: Promise<T>): Promise<T | "nothing"> =>
  Promise.race([promise, new Promise<"nothing">((resolve) => realTimeout(() => resolve("nothing"), ms))]);

const silent = { info() {}, warn() {}, error() {} };

describe("a verifier under the runner's fake timers", () => {
  it("abandons a hanging carrier by its own clock in jest with `fakeTimers.enableGlobally`, as the page's hangs.js (docs/testing.md#the-clock)", async () => {
    const made = app();
    const [before = "", ...after] = shown("testing.md", "hangs.js")
      .replace(/^import assert.*$/m, 'const assert = require("node:assert/strict");')
      .replace(/^import (\{.*\}) from (".*");$/gm, "const $1 = require($2);")
      .split("\n\n");
    made.write("hangs.test.cjs", `${before}\ntest("hangs.js", async () => {\n${after.join("\n")}\n}, 1500);\n`);
    const options = { testMatch: ["**/*.test.cjs"], transform: {}, fakeTimers: { enableGlobally: true, doNotFake: ["queueMicrotask"] } };
    const config = made.write("jest.config.json", JSON.stringify(options));
    const jest = [join(root, "node_modules/jest/bin/jest.js"), "--config", config, "--rootDir", made.folder];
    const { stderr } = await promisify(execFile)(process.execPath, jest, { cwd: made.folder, timeout: 20_000 }).catch((failed) => failed);
    expect(stderr).toContain("1 passed");
  });

  it("abandons a hanging carrier by its own clock if `mock.timers` was enabled before the import (docs/testing.md#the-clock)", async () => {
    const made = app();
    made.write("hangs.js", shown("testing.md", "hangs.js"));
    const run = made.write(
      "run.js",
      `import { mock } from "node:test";
      const guard = setTimeout(() => { console.log("hangs"); process.exit(); }, 1500);
      const clear = clearTimeout;
      mock.timers.enable({ apis: ["setTimeout", "setInterval", "setImmediate", "Date"] });
      await import("./hangs.js");
      console.log("pending");
      clear(guard);
      process.exit();`,
    );
    expect(await made.run(run)).toContain("pending");
  });

  it('abandons a hanging carrier after `sendTimeout` with `clock: "running"`, which follows the system clock (docs/testing.md#a-verifier-for-each-test)', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const sender = { send: () => new Promise<never>(() => {}) };
    const test = createTestVerifier({ sender, sendTimeout: 1, clock: "running", logger: silent });
    const created = test.verifier.createAuthentication({ phone_number: number });
    expect(await within(2000, created)).toMatchObject({ status: "pending" });
  });

  it('is not moved by the runner\'s `setSystemTime` with `clock: "running"` (docs/testing.md#the-clock)', async () => {
    const test = createTestVerifier({ clock: "running" });
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const { authentication_uuid } = await test.verifier.createAuthentication({ phone_number: number });
    vi.setSystemTime(Date.now() + 3_600_000);
    const checked = await test.verifier.check({ authentication_uuid, check_code: test.inbox.codeFor(number) });
    await test.close();
    expect(checked.status).toBe("valid");
  });
});

describe("the package", () => {
  it("exports openapi.json to the import that the page shows (docs/install.md#the-four-routes)", async () => {
    const made = app();
    made.write("node_modules/phoneproof/openapi.json", readFileSync(join(root, "openapi.json"), "utf8"));
    const line = /`(import "phoneproof\/openapi\.json"[^`]*)`/.exec(readFileSync(join(root, "docs/install.md"), "utf8"))?.[1];
    const output = await made.run(made.write("document.js", `${line};\nconsole.log("imported");`)).catch(({ stderr }) => stderr);
    expect(output).toContain("imported");
  });

  it("works under the flags of hardened servers: no __proto__, no eval, deprecations as errors (docs/runtimes.md#node)", async () => {
    const made = app();
    const file = made.write("first.js", `${shown("testing.md", "first.js")}\nconsole.log(status);`);
    const flags = ["--disable-proto=throw", "--disallow-code-generation-from-strings", "--throw-deprecation", "--pending-deprecation"];
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, file], { cwd: made.folder, timeout: 20_000 });
    expect(stdout).toBe("valid\n");
  });

  it("lets tests replace single calls of a verifier, and programs destructure them (docs/testing.md)", async () => {
    const test = createTestVerifier();
    onTestFinished(() => test.close());
    const { createAuthentication, verifications } = test.verifier;
    const { start } = verifications;
    const statuses = [(await createAuthentication({ phone_number: number })).status, (await start({ phone_number: "+33612345679" })).status];
    expect(statuses).toEqual(["pending", "pending"]);
    vi.spyOn(test.verifier, "retry").mockRejectedValue(new Error("replaced"));
    vi.spyOn(verifications, "cancel").mockResolvedValue(undefined);
    await expect(test.verifier.retry({ authentication_uuid: crypto.randomUUID() })).rejects.toThrow("replaced");
    expect(await test.verifier.verifications.cancel({ phone_number: "+33612345679" })).toBeUndefined();
  });
});
