import { randomUUID } from "node:crypto";
import type { MessageFate } from "../../contract/direct.js";
import { VerifierError } from "../../errors.js";
import { answer } from "../../http/answer.js";
import { readJson, readUrlEncoded } from "../../http/body.js";
import type { HttpHandler, HttpRequest, HttpResponse } from "../../http/message.js";
import { notFound } from "../../http/not-found.js";

export { answer };

/** A rejection in a wire's own terms. A route throws it; every other error is translated to one. */
export class WireError extends Error {
  override readonly name = "WireError";

  constructor(
    /** HTTP status. */
    readonly status: number,
    readonly code: string | number,
    message: string,
    /** What the body needs in addition to code and message. */
    readonly details: Readonly<Record<string, unknown>> = {},
    /** Lower-case names. */
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

/** One request to a route, after its caller was authenticated. */
export interface WireCall {
  /** The UUID of the customer that calls. */
  readonly caller: string;
  /** As asked, without a prefix of the host. */
  readonly path: string;
  /** The path parameters by name, percent-decoded; a `+` stays. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  header(name: string): string | undefined;
  /** The host's `x-request-id`, or a random UUID. */
  readonly requestId: string;
  /** Reads a JSON body. Rejects with `bad_request`, `payload_too_large` or `request_timeout`. */
  json(): Promise<unknown>;
  /** Reads an URL-encoded body, in which a raw `+` is a space. Rejects as `json` does. */
  form(): Promise<URLSearchParams>;
}

export type WireRoute = (call: WireCall) => HttpResponse | Promise<HttpResponse>;

/** What makes a wire: its routes, and how it authenticates and words its errors. */
export interface Wire {
  /** The start of its paths, for example `/v2`. */
  readonly root: string;
  /** Further starts of its paths. Default: none. */
  readonly roots?: readonly string[];
  /**
   * Routes by path and method. A segment in braces is a parameter. The first path that matches wins; one trailing slash
   * is allowed.
   */
  readonly routes: Readonly<Record<string, Readonly<Record<string, WireRoute>>>>;
  /** Returns the message of a 404. */
  unknownPath(path: string): string;
  /** Returns the UUID of the customer that calls, before the body is read. Throws `WireError` or `VerifierError`. */
  authenticate(request: HttpRequest): Promise<string>;
  /** Translates an error of the verifier, or a 404, 405, 408 or 413 of the kit. */
  translate(error: VerifierError, request: HttpRequest): WireError;
  /** Returns the body of an error response. */
  errorBody(error: WireError, requestId: string): object;
  /** Changes the path before it is matched. */
  rewrite?(path: string): string;
}

/**
 * Makes the handler of a wire: route (404), method (405), caller, then the route. Never rejects. `http`: the verifier's
 * own handler; nothing of it is called before the first request, so that a lazy verifier is not created.
 */
export function wireHandler(http: Pick<HttpHandler, "clock" | "warn" | "unmountable">, wire: Wire): HttpHandler {
  const { root, roots } = wire;
  const { clock } = http;
  const routes = Object.entries(wire.routes).map(([path, methods]) => ({ path, methods, segments: path.split("/") }));
  const warn = (message: string) => http.warn(message);

  const match = (asked: string) => {
    const path = wire.rewrite?.(asked) ?? asked;
    const given = (path.endsWith("/") ? path.slice(0, -1) : path).split("/");
    const fits = (segment: string, at: number) => (isParameter(segment) ? given[at] !== "" : segment === given[at]);
    const route = routes.find(({ segments }) => segments.length === given.length && segments.every(fits));
    return route && { ...route, given };
  };

  const respond = async (request: HttpRequest, requestId: string, found: ReturnType<typeof match>): Promise<HttpResponse> => {
    if (found === undefined) {
      const start = [root, ...(roots ?? [])].find((one) => request.asked?.path.includes(`${one}/`)) ?? root;
      // An adapter passes "/" for a path that is not under its prefix.
      const path = request.path === "/" ? (request.asked?.path ?? "/") : request.path;
      throw notFound(request, start, wire.unknownPath(path), (path) => match(path)?.path);
    }
    const { methods, segments, given } = found;
    const route = Object.hasOwn(methods, request.method) ? methods[request.method] : undefined;
    if (route === undefined) throw new VerifierError("method_not_allowed", `This route accepts ${Object.keys(methods).join(" and ")} only.`);
    const caller = await wire.authenticate(request);
    return route({
      caller,
      path: request.path,
      params: Object.fromEntries(segments.flatMap((segment, at) => (isParameter(segment) ? [[segment.slice(1, -1), decoded(given[at] as string)]] : []))),
      query: new URLSearchParams(request.query),
      header: (name) => request.header(name),
      requestId,
      json: () => readJson(clock, request),
      form: () => readUrlEncoded(clock, request),
    });
  };

  /** An error of ours is logged, and nothing of it is in the response. */
  const known = (error: unknown, requestId: string): VerifierError => {
    if (error instanceof VerifierError && error.status !== 500) return error;
    warn(`a request to ${root} failed unexpectedly (request ${requestId}): ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    return new VerifierError("internal_server_error", "Something went wrong on our side.");
  };

  return {
    root,
    ...(roots !== undefined && { roots }),
    ...(http.unmountable !== undefined && {
      unmountable: `phoneproof: ${root} is for customers with API keys, and this verifier has none. Give createVerifier the option customers`,
    }),
    routeOf: (path) => match(path)?.path,
    async handle(request) {
      const requestId = requestIdOf(request);
      const found = match(request.path);
      try {
        return await respond(request, requestId, found);
      } catch (thrown) {
        const error = thrown instanceof WireError ? thrown : wire.translate(known(thrown, requestId), request);
        const allow = error.status === 405 && found !== undefined ? { allow: Object.keys(found.methods).join(", ") } : undefined;
        return answer(error.status, wire.errorBody(error, requestId), { ...error.headers, ...allow });
      }
    },
    clock,
    warn,
  };
}

/** Splits the message of a verifier's error into the field that is wrong, which it begins with, and the rest. */
export function fieldAndRest({ message }: VerifierError): readonly [field: string, rest: string] {
  const [field = "", rest = ""] = message.split(/ (.*)/s);
  return [field, rest];
}

/** What an error says of a limit of calls. `undefined`: another one blocked the message, if any. */
export function limitOfCalls({ calls_limited, retry_after }: MessageFate): string | undefined {
  if (calls_limited !== true) return undefined;
  return `No call can be made ${retry_after === undefined ? "now" : `for ${retry_after} seconds`}; a message may still be sent.`;
}

const isParameter = (segment: string) => segment.startsWith("{");

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new VerifierError("bad_request", "The path is not properly percent-encoded.");
  }
}

function requestIdOf(request: HttpRequest): string {
  const given = request.header("x-request-id") ?? "";
  return /^[\w.:=+/-]{1,128}$/.test(given) ? given : randomUUID();
}
