import ipaddr from "ipaddr.js";

/** What the caps count an address by: IPv4 whole (also where it is written as IPv6), "IPv6 by /64" (contract.md, Limits). `ip` must be an IP address. */
export function addressKey(ip: string): string {
  const address = ipaddr.process(ip);
  if (address.kind() === "ipv4") return address.toString();
  return `${(address as ipaddr.IPv6).parts.slice(0, 4).map((part) => part.toString(16)).join(":")}::/64`;
}

/** Whether an address is on the public internet: loopback, private, link-local, reserved and every IPv6 form that wraps an IPv4 address are not. */
export function isPublicAddress(ip: string): boolean {
  return ipaddr.isValid(ip) && ipaddr.process(ip).range() === "unicast";
}
