import { onlyOptions } from "../kit/option-error.js";
import { type Mountable, mounted } from "./mounted.js";
import { pathOf, prefixOf, prefixOption, withoutPrefix } from "./paths.js";
import { answerRequest } from "./web-message.js";

export type { Mountable };

export interface NextOptions {
  /**
   * The part of the URL path before `/v1`: `"/api"` for `app/api/v1/[...route]/route.ts`. Default: the file's location,
   * as Next reports it. Do not include `next.config`'s own `basePath`.
   */
  readonly basePath?: string | undefined;
}

/**
 * `context`: what Next passes, `{ params }`; `params` is a promise since Next.js 15. It is `unknown` because
 * `next build` of Next.js 14 and 15 accepts no optional type that is narrower.
 */
export type NextHandler = (request: Request, context?: unknown) => Promise<Response>;

/** One handler for every method that a route file may export. */
export type NextHandlers = Readonly<Record<"GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS", NextHandler>>;

/**
 * Returns route handlers for the App Router of Next.js 14 and later, in `app/v1/[...route]/route.ts`: `export const {
 * GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS } = nextHandlers(verifier)`. `GET` and `POST` are enough; Next then
 * responds to other methods with an empty 405. `verifier` may be several, `[verifier, verifier.receipts]`, in
 * `app/[...route]/route.ts`.
 *
 * The edge runtime lacks `node:crypto`: importing the file throws there.
 *
 * @throws TypeError for an invalid handler, a verifier without `customers`, and a `basePath` that does not start with a
 * slash or ends with one.
 */
export function nextHandlers(verifier: Mountable, options: NextOptions = {}): NextHandlers {
  if ("EdgeRuntime" in globalThis)
    throw new Error(
      'phoneproof: the edge runtime of Next.js lacks node:crypto, which this needs: leave `export const runtime = "edge"` out of the route file, or say "nodejs"',
    );
  const { roots, of } = mounted("nextHandlers(verifier)", verifier);
  onlyOptions("nextHandlers", options, { basePath: true });
  const given = options.basePath === undefined ? undefined : prefixOption("basePath", options.basePath, roots);
  const handler: NextHandler = async (request, context) => {
    const asked = pathOf(request.url);
    const prefix = given ?? placeOf(roots, asked, await (context as { readonly params?: unknown } | undefined)?.params);
    const path = withoutPrefix(asked, prefix);
    return answerRequest(of(path, asked), request, { path, asked: { path: asked, prefix } });
  };
  return { GET: handler, POST: handler, PUT: handler, PATCH: handler, DELETE: handler, HEAD: handler, OPTIONS: handler };
}

/** The part of a path before the root: Next has matched it with the file, and reports what `[...route]` matched. */
function placeOf(roots: readonly string[], path: string, params: unknown): string {
  const taken = Object.values(params ?? {}).find(Array.isArray);
  if (taken === undefined) return "";
  const segments = path.replace(/\/$/, "").split("/");
  return prefixOf(roots, path, segments.slice(0, segments.length - taken.length).join("/"));
}
