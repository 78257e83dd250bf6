import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { createVerifier, type Verifier, type VerifierOptions } from "phoneproof";
import { sqliteStore } from "phoneproof/sqlite";
import { secret } from "../support/verifier.js";

export const number = "+33612345678";

/** A verifier on an SQLite file, and the command over the same file. */
export interface Desk {
  readonly verifier: Verifier;
  /** The code of the newest message. */
  code(): string;
  /** Runs `phoneproof` with these arguments. */
  run(...args: readonly string[]): Promise<string>;
  /** What `phoneproof why` says about the number's newest request: its sentences, without line breaks. */
  why(): Promise<string>;
  /** Writes a module for the command, whose verifier has these options, and returns its path. */
  module(options: string): string;
  remove(): Promise<void>;
}

export function newDesk(options: Partial<VerifierOptions> = {}): Desk {
  const folder = mkdtempSync(join(tmpdir(), "phoneproof-desk-"));
  const file = join(folder, "phoneproof.db");
  let newest = "";
  const verifier = createVerifier({
    store: sqliteStore({ file }),
    secret,
    countries: ["FR"],
    callbacks: { worker: false },
    sender: {
      send: async ({ code }) => {
        newest = code;
        return { outcome: "accepted" };
      },
    },
    ...options,
  });
  const run = (...args: readonly string[]): Promise<string> =>
    new Promise((done, fail) => {
      const env = { PATH: process.env["PATH"], PHONEPROOF_DATA: file, PHONEPROOF_SECRET: secret };
      execFile(process.execPath, [resolve("dist/dev.js"), ...args], { env }, (error, stdout, stderr) =>
        error ? fail(new Error(`${error.message}\n${stdout}${stderr}`)) : done(stdout),
      );
    });
  return {
    verifier,
    code: () => newest,
    run,
    why: async () => {
      const { authentications } = JSON.parse(await run("why", number, "--json")) as { authentications: { sentences: string[] }[] };
      return authentications[0]?.sentences.join(" ") ?? "nothing";
    },
    module: (options) => {
      const path = join(folder, "verifier.mjs");
      const library = JSON.stringify(pathToFileURL(resolve("dist/index.js")).href);
      const all = `{ store, secret: "${secret}", countries: ["FR"], sender: { send: async () => ({ outcome: "accepted" }) }, ${options} }`;
      writeFileSync(path, `import { createVerifier } from ${library};\nexport const verifier = ({ store }) => createVerifier(${all});\n`);
      return path;
    },
    remove: async () => {
      await verifier.close();
      rmSync(folder, { recursive: true });
    },
  };
}
