import { setTimeout as sleep } from "node:timers/promises";
import type { Verifier } from "../create-verifier.js";
import { aborted } from "./aborted.js";
import { flags, hostOf, integer, parse, portOf, valued } from "./arguments.js";
import type { Environment } from "./carriers.js";
import { openMetrics } from "./metrics.js";
import { verifierOf } from "./module.js";
import { defaultHost } from "./serve/settings.js";
import { readPlace } from "./settings.js";
import type { DevOutput } from "./start.js";

export type WorkerSettings = ReturnType<typeof readWorkerSettings>;

/** Reads the arguments after `worker`. Throws a `TypeError` that names the invalid one. */
export function readWorkerSettings(args: readonly string[], env: Environment) {
  const options = { ...valued("data", "store", "interval", "metrics-port", "host"), ...flags("once") };
  const { values, positionals } = parse("worker", args, options, 1);
  const [module] = positionals;
  if (!module) throw new TypeError("worker needs the path of a module that exports your verifier: phoneproof worker ./verifier.js");
  const { interval, host, "metrics-port": metricsPort } = values;
  if (values.once && interval !== undefined) throw new TypeError("--interval has no effect with --once");
  if (values.once && metricsPort !== undefined) throw new TypeError("--metrics-port has no effect with --once");
  if (host !== undefined && metricsPort === undefined) throw new TypeError("--host has no effect without --metrics-port: add it, or leave --host out");
  return {
    /** Path of the module that exports the verifier. */
    module,
    /** For a module that leaves its store to the command. */
    place: readPlace(values, env),
    /** Seconds between two searches for due callbacks. */
    interval: interval === undefined ? 5 : integer("--interval", interval, 1, 3_600),
    /** Whether to search once and exit. */
    once: values.once ?? false,
    /** Address of the metrics. */
    host: hostOf(host ?? defaultHost),
    /** `undefined`: metrics are not served. */
    metricsPort: metricsPort === undefined ? undefined : portOf("--metrics-port", metricsPort),
  };
}

/**
 * Delivers callbacks for the verifier that the module exports, until `stop`. Then waits for deliveries in progress,
 * closes the verifier and stops serving its metrics. It works even if the verifier has a worker too: in one process no
 * two take the same record.
 *
 * @returns The exit code: 0; 1 if the port of the metrics was not available, or if the single flush of `--once` failed
 * or was stopped; 2 if the module exports no verifier, or with `--once` if its store cannot be opened. Clients that the
 * module opened are still open.
 */
export async function runWorker(settings: WorkerSettings, { out, err }: DevOutput, stop: AbortSignal): Promise<number> {
  const { module, place, interval, once, host, metricsPort } = settings;
  let verifier: Verifier;
  try {
    verifier = await verifierOf(module, place, (line) => err(`phoneproof: ${line}\n`), metricsPort === undefined ? [] : ["metricsHandler"], { waits: !once });
  } catch (error) {
    err(`phoneproof: ${(error as Error).message}\n`);
    return 2;
  }
  let metrics: Awaited<ReturnType<typeof openMetrics>> | undefined;
  try {
    if (metricsPort !== undefined) metrics = await openMetrics(verifier, host, metricsPort);
  } catch (error) {
    err(`phoneproof: ${(error as Error).message}\n`);
    await verifier.close();
    return 1;
  }
  const stopped = aborted(stop);
  let code = 0;
  if (once) {
    const report = await Promise.race([stopped, verifier.flush().catch((error: Error) => void err(`phoneproof: the flush failed: ${error.message}\n`))]);
    if (report === undefined) code = 1;
    else out(`${JSON.stringify(report)}\n`);
  } else {
    err(`phoneproof: delivering the callbacks of ${module}, searching every ${interval} s${metrics ? `; metrics at ${metrics.url}` : ""}. Ctrl+C stops it.\n`);
    void flushEvery(interval, verifier, err, stop);
    await stopped;
    err("phoneproof: stopping; waiting for the deliveries in progress.\n");
  }
  await verifier.close();
  await metrics?.connections.stop(AbortSignal.timeout(1_000));
  return code;
}

/** The timer between two searches keeps the process alive. */
async function flushEvery(interval: number, verifier: Verifier, err: DevOutput["err"], stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    await verifier.flush().catch((error: Error) => err(`phoneproof: the search for due callbacks failed and will be retried: ${error.message}\n`));
    await sleep(interval * 1000, undefined, { signal: stop }).catch(() => undefined);
  }
}
