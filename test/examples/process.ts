import { type ChildProcessByStdio, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const secret = () => randomBytes(32).toString("base64");

/** An example that runs in a separate process. */
export interface Example {
  readonly url: string;
  /** Waits for the `nth` message or call to a number, from 1, and returns its code. Default: the first. */
  code(to: string, nth?: number): Promise<string>;
  /** Everything printed so far. */
  printed(): string;
  stop(): Promise<void>;
}

type Variables = Readonly<Record<string, string>>;

/** Starts a program of examples/, and waits until it prints where it listens. */
export function tsx(file: string, env: Variables = {}): Promise<Example> {
  return start(["node_modules/tsx/dist/cli.mjs", `examples/${file}`], env, /listening on (http:\S+)/);
}

/** Starts an app of examples/ with `next dev`, and waits until it prints where it listens. */
export function nextDev(folder: string, env: Variables = {}): Promise<Example> {
  return start(["node_modules/next/dist/bin/next", "dev", "--hostname", "127.0.0.1", `examples/${folder}`, "--port", "0"], env, /Local:\s+(http:\S+)/);
}

async function start(args: readonly string[], env: Variables, listening: RegExp): Promise<Example> {
  const child: ChildProcessByStdio<null, Readable, Readable> = spawn(process.execPath, args, {
    cwd: root,
    env: {
      NODE_ENV: "development",
      PATH: process.env.PATH,
      NEXT_TELEMETRY_DISABLED: "1",
      PHONEPROOF_SECRET: secret(),
      SESSION_SECRET: secret(),
      PORT: "0",
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let printed = "";
  const seen = (find: () => string | undefined) =>
    new Promise<string>((resolve, reject) => {
      const look = () => {
        const found = find();
        if (found !== undefined) resolve(found);
      };
      child.stdout.on("data", look);
      child.stderr.on("data", look);
      child.on("exit", () => reject(new Error(`it ended:\n${printed}`)));
      look();
    });
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (printed += chunk));
  return {
    url: await seen(() => listening.exec(printed)?.[1]),
    code: (to, nth = 1) =>
      seen(() =>
        [...printed.matchAll(/(?:SMS|Call) to (\+\d+) \D*((?:\d(?:, )?){6})/g)].filter(([, number]) => number === to)[nth - 1]?.[2]?.replace(/\D/g, ""),
      ),
    printed: () => printed,
    async stop() {
      if (child.exitCode !== null) return;
      const ended = once(child, "exit");
      child.kill();
      await ended;
    },
  };
}
