import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import { nodeHandler } from "../../../adapters/http/node.js";
import { pathOf } from "../../../adapters/http/paths.js";
import type { Verifier } from "../../create-verifier.js";
import type { HttpHandler } from "../../http/message.js";
import type { Health } from "./health.js";
import { followRequest, isHealth, type RequestLine } from "./request-line.js";

/**
 * Time limits, in milliseconds. Headers: from the first byte, or the start of the connection. Requests: longer than a
 * body may take (10 s) plus the rest of a discarded one (5 s), so that our response comes first. Idle connections
 * outlive the usual 60 s of load balancers. Node's default check interval of 30 s would be too coarse.
 */
const limits = { headersTimeout: 10_000, requestTimeout: 20_000, keepAliveTimeout: 75_000, connectionsCheckingInterval: 1_000 };

/** A server with time limits, which does not listen yet. */
export const limitedServer = (listener: RequestListener): Server => createServer(limits, listener);

/** Serves `/v1`, `wires`, `/receipts/{provider}` and `/healthz`; for other paths the verifier returns 404. */
export function serviceListener(verifier: Verifier, wires: readonly HttpHandler[], health: Health, tell: (line: RequestLine) => void): RequestListener {
  const api = nodeHandler([verifier, ...wires, verifier.receipts]);
  return (request, response) => {
    const path = pathOf(request.url ?? "/");
    followRequest(request, response, path, wires, tell);
    if (!isHealth(path)) return api(request, response);
    request.resume();
    if (request.method !== "GET" && request.method !== "HEAD") return plain(response.setHeader("allow", "GET, HEAD"), 405, "GET only\n");
    void health.answer().then(([status, text]) => plain(response, status, text));
  };
}

function plain(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store", "content-length": Buffer.byteLength(text) }).end(text);
}
