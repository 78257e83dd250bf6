import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const hasBrowser = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].some((path) => existsSync(path));
if (!hasBrowser) {
  const message = "examples/playwright was NOT run: there is no Chromium. Get one with: apt-get install chromium";
  if (process.env.CI) throw new Error(message);
  console.warn(message);
}

it.skipIf(!hasBrowser)("examples/playwright: a person signs up by code in a browser", async () => {
  const args = ["node_modules/@playwright/test/cli.js", "test", "-c", "examples/playwright"];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: undefined } });
  expect(stdout).toContain("3 passed");
});
