import { onlyOptions } from "../kit/option-fault.js";
import { type Mountable, mounted } from "./mounted.js";
import { pathOf, prefixOption, withoutPrefix } from "./paths.js";
import { answerRequest } from "./web-message.js";

export interface NextOptions {
  /** What stands before `/v1` in the URLs: `"/api"` for `app/api/v1/[...route]/route.ts`. Default: where the file stands, as Next tells it; `next.config`'s own `basePath` is none of it. */
  readonly basePath?: string | undefined;
}

/** What Next gives beside the request. */
export interface NextContext {
  /** The segments that the file's folder names stand for; from Next.js 15 on a promise. */
  readonly params?: unknown;
}

export type NextHandler = (request: Request, context?: NextContext) => Promise<Response>;

/** One handler for every method that a route file may export. */
export type NextHandlers = Readonly<Record<"GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS", NextHandler>>;

/**
 * Route handlers for the App Router of Next.js 14 and later, in `app/v1/[...route]/route.ts`:
 * `export const { GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS } = nextHandlers(verifier)`. `GET` and `POST` are all that the service needs; without the others Next answers
 * wrong methods itself, with an empty 405.
 *
 * In the edge runtime, which lacks `node:crypto`, it throws when the file is imported. `verifier`: or several, `[verifier, verifier.receipts]`, for a file that serves both, `app/[...route]/route.ts`. Throws `TypeError` for what is no handler, for a verifier without `customers`, and for a `basePath` that does not start with a slash or ends with one.
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
    const prefix = given ?? placeOf(roots, asked, await context?.params);
    const path = withoutPrefix(asked, prefix);
    return answerRequest(of(path, asked), request, { path, asked: { path: asked, prefix } });
  };
  return { GET: handler, POST: handler, PUT: handler, PATCH: handler, DELETE: handler, HEAD: handler, OPTIONS: handler };
}

/** What stands before the root in a path: Next has matched it with the file, and tells what its `[...route]` took. */
function placeOf(roots: readonly string[], path: string, params: unknown): string {
  const taken = Object.values(params ?? {}).find(Array.isArray);
  if (taken === undefined) return "";
  const segments = path.replace(/\/$/, "").split("/");
  const folder = segments.slice(0, segments.length - taken.length).join("/");
  const at = Math.max(...roots.map((root) => `${folder}/`.lastIndexOf(`${root}/`)));
  return at === -1 ? folder : folder.slice(0, at);
}
