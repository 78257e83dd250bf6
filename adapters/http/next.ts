import { type Mountable, mounted } from "./mounted.js";
import { pathOf, prefixOption, withoutPrefix } from "./paths.js";
import { answerRequest } from "./web-message.js";

export interface NextOptions {
  /** What stands before `/v1` in the URLs: `"/api"` for `app/api/v1/[...route]/route.ts`. Default `""`. */
  readonly basePath?: string | undefined;
}

export type NextHandler = (request: Request) => Promise<Response>;

/** One handler for every method that a route file may export. */
export type NextHandlers = Readonly<Record<"GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS", NextHandler>>;

/**
 * Route handlers for the App Router of Next.js 14 and later, in `app/v1/[...route]/route.ts`:
 * `export const { GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS } = nextHandlers(verifier)`. `GET` and `POST` are all that the service needs; without the others Next answers
 * wrong methods itself, with an empty 405.
 *
 * `verifier`: or several, `[verifier, verifier.receipts]`, for a file that serves both, `app/[...route]/route.ts`. Throws `TypeError` for what is no handler, for a verifier without `customers`, and for a `basePath` that does not start with a slash or ends with one.
 */
export function nextHandlers(verifier: Mountable, options: NextOptions = {}): NextHandlers {
  const { of } = mounted("nextHandlers(verifier)", verifier);
  const basePath = prefixOption("basePath", options.basePath ?? "");
  const handler: NextHandler = (request) => {
    const path = withoutPrefix(pathOf(request.url), basePath);
    return answerRequest(of(path), request, path);
  };
  return { GET: handler, POST: handler, PUT: handler, PATCH: handler, DELETE: handler, HEAD: handler, OPTIONS: handler };
}
