import { createRequire } from "node:module";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { type CountryCode, getCountryCallingCode } from "libphonenumber-js/max";
import { describe, expect, it } from "vitest";
import { judgeLists, type List, type ListSubject, readingList, readList } from "../../src/domain/lists.js";
import { canonicalNumber } from "../../src/domain/phone-number.js";
import { readOptions } from "../../src/options/options.js";
import { neededOptions } from "../support/options.js";

const number = "+33612345678";
const subject = (more: Partial<ListSubject> = {}): ListSubject => ({ number, ...more });
const indexOf = (list: List) => {
  const { index, problems } = readList(list);
  expect(problems).toEqual([]);
  if (index === undefined) throw new Error("it is no list");
  return index;
};

describe("entries of a list", () => {
  it.each<[List, Partial<ListSubject>, string | undefined]>([
    [{ numbers: [number] }, {}, "number"],
    [{ numbers: [number] }, { number: "+336123456789" }, undefined],
    [{ numbers: ["+3361*"] }, {}, "number"],
    [{ numbers: ["+3362*", "+447*"] }, {}, undefined],
    [{ numbers: [`${number}*`] }, {}, "number"],
    [{ numbers: ["+3361234*"] }, {}, "number"],
    [{ numbers: ["+3306*"] }, {}, "number"],
    [{ numbers: ["+330612*"] }, {}, "number"],
    [{ numbers: ["+330613*"] }, {}, undefined],
    [{ numbers: ["+4407*"] }, { number: "+447700900123" }, "number"],
    [{ numbers: ["+3906*"] }, { number: "+390612345678" }, "number"],
    [{ numbers: ["+3906*"] }, { number: "+39612345678" }, undefined],
    [{ numbers: ["+8100777*"] }, { number: "+8100777123456" }, "number"],
    [{ numbers: ["+7800*"] }, { number: "+78005553535" }, "number"],
    [{ numbers: ["+33612345*"] }, {}, "number"],
    [{ cidrs: ["203.0.113.0/24"] }, { ip: "203.0.113.255" }, "203.0.113.0/24"],
    [{ cidrs: ["203.0.113.0/24"] }, { ip: "203.0.114.0" }, undefined],
    [{ cidrs: ["203.0.113.9/24"] }, { ip: "203.0.113.1" }, "203.0.113.9/24"],
    [{ cidrs: ["203.0.113.7"] }, { ip: "203.0.113.7" }, "address"],
    [{ cidrs: ["203.0.113.7"] }, { ip: "203.0.113.6" }, undefined],
    [{ cidrs: ["203.0.113.7"] }, {}, undefined],
    [{ cidrs: ["0.0.0.0/0"] }, { ip: "198.51.100.1" }, "0.0.0.0/0"],
    [{ cidrs: ["0.0.0.0/0"] }, { ip: "2001:db8::1" }, undefined],
    [{ cidrs: ["::/0"] }, { ip: "2001:db8::1" }, "::/0"],
    [{ cidrs: ["::/0"] }, { ip: "198.51.100.1" }, undefined],
    [{ cidrs: ["::/0"] }, { ip: "::ffff:198.51.100.1" }, undefined],
    [{ cidrs: ["2001:DB8::/32"] }, { ip: "2001:db8:ffff::1" }, "2001:DB8::/32"],
    [{ cidrs: ["2001:db8::/32"] }, { ip: "2001:db9::1" }, undefined],
    [{ cidrs: ["2001:db8::1"] }, { ip: "2001:0db8:0:0:0:0:0:1" }, "address"],
    [{ devices: ["d-1"] }, { deviceId: "d-1" }, "device"],
    [{ devices: ["d-1"] }, { deviceId: "D-1" }, undefined],
    [{ devices: ["d-1"] }, {}, undefined],
    [{}, { ip: "198.51.100.1", deviceId: "d-1" }, undefined],
    [{ numbers: undefined, cidrs: [], devices: undefined }, { ip: "198.51.100.1", deviceId: "d-1" }, undefined],
  ])("%j with %j finds %s", (list, more, shown) => {
    const found = indexOf(list).find(subject(more));
    expect(found?.range ?? found?.kind).toBe(shown);
  });

  it("an IPv4 address is found in every IPv6 form of it, and by entries of the mapped form", () => {
    const { find } = indexOf({ cidrs: ["192.0.2.0/24"] });
    // Mapped, 6to4, NAT64, and the Teredo example of RFC 4380, section 4.
    for (const ip of ["::ffff:192.0.2.45", "2002:c000:22d::1", "64:ff9b::192.0.2.45", "2001:0000:4136:e378:8000:63bf:3fff:fdd2"])
      expect(find(subject({ ip }))?.kind, ip).toBe("address");
    for (const ip of ["::ffff:192.0.3.45", "2002:c000:32d::1", "2001:db8::c000:22d"]) expect(find(subject({ ip })), ip).toBeUndefined();
    expect(indexOf({ cidrs: ["::ffff:192.0.2.0/120"] }).find(subject({ ip: "192.0.2.45" }))).toEqual({ kind: "address", range: "::ffff:192.0.2.0/120" });
    expect(indexOf({ cidrs: ["2002::/16"] }).find(subject({ ip: "2002:c000:22d::1" }))?.range).toBe("2002::/16");
  });

  it("finds by CIDR the same addresses as ipaddr.js", () => {
    const ipv4 = fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 })).map(([ip, bits]) => `${ip}/${bits}`);
    const ipv6 = fc.tuple(fc.ipV6(), fc.integer({ min: 0, max: 128 })).map(([ip, bits]) => `${ip}/${bits}`);
    // With a CIDR around the address itself, so that some match.
    const near = (family: fc.Arbitrary<string>) => family.chain((cidr) => fc.tuple(fc.array(family, { maxLength: 20 }), fc.constant(cidr)));
    const matches = (ip: string, cidr: string) => {
      const [address, range] = [ipaddr.process(ip), ipaddr.parseCIDR(cidr)];
      return address.kind() === range[0].kind() && (address as ipaddr.IPv4).match(range as [ipaddr.IPv4, number]);
    };
    let hits = 0;
    fc.assert(
      fc.property(fc.oneof(near(ipv4), near(ipv6)), ([cidrs, own]) => {
        const ip = own.split("/")[0] as string;
        // Wrapped IPv4 addresses are searched too, and mapped entries are IPv4: both have their own test.
        fc.pre(!/^(::|2002:|2001:0?:|64:ff9b)/i.test(ip) && !cidrs.some((cidr) => cidr.startsWith("::")));
        for (const list of [cidrs, [...cidrs, own]]) {
          const found = indexOf({ cidrs: list }).find(subject({ ip }));
          expect(found !== undefined).toBe(list.some((cidr) => matches(ip, cidr)));
          if (found?.range !== undefined) expect(matches(ip, found.range)).toBe(true);
          hits += found === undefined ? 0 : 1;
        }
      }),
    );
    expect(hits).toBeGreaterThan(50);
  });

  it("finds by prefix the same numbers as startsWith", () => {
    const digits = fc.stringMatching(/^[23][1-3]{1,6}$/).map((text) => `+${text}`);
    fc.assert(
      fc.property(fc.array(digits), digits, (prefixes, one) => {
        const found = indexOf({ numbers: prefixes.map((prefix) => `${prefix}*`) }).find({ number: one });
        expect(found !== undefined).toBe(prefixes.some((prefix) => one.startsWith(prefix)));
      }),
    );
  });
});

