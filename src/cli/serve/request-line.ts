import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { matchRoute } from "../../http/routes.js";

/** What is told of a request. Nothing in it is the caller's own words: no path, no query, no header but the id. */
export interface RequestLine {
  readonly type: "request";
  readonly method: string;
  /** As the OpenAPI document writes it, for example `/v1/lookup/{phone_number}`; `none` where there is no such route. */
  readonly route: string;
  /** What was answered; 499 where the client left before that. */
  readonly status: number;
  /** Milliseconds from the end of the headers to the end of the answer. */
  readonly ms: number;
  readonly request_id: string;
  /** Of the answer's body. */
  readonly bytes: number;
}

/** Ids of load balancers and of traces: a UUID, or 32 hexadecimal digits. Others might hold a number. */
const requestId = /^(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/** Gives the request an id, the one in `x-request-id` if that is one, answers it in the header of that name, and tells the line once the answer is over. */
export function followRequest(request: IncomingMessage, response: ServerResponse, path: string, tell: (line: RequestLine) => void): void {
  const began = performance.now();
  const asked = request.headers["x-request-id"];
  const request_id = typeof asked === "string" && requestId.test(asked) ? asked : randomUUID();
  response.setHeader("x-request-id", request_id);
  response.once("close", () => {
    tell({
      type: "request",
      method: request.method ?? "",
      route: templateOf(path),
      status: response.writableFinished ? response.statusCode : 499,
      ms: Math.round((performance.now() - began) * 10) / 10,
      request_id,
      bytes: response.writableFinished ? Number(response.getHeader("content-length") ?? 0) : 0,
    });
  });
}

/** One slash at its end is none, as in all paths. */
export const isHealth = (path: string): boolean => /^\/healthz\/?$/.test(path);

function templateOf(path: string): string {
  if (isHealth(path)) return "/healthz";
  if (/^\/receipts\/[^/]+\/?$/.test(path)) return "/receipts/{provider}";
  return matchRoute(path)?.route.path ?? "none";
}
