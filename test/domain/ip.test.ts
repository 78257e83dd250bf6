import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { describe, expect, it } from "vitest";
import { callbackUrlError } from "../../src/domain/callback-url.js";
import { addressKey, isPublicAddress } from "../../src/domain/ip.js";

describe("how an address counts: IPv6 by /64 (docs/contract.md#address-key)", () => {
  it.each([
    ["192.0.2.45", "192.0.2.45"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:0DB8:1:2::", "2001:db8:1:2::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    // The example of RFC 4380, section 4.
    ["2001:0000:4136:e378:8000:63bf:3fff:fdd2", "192.0.2.45"],
    // Similar to the forms that represent an IPv4 address.
    ["64:ff9b:2::192.0.2.45", "64:ff9b:2:0::/64"],
    ["64:ff9b:0:1::192.0.2.45", "64:ff9b:0:1::/64"],
    ["2001:1::192.0.2.45", "2001:1:0:0::/64"],
    ["1::192.0.2.45", "1:0:0:0::/64"],
  ])("%s is counted as %s", (ip, key) => {
    expect(addressKey(ip)).toBe(key);
  });

  it("every IPv6 form of an IPv4 address is counted as that address", () => {
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

describe("no address outside the public internet, literals in every spelling included (docs/contract.md#callback-url)", () => {
  /** IANA's special-purpose registries for IPv4 (RFC 6890 and later) and IPv6, multicast and unallocated blocks. */
  const special = [
    ["0.0.0.0/8", "this network"],
    ["10.0.0.0/8", "private"],
    ["100.64.0.0/10", "shared, behind carriers' NAT"],
    ["127.0.0.0/8", "loopback"],
    ["169.254.0.0/16", "link-local"],
    ["172.16.0.0/12", "private"],
    ["192.0.0.0/24", "protocol assignments"],
    ["192.0.2.0/24", "documentation"],
    ["192.31.196.0/24", "AS112"],
    ["192.52.193.0/24", "AMT"],
    ["192.88.99.0/24", "6to4 relays"],
    ["192.168.0.0/16", "private"],
    ["192.175.48.0/24", "AS112"],
    ["198.18.0.0/15", "benchmarking"],
    ["198.51.100.0/24", "documentation"],
    ["203.0.113.0/24", "documentation"],
    ["224.0.0.0/4", "multicast"],
    ["240.0.0.0/4", "reserved, and broadcast"],
    ["::/128", "unspecified"],
    ["::1/128", "loopback"],
    ["::/96", "IPv4-compatible"],
    ["::ffff:0:0/96", "IPv4-mapped"],
    ["::ffff:0:0:0/96", "IPv4-translated"],
    ["64:ff9b::/96", "NAT64"],
    ["64:ff9b:1::/48", "local NAT64"],
    ["100::/64", "discard-only"],
    ["100:0:0:1::/64", "dummy prefix"],
    ["2001::/23", "protocol assignments"],
    ["2001::/32", "Teredo"],
    ["2001:1::1/128", "port control"],
    ["2001:1::2/128", "TURN anycast"],
    ["2001:1::3/128", "service registration"],
    ["2001:2::/48", "benchmarking"],
    ["2001:3::/32", "AMT"],
    ["2001:4:112::/48", "AS112"],
    ["2001:10::/28", "ORCHID"],
    ["2001:20::/28", "ORCHIDv2"],
    ["2001:30::/28", "drones"],
    ["2001:db8::/32", "documentation"],
    ["2002::/16", "6to4"],
    ["2620:4f:8000::/48", "AS112"],
    ["3fff::/20", "documentation"],
    ["4000::/3", "not given out"],
    ["5f00::/16", "segment routing"],
    ["6000::/3", "not given out"],
    ["8000::/3", "not given out"],
    ["a000::/3", "not given out"],
    ["c000::/3", "not given out"],
    ["fc00::/7", "unique local"],
    ["fe80::/10", "link-local"],
    ["fec0::/10", "site-local"],
    ["ff00::/8", "multicast"],
  ] as const;

  it.each(special)("%s, %s, is not public, including its first and last address", (block) => {
    const [start, bits] = ipaddr.parseCIDR(block);
    const first = start.toByteArray();
    const last = first.map((byte, index) => byte | (0xff >> Math.min(8, Math.max(0, bits - 8 * index))));
    const middle = first.map((byte, index) => (index === first.length - 1 && bits < 121 ? byte | 0x42 : byte));
    for (const bytes of [first, middle, last]) {
      const ip = ipaddr.fromByteArray(bytes).toString();
      expect(isPublicAddress(ip), ip).toBe(false);
    }
  });

  it.each([
    ["AWS, Azure, Google Cloud, Oracle, DigitalOcean, Hetzner", "169.254.169.254"],
    ["AWS", "fd00:ec2::254"],
    ["AWS, containers", "169.254.170.2"],
    ["AWS, pods", "fd00:ec2::23"],
    ["Azure's WireServer", "168.63.129.16"],
    ["Alibaba Cloud", "100.100.100.200"],
    ["Oracle Cloud, classic", "192.0.0.192"],
    ["Google Cloud", "fd20:ce::254"],
    ["Scaleway", "169.254.42.42"],
    ["Scaleway", "fd00:42::42"],
    ["Tencent Cloud", "169.254.0.23"],
  ])("the internal address of %s, %s, is not public in any form that wraps it", (_cloud, ip) => {
    expect(isPublicAddress(ip)).toBe(false);
    expect(isPublicAddress(`${ip}%eth0`)).toBe(false);
    if (!ipaddr.IPv4.isIPv4(ip)) return;
    const [a = 0, b = 0, c = 0, d = 0] = ipaddr.IPv4.parse(ip).octets;
    const hex = (...bytes: number[]) => bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
    const wrapped = `${hex(a, b)}:${hex(c, d)}`;
    const inverted = `${hex(a ^ 255, b ^ 255)}:${hex(c ^ 255, d ^ 255)}`;
    const forms = [
      String(((a << 24) | (b << 16) | (c << 8) | d) >>> 0),
      `0x${hex(a, b, c, d)}`,
      [a, b, c, d].map((byte) => `0x${byte.toString(16)}`).join("."),
      [a, b, c, d].map((byte) => `0${byte.toString(8)}`).join("."),
      `${a}.${b}.${c * 256 + d}`,
      `::${ip}`,
      `::ffff:${ip}`,
      `::ffff:${wrapped}`,
      `::ffff:0:${wrapped}`,
      `0:0:0:0:0:FFFF:${wrapped.toUpperCase()}`,
      `2002:${wrapped}::`,
      `2002:${wrapped}::1`,
      `64:ff9b::${ip}`,
      `64:ff9b:1:5::${ip}`,
      `2001:0:${wrapped}::`,
      `2001:0:1:2:3:4:${inverted}`,
    ];
    for (const form of forms) expect(isPublicAddress(form), form).toBe(false);
  });

  it.each([
    ["1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "168.63.129.15", "168.63.129.17"],
    ["169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.167.255.255", "192.169.0.0", "198.17.255.255"],
    ["198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255", "8.8.8.8"],
    ["2001:200::", "2001:db7:ffff::", "2001:db9::", "2003::", "2600::", "2606:4700:4700::1111", "2620:4f:7fff::", "2620:4f:8001::", "3fff:1000::"],
  ])("addresses next to these blocks are public: %s", (...beside) => {
    for (const ip of beside) expect(isPublicAddress(ip), ip).toBe(true);
  });

  it("an IPv6 form of an IPv4 address is not public, even if the IPv4 address is", () => {
    for (const ip of ["::ffff:8.8.8.8", "::ffff:808:808", "::8.8.8.8", "2002:808:808::", "64:ff9b::8.8.8.8"]) expect(isPublicAddress(ip), ip).toBe(false);
  });

  it.each([
    "",
    " ",
    "no address",
    "8.8.8.8 ",
    " 8.8.8.8",
    "8.8.8.8/32",
    "8.8.8.8:443",
    "[2606:4700::1]",
    "256.1.1.1",
    "1.2.3.4.5",
    "08.8.8.8",
    "2606:4700:::1",
  ])("an invalid address is not public: '%s'", (ip) => {
    expect(isPublicAddress(ip)).toBe(false);
  });
});

describe("callback_url: https only, no address outside the public internet (docs/contract.md#callback-url)", () => {
  it.each([
    "localhost",
    "localhost.",
    "localhost..",
    "hook.localhost",
    "ip6-localhost",
    "metadata",
    "instance-data",
    "metadata.google.internal",
    "Metadata.Google.Internal.",
    "metadata.google.internal..",
    "ｍetadata。google。internal",
    "metadata%2Egoogle%2Einternal",
    "metadata.goog",
    "metadata.goog.",
    "instance-data.ec2.internal",
    "kubernetes.default.svc.cluster.local",
    "printer.local",
    "router.home.arpa",
    "168.63.129.16",
    "168.63.129.16.",
    "2822734096",
    "0xA83F8110",
    "0250.077.0201.020",
    "168.4161808",
    "%31%36%38.63.129.16",
    "[::ffff:168.63.129.16]",
    "[::FFFF:A83F:8110]",
    "[::ffff:8.8.8.8]",
    "[64:ff9b::a83f:8110]",
  ])("https://%s/ is rejected", (host) => {
    expect(callbackUrlError(`https://${host}/`, [])).toBe("must point to a host on the public internet");
  });

  it.each(["hook.example.com", "hook.example.com.", "internal.example.com", "localhost.example.com", "mymetadata.goog", "1.1.1.1", "[2606:4700:4700::1111]"])(
    "https://%s/ is accepted",
    (host) => {
      expect(callbackUrlError(`https://${host}/`, [])).toBeUndefined();
    },
  );
});