describe("both lists together", () => {
  const block = indexOf({ numbers: [number] });
  const safe = indexOf({ devices: ["d-1"], numbers: [number] });
  it.each([
    [undefined, undefined, { safe: false }],
    [undefined, safe, { safe: true }],
    [block, undefined, { block: { kind: "number" }, safe: false }],
    [block, safe, { block: { kind: "number" }, safe: false }],
  ])("block beats safe, and a subject without an entry is neither: row %#", (one, other, word) => {
    expect(judgeLists(one, other, subject({ deviceId: "d-1" }))).toEqual(word);
  });
});

describe("a prefix with a trunk zero after the country code", () => {
  const examples = createRequire(import.meta.url)("libphonenumber-js/examples.mobile.json") as Record<string, string>;
  const withTrunk = Object.entries(examples).flatMap(([country, national]) => {
    const code = `+${getCountryCallingCode(country as CountryCode)}`;
    // Numbers of Rwanda and Uruguay may begin with a zero: a prefix is taken literally there.
    const ownZero = country === "RW" || country === "UY";
    return !ownZero && canonicalNumber(`${code}0${national}`) === code + national ? [{ country, code, national }] : [];
  });

  it("finds the same numbers as the prefix without it, in every country where a number may have it", () => {
    expect(withTrunk.length).toBeGreaterThan(80);
    for (const { code, national } of withTrunk)
      for (let length = 1; length <= national.length; length++)
        expect(indexOf({ numbers: [`${code}0${national.slice(0, length)}*`] }).find(subject({ number: code + national })), `${code}0${national}`).toBeDefined();
  });

  it("is rejected if nothing follows; a country code alone is accepted", () => {
    const fix = "ends with the digits that are dialled before numbers within the country, such as 0, and no number in E.164 form has them: leave them out";
    expect(readList({ numbers: ["+33*", "+330*", "+440*"] }).problems).toEqual([1, 2].map((at) => ({ path: ["numbers", at], message: fix })));
    expect(() => readOptions({ ...neededOptions, blockedNumbers: ["+3306*", "+330*"] })).toThrow(`blockedNumbers.1 ${fix}`);
  });

  it("of a whole number, with whatever prefix of its country: the list has the canonical form", () => {
    const written = Object.entries(examples).flatMap(([country, national]) => {
      const code = `+${getCountryCallingCode(country as CountryCode)}`;
      const forms = ["0", "00", "01", "06", "1", "11", "8", "80", "9", "15", "11312", "15612"].map((trunk) => code + trunk + national);
      // Argentina dials 15 after the area code instead of 9 before it.
      if (country === "AR") forms.push(...[3, 4, 5].map((area) => `${code}${national.slice(1, area)}15${national.slice(area)}`));
      return forms.filter((form) => form.length <= 16 && canonicalNumber(form) !== form);
    });
    expect(written.length).toBeGreaterThan(150);
    for (const form of written) expect(indexOf({ numbers: [form] }).find(subject({ number: canonicalNumber(form) })), form).toBeDefined();
  });

  it("does not affect other prefixes: every beginning of a number still finds it", () => {
    for (const [country, national] of Object.entries(examples)) {
      const number = `+${getCountryCallingCode(country as CountryCode)}${national}`;
      for (let length = 2; length <= number.length; length++)
        if (readList({ numbers: [`${number.slice(0, length)}*`] }).index?.find(subject({ number })) === undefined) expect.fail(number.slice(0, length));
    }
  });
});

