import { nodeHandler } from "../../adapters/http/node.js";
import type { Verifier } from "../create-verifier.js";
import { listenOn, urlOf } from "./listen.js";
import { followConnections } from "./serve/connections.js";
import { limitedServer } from "./serve/server.js";

/** Serves the verifier's metrics at the returned URL, until its connections are stopped. Rejects with the fix. */
export async function openMetrics(verifier: Verifier, host: string, port: number) {
  const server = limitedServer(nodeHandler(verifier.metricsHandler));
  const connections = followConnections(server);
  return { url: `${urlOf(host, await listenOn(server, host, port, "--metrics-port"))}/metrics`, connections };
}
