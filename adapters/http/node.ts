import type { HttpHandler } from "../../src/http/message.js";
import { type NodeRequest, type NodeResponse, readBody, toHttpRequest, writeResponse } from "./node-message.js";
import { pathOf, prefixOption, withoutPrefix } from "./paths.js";

export interface NodeOptions {
  /** What stands before `/v1` in the paths, for example `"/api"`. Default `""`. */
  readonly basePath?: string | undefined;
}

/**
 * Answers the requests of a plain node:http or node:http2 server: `createServer(nodeHandler(verifier))`. Every request is answered here; unknown paths with 404.
 *
 * Throws `TypeError` for a `basePath` that does not start with a slash or ends with one.
 */
export function nodeHandler(verifier: HttpHandler, options: NodeOptions = {}): (request: NodeRequest, response: NodeResponse) => void {
  const basePath = prefixOption("basePath", options.basePath ?? "");
  return (request, response) => {
    const path = withoutPrefix(pathOf(request.url ?? "/"), basePath);
    const answered = verifier.handle(toHttpRequest(request, path, (limit) => readBody(verifier, request, request, limit)));
    void answered.then((answer) => writeResponse(verifier, request, response, answer));
  };
}
