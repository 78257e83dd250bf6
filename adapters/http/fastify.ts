import type { Readable } from "node:stream";
import { type Mountable, mounted } from "./mounted.js";
import { bodyReader, letRestPast, type NodeRequest, type NodeResponse, toHttpRequest } from "./node-message.js";
import { doubledRoot, isUnder, pathOf } from "./paths.js";

export type { Mountable };

/** The part of a Fastify request that is used. */
export interface FastifyRequestLike {
  readonly raw: NodeRequest;
  readonly body: unknown;
}

/** The part of a Fastify reply that is used. */
export interface FastifyReplyLike {
  readonly raw: NodeResponse;
  code(status: number): unknown;
  headers(values: Record<string, string>): unknown;
  serializer(serialize: (payload: string) => string): unknown;
  send(payload: string): unknown;
}

/** The part of a Fastify instance that is used. */
export interface FastifyScope {
  readonly prefix: string;
  readonly server: { prependListener(event: "request", listener: (request: NodeRequest) => void): unknown };
  removeAllContentTypeParsers(): void;
  addContentTypeParser(
    type: string,
    options: object,
    parser: (request: FastifyRequestLike, payload: NodeRequest, done: (error: Error | null, body?: unknown) => void) => void,
  ): unknown;
  setErrorHandler(handler: (error: Error, request: FastifyRequestLike, reply: FastifyReplyLike) => unknown): unknown;
  all(url: string, handler: (request: FastifyRequestLike, reply: FastifyReplyLike) => unknown): unknown;
}

/**
 * Plugin for Fastify 5: `app.register(fastifyPlugin(verifier))`, or `[verifier, verifier.receipts]`; optionally with `{
 * prefix: "/api" }`. Do not wrap it in fastify-plugin: its body parser and error handler are for its own routes only.
 *
 * Handles every method at and under `/v1` (`verifier.receipts`: `/receipts`; `verifier.metricsHandler`: `/metrics`).
 * Bodies are read after the API key check, and never coerced. The host's hooks run as usual; their errors go to the
 * host's error handler.
 *
 * @throws TypeError for an invalid handler, or a verifier without `customers`.
 */
export function fastifyPlugin(verifier: Mountable, ...others: readonly never[]): (scope: FastifyScope, options: unknown) => Promise<void> {
  const { roots, of } = mounted("app.register(fastifyPlugin(verifier))", verifier);
  if (others.length > 0) throw new TypeError('phoneproof: fastifyPlugin takes no options: app.register(fastifyPlugin(verifier), { prefix: "/api" })');
  // Fastify catches what an asynchronous plugin throws, such as its own error for a route that is there already.
  return async (scope) => {
    const problem = doubledRoot("prefix", scope.prefix.replace(/\/$/, ""), roots);
    if (problem !== undefined) throw new TypeError(problem);
    const segments = scope.prefix.split("/").filter(Boolean);
    // The router may have matched another spelling of the prefix: other case, percent escapes.
    const prefix = new RegExp(`^(?:/[^/]*){${segments.length}}`);
    const readers = new WeakMap<NodeRequest, ReturnType<typeof bodyReader>>();
    const asSent = takeWhatTheRouterRejects(scope, roots, new RegExp(`^${segments.map(segmentOf).join("")}(?=/|$)`));

    async function answer(request: FastifyRequestLike, reply: FastifyReplyLike): Promise<unknown> {
      const { raw, body } = request;
      const { url = raw.url ?? "/", method = raw.method ?? "GET" } = asSent.get(raw) ?? {};
      const path = pathOf(url).replace(prefix, "");
      const handler = of(path);
      const read = readers.get(raw) ?? bodyReader(raw, isStream(body) ? body : raw);
      const answered = await handler.handle({ ...toHttpRequest(raw, path, (limit) => read(handler, limit)), method });
      letRestPast(handler, raw, reply.raw);
      reply.code(answered.status);
      reply.headers(answered.headers);
      // With a serializer set on the reply, Fastify leaves the content type unchanged.
      reply.serializer((text) => text);
      return reply.send(answered.body);
    }

    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", {}, ({ raw }, payload, parsed) => {
      readers.set(raw, bodyReader(raw, payload));
      parsed(null, payload);
    });
    scope.setErrorHandler((error, request, reply) => {
      // Fastify rejected the content type without reading the body: our handler decides whether it matters.
      if (isContentTypeError(error)) return answer(request, reply);
      throw error;
    });
    for (const root of roots) {
      scope.all(root, answer);
      scope.all(`${root}/*`, answer);
    }
  };
}

/** A segment of the plugin's prefix: its text, or what a parameter may hold. */
function segmentOf(segment: string): string {
  return /[:*(]/.test(segment) ? "/[^/]*" : `/${segment.replace(/[.+^${}|[\]\\]/g, "\\$&")}`;
}

/** Methods that Fastify routes by default. */
const routed = new Set(["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"]);

/**
 * Fastify's router responds to malformed percent escapes and unusual methods itself, before hooks and handlers, in its
 * own format. So such requests of ours get what the router takes; the returned map holds what was sent.
 */
function takeWhatTheRouterRejects(scope: FastifyScope, roots: readonly string[], prefix: RegExp): WeakMap<NodeRequest, { url: string; method: string }> {
  const asSent = new WeakMap<NodeRequest, { url: string; method: string }>();
  scope.server.prependListener("request", (request) => {
    const { url = "/", method = "GET" } = request;
    const path = pathOf(url);
    if (routed.has(method) && !path.includes("%")) return;
    const ours = prefix.test(path) ? path.replace(prefix, "") : "";
    if (!roots.some((root) => isUnder(root, ours)) || (routed.has(method) && isDecodable(path))) return;
    asSent.set(request, { url, method });
    if (!isDecodable(path)) request.url = url.replace(path, () => path.replaceAll("%", "%25"));
    if (!routed.has(method)) request.method = "TRACE";
  });
  return asSent;
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

function isContentTypeError(error: Error): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === "string" && (code.startsWith("FST_ERR_CTP_") || code === "FST_ERR_ROUTE_MISSING_CONTENT_TYPE");
}

function isStream(body: unknown): body is Readable {
  return typeof body === "object" && body !== null && "pipe" in body && typeof body.pipe === "function";
}
