import { setTimeout as sleep } from "node:timers/promises";
import { hooks } from "../../hooks/index.js";
import { aborted } from "../aborted.js";
import { listenOn, urlOf } from "../listen.js";
import { openMetrics } from "../metrics.js";
import { hooksOf, verifierOf } from "../module.js";
import type { DevOutput } from "../start.js";
import { followConnections } from "./connections.js";
import { createHealth } from "./health.js";
import { answerRefused } from "./refused.js";
import { limitedServer, serviceListener } from "./server.js";
import { type ServeSettings, wires } from "./settings.js";

/**
 * Serves the verifier that the module exports, until `stop`. Then `/healthz` returns 503, requests in progress are
 * finished, and the verifier is closed. Writes one JSON object per line to standard output.
 *
 * @returns The exit code: 0; 1 if a port was not available or a request was cut off at the end; 2 if the module exports
 * no verifier. Clients that the module opened are still open.
 */
export async function runServe(settings: ServeSettings, { out, err }: DevOutput, stop: AbortSignal): Promise<number> {
  const tell = (fields: object) => out(`${JSON.stringify({ time: new Date().toISOString(), ...fields })}\n`);
  const stopped = aborted(stop);
  const fault = (error: unknown) => err(`phoneproof: ${(error as Error).message.replace(/^phoneproof: /, "")}\n`);

  let service: Awaited<ReturnType<typeof prepare>> | undefined;
  try {
    // A module may wait for its database: a signal ends that too.
    service = await Promise.race([stopped, prepare(settings, tell, (line) => err(`phoneproof: ${line}\n`))]);
  } catch (error) {
    fault(error);
    return 2;
  }
  if (service === undefined || stop.aborted) return 0;

  const { verifier, health, server, connections } = service;
  let metrics: Awaited<ReturnType<typeof openMetrics>> | undefined;
  try {
    const url = urlOf(settings.host, await listenOn(server, settings.host, settings.port, "--port"));
    if (settings.metricsPort !== undefined) metrics = await openMetrics(verifier, settings.host, settings.metricsPort);
    tell({ type: "listening", url, ...(metrics && { metrics: metrics.url }), pid: process.pid });
  } catch (error) {
    fault(error);
    await verifier.close();
    return 1;
  }

  await stopped;
  tell({ type: "stopping", drain: settings.drain, grace: settings.grace });
  health.leave();
  connections.leave();
  if (settings.drain > 0) await sleep(settings.drain * 1000);
  const over = new AbortController();
  // Unlike `AbortSignal.timeout`, this timer keeps the process alive.
  const timer = setTimeout(() => over.abort(), settings.grace * 1000);
  const cut_off = await connections.stop(over.signal);
  const closing = verifier.close().then(
    () => "yes",
    (error: unknown) => String((error as Error)?.message ?? error),
  );
  const closed = await Promise.race([aborted(over.signal).then(() => "timed out"), closing]);
  await metrics?.connections.stop(over.signal);
  clearTimeout(timer);
  tell({ type: "stopped", cut_off, ...(closed !== "yes" && { fault: `the verifier was not closed: ${closed}` }) });
  return cut_off === 0 && closed === "yes" ? 0 : 1;
}

/** Prepares everything except the ports. Throws errors that name the fix in the module. */
async function prepare(settings: ServeSettings, tell: (line: object) => void, warn: (line: string) => void) {
  const { module } = settings;
  const verifier = await verifierOf(module, settings.place, warn, ["http", "verifications", "ping", "receipts", "metricsHandler"], { waits: true });
  const health = createHealth(verifier, (ok, fault) => tell({ type: "store", ok, fault }));
  // Builds a verifier that is built at its first use, and logs a store that is down. It may still come up later.
  await health.answer();
  const listed = await hooksOf(module, warn);
  const made = [...settings.wires.map((name) => wires[name](verifier)), ...(listed.length > 0 ? [hooks(verifier, listed)] : [])];
  const server = limitedServer(serviceListener(verifier, made, health, tell));
  const connections = followConnections(server);
  answerRefused(server, connections, tell);
  return { verifier, health, server, connections };
}
