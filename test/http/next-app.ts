import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { build } from "tsup";
import { freePort } from "../support/ports.js";
import { type Answer, type Call, send } from "./client.js";
import type { Host } from "./hosts.js";
import type { Caller, Service } from "./service.js";

export const fixture = (name: string) => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url));
const next = createRequire(import.meta.url).resolve("next/dist/bin/next");
const environment = { ...process.env, NODE_ENV: "production" as const, NEXT_TELEMETRY_DISABLED: "1", CI: "1" };

/** The response of app/control/route.ts. */
interface NextState {
  readonly customer: Caller;
  readonly other: Caller;
  readonly sent: never[];
  readonly logged: string[];
  readonly answers: number[];
  readonly waits: number[];
}

/** Builds an app of fixtures/ for production, with Next's type check. Rejects with the build's output. */
export async function buildNextApp(name: string): Promise<void> {
  const directory = fixture(name);
  await rm(`${directory}/.next`, { recursive: true, force: true });
  const entry = `${directory}/entry.ts`;
  if (existsSync(entry))
    await build({
      config: false,
      entry: { service: entry },
      outDir: directory,
      format: "esm",
      outExtension: () => ({ js: ".mjs" }),
      target: "es2022",
      tsconfig: `${directory}/tsconfig.json`,
      silent: true,
    });
  const child = spawn(process.execPath, [next, "build"], { cwd: directory, env: environment, stdio: ["ignore", "pipe", "pipe"] });
  const printed = collect(child);
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new Error(`next build ended with ${code}:\n${printed()}`);
}

/** Starts the built app of fixtures/next. */
export async function startNextApp(): Promise<{ host: Host; service: Service }> {
  const { port, close, exited } = await startNext("next");
  const control = (call: Omit<Call, "path">): Promise<Answer> => send(port, { path: "/control", ...call });
  const state = async () => JSON.parse((await control({ method: "GET" })).text) as NextState;
  const { customer, other } = await answered(state, exited);
  return {
    host: { prefix: "", port, send: (call) => send(port, call), close },
    service: {
      customer,
      other,
      sent: async () => (await state()).sent,
      logged: async () => (await state()).logged,
      answers: async () => (await state()).answers,
      waits: async () => (await state()).waits,
      pass: async (pass) => void (await control({ method: "POST", body: JSON.stringify({ pass }) })),
      breakStore: async (broken) => void (await control({ method: "POST", body: JSON.stringify({ broken }) })),
    },
  };
}

/** A built app of fixtures/ that is being served. */
export interface NextProcess {
  readonly port: number;
  /** Its output so far. */
  printed(): string;
  close(): Promise<void>;
  /** Throws if the process has ended. */
  exited(): void;
}

/** Starts a built app of fixtures/ with these environment variables. It may not listen yet. */
async function startNext(name: string, variables: Readonly<Record<string, string>> = {}): Promise<NextProcess> {
  const port = await freePort();
  const child = spawn(process.execPath, [next, "start", "--hostname", "127.0.0.1", "--port", String(port), "--keepAliveTimeout", "500"], {
    cwd: fixture(name),
    env: { ...environment, ...variables },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const printed = collect(child);
  return {
    port,
    printed,
    async close() {
      const ended = once(child, "exit");
      child.kill();
      await ended;
    },
    exited() {
      if (child.exitCode !== null) throw new Error(`next start ended with ${child.exitCode}:\n${printed()}`);
    },
  };
}

/** Starts it, and waits until it listens. */
export async function serveNext(name: string, variables: Readonly<Record<string, string>>): Promise<NextProcess> {
  const app = await startNext(name, variables);
  await answered(() => send(app.port, { method: "GET", path: "/" }), app.exited);
  return app;
}

async function answered<T>(ask: () => Promise<T>, exited: () => void): Promise<T> {
  exited();
  return ask().catch(() => new Promise((resolve) => setTimeout(resolve, 50)).then(() => answered(ask, exited)));
}

function collect(child: ChildProcess): () => string {
  let text = "";
  const add = (chunk: Buffer) => {
    text += chunk.toString();
  };
  child.stdout?.on("data", add);
  child.stderr?.on("data", add);
  return () => text;
}
