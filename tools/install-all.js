/** `npm run install:all`: installs the packages of the root and of every workspace, if not yet installed. */
import { execSync } from "node:child_process";
import { existsSync } from "node:fs";

if (!existsSync("node_modules/phoneproof-frameworks")) {
  console.error("Installing the packages of all workspaces, which takes a minute.");
  execSync("npm ci --workspaces --include-workspace-root --loglevel=error", { stdio: "inherit" });
}
