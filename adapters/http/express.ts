import type { HttpBody, HttpHandler } from "../../src/http/message.js";
import { onlyOptions, optionError } from "../kit/option-error.js";
import { type Mountable, mounted } from "./mounted.js";
import { bodyIsGone, bodyReader, isUnpackError, type NodeRequest, type NodeResponse, toHttpRequest, writeResponse } from "./node-message.js";
import { isUnder, pathOf } from "./paths.js";

export type { Mountable };

/** The part of an Express 4 or 5 request that is used. */
export interface ExpressRequest extends NodeRequest {
  /** The mount path that Express removed from `url`. */
  readonly baseUrl?: string;
}

export type ExpressNext = (error?: unknown) => void;
export type ExpressMiddleware = (request: ExpressRequest, response: NodeResponse, next: ExpressNext) => void;
export type ExpressErrorMiddleware = (error: unknown, request: ExpressRequest, response: NodeResponse, next: ExpressNext) => void;

export interface ExpressOptions {
  /**
   * What to do with unknown paths under `/v1/`: respond with 404 (`"answer"`, the default), or pass them on to an app
   * that has its own `/v1` routes (`"next"`).
   */
  readonly unknownRoutes?: "answer" | "next" | undefined;
}

/**
 * Returns handlers for Express 4 and 5: `app.use(expressHandlers(verifier))`, or `[verifier, verifier.receipts]`; also
 * under a prefix, in a router, or mounted at `/v1`, before or after body parsers (receipts: before, or after one that
 * keeps the bytes in `req.rawBody`).
 *
 * The first handles `/v1` and `/receipts`; other requests go on to `next()`. The second is an error middleware: errors
 * of the host's body parser on our paths get our error format; other errors go on to `next(error)`.
 *
 * @throws TypeError for an invalid handler, or a verifier without `customers`.
 */
export function expressHandlers(verifier: Mountable, options: ExpressOptions = {}): [ExpressMiddleware, ExpressErrorMiddleware] {
  const { roots, of } = mounted("app.use(expressHandlers(verifier))", verifier);
  onlyOptions("expressHandlers", options, { unknownRoutes: true }, { fix: 'Under a prefix it is mounted as app.use("/api", expressHandlers(verifier))' });
  const { unknownRoutes = "answer" } = options;
  if (unknownRoutes !== "answer" && unknownRoutes !== "next")
    throw optionError("expressHandlers", "unknownRoutes", 'must be "answer" or "next"', "Omit it for 404 responses.");

  /** `error`: of what ran before us, such as the host's body parser. */
  function answer(request: ExpressRequest, response: NodeResponse, next: ExpressNext, error?: unknown) {
    const path = ourPath(roots, request);
    if (path === undefined || (error && response.headersSent)) return next(error);
    const handler = of(path);
    const read = bodyReader(request);
    const readBody = (limit: number) => read(handler, limit);
    const body = error && !isUnread(request, error) ? refusedBody(handler, error) : readBody;
    if (body === undefined) return next(error);
    handler
      .handle(toHttpRequest(request, path, body))
      .then((answered) => (unknownRoutes === "next" && answered.status === 404 ? next(error) : writeResponse(handler, request, response, answered)))
      .catch(next);
  }

  // Express recognises an error middleware by its four parameters.
  return [(request, response, next) => answer(request, response, next), (error, request, response, next) => answer(request, response, next, error)];
}

/**
 * The path from a handler's root (`/v1`) on; `undefined` for other paths. If Express removed the root as a mount path,
 * it is put back; likewise a whole path that a wildcard matched (`app.use("/{*splat}", …)`, NestJS' `forRoutes`).
 */
function ourPath(roots: readonly string[], { url, baseUrl = "" }: ExpressRequest): string | undefined {
  const path = pathOf(url ?? "/");
  if (roots.some((root) => isUnder(root, path))) return path;
  const taken = roots.find((root) => baseUrl.endsWith(root));
  if (taken !== undefined) return `${taken}${path}`;
  return path === "/" && roots.some((root) => isUnder(root, baseUrl)) ? baseUrl : undefined;
}

/**
 * Errors of body-parser by `type`. `entity.verify.failed` is not included: there the host's own function rejected the
 * request.
 */
const refusals: Readonly<Record<string, Extract<HttpBody, { kind: "refused" }>["reason"] | "gone">> = {
  "charset.unsupported": "malformed",
  "encoding.unsupported": "encoded",
  "entity.parse.failed": "malformed",
  "entity.too.large": "too_large",
  "parameters.too.many": "malformed",
  "querystring.parse.rangeError": "malformed",
  "request.aborted": "cut_off",
  "request.size.invalid": "malformed",
  "stream.encoding.set": "gone",
  "stream.not.readable": "gone",
};

/** Whether a body parser rejected the charset before it read. Any charset is accepted here. */
function isUnread(request: ExpressRequest, error: unknown): boolean {
  return (error as { type?: unknown }).type === "charset.unsupported" && !request.readableDidRead;
}

/** The body that an error of the host's body parser represents; `undefined` for any other error. */
function refusedBody(handler: HttpHandler, error: unknown): (() => Promise<HttpBody>) | undefined {
  if (!(error instanceof Error)) return undefined;
  const { type } = error as { type?: unknown };
  const known = typeof type === "string" && Object.hasOwn(refusals, type) ? refusals[type] : undefined;
  const reason = known ?? (isUnpackError(error) ? "encoded" : undefined);
  if (reason === undefined) return undefined;
  return reason === "gone" ? () => bodyIsGone(handler) : async () => ({ kind: "refused", reason });
}
