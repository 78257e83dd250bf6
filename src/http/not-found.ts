import { VerifierError } from "../errors.js";
import type { HttpRequest } from "./message.js";

/**
 * Returns a 404. If another mount prefix would make the requested path a route, the message names that prefix.
 * @param routeOf Returns the template of a path's route, from the handler's root on: messages must not contain numbers.
 */
export function notFound(request: HttpRequest, root: string, words: string, routeOf: (path: string) => string | undefined): VerifierError {
  const hint = hintOf(request, root, routeOf);
  return new VerifierError("not_found", hint === undefined ? words : `${words.replace(/\.$/, "")}. ${hint}.`);
}

/** The path received, the path after its prefix was removed, and the change that makes it a route; `undefined` if there is none. */
function hintOf({ path, asked }: HttpRequest, root: string, routeOf: (path: string) => string | undefined): string | undefined {
  if (asked === undefined) return undefined;
  const { stripped = "" } = asked;
  const at = asked.path.lastIndexOf(`${root}/`);
  const route = at === -1 ? undefined : routeOf(asked.path.slice(at));
  const prefix = asked.path.slice(0, at);
  if (route !== undefined && (prefix !== asked.prefix || stripped !== "") && prefix.length <= 128) {
    const became = stripped === "" ? "" : ` with { stripped: ${JSON.stringify(stripped)} }, which makes it ${stripped}${prefix}${route}`;
    return `The path asked for is ${prefix}${route}, and the handler is mounted under ${JSON.stringify(asked.prefix)}${became}: ${fixOf(prefix, asked, root)}`;
  }
  const [rest, isRemoved] = asked.stripped !== undefined && routeOf(root + asked.path) !== undefined ? [asked.path, true] : [path, false];
  const whole = rest === "/" ? undefined : routeOf(root + rest);
  // A route parameter would match any word.
  if (whole === undefined || whole.includes("{")) return undefined;
  const fix = isRemoved
    ? `if a framework removes it, as Hono's app.mount does, pass { stripped: ${JSON.stringify(asked.prefix + root)} }`
    : `ask for ${asked.prefix}${whole}`;
  return `The path asked for is ${whole} without its ${root}: ${fix}`;
}

function fixOf(prefix: string, { isFixed, stripped = "" }: NonNullable<HttpRequest["asked"]>, root: string): string {
  if (prefix.endsWith("/"))
    return "the client's base URL must not end with a slash, and a proxy that removes a prefix must remove its slash too (in nginx: location /x/)";
  if (prefix.endsWith(root)) return `the client's base URL must not end with ${root}`;
  if (isFixed) return `let the proxy in front remove ${prefix}`;
  if (prefix === "") return stripped === "" ? "leave its basePath out" : "leave its options out";
  return `give it ${stripped === "" ? "" : "only "}{ basePath: ${JSON.stringify(prefix)} }`;
}
