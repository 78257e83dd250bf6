import { onlyOptions } from "../kit/option-error.js";
import { type Mountable, mounted } from "./mounted.js";
import { bodyReader, type NodeRequest, type NodeResponse, toHttpRequest, writeResponse } from "./node-message.js";
import { pathOf, prefixOption, withoutPrefix } from "./paths.js";

export type { NodeRequest, NodeResponse } from "./node-message.js";
export type { Mountable };

export interface NodeOptions {
  /** The part of the path before `/v1`, for example `"/api"`. Default: `""`. */
  readonly basePath?: string | undefined;
}

/**
 * Returns a handler for a plain node:http or node:http2 server: `createServer(nodeHandler(verifier))`. It handles every
 * request; unknown paths get 404. `verifier` may be several, `[verifier, verifier.receipts]`. The handler's promise
 * resolves once the response has ended; it never rejects.
 *
 * @throws TypeError for an invalid handler, a verifier without `customers`, and a `basePath` that does not start with a
 * slash or ends with one.
 */
export function nodeHandler(verifier: Mountable, options: NodeOptions = {}): (request: NodeRequest, response: NodeResponse) => Promise<void> {
  const { roots, of } = mounted("createServer(nodeHandler(verifier))", verifier);
  onlyOptions("nodeHandler", options, { basePath: true });
  const basePath = prefixOption("basePath", options.basePath ?? "", roots);
  return async (request, response) => {
    const asked = { path: pathOf(request.url ?? "/"), prefix: basePath };
    const path = withoutPrefix(asked.path, basePath);
    const handler = of(path, asked.path);
    const read = bodyReader(request);
    const answered = await handler.handle({ ...toHttpRequest(request, path, (limit) => read(handler, limit)), asked });
    writeResponse(handler, request, response, answered);
  };
}
