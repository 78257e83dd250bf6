import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addressKey, isPublicAddress } from "../../src/domain/ip.js";

describe('contract.md: "ip (IPv6 by /64)"', () => {
  it.each([
    ["192.0.2.45", "192.0.2.45"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:0DB8:1:2::", "2001:db8:1:2::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    // The example of RFC 4380, section 4.
    ["2001:0000:4136:e378:8000:63bf:3fff:fdd2", "192.0.2.45"],
    // Beside the forms that stand for an IPv4 address.
    ["64:ff9b:2::192.0.2.45", "64:ff9b:2:0::/64"],
    ["64:ff9b:0:1::192.0.2.45", "64:ff9b:0:1::/64"],
    ["2001:1::192.0.2.45", "2001:1:0:0::/64"],
    ["1::192.0.2.45", "1:0:0:0::/64"],
  ])("%s is counted as %s", (ip, key) => {
    expect(addressKey(ip)).toBe(key);
  });

  it("D10: every IPv6 form of an IPv4 address is counted as that address, and so apart from all others", () => {
    const word = fc.integer({ min: 0, max: 0xffff });
    fc.assert(
      fc.property(word, word, word, word, (high, low, any, other) => {
        const hex = (...parts: number[]) => parts.map((part) => part.toString(16)).join(":");
        const ipv4 = [high >> 8, high & 255, low >> 8, low & 255].join(".");
        const forms = {
          mapped: `::ffff:${ipv4}`,
          compatible: `::${hex(high, low)}`,
          translated: `::ffff:0:${ipv4}`,
          "6to4": `2002:${hex(high, low, any)}::${hex(other)}`,
          NAT64: `64:ff9b::${ipv4}`,
          "local NAT64": `64:ff9b:1:${hex(any)}::${ipv4}`,
          Teredo: `2001:0:${hex(any, other, any, other, high ^ 0xffff, low ^ 0xffff)}`,
        };
        for (const [form, ip] of Object.entries(forms)) expect(addressKey(ip), `${form}: ${ip}`).toBe(ipv4);
      }),
    );
  });
});

describe('contract.md: "no address outside the public internet … literals in every spelling included"', () => {
  it.each(["8.8.8.8", "168.63.129.17", "2606:4700:4700::1111"])("%s is public", (ip) => {
    expect(isPublicAddress(ip)).toBe(true);
  });

  it.each([
    "168.63.129.16",
    "0xa8.63.0201.16",
    "::ffff:168.63.129.16",
    "2002:a83f:8110::",
    "64:ff9b::168.63.129.16",
    "100.100.100.200",
    "169.254.169.254",
    "fd00:ec2::254",
    "127.1",
    "no address",
  ])("%s is not", (ip) => {
    expect(isPublicAddress(ip)).toBe(false);
  });
});
