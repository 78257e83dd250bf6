import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";

interface Call {
  readonly id: number;
  readonly method: string;
  readonly argument: unknown;
}

type Answer = { readonly id: number; readonly result: unknown } | { readonly id: number; readonly failed: string };

/** A child process with callable methods. */
export interface Child {
  call<R>(method: string, argument?: unknown): Promise<R>;
  stop(): Promise<void>;
}

/** Starts a file of this folder as a separate process. `flags` are Node's. */
export function startChild(file: string, args: readonly string[] = [], flags: readonly string[] = []): Child {
  const child: ChildProcess = fork(fileURLToPath(new URL(file, import.meta.url)), args, {
    execArgv: [...process.execArgv, ...flags],
    serialization: "advanced",
  });
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  const gone = new Promise<void>((resolve) => {
    child.once("exit", (code, signal) => {
      for (const { reject } of waiting.values()) reject(new Error(`${file} ended with ${code ?? signal}`));
      waiting.clear();
      resolve();
    });
  });
  child.on("message", (answer: Answer) => {
    const waiter = waiting.get(answer.id);
    waiting.delete(answer.id);
    if ("failed" in answer) waiter?.reject(new Error(`${file}: ${answer.failed}`));
    else waiter?.resolve(answer.result);
  });
  let last = 0;
  return {
    call<R>(method: string, argument?: unknown) {
      return new Promise<R>((resolve, reject) => {
        const id = ++last;
        waiting.set(id, { resolve: (value) => resolve(value as R), reject });
        child.send({ id, method, argument } satisfies Call);
      });
    },
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.disconnect();
      await gone;
    },
  };
}

/** Handles the parent's calls until it disconnects. */
export function answerCalls(methods: Readonly<Record<string, (argument: never) => unknown>>): void {
  process.on("message", async ({ id, method, argument }: Call) => {
    // A parent that has exited reads no reply.
    const reply = (answer: Answer) => process.send?.(answer, undefined, undefined, () => undefined);
    try {
      const run = methods[method];
      if (run === undefined) throw new Error(`there is no method ${method}`);
      reply({ id, result: await run(argument as never) });
    } catch (error) {
      reply({ id, failed: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  });
  process.once("disconnect", () => process.exit());
}

/** Runs an exported function of a file of this folder in a new process, by default with `gc`; returns its result. */
export async function runAlone<R>(file: string, name: string, argument?: unknown, flags: readonly string[] = ["--expose-gc"]): Promise<R> {
  const child = startChild("./alone.ts", [new URL(file, import.meta.url).href, name], flags);
  try {
    return await child.call<R>("run", argument);
  } finally {
    await child.stop();
  }
}
