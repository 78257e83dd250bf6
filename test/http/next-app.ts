import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { build } from "tsup";
import { type Answer, type Call, send } from "./client.js";
import type { Host } from "./hosts.js";
import type { Caller, Service } from "./service.js";

const directory = fileURLToPath(new URL("fixtures/next", import.meta.url));
const next = createRequire(import.meta.url).resolve("next/dist/bin/next");
const environment = { ...process.env, NODE_ENV: "production" as const, NEXT_TELEMETRY_DISABLED: "1", CI: "1" };

/** What app/control/route.ts answers. */
interface NextState {
  readonly customer: Caller;
  readonly other: Caller;
  readonly sent: never[];
  readonly logged: string[];
  readonly answers: number[];
  readonly waits: number[];
}

/** Builds the app of fixtures/next for production, its types checked by Next. Rejects with what the build printed. */
export async function buildNextApp(): Promise<void> {
  await rm(`${directory}/.next`, { recursive: true, force: true });
  await build({
    config: false,
    entry: { service: `${directory}/entry.ts` },
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

/** Starts the app that was built. */
export async function startNextApp(): Promise<{ host: Host; service: Service }> {
  const port = await freePort();
  const child = spawn(process.execPath, [next, "start", "--hostname", "127.0.0.1", "--port", String(port), "--keepAliveTimeout", "500"], {
    cwd: directory,
    env: environment,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const printed = collect(child);
  const control = (call: Omit<Call, "path">): Promise<Answer> => send(port, { path: "/control", ...call });
  const state = async () => JSON.parse((await control({ method: "GET" })).text) as NextState;
  const ready = async (): Promise<Awaited<ReturnType<typeof state>>> => {
    if (child.exitCode !== null) throw new Error(`next start ended with ${child.exitCode}:\n${printed()}`);
    return state().catch(() => new Promise((resolve) => setTimeout(resolve, 50)).then(ready));
  };
  const { customer, other } = await ready();
  return {
    host: {
      prefix: "",
      port,
      send: (call) => send(port, call),
      close: async () => {
        const exited = once(child, "exit");
        child.kill();
        await exited;
      },
    },
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

function collect(child: ChildProcess): () => string {
  let text = "";
  const add = (chunk: Buffer) => {
    text += chunk.toString();
  };
  child.stdout?.on("data", add);
  child.stderr?.on("data", add);
  return () => text;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
