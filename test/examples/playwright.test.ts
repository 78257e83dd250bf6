import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { hasChromium } from "../support/chromium.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

it.skipIf(!hasChromium("examples/playwright"))("examples/playwright: its three tests of a sign-up pass in a browser", async () => {
  const args = ["node_modules/@playwright/test/cli.js", "test", "-c", "examples/playwright"];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: undefined } });
  expect(stdout).toContain("3 passed");
});
