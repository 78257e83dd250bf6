import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpHandler } from "../../http/message.js";
import { matchRoute } from "../../http/routes.js";

/** Ids of load balancers and traces: a UUID, or 32 hexadecimal digits. Other ids might contain a number. */
const requestId = /^(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/**
 * Gives the request an id: the one in `x-request-id` if valid, else a new one. The wires read it from that header, and
 * the response has it too. Logs a line once the response has ended, without any text from the caller: no path, no
 * query, no header except the id. `known`: what the verifier has reported of the response by then.
 */
export function followRequest(
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  wires: readonly HttpHandler[],
  known: { readonly code?: string },
  tell: (line: object) => void,
): void {
  const began = performance.now();
  const asked = request.headers["x-request-id"];
  const request_id = typeof asked === "string" && requestId.test(asked) ? asked : randomUUID();
  request.headers["x-request-id"] = request_id;
  response.setHeader("x-request-id", request_id);
  response.once("close", () => {
    tell({
      type: "request",
      method: request.method ?? "",
      route: templateOf(path, wires),
      /** 499 if the client disconnected first. */
      status: response.writableFinished ? response.statusCode : 499,
      /** Of an error response of `/v1`. */
      code: known.code,
      /** From the end of the headers to the end of the response. */
      ms: Math.round((performance.now() - began) * 10) / 10,
      request_id,
      bytes: response.writableFinished ? Number(response.getHeader("content-length") ?? 0) : 0,
    });
  });
}

/** A trailing slash is ignored, as in all paths. */
export const isHealth = (path: string): boolean => /^\/healthz\/?$/.test(path);

/** As in the OpenAPI document, for example `/v1/lookup/{phone_number}`, or as the wire names it; else `none`. */
function templateOf(path: string, wires: readonly HttpHandler[]): string {
  if (isHealth(path)) return "/healthz";
  if (/^\/receipts\/[^/]+\/?$/.test(path)) return "/receipts/{provider}";
  const ofWires = () => wires.map(({ routeOf }) => routeOf?.(path)).find((route) => route !== undefined);
  return matchRoute(path)?.route.path ?? ofWires() ?? "none";
}
