import { AsyncLocalStorage } from "node:async_hooks";
import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import { nodeHandler } from "../../../adapters/http/node.js";
import { pathOf } from "../../../adapters/http/paths.js";
import type { Verifier } from "../../create-verifier.js";
import type { HttpHandler, HttpRequest, HttpResponse } from "../../http/message.js";
import { firstDayHint } from "../first-day.js";
import type { Health } from "./health.js";
import { followRequest, isHealth } from "./request-line.js";

/**
 * Time limits, in milliseconds. Headers: from the first byte, or the start of the connection. Requests: longer than a
 * body may take (10 s) plus the rest of a discarded one (5 s), so that our response comes first. Idle connections
 * outlive the usual 60 s of load balancers. Node's default check interval of 30 s would be too coarse.
 */
const limits = { headersTimeout: 10_000, requestTimeout: 20_000, keepAliveTimeout: 75_000, connectionsCheckingInterval: 1_000 };

/** A server with time limits, which does not listen yet. */
export const limitedServer = (listener: RequestListener): Server => createServer(limits, listener);

/**
 * Serves `/v1`, `wires`, `/receipts/{provider}` and `/healthz`; for other paths the verifier returns 404. `wires`: also
 * hooks, which a verifier without customers can serve too.
 */
export function serviceListener(verifier: Verifier, wires: readonly HttpHandler[], health: Health, tell: (line: object) => void): RequestListener {
  const lines = new AsyncLocalStorage<{ code?: string }>();
  const hint = hints(verifier, tell);
  const isHooksOnly = verifier.http.unmountable !== undefined && wires.some(({ root }) => root === "/hooks");
  const v1: HttpHandler = {
    ...verifier.http,
    async handle(request) {
      const answered = await verifier.http.handle(request);
      const line = lines.getStore();
      if (answered.status !== 200 && line !== undefined) line.code = (JSON.parse(answered.body) as { readonly code: string }).code;
      else if (answered.body.includes('"spam_detected"')) void hint(request, answered).catch(() => undefined);
      return answered;
    },
  };
  const api = nodeHandler([...(isHooksOnly ? [] : [v1]), ...wires, verifier.receipts].map(withoutPrefix));
  return (request, response) => {
    const path = pathOf(request.url ?? "/");
    const line = {};
    followRequest(request, response, path, wires, line, tell);
    if (!isHealth(path)) return lines.run(line, () => api(request, response));
    request.resume();
    if (request.method !== "GET" && request.method !== "HEAD") return plain(response.setHeader("allow", "GET, HEAD"), 405, "GET and HEAD only\n");
    void health.answer().then(([status, text]) => plain(response, status, text));
  };
}

/** The command has no option for a prefix, which the message of a 404 must not advise. */
function withoutPrefix(handler: HttpHandler): HttpHandler {
  return {
    ...handler,
    handle: ({ asked, ...request }) => handler.handle({ ...request, ...(asked !== undefined && { asked: { ...asked, isFixed: true } }) }),
  };
}

/** One hint in this time. Milliseconds. */
const hintEvery = 3_600_000;

/** Logs a line next to the first rejections of a developer who tests. */
function hints(verifier: Verifier, tell: (line: object) => void) {
  let last = Number.NEGATIVE_INFINITY;
  return async (request: HttpRequest, answered: HttpResponse) => {
    if (performance.now() - last < hintEvery) return;
    last = performance.now();
    const customer_uuid = await verifier.customerOf(request.header("x-api-key"));
    const { authentication_uuid } = JSON.parse(answered.body) as { readonly authentication_uuid: string };
    const hint = await firstDayHint(verifier, { customer_uuid, authentication_uuid });
    if (hint !== undefined) tell({ type: "hint", ...hint });
  };
}

function plain(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store", "content-length": Buffer.byteLength(text) }).end(text);
}
