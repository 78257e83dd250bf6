import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { PolicyOverride } from "../../src/domain/policy.js";
import type { Ask, Batch, Outcome, ProcessSetup } from "./processes-worker.js";

/** Four processes of the service on one store, for one customer. */
export interface Processes {
  /** Sends each process its batch and waits for all of them. */
  run(now: number, batches: readonly (readonly Ask[])[]): Promise<Outcome>;
  stop(): Promise<void>;
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const optional = [
  "@aws-sdk/credential-providers",
  "@mongodb-js/zstd",
  "aws4",
  "gcp-metadata",
  "kerberos",
  "mongodb-client-encryption",
  "pg-native",
  "snappy",
  "socks",
];

/**
 * Bundles a module and its packages for a separate process, as Node runs no TypeScript and loading packages one by one
 * takes most of the start. The caller removes `outDir`.
 */
export async function bundle(entry: URL): Promise<{ readonly script: string; readonly outDir: string }> {
  const outDir = join(root, "node_modules", ".cache", "phoneproof-processes", randomUUID());
  const script = join(outDir, basename(fileURLToPath(entry)).replace(/\.ts$/, ".mjs"));
  await build({
    entryPoints: [fileURLToPath(entry)],
    outfile: script,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "error",
    // Compiled parts, and optional dependencies of drivers.
    external: ["libsql", "*.node", ...optional],
    loader: { ".lua": "text" },
    banner: { js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);' },
  });
  return { script, outDir };
}

/**
 * Starts one process for each clock. `entry` is a module that calls `serveBatches`; it is bundled first, as Node runs
 * no TypeScript.
 *
 * @param skews How far each process's clock is ahead of the true time, in milliseconds.
 * @param policy The customer's policy; a message costs 1.
 */
export async function startProcesses(entry: URL, url: string, skews: readonly number[], policy?: PolicyOverride): Promise<Processes> {
  const { script, outDir } = await bundle(entry);
  const customer = randomUUID();
  const children = await Promise.all(
    skews.map(async (skew) => {
      const setup: ProcessSetup = { url, customer, skew, policy };
      const child = fork(script, [JSON.stringify(setup)], { execArgv: [] });
      const ended = once(child, "exit").then(() => Promise.reject(new Error("a process ended before it was ready")));
      await Promise.race([once(child, "message"), ended]);
      return child;
    }),
  );
  return {
    async run(now, batches) {
      const outcomes = await Promise.all(children.map((child, at) => ask(child, { now, asks: batches[at] ?? [] })));
      return { answers: outcomes.flatMap(({ answers }) => answers), sent: outcomes.flatMap(({ sent }) => sent) };
    },
    async stop() {
      await Promise.all(
        children.map(async (child) => {
          const gone = once(child, "exit");
          child.disconnect();
          await gone;
        }),
      );
      rmSync(outDir, { recursive: true });
    },
  };
}

async function ask(child: ChildProcess, batch: Batch): Promise<Outcome> {
  const answer = once(child, "message");
  child.send(batch);
  const [outcome] = (await answer) as [Outcome];
  return outcome;
}
