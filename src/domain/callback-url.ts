import { isPublicAddress } from "./ip.js";

/** Ports that a callback may use, besides those of allowed origins. The empty string is the default of https. */
const ports: ReadonlySet<string> = new Set(["", "443", "8443"]);

/**
 * "https only, no redirects, no address outside the public internet (… literals in every spelling included), exact
 * origins can be allowed for development" (docs/contract.md#callback-url). Returns what is wrong with a callback_url,
 * or `undefined`. Host names are resolved and checked when a callback is delivered.
 */
export function callbackUrlError(url: string, allowOrigins: readonly string[]): string | undefined {
  if (url.length > 2048) return "must be at most 2048 characters";
  if (/[\p{Cc}\\]/u.test(url)) return "must not contain control characters or backslashes";
  if (!URL.canParse(url)) return "must be an absolute https URL";
  const { protocol, username, password, hash, hostname, port, origin } = new URL(url);
  if (username !== "" || password !== "") return "must not carry credentials";
  if (hash !== "" || url.includes("#")) return "must not have a fragment";
  // Other schemes may wrap an origin: the origin of blob:http://h/x is http://h.
  if (isHttp(protocol) && allowOrigins.includes(origin)) return undefined;
  if (protocol !== "https:") return "must be an https URL";
  if (!ports.has(port)) return "must use port 443 or 8443";
  if (!isPublicHost(hostname)) return "must point to a host on the public internet";
  return undefined;
}

/** Whether URLs of this protocol are allowed at all: exactly allowed origins may do without TLS. */
export function isHttp(protocol: string): boolean {
  return protocol === "https:" || protocol === "http:";
}

/**
 * Names that only lead to internal hosts: RFC 6761, RFC 6762, RFC 8375, the top-level domain for private use, and
 * Google Cloud's metadata server, whose other name is `metadata.google.internal`.
 */
const insideNames = /(^|\.)(localhost|local|internal|home\.arpa|metadata\.goog)$/;

/** The URL parser has already brought IPv4 literals (`2130706433`, `0x7f.1`, `0177.0.0.1`) to dotted form. */
function isPublicHost(hostname: string): boolean {
  if (hostname.startsWith("[")) return isPublicAddress(hostname.slice(1, -1));
  const name = hostname.replace(/\.+$/, "");
  if (/^[\d.]+$/.test(name)) return isPublicAddress(name);
  return name.includes(".") && !insideNames.test(name);
}
