/**
 * The path of a request target or URL, unchanged, up to `?` or `#`. Targets in absolute form (`http://host/v1/check`)
 * are accepted.
 */
export function pathOf(target: string): string {
  const rest = target.startsWith("/") ? target : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, "");
  const end = rest.search(/[?#]/);
  return (end === -1 ? rest : rest.slice(0, end)) || "/";
}

/** The query of a request target, with its `?`; empty if there is none. */
export function queryOf(target: string): string {
  return target.includes("?") ? (/\?[^#]*/.exec(target)?.[0] ?? "") : "";
}

/** Whether a path is a handler's root (`/v1`) or under it (docs/contract.md#routes). */
export function isUnder(root: string, path: string): boolean {
  return path.startsWith(root) && (path.length === root.length || path[root.length] === "/");
}

/** Removes `prefix` from a path. A path not under it becomes `/`, which is not a route. */
export function withoutPrefix(path: string, prefix: string): string {
  if (prefix === "") return path;
  return path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : "/";
}

/**
 * The part of a path before a handler's root. `folder`: the start of the path that the framework has matched. It may
 * end with a whole root, or hold the start of one: `app/v2/[...route]` of `/v2/Services`.
 */
export function prefixOf(roots: readonly string[], path: string, folder: string): string {
  const whole = roots.find((root) => folder.endsWith(root));
  if (whole !== undefined) return folder.slice(0, -whole.length);
  const at = Math.max(...roots.map((root) => `${path}/`.lastIndexOf(`${root}/`, folder.length)));
  return at === -1 ? folder : folder.slice(0, at);
}

/**
 * Checks a prefix option: empty, or with a leading slash and no trailing one. `roots`: must not be at its end, because
 * the paths include them. Throws `TypeError`.
 */
export function prefixOption(name: string, value: string, roots: readonly string[] = []): string {
  if (value !== "" && !/^\/.*[^/]$/.test(value))
    throw new TypeError(`phoneproof: ${name} must be empty or start with "/" and not end with it, for example "/api"; it is ${JSON.stringify(value)}`);
  const problem = doubledRoot(name, value, roots);
  if (problem !== undefined) throw new TypeError(problem);
  return value;
}

/**
 * Explains what is wrong with a prefix that ends with a root: requests to `/v1/check` would have to go to
 * `/v1/v1/check`.
 */
export function doubledRoot(name: string, prefix: string, roots: readonly string[]): string | undefined {
  const root = roots.find((one) => prefix.endsWith(one));
  if (root === undefined) return undefined;
  const fix = prefix === root ? "leave it out" : `say ${JSON.stringify(prefix.slice(0, -root.length))}`;
  return `phoneproof: ${name} is ${JSON.stringify(prefix)}, but the paths start with ${root} already, and would be served under ${prefix}${root}: ${fix}`;
}
