import { VerifierError } from "../errors.js";
import type { HttpRequest } from "./message.js";

/**
 * 404. Where the path that the host was asked for has a route of ours further in, or nearer the start, than the prefix that the handler is mounted under, the message says what to mount it under.
 *
 * @param routeOf The route that a path from the handler's root on is, as its template: numbers do not go into messages.
 */
export function notFound({ path, asked }: HttpRequest, root: string, words: string, routeOf: (path: string) => string | undefined): VerifierError {
  return new VerifierError("not_found", words + (asked === undefined ? "" : misplaced(path, asked, root, routeOf)));
}

function misplaced(path: string, asked: NonNullable<HttpRequest["asked"]>, root: string, routeOf: (path: string) => string | undefined): string {
  const at = asked.path.lastIndexOf(`${root}/`);
  const route = at === -1 ? undefined : routeOf(asked.path.slice(at));
  const prefix = asked.path.slice(0, at);
  if (route !== undefined && prefix !== asked.prefix && prefix.length <= 128) {
    const mend = prefix === "" ? "leave its basePath out" : `give it { basePath: ${JSON.stringify(prefix)} }`;
    return ` The path asked for is ${prefix}${route}, and the handler is mounted under ${JSON.stringify(asked.prefix)}: ${mend}.`;
  }
  const whole = routeOf(root + path);
  // Any word could be a route's parameter.
  if (whole === undefined || whole.includes("{")) return "";
  const taken =
    asked.canStrip === true ? `where a framework takes that off, as Hono's app.mount does, say { stripped: "${root}" }` : `ask for ${asked.prefix}${whole}`;
  return ` The path asked for is ${whole} without its ${root}: ${taken}.`;
}
