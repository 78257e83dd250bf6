import { describe, expect, it } from "vitest";
import { start } from "../support/verifier.js";
import { alarmOnly, blocked, busy, deliveries, french, hour, minute, random, type Site, sent, site, turns, uzbek } from "./fraud-traffic-kit.js";

const hundredths = (count: number): string => String(count).padStart(2, "0");

describe("the alarm of a country", () => {
  it("ends at most 65 minutes after an attack of five messages, while honest users go on (docs/fraud.md#what-an-attacker-can-lock-out)", async () => {
    const one = site({}, false);
    const next = random();
    const number = () => {
      const million = Math.floor(next() * 80);
      return french(Math.floor(next() * 10_000), Math.floor(next() * 100), million === 39 ? 88 : million);
    };
    // 30 visits an hour from 2,000 networks; three of four enter their code, and who is rejected tries once more.
    const visit = async (): Promise<boolean> => {
      one.clock.advance(hour / 30);
      const network = Math.floor(next() * 2_000);
      const [phone_number, ip] = [number(), `${20 + (network % 100)}.${Math.floor(network / 100)}.${Math.floor(next() * 250)}.7`];
      const first = await one.create(phone_number, { ip });
      const made = first.status === "pending" ? first : await one.create(phone_number, { ip });
      if (made.status === "pending" && next() < 0.75) await one.enter(made.authentication_uuid);
      return first.status !== "pending";
    };
    const hours = async (count: number): Promise<number> => {
      let rejected = 0;
      for (let i = 0; i < 30 * count; i++) if (await visit()) rejected++;
      return rejected;
    };
    expect(await hours(12), "before the attack").toBeLessThanOrEqual(4);
    expect(
      await sent(
        one,
        70,
        (i) => french(i, 77, 87),
        (i) => ({ ip: `190.${i % 3}.1.${i}` }),
      ),
    ).toBe(5);
    await hours(2);
    expect(await hours(2), "of 60 visits in the third and fourth hour after it").toBeLessThanOrEqual(6);
  });

  it("counts no message that the carrier rejected: it is not open (docs/contract.md#send-outcome, docs/contract.md#spam-strange-network)", async () => {
    const one = await busy();
    one.outcome = "rejected";
    for (let i = 0; i < 30; i++) expect(await one.create(one.next(), { ip: "203.0.113.1" })).toMatchObject({ carrier_refused: true });
    one.outcome = "accepted";
    const user = await one.create(one.next(), { ip: "198.51.100.7" });
    expect(user.status === "pending" ? [] : await one.rules(user.authentication_uuid)).toEqual([]);
    expect(one.alarms()).toEqual([]);
  });

  it("is not raised by users whom the other server vouches for (docs/contract.md#known)", async () => {
    const one = await busy({ conversion: "reported" });
    for (let i = 0; i < 30; i++) await one.verifier.deliver({ phone_number: one.next(), code: "482913", known: true, ip: "203.0.113.1" });
    const user = await one.create(one.next(), { ip: "198.51.100.7" });
    expect(user.status === "pending" ? [] : await one.rules(user.authentication_uuid)).toEqual([]);
    expect(one.alarms()).toEqual([]);
  });

  it("is raised while conversion is unknown when the rules of an unused country block (docs/contract.md#growth-rules)", async () => {
    const one = site({ statistics: {}, conversion: "unknown", policy: { limits: { spend: [{ amount: 10_000, per: "day" }] } } });
    let count = 0;
    const usual = () => {
      count++;
      return one.verifier.deliver({ phone_number: french((count * 37) % 10_000, count % 97, 12 + (count % 20)), code: "482913", ip: `60.${count % 30}.1.1` });
    };
    for (let i = 0; i < 6 * 20; i++) {
      await usual();
      one.clock.advance((24 * hour) / 20);
    }
    await turns();
    let rejected = 0;
    for (let i = 0; i < 200; i++) {
      one.clock.advance(minute / 10);
      const { status } = await one.verifier.deliver({ phone_number: uzbek(i * 31, i * 7, i), code: "482913", ip: `46.20.${i % 250}.1` });
      if (status === "spam_detected") rejected++;
    }
    await turns();
    expect(rejected).toBe(170);
    expect(one.alarms().map(({ alarm }) => alarm)).toContain("country");
  });

  it.each<[string, Parameters<typeof busy>[0], (one: Awaited<ReturnType<typeof busy>>, i: number) => Promise<unknown>]>([
    ["the block list", { lists: { block: { cidrs: ["45.0.0.0/8"] } } }, (one, i) => one.create(one.next(), { ip: `45.1.1.${i}` })],
    [
      "a rule of the caller",
      { spamRules: [{ name: "mine", judge: ({ ip }) => (ip?.startsWith("45.") ? { reason: "no" } : undefined) }] },
      (one, i) => one.create(one.next(), { ip: `45.1.1.${i}` }),
    ],
    ["a cap", {}, (one) => one.create(one.next(), { ip: "203.0.113.1", device_id: "one" })],
    [
      "a spam rule, for repeats under one key,",
      { policy: { spam: { range: { mode: "enforce" } } } },
      (one, i) => one.create(french(Math.min(i, 5), 0, 70), { ip: "203.0.113.1" }, { idempotencyKey: `k${Math.min(i, 5)}` }),
    ],
  ])("is not raised by what %s rejects (docs/contract.md#refusal-consumes-nothing)", async (_, options, request) => {
    const one = await busy(options);
    for (let i = 0; i < 40; i++) await request(one, i);
    expect((await one.create(one.next(), { ip: "198.51.100.7" })).status).toBe("pending");
    expect(one.alarms()).toEqual([]);
  });

  it("locks out no one of a known network, however IPv6 represents the address (docs/contract.md#address-key)", async () => {
    const one = await busy();
    for (let i = 0; i < 60; i++) await one.create(one.next(), { ip: "45.1.1.1" });
    expect((await one.create(one.next(), { ip: "198.51.100.7" })).status).toBe("spam_detected");
    for (const ip of ["203.0.200.1", "::ffff:203.0.113.8", "2002:cb00:7108::1", "64:ff9b::203.0.113.8"])
      expect((await one.create(one.next(), { ip })).status, ip).toBe("pending");
  });
});

