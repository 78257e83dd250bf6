import { fork } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";

/** A block that runs. */
export interface Running {
  /** The port of the server that it started, if it listens. */
  readonly port: number | undefined;
  /** What it printed so far. */
  printed(): string;
  /** Resolves when it has ended, by itself or not. */
  readonly ended: Promise<Ended>;
  /** Ends it, and returns how it ended. */
  end(): Promise<Ended>;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Milliseconds to wait after loading for a block that does not listen: an open connection keeps it running. */
const afterLoad = 400;

/** Starts a compiled block and waits until it listens, has ended, or has loaded and a moment has passed. */
export async function start(file: string, environment: Readonly<Record<string, string>>): Promise<Running> {
  const child = fork(join(import.meta.dirname, "program.mjs"), [file], {
    cwd: dirname(file),
    env: { PATH: process.env.PATH, ...environment } as unknown as NodeJS.ProcessEnv,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const printed = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) child[name]?.on("data", (chunk) => (printed[name] += chunk));
  const closed = once(child, "close").then(([code, signal]) => ({ code, signal, ...printed }) as Ended);
  const port = await new Promise<number | undefined>((done) => {
    closed.then(() => done(undefined));
    let listening: number | undefined;
    let loaded = false;
    child.on("message", (told: { listening?: number; loaded?: true }) => {
      listening ??= told.listening;
      if (told.loaded) {
        loaded = true;
        setTimeout(() => done(listening), afterLoad).unref();
      }
      if (loaded && listening !== undefined) done(listening);
    });
  });
  return {
    port,
    printed: () => printed.stdout,
    ended: closed,
    async end() {
      if (child.connected) child.send("end", () => undefined);
      return closed;
    },
  };
}

/** Runs at most `amount` of the given functions at a time. */
export function atATime(amount: number): <T>(work: () => Promise<T>) => Promise<T> {
  let free = amount;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (free === 0) await new Promise<void>((done) => waiting.push(done));
    else free--;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free++;
    }
  };
}
