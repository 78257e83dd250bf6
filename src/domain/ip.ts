import ipaddr from "ipaddr.js";

/** What the caps count an address by: IPv4 whole (also where it is written as IPv6), "IPv6 by /64" (contract.md, Limits). `ip` must be an IP address. */
export function addressKey(ip: string): string {
  const address = ipaddr.process(ip);
  if (address.kind() === "ipv4") return address.toString();
  return `${(address as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":")}::/64`;
}

/** Whether an address is on the public internet: loopback, private, link-local, reserved and every IPv6 form that wraps an IPv4 address are not. Of IPv6 only 2000::/3 is given out (RFC 4291, section 2.4). */
export function isPublicAddress(ip: string): boolean {
  if (!ipaddr.isValid(ip)) return false;
  const address = ipaddr.process(ip);
  return address.range() === "unicast" && (address.kind() === "ipv4" || ((address as ipaddr.IPv6).parts[0] ?? 0) >> 13 === 1);
}
