import { type ChildProcess, spawn } from "node:child_process";
import type { Clock, Store } from "phoneproof";

/** A real system clock that can be set back, as by NTP or a resumed VM; `elapsed` goes on. */
export function steppedClock(): Clock & { back(ms: number): void; pass(ms: number): void } {
  const base = Date.UTC(2026, 10, 20, 12);
  let mono = 0;
  let off = 0;
  const timers = new Set<{ readonly at: number; readonly run: () => void }>();
  return {
    now: () => base + mono - off,
    elapsed: () => mono,
    after(ms, run) {
      const timer = { at: mono + ms, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    back: (ms) => void (off += ms),
    pass(ms) {
      const end = mono + ms;
      for (;;) {
        const next = [...timers].filter(({ at }) => at <= end).sort((one, other) => one.at - other.at)[0];
        if (next === undefined) break;
        timers.delete(next);
        mono = Math.max(mono, next.at);
        next.run();
      }
      mono = end;
    },
  };
}

/** A store behind a client: each call takes a moment, and after `end` every call is listed and rejects. */
export function slowStore(inner: Store, ms: number): { readonly store: Store; readonly late: string[]; end(): void } {
  const late: string[] = [];
  let ended = false;
  const store = new Proxy(inner, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== "function") return value;
      if (name === "close") return value.bind(target) as unknown;
      return async (...all: unknown[]) => {
        if (!ended) await new Promise((resolve) => setTimeout(resolve, ms));
        if (ended) {
          late.push(String(name));
          throw new Error("the client is closed");
        }
        return value.apply(target, all) as unknown;
      };
    },
  });
  return { store, late, end: () => void (ended = true) };
}

export interface Running {
  readonly process: ChildProcess;
  readonly text: () => string;
}

/** Runs a program, and collects what it writes. */
export function launch(command: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv): Running {
  const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => (text += String(part)));
  return { process: child, text: () => text };
}

/** Whether a process is there. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

export function endProcess(pid: number | undefined): void {
  if (pid !== undefined && pid > 0 && isAlive(pid)) process.kill(pid, "SIGKILL");
}

/** The main program of `node:cluster`: two workers that run `program`, and a line for each that ends. */
export const clusterOf = (program: string): string => `
import cluster from "node:cluster";
if (cluster.isPrimary) {
  const workers = [cluster.fork(), cluster.fork()];
  let up = 0;
  cluster.on("listening", () => {
    if (++up === workers.length) console.log("up " + workers.map(({ process }) => process.pid).join(" "));
  });
  cluster.on("exit", (worker, code, signal) => console.log("ended " + worker.process.pid + " " + (code ?? signal)));
} else {
  await import(${JSON.stringify(program)});
}
`;
