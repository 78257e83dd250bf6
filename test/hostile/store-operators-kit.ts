import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Store } from "../../src/ports/store.js";
import { secret, setUp } from "../support/verifier.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** The page that an operator follows. */
export const storesPage = readFileSync(join(root, "docs/stores.md"), "utf8");

/** The code block of the page that begins with this line. */
export function blockOf(firstLine: string): string {
  const [, block] = storesPage.split(`\n${firstLine}\n`);
  if (block === undefined) throw new Error(`docs/stores.md has no block ${firstLine}`);
  return block.slice(0, block.indexOf("\n```"));
}

/** The reason why a create fails, as the log has it; "" if it succeeds. */
export async function faultOf(store: Store): Promise<string> {
  try {
    await setUp({ store }).create();
    return "";
  } catch (error) {
    return String(((error as Error).cause as Error | undefined)?.message ?? error);
  }
}

/** What `phoneproof doctor` finds about a store: each with its fix. */
export async function findingsOn(store: Store): Promise<string[]> {
  const findings = await setUp({ store }).verifier.diagnose();
  return findings.filter(({ about }) => about === "store").map(({ message, fix }) => `${message}: ${fix}`);
}

/** A folder in which an application with phoneproof is installed; anyone may read it. */
export function application(): { readonly folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), "phoneproof-app-"));
  chmodSync(folder, 0o755);
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(root, join(folder, "node_modules/phoneproof"));
  for (const client of ["ioredis", "redis"]) symlinkSync(realpathSync(join(root, "node_modules", client)), join(folder, "node_modules", client));
  writeFileSync(join(folder, "required.js"), "export const required = (name) => process.env[name];");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Runs `phoneproof doctor` on a module of an application, as a user who does not own its files. */
export function doctor(folder: string, name: string, text: string, env: Readonly<Record<string, string>> = {}) {
  writeFileSync(join(folder, name), text);
  const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  return new Promise<{ readonly code: number; readonly printed: string }>((done) => {
    execFile(
      process.execPath,
      [join(root, "dist/dev.js"), "doctor", "--development", `./${name}`],
      { ...user, cwd: folder, env: { ...process.env, PHONEPROOF_SECRET: secret, ...env } },
      (error, stdout) => done({ code: error === null ? 0 : Number(error.code), printed: stdout }),
    );
  });
}
