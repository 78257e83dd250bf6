import { isIP } from "node:net";

/** Whether this address or name is this machine's own: a name that an attacker's DNS may answer for is none. */
export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(host);
}

/**
 * Whether a Host header may stand for the demo: `localhost`, an IP address as such, or the name that `--host` gave. A page elsewhere could else read the API key and the codes, through a name of its own that its DNS points here.
 */
export function isOwnHost(header: string | undefined, given: string): boolean {
  const name = (header ?? "").replace(/:\d*$/, "").toLowerCase();
  return name === "localhost" || name === given.toLowerCase() || isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0;
}
