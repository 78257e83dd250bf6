import { VerifierError } from "../errors.js";
import type { HttpRequest } from "./message.js";

/**
 * Returns a 404. If another mount prefix would make the requested path a route, the message names that prefix.
 * @param routeOf Returns the template of a path's route, from the handler's root on: messages must not contain numbers.
 */
export function notFound({ path, asked }: HttpRequest, root: string, words: string, routeOf: (path: string) => string | undefined): VerifierError {
  return new VerifierError("not_found", words + (asked === undefined ? "" : misplaced(path, asked, root, routeOf)));
}

function misplaced(path: string, asked: NonNullable<HttpRequest["asked"]>, root: string, routeOf: (path: string) => string | undefined): string {
  const at = asked.path.lastIndexOf(`${root}/`);
  const route = at === -1 ? undefined : routeOf(asked.path.slice(at));
  const prefix = asked.path.slice(0, at);
  if (route !== undefined && prefix !== asked.prefix && prefix.length <= 128) {
    return ` The path asked for is ${prefix}${route}, and the handler is mounted under ${JSON.stringify(asked.prefix)}: ${fixOf(prefix, asked, root)}.`;
  }
  const whole = routeOf(root + path);
  // A route parameter would match any word.
  if (whole === undefined || whole.includes("{")) return "";
  const taken =
    asked.canStrip === true ? `if a framework removes it, as Hono's app.mount does, pass { stripped: "${root}" }` : `ask for ${asked.prefix}${whole}`;
  return ` The path asked for is ${whole} without its ${root}: ${taken}.`;
}

function fixOf(prefix: string, { isFixed }: NonNullable<HttpRequest["asked"]>, root: string): string {
  if (prefix.endsWith("/"))
    return "the client's base URL must not end with a slash, and a proxy that removes a prefix must remove its slash too (in nginx: location /x/)";
  if (prefix.endsWith(root)) return `the client's base URL must not end with ${root}`;
  if (isFixed) return `let the proxy in front remove ${prefix}`;
  return prefix === "" ? "leave its basePath out" : `give it { basePath: ${JSON.stringify(prefix)} }`;
}
