import { isIP } from "node:net";

/** Whether an address or name is always this machine: not a name that an attacker's DNS could resolve. */
export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|::1)$/i.test(host);
}

/**
 * Whether a Host header is valid for the demo: `localhost`, a literal IP address, or the name in `--host`. Otherwise a
 * page elsewhere could read the API key and the codes, through a name of its own that resolves to this address.
 */
export function isOwnHost(header: string | undefined, given: string): boolean {
  const name = (header ?? "").replace(/:\d*$/, "").toLowerCase();
  return name === "localhost" || name === given.toLowerCase() || isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0;
}
