import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import { nodeHandler } from "../../../adapters/http/node.js";
import { pathOf } from "../../../adapters/http/paths.js";
import type { Verifier } from "../../create-verifier.js";
import type { Health } from "./health.js";
import { followRequest, isHealth, type RequestLine } from "./request-line.js";

/** What the server asks of a verifier. */
export type ServedVerifier = Pick<Verifier, "root" | "handle" | "warn" | "clock" | "receipts" | "metricsHandler" | "ping" | "close">;

/**
 * Time limits, in milliseconds. Headers: from the first byte, or the connection's beginning. A whole request: longer than a body may take (10 s) and than the rest of one is let past (5 s), so that it gets an answer of ours first.
 * An idle connection outlives the 60 s of the usual load balancer: one that closed first would meet a request on its way. Looked at every second; Node's own 30 s would make the others that much longer.
 */
const limits = { headersTimeout: 10_000, requestTimeout: 20_000, keepAliveTimeout: 75_000, connectionsCheckingInterval: 1_000 };

/** A server with time limits, which does not listen yet. */
export const limitedServer = (listener: RequestListener): Server => createServer(limits, listener);

/** `/v1`, `/receipts/{provider}` and `/healthz`; other paths are answered by the verifier, with 404. */
export function serviceListener(verifier: ServedVerifier, health: Health, tell: (line: RequestLine) => void): RequestListener {
  const api = nodeHandler([verifier, verifier.receipts]);
  return (request, response) => {
    const path = pathOf(request.url ?? "/");
    followRequest(request, response, path, tell);
    if (!isHealth(path)) return api(request, response);
    request.resume();
    if (request.method !== "GET" && request.method !== "HEAD") return plain(response.setHeader("allow", "GET, HEAD"), 405, "GET only\n");
    void health.answer().then(([status, text]) => plain(response, status, text));
  };
}

function plain(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store", "content-length": Buffer.byteLength(text) }).end(text);
}