describe("an invalid entry is left out and reported with its place and the fix", () => {
  const numbersMend = "must be in E.164 form, or a prefix that ends in *";
  const cidrsMend = "must be an address or a CIDR, for example 203.0.113.0/24 or 2001:db8::/32";
  it.each<[kind: string, fix: string, junk: readonly unknown[]]>([
    [
      "numbers",
      numbersMend,
      ["", "*", "+*", "33612345678", "0033612345678", "+33 6 12", "+0612345678", "+336123456789012345", "+336**", "+33*6", "+4", 33, null, ["+33*"]],
    ],
    [
      "cidrs",
      cidrsMend,
      [
        "",
        "/",
        "10",
        "10/8",
        "10.0/16",
        "010.0.0.0/8",
        "0x0a.0.0.0/8",
        "10.0.0.0/33",
        "10.0.0.0/08",
        "10.0.0.0/",
        "10.0.0.0/-1",
        " 10.0.0.0/8",
        "256.0.0.0/8",
        "1.2.3.4.5",
      ],
    ],
    ["cidrs", cidrsMend, ["2001:db8::/129", "2001:db8:::/32", "fe80::1%eth0/64", "2001:db8/32", "::ffff:10.0.0.0/200", 10, null, undefined]],
    ["devices", "must be 1 to 128 printable characters", ["", "a\nb", "x".repeat(129), 5, null, {}]],
  ])("in %s: %s", (kind, fix, junk) => {
    for (const one of junk) {
      const { index, problems, faulty } = readList({ [kind]: [one], numbers: kind === "numbers" ? [one, number] : [number] });
      expect({ problems, faulty }, String(one)).toEqual({ problems: [{ path: [kind, 0], message: fix }], faulty: 1 });
      expect(index?.find(subject())?.kind).toBe("number");
    }
  });

  it("a number that is too short for its country needs a star, also with a trunk zero; a number of the shortest length does not", () => {
    const message = "is too short for a number of its country: end it in * for a prefix";
    const short = ["+1415", "+331", "+3306", "+141555512", "+99893123456"];
    expect(readList({ numbers: short }).problems).toEqual(short.map((_, at) => ({ path: ["numbers", at], message })));
    expect(() => readOptions({ ...neededOptions, blockedNumbers: ["+1415"] })).toThrow(`blockedNumbers.0 ${message}`);
    expect(readList({ numbers: ["+29012345", "+4912345", "+14155551234", "+33612345678", "+999123"] }).problems).toEqual([]);
  });

  it.each([
    [undefined],
    [null],
    ["+33612345678"],
    [5],
    [[]],
    [[number]],
    [new Set([number])],
    [new Map()],
    [Promise.resolve({})],
    [new Response("{}")],
    [new Date()],
    [new Error("down")],
    [new (class List {})()],
    [{ numbers: number }],
    [{ cidrs: new Set() }],
    [{ devices: null }],
  ])("%s is not a list", (list) => {
    const { index, problems, faulty } = readList(list);
    expect(index).toBeUndefined();
    expect(faulty).toBe(1);
    expect(problems[0]?.message).toMatch(/^must be (a list of strings|\{ numbers\?, cidrs\?, devices\? \}, or a function that returns it)$/);
  });

  it("a plain object without a prototype, or of another realm, is a list", () => {
    for (const list of [Object.create(null), runInNewContext("({})")]) expect(readList(list).problems).toEqual([]);
  });

  it("with an unknown key, which may be a misspelled one, it is not a list (docs/contract.md#lists)", () => {
    const { index, problems } = readList({ number: ["+44*"], numbers: [number], constructor: ["x"] });
    expect(problems.map(({ path, message }) => `${path.join(".")} ${message}`)).toEqual([
      "number is an unknown list key; allowed: numbers, cidrs, devices",
      "constructor is an unknown list key; allowed: numbers, cidrs, devices",
    ]);
    expect(index).toBeUndefined();
  });

  it("of many invalid entries, the first ten and the total are reported, without the entries, which may be numbers", () => {
    const { problems, faulty } = readList({ numbers: Array.from({ length: 5000 }, () => "33612345678") });
    expect([problems.length, faulty]).toEqual([10, 5000]);
    expect(JSON.stringify(problems)).not.toContain("33612345678");
  });

  it("a list is read in slices of a thousand entries", () => {
    expect([...readingList({ numbers: Array.from({ length: 2500 }, (_, at) => `+33${600_000_000 + at}`) })]).toHaveLength(2);
  });
});

