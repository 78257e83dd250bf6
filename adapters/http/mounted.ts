import type { HttpHandler } from "../../src/http/message.js";
import { isUnder } from "./paths.js";

/** A verifier, which is mounted by its `http`, or a handler. */
type Mount = HttpHandler | { readonly http: HttpHandler };

/** What can be mounted: a verifier, one of its handlers, or several together, `[verifier, verifier.receipts]`. */
export type Mountable = Mount | readonly Mount[];

/**
 * Returns the roots, longest first: where they nest, as `/v2` and `/v2/Services` do, the longest that matches wins; and
 * `of`, which finds the handler of a path. For an unknown path: the one whose root is in `asked`, else the first.
 *
 * `usage`: how the mounting function is called, for example `app.use(expressHandlers(verifier))`. Throws `TypeError`
 * for an invalid handler, a verifier without `customers`, and two handlers of the same paths.
 */
export function mounted(usage: string, given: Mountable) {
  const list: readonly Mount[] = Array.isArray(given) ? given : [given as Mount];
  if (list.length === 0) throw new TypeError(`phoneproof: ${usage} needs at least one handler; its list is empty`);
  const handlers = list.map((one, at) => {
    const handler = isObject(one) && "http" in one ? one.http : one;
    if (!isHandler(handler)) throw new TypeError(`phoneproof: ${usage} takes a verifier, verifier.receipts, or a list of such; ${problem(one, at, given)}`);
    return handler;
  });
  for (const { unmountable } of handlers) if (unmountable !== undefined) throw new TypeError(unmountable);
  const byRoot = handlers.flatMap((handler) => [handler.root, ...(handler.roots ?? [])].map((root) => ({ root, handler })));
  byRoot.sort((one, other) => other.root.length - one.root.length);
  const roots = byRoot.map(({ root }) => root);
  const twice = roots.find((root, at) => roots.indexOf(root) !== at);
  if (twice !== undefined)
    throw new TypeError(
      `phoneproof: ${usage} has two handlers for ${twice}, of which the second would never be asked: mount it by itself, under another prefix`,
    );
  const found = (path: string, asked: string) => byRoot.find(({ root }) => isUnder(root, path)) ?? byRoot.find(({ root }) => asked.includes(`${root}/`));
  return { roots, of: (path: string, asked = path) => found(path, asked)?.handler ?? (handlers[0] as HttpHandler) };
}

function isHandler(value: unknown): value is HttpHandler {
  return isObject(value) && "root" in value && "handle" in value && typeof value.handle === "function";
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function problem(value: unknown, at: number, given: unknown): string {
  const where = Array.isArray(given) ? `entry ${at} of its list` : "what it was given";
  if (typeof value === "function") return `${where} is a function: pass the verifier that createVerifier returns`;
  if (!isObject(value)) return `${where} is ${value === null ? "null" : typeof value}: is it exported, and imported by that name?`;
  // If the mounting function is passed to the framework uncalled, it receives the framework's arguments.
  if ("register" in value) return `${where} is an app: is the function mounted without being called?`;
  if ("headers" in value || "req" in value || "request" in value) return `${where} is a request: is the function mounted without being called?`;
  if ("then" in value) return `${where} is a promise: await it`;
  return `${where} is not one of these`;
}