describe("what the operator reads", () => {
  const ceiling = { limits: { spend: [{ amount: 10_000, per: "day" }] } } as const;

  it("no alarm days after an attack: a country's last hour is that of now (docs/contract.md#alarms, docs/contract.md#spam-strange-network)", async () => {
    const one = site();
    for (let i = 0; i < 200; i++) {
      one.clock.advance(minute / 8);
      await one.create(uzbek(i * 31, i * 7, i), { ip: `46.${i}.1.1` });
    }
    await turns();
    const during = one.alarms().length;
    expect(during).toBeGreaterThan(0);
    one.clock.advance(3 * 24 * hour);
    expect((await one.create(uzbek(5_555, 555, 3), { ip: "198.51.100.7" })).status).toBe("pending");
    await turns();
    expect(
      one
        .alarms()
        .slice(during)
        .map(({ alarm, value, threshold }) => `${alarm} ${value} of ${threshold}`),
    ).toEqual([]);
  });

  it("no alarm of a country while its rules only observe and everything is sent (docs/contract.md#growth-rules, docs/contract.md#unknown-conversion)", async () => {
    const one = site({ conversion: "unknown", policy: ceiling });
    const sentOut = await deliveries(one, 2 * 100, 100);
    await turns();
    expect(sentOut).toBe(200);
    expect(
      one
        .alarms()
        .filter(({ alarm }) => alarm === "country")
        .map(({ value, threshold }) => `${value} of ${threshold}`),
    ).toEqual([]);
  });

  it("no alarm of a country on usual days whose messages are confirmed in the evening (docs/contract.md#unknown-conversion, docs/contract.md#spam-strange-network)", async () => {
    const one = site({ conversion: "late" });
    // Four days of eight hours with 32 messages each; three of four users get in, which is reported after the last hour.
    for (let day = 0; day < 4; day++) {
      expect(await deliveries(one, 8 * 32, 24 * 32, undefined, 0.75, "late")).toBe(8 * 32);
      one.clock.advance(16 * hour);
    }
    expect(
      one
        .alarms()
        .filter(({ alarm, at }) => alarm === "country" && at > start + 3 * 24 * hour)
        .map(({ value, threshold }) => `${value} of ${threshold}`),
    ).toEqual([]);
  });

  const off = { mode: "off" } as const;
  it.each<[string, Parameters<typeof site>[0]]>([
    ["country", {}],
    ["address", { policy: { spam: { country: off, newCountries: off } } }],
    [
      "mine",
      { policy: { spam: { country: off, newCountries: off, address: off } }, spamRules: [{ name: "mine", cell: () => "all", seed: 20, perVerified: 2 }] },
    ],
  ])(
    "the limit that the rule %s has grown to, for every message that it blocks (docs/contract.md#explain, docs/contract.md#growth-rules)",
    async (rule, options) => {
      const one = site({ conversion: "unknown", ...options, policy: { ...ceiling, spam: { range: off, crowd: off, ...options?.policy?.spam } } });
      await deliveries(one, 6 * 40, 40, "203.0.113.7");
      const decisions = await blocked(one, 200, "203.0.113.7");
      const limit = decisions[0]?.threshold;
      expect(limit, "40 messages a day raise the limit").toBeGreaterThan(90);
      expect([...new Set(decisions.map(({ rule: name, value, threshold }) => `${name} ${value} of ${threshold}`))]).toEqual([`${rule} ${limit} of ${limit}`]);
    },
  );

  it("that no one confirms, also if there are 45 messages a day (docs/contract.md#no-conversion, docs/fraud.md#deliveries)", async () => {
    const one = site({ conversion: "reported" });
    await deliveries(one, 7 * 45, 45, undefined, 0.75);
    expect(one.alarms()).toEqual([]);
    const sentOut = await deliveries(one, 4 * 45, 45);
    expect(
      one.alarms().map(({ alarm }) => alarm),
      `${4 * 45 - sentOut} of ${4 * 45} messages rejected`,
    ).toContain("no_conversion");
  });

  it("that no one confirms eight messages a day within eight days, and not while someone does (docs/contract.md#no-conversion)", async () => {
    const one = site({ conversion: "reported" });
    for (let day = 0; day < 10; day++) {
      await deliveries(one, 7, 8);
      await deliveries(one, 1, 8, undefined, day % 5 === 0 ? 1 : 0);
    }
    expect(one.alarms()).toEqual([]);
    await deliveries(one, 8 * 8, 8);
    expect(one.alarms().map(({ alarm }) => alarm)).toContain("no_conversion");
  });
});