describe("options: lists and challenge", () => {
  const read = (options: object) => readOptions({ ...neededOptions, ...options });
  it.each([
    [{ lists: [] }, "lists must be an object"],
    [{ lists: { blocked: {} } }, "lists.blocked is not an option"],
    [{ lists: { block: [] } }, "lists.block must be { numbers?, cidrs?, devices? }, or a function that returns it"],
    [{ lists: { safe: null } }, "lists.safe must be { numbers?, cidrs?, devices? }, or a function that returns it"],
    [{ lists: { block: { numbers: ["+33*", "0612345678"] } } }, "lists.block.numbers.1 must be in E.164 form, or a prefix that ends in *"],
    [{ lists: { safe: { cidrs: ["10/8"] } } }, "lists.safe.cidrs.0 must be an address or a CIDR, for example 203.0.113.0/24"],
    [{ lists: { safe: { devices: "d-1" } } }, "lists.safe.devices must be a list of strings"],
    [{ lists: { safe: { ips: [] } } }, "lists.safe.ips is an unknown list key; allowed: numbers, cidrs, devices"],
    [{ lists: { block: { numbers: Array.from({ length: 13 }, () => "x") } } }, "lists.block has 3 more invalid entries"],
    [{ lists: { refresh: 0 } }, "lists.refresh must be more than 0"],
    [{ lists: { refresh: 86_401 } }, "lists.refresh must be at most a day, and is in seconds"],
    [{ challenge: {} }, "challenge must be a challenge, for example turnstileChallenge({ secret }): an object with the method verify"],
    [{ challenge: () => true }, "challenge must be a challenge"],
  ])("an error names the option's path and the fix: %j", (options, message) => {
    expect(() => read(options)).toThrow(message);
  });

  it("lists are read once, functions and challenges are passed on, and refresh is 30 s by default", () => {
    const block = { numbers: [number] };
    const safe = async () => ({});
    const challenge = { verify: async () => true };
    const settings = read({ lists: { block, safe }, challenge });
    block.numbers.pop();
    expect(settings.lists.block).not.toBe(block);
    expect((settings.lists.block as { find(of: ListSubject): unknown }).find(subject())).toBeDefined();
    expect([settings.lists.safe === safe, settings.lists.refresh, settings.challenge === challenge]).toEqual([true, 30_000, true]);
    expect(read({ lists: undefined, challenge: undefined }).lists).toEqual({ block: undefined, safe: undefined, refresh: 30_000 });
    expect(read({ lists: { block: undefined, refresh: 0.5 } }).lists).toEqual({ block: undefined, safe: undefined, refresh: 500 });
  });
});
