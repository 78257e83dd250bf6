import { existsSync } from "node:fs";
import { defineConfig } from "@playwright/test";

/** The system's Chromium, if there is one; else the one that `npx playwright install chromium` installs. */
const browsers = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"].map((name) => `/usr/bin/${name}`);
const executablePath = browsers.find((path) => existsSync(path));

export default defineConfig({
  testDir: ".",
  outputDir: "../../test-results/playwright",
  fullyParallel: true,
  reporter: "list",
  use: {
    browserName: "chromium",
    // Chromium has no sandbox for root, the user of containers.
    launchOptions: { args: process.getuid?.() === 0 ? ["--no-sandbox"] : [], ...(executablePath !== undefined && { executablePath }) },
  },
});
