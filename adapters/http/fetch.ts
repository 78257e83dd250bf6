import { onlyOptions } from "../kit/option-error.js";
import { type Mountable, mounted } from "./mounted.js";
import { isUnder, pathOf, prefixOf, prefixOption, withoutPrefix } from "./paths.js";
import { answerRequest } from "./web-message.js";

export type { Mountable };

export interface FetchOptions {
  /** The part of the URL path before `/v1`, for example `"/api"`. Default: `""`. */
  readonly basePath?: string | undefined;
  /**
   * The path prefix that a framework removes before it calls the handler, whole: `"/api/v1"` for Hono's
   * `app.mount("/api/v1", handler)`. `basePath` is then not needed. Default: `""`.
   */
  readonly stripped?: string | undefined;
}

/**
 * Returns a handler for WHATWG requests: Hono (`app.all("/v1/*", (c) => handler(c.req.raw))`), Bun, Deno, Workers.
 * Unknown paths get 404. `verifier` may be several, `[verifier, verifier.receipts]`.
 *
 * If middleware has read the body of a POST, pass it on in a new request: `handler(new Request(c.req.url, { method:
 * "POST", headers: c.req.raw.headers, body: await c.req.arrayBuffer() }))`.
 *
 * @throws TypeError for an invalid handler, a verifier without `customers`, and a `basePath` or `stripped` that does
 * not start with a slash or ends with one, or that contradict each other.
 */
export function fetchHandler(verifier: Mountable, options: FetchOptions = {}): (request: Request) => Promise<Response> {
  const { roots, of } = mounted("fetchHandler(verifier)", verifier);
  onlyOptions("fetchHandler", options, { basePath: true, stripped: true });
  const basePath = prefixOption("basePath", options.basePath ?? "", roots);
  const stripped = prefixOption("stripped", options.stripped ?? "");
  const starts = roots.map((root) => basePath + root);
  if (basePath !== "" && stripped !== "" && !starts.some((start) => isUnder(stripped, start) || isUnder(start, stripped)))
    throw new TypeError(
      `phoneproof: stripped is ${JSON.stringify(stripped)}, but with basePath ${JSON.stringify(basePath)} the paths start with ${starts.join(" or ")}: stripped must be all that the framework removes, such as ${JSON.stringify(starts[0])}, or leave basePath out`,
    );
  return (request) => {
    if (!isRequest(request)) throw new TypeError(noRequest);
    const received = pathOf(request.url);
    const whole = stripped + received;
    const prefix = basePath || prefixOf(roots, whole, stripped);
    const path = withoutPrefix(whole, prefix);
    return answerRequest(of(path, received), request, { path, asked: { path: received, prefix, stripped } });
  };
}

function isRequest(value: unknown): boolean {
  const { url, headers } = (value ?? {}) as { url?: unknown; headers?: { get?: unknown } };
  return typeof url === "string" && typeof headers?.get === "function";
}

const noRequest =
  "phoneproof: the handler that fetchHandler(verifier) returns takes a Request, but was called with something else, such as a framework's context or event: pass its request, for example (c) => handler(c.req.raw) in Hono, ({ request }) => handler(request) in SvelteKit";
