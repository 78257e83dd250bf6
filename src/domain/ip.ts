import ipaddr from "ipaddr.js";

/**
 * The key that the caps count an address by: IPv4 whole, also if an IPv6 address contains it; "IPv6 by /64"
 * (docs/contract.md#address-key). `ip` must be an IP address.
 */
export function addressKey(ip: string): string {
  const address = ipaddr.parse(ip);
  if (address.kind() === "ipv4") return address.toString();
  const { parts } = address as ipaddr.IPv6;
  const inner = wrappedIpv4(parts);
  if (inner !== undefined) return inner.flatMap((part) => [part >> 8, part & 0xff]).join(".");
  const network = parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(":")}::/64`;
}

/** The network of an address, by its key: IPv4 by /16, "IPv6 /32" (docs/contract.md#spam-strange-network). */
export function networkOf(key: string): string {
  return key.split(/[.:]/, 2).join(".");
}

/**
 * The halves of the IPv4 address in an IPv6 address. Its owner has all /64s made of it (6to4: 65,536), or shares a /64
 * with all others (NAT64: the whole internet).
 */
function wrappedIpv4(parts: readonly number[]): readonly number[] | undefined {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = parts;
  // 6to4, 2002::/16 (RFC 3056, section 2).
  if (a === 0x2002) return [b, c];
  // Teredo, 2001::/32: the client's address, with its bits inverted (RFC 4380, section 4).
  if (a === 0x2001 && b === 0) return [g ^ 0xffff, h ^ 0xffff];
  // NAT64, 64:ff9b::/96 (RFC 6052, section 2.1), and the /96s of 64:ff9b:1::/48 (RFC 8215).
  if (a === 0x64 && b === 0xff9b && (c === 1 || (c === 0 && d === 0)) && e === 0 && f === 0) return [g, h];
  // IPv4-compatible ::/96, mapped ::ffff:0:0/96 (RFC 4291, section 2.5.5), translated ::ffff:0:0:0/96 (RFC 2765,
  // section 2.1).
  if ((a | b | c | d) === 0 && ((e === 0 && (f === 0 || f === 0xffff)) || (e === 0xffff && f === 0))) return [g, h];
  return undefined;
}

/** A public address where only a cloud's own machines reach their host and its metadata: Azure's WireServer. */
const hostOnly: ReadonlySet<string> = new Set(["168.63.129.16"]);

/**
 * Whether an address is on the public internet. Loopback, private, link-local and reserved addresses are not, nor is
 * any IPv6 form that wraps an IPv4 address. In IPv6, only 2000::/3 is allocated (RFC 4291, section 2.4).
 */
export function isPublicAddress(ip: string): boolean {
  if (!ipaddr.isValid(ip)) return false;
  const address = ipaddr.parse(ip);
  if (address.range() !== "unicast") return false;
  return address.kind() === "ipv4" ? !hostOnly.has(address.toString()) : ((address as ipaddr.IPv6).parts[0] ?? 0) >> 13 === 1;
}