describe("an attacker with numbers of their own", () => {
  /** Each of `count` own numbers is proven `times` times, as often as its caps allow. */
  const proven = async (one: Site, count: number, times: number, own: (i: number) => string): Promise<void> => {
    for (let round = 0; round < times; round++) {
      for (let i = 0; i < count; i++) expect(await one.prove(own(i), { ip: `46.20.${i}.1` })).toBe("pending");
      one.clock.advance(200_000);
    }
  };

  it("cannot prove a country with ten of them, verified ten times each: its limit grows by two for each (docs/contract.md#spam-country, docs/contract.md#balance)", async () => {
    const one = site({}, false);
    await proven(one, 10, 10, (i) => uzbek(1_111, 100 + i * 10));
    const all = await sent(
      one,
      100,
      (i) => uzbek(i * 31, i * 7, i),
      (i) => ({ ip: `46.20.${i % 250}.${1 + (i % 200)}` }),
    );
    expect(all).toBeLessThanOrEqual(30 + 2 * 10);
  });

  it("cannot open a range of a million with one of them, verified five times: its limit grows by two (docs/contract.md#spam-range, docs/fraud.md#what-an-attacker-can-lock-out)", async () => {
    const one = site({ policy: { spam: { newCountries: { mode: "off" }, country: { mode: "off" } } } }, false);
    await proven(one, 1, 5, () => french(1));
    expect(await sent(one, 200, (i) => french(i, i % 100))).toBeLessThanOrEqual(30 + 2);
  });

  it("cannot take a country out of the common pot with one of them, verified three times (docs/contract.md#spam-new-countries)", async () => {
    const one = site({}, false);
    await proven(one, 1, 3, () => uzbek(1_111, 100));
    const elsewhere = [(i: number) => `+3461${hundredths(i)}10001`, (i: number) => `+4915110${hundredths(i)}0001`] as const;
    const before = await sent(one, 100, (i) => (i % 2 ? elsewhere[0](i) : elsewhere[1](i)));
    expect(before + (await sent(one, 60, (i) => uzbek(i * 31, i * 7, i)))).toBeLessThanOrEqual(30 + 2);
  });

  it("earns once a day with a number, even if it is erased in between (docs/contract.md#balance, docs/contract.md#erase)", async () => {
    const one = site({}, false);
    const own = french(7_777);
    for (let i = 0; i < 4; i++) {
      expect(await one.prove(own)).toBe("pending");
      for (let again = 0; again < 2; again++) await one.verifier.erase({ phone_number: own });
      await turns();
    }
    expect(await sent(one, 30, (i) => french(i))).toBe(5 + 2);
  });

  it("raises the customer's cap by three for each number verified, not for each verification (docs/options.md#with-a-default, docs/contract.md#growing-cap)", async () => {
    const off = { mode: "off" } as const;
    const spam = { ...alarmOnly, country: off, newCountries: off, strangeNetwork: off };
    const one = site({ policy: { spam, limits: { perCustomer: [{ limit: 20, window: 86_400, perVerified: 3 }] } } }, false);
    await proven(one, 1, 5, () => french(1));
    expect(await sent(one, 60, (i) => french(100 + i, i))).toBe(20 + 3 - 5);
  });
});
