import { statSync } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import type { Verifier } from "../create-verifier.js";
import { integer } from "./arguments.js";
import type { DevOutput } from "./start.js";

/** What `phoneproof worker` runs with. */
export interface WorkerSettings {
  /** Path of the module that exports the verifier. */
  readonly module: string;
  /** Seconds between two looks for callbacks that are due. */
  readonly interval: number;
  /** One look, then the end. */
  readonly once: boolean;
}

/** Reads the arguments after `worker`. Throws a `TypeError` that names the one at fault. */
export function readWorkerSettings(args: readonly string[]): WorkerSettings {
  const options = { interval: { type: "string" }, once: { type: "boolean" } } as const;
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  const [module, ...surplus] = positionals;
  if (!module) throw new TypeError("worker needs the path of a module that exports your verifier: phoneproof worker ./verifier.js");
  if (surplus.length > 0) throw new TypeError(`unexpected ${surplus.join(" ")}`);
  if (values.once && values.interval !== undefined) throw new TypeError("--interval has no meaning with --once");
  return { module, interval: values.interval === undefined ? 5 : integer("--interval", values.interval, 1, 3_600), once: values.once ?? false };
}

type Deliverer = Pick<Verifier, "flush" | "close">;

/**
 * Delivers callbacks for the verifier that the module exports, until `stop`; then waits for the deliveries under way and closes the verifier.
 *
 * It flushes whether the verifier has a worker of its own or not: within a process no two take the same record.
 *
 * @returns The exit code: 0; 1 when the one flush of `--once` failed or was stopped; 2 when the module gives no verifier. Clients that the module opened are still open.
 */
export async function runWorker({ module, interval, once }: WorkerSettings, { out, err }: DevOutput, stop: AbortSignal): Promise<number> {
  let verifier: Deliverer;
  try {
    verifier = await verifierOf(module);
  } catch (error) {
    err(`phoneproof: ${(error as Error).message}\n`);
    return 2;
  }
  const stopped = new Promise<undefined>((done) => stop.addEventListener("abort", () => done(undefined)));
  let code = 0;
  if (once) {
    const report = await Promise.race([stopped, verifier.flush().catch((error: Error) => void err(`phoneproof: the flush failed: ${error.message}\n`))]);
    if (report === undefined) code = 1;
    else out(`${JSON.stringify(report)}\n`);
  } else {
    err(`phoneproof: delivering the callbacks of ${module}, with a look every ${interval} s. Ctrl+C stops it.\n`);
    void flushEvery(interval, verifier, err, stop);
    await stopped;
    err("phoneproof: stopping; waiting for the deliveries under way.\n");
  }
  await verifier.close();
  return code;
}

/** The timer between two looks is what keeps the process alive. */
async function flushEvery(interval: number, verifier: Deliverer, err: DevOutput["err"], stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    await verifier.flush().catch((error: Error) => err(`phoneproof: the look for due callbacks failed and is tried again: ${error.message}\n`));
    await sleep(interval * 1000, undefined, { signal: stop }).catch(() => undefined);
  }
}

/** Throws an error that names the mend. */
async function verifierOf(module: string): Promise<Deliverer> {
  const path = resolve(module);
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) throw new Error(`there is no file ${path}: name the module that exports your verifier`);
  let exported: Record<string, unknown>;
  try {
    exported = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_UNKNOWN_FILE_EXTENSION")
      throw new Error(`Node cannot import ${path} as it is: build it first and name the JavaScript file`);
    throw new Error(`importing ${path} failed; mend it there: ${(error as Error)?.stack ?? error}`);
  }
  // A CommonJS module's exports come as the default export, with its own `default` in them.
  const inner = exported["default"] as Record<string, unknown> | null | undefined;
  const found = [exported["verifier"], inner, inner?.["verifier"], inner?.["default"]].find(isDeliverer);
  if (found === undefined) throw new Error(`${path} exports no verifier: add \`export const verifier = createVerifier({ … })\` to it, or export it by default`);
  return found;
}

function isDeliverer(value: unknown): value is Deliverer {
  const { flush, close } = (value ?? {}) as Record<string, unknown>;
  return typeof flush === "function" && typeof close === "function";
}
