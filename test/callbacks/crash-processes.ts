import { fork } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { bundle } from "../store/processes.js";
import type { Answer, HandedOver, Numbered, Order, WorkerSetup } from "./crash-worker.js";

/** A process of the service that may be killed at any moment. */
export interface Worker {
  /** Authentications whose messages it has handed to the carrier. */
  readonly handedOver: readonly string[];
  /** Has it do something; `undefined` when it ended before it answered. */
  ask(order: Order): Promise<Answer | undefined>;
  /** `SIGSTOP` holds it and `SIGCONT` lets it go on. */
  signal(name: "SIGSTOP" | "SIGCONT"): void;
  /** Ends it at once, with whatever it has under way. */
  kill(): Promise<void>;
}

/** Starts processes of one module that calls `serveOrders`. */
export interface Workers {
  start(setup: WorkerSetup): Promise<Worker>;
  /** Kills all that are left. */
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
  // What it answered before its end is still read: the channel closes after that.
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
        // It may be gone already: that is heard when the channel closes.
        child.send({ ...order, turn } satisfies Numbered<Order>, () => undefined);
      }),
    signal: (name) => void child.kill(name),
    async kill() {
      child.kill("SIGKILL");
      await gone;
    },
  };
}
