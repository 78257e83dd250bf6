import { fork } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { bundle } from "../store/processes.js";
import type { Answer, HandedOver, Numbered, Order, WorkerSetup } from "./crash-worker.js";

/** A process of the service that may be killed at any moment. */
export interface Worker {
  /** Authentications whose messages it has passed to the carrier. */
  readonly handedOver: readonly string[];
  /** Carries out an order; `undefined` if the process ended before it responded. */
  ask(order: Order): Promise<Answer | undefined>;
  /** `SIGSTOP` pauses the process, `SIGCONT` resumes it. */
  signal(name: "SIGSTOP" | "SIGCONT"): void;
  /** Ends the process at once, whatever is in progress. */
  kill(): Promise<void>;
}

/** Starts processes of one module that calls `serveOrders`. */
export interface Workers {
  start(setup: WorkerSetup): Promise<Worker>;
  /** Kills all remaining processes. */
  killAll(): Promise<void>;
  /** Removes the bundle. */
  remove(): void;
}

/** Bundles the module first. */
export async function bundleWorkers(entry: URL): Promise<Workers> {
  const { script, outDir } = await bundle(entry);
  const living = new Set<Worker>();
  return {
    async start(setup) {
      const worker = await startWorker(script, setup, () => living.delete(worker));
      living.add(worker);
      return worker;
    },
    async killAll() {
      await Promise.all([...living].map((worker) => worker.kill()));
    },
    remove: () => rmSync(outDir, { recursive: true }),
  };
}

async function startWorker(script: string, setup: WorkerSetup, ended: () => void): Promise<Worker> {
  const child = fork(script, [JSON.stringify(setup)], { execArgv: [] });
  const gone = once(child, "exit").then(ended);
  await Promise.race([once(child, "message"), gone.then(() => Promise.reject(new Error("a process ended before it was ready")))]);

  const waiting = new Map<number, (answer: Answer | undefined) => void>();
  let turns = 0;
  let alive = true;
  const handedOver: string[] = [];
  child.on("message", (said: Numbered<Answer> | HandedOver) => {
    if ("handedOver" in said) return void handedOver.push(said.handedOver);
    const { turn, ...answer } = said;
    waiting.get(turn)?.(answer);
    waiting.delete(turn);
  });
  // Responses sent before its end are still read: the channel closes after them.
  child.once("disconnect", () => {
    alive = false;
    for (const settle of waiting.values()) settle(undefined);
  });
  return {
    handedOver,
    ask: (order) =>
      new Promise((settle) => {
        if (!alive) return settle(undefined);
        const turn = turns++;
        waiting.set(turn, settle);
        // The process may be gone already: the channel's closing reports that.
        child.send({ ...order, turn } satisfies Numbered<Order>, () => undefined);
      }),
    signal: (name) => void child.kill(name),
    async kill() {
      child.kill("SIGKILL");
      await gone;
    },
  };
}
