import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

export const executablePath = names.map((name) => `/usr/bin/${name}`).find((path) => existsSync(path));

/** Whether Chromium is installed. If not, prints which tests are skipped; with `CI=true` it throws. */
export function hasChromium(what: string): boolean {
  if (executablePath !== undefined) return true;
  const message = `${what} was NOT tested: there is no Chromium. Get one with: apt-get install chromium-headless-shell`;
  if (process.env.CI) throw new Error(message);
  console.warn(message);
  return false;
}

export function launchChromium(): Promise<Browser> {
  const args = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ];
  return chromium.launch({ executablePath: executablePath as string, args });
}
