import type { Readable } from "node:stream";
import type { HttpResponse } from "../../src/http/message.js";
import { type Mountable, mounted } from "./mounted.js";
import { letRestPast, type NodeRequest, type NodeResponse, readBody, toHttpRequest } from "./node-message.js";
import { doubledRoot, isUnder, pathOf } from "./paths.js";

/** What is needed of Fastify's request. */
export interface FastifyRequestLike {
  readonly raw: NodeRequest;
  readonly body: unknown;
}

/** What is needed of Fastify's reply. */
export interface FastifyReplyLike {
  readonly raw: NodeResponse;
  code(status: number): unknown;
  headers(values: Record<string, string>): unknown;
  serializer(serialize: (payload: string) => string): unknown;
  send(payload: string): unknown;
}

/** What is needed of a Fastify instance. */
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
 * Plugin for Fastify 5: `app.register(fastifyPlugin(verifier))`, or `[verifier, verifier.receipts]`, with `{ prefix: "/api" }` if wanted. Do not wrap it in fastify-plugin: its body parser and error handler
 * are for its own routes alone.
 *
 * Every method at `/v1` and under it (for `verifier.receipts`: `/receipts`, for `verifier.metricsHandler`: `/metrics`) is answered here. Bodies are read after the API key has been checked, and never coerced. The host's hooks run as for its own routes, and errors
 * that they throw go to the host's error handler. Throws `TypeError` for what is no handler, for a verifier without `customers`.
 */
export function fastifyPlugin(verifier: Mountable): (scope: FastifyScope, options: unknown, done: (error?: Error) => void) => void {
  const { roots, of } = mounted("app.register(fastifyPlugin(verifier))", verifier);
  return (scope, _options, done) => {
    const fault = doubledRoot("prefix", scope.prefix.replace(/\/$/, ""), roots);
    if (fault !== undefined) return done(new TypeError(fault));
    const prefix = new RegExp(`^(?:/[^/]*){${scope.prefix.split("/").filter(Boolean).length}}`);
    const asSent = takeMalformedUrls(scope, roots, prefix);

    async function answer(request: FastifyRequestLike, reply: FastifyReplyLike): Promise<unknown> {
      const { raw, body } = request;
      const path = pathOf(asSent.get(raw) ?? raw.url ?? "/").replace(prefix, "");
      const handler = of(path);
      const answered = await handler.handle(toHttpRequest(raw, path, (limit) => readBody(handler, raw, isStream(body) ? body : raw, limit)));
      letRestPast(handler, raw, reply.raw);
      return write(reply, answered);
    }

    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", {}, (_request, payload, parsed) => parsed(null, payload));
    scope.setErrorHandler((error, request, reply) => {
      // Fastify has refused the content type and read nothing: whether it matters is ours to say.
      if (isContentTypeFault(error)) return answer(request, reply);
      throw error;
    });
    for (const root of roots) {
      scope.all(root, answer);
      scope.all(`${root}/*`, answer);
    }
    done();
  };
}

function write(reply: FastifyReplyLike, { status, headers, body }: HttpResponse): unknown {
  reply.code(status);
  reply.headers(headers);
  // With a serializer of the reply's own, Fastify leaves the content type as it is.
  reply.serializer(asItIs);
  return reply.send(body);
}

const asItIs = (text: string) => text;

/**
 * Fastify's router answers a malformed percent escape by itself, before hooks, handlers and error handlers, in a shape of its own. So such a path of ours is made
 * well-formed for the router; the map returned holds what was sent.
 */
function takeMalformedUrls(scope: FastifyScope, roots: readonly string[], prefix: RegExp): WeakMap<NodeRequest, string> {
  const asSent = new WeakMap<NodeRequest, string>();
  scope.server.prependListener("request", (request) => {
    const { url } = request;
    if (url === undefined || !url.includes("%")) return;
    const path = pathOf(url);
    const ours = path.replace(prefix, "");
    if (!roots.some((root) => isUnder(root, ours)) || isDecodable(path)) return;
    asSent.set(request, url);
    request.url = url.replace(path, () => path.replaceAll("%", "%25"));
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

function isContentTypeFault(error: Error): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === "string" && (code.startsWith("FST_ERR_CTP_") || code === "FST_ERR_ROUTE_MISSING_CONTENT_TYPE");
}

function isStream(body: unknown): body is Readable {
  return typeof body === "object" && body !== null && "pipe" in body && typeof body.pipe === "function";
}
