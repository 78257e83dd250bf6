import { describe, expect, it } from "vitest";
import type { AlarmEvent, VerifierEvent, VerifierOptions } from "../../src/index.js";
import { inbox, numberOf, setUp } from "../support/verifier.js";

const minute = 60_000;
const hour = 60 * minute;
const turn = () => new Promise(setImmediate);
const french = (index: number, range = 0) => `+33612${String(range).padStart(2, "0")}${String(index).padStart(4, "0")}`;

function setUpAlarms(options: Partial<VerifierOptions> = {}) {
  const events: AlarmEvent[] = [];
  const set = setUp({ onEvent: (event: VerifierEvent) => void (event.type === "alarm" && events.push(event)), ...options });
  const of = (alarm: AlarmEvent["alarm"]) => events.filter((event) => event.alarm === alarm);
  return { ...set, events, of };
}

const shadow = { mode: "shadow" as const };
const off = { mode: "off" as const };
const quiet = { range: off, crowd: off, country: off, newCountries: off, address: off, strangeNetwork: off, signals: off };

describe("alarms are events with masked numbers, once an hour for each subject (docs/contract.md#alarms)", () => {
  it("`country` is raised if a country has more open messages within the hour than its verifications explain", async () => {
    const set = setUpAlarms({ policy: { spam: { ...quiet, strangeNetwork: shadow } } });
    for (let index = 0; index < 60; index++) await set.create({ phone_number: numberOf(index) });
    expect(set.of("country")).toEqual([
      { type: "alarm", alarm: "country", country: "FR", customer_uuid: set.customer, at: set.clock.now(), value: 21, threshold: 20 },
    ]);
    set.clock.advance(hour);
    for (let index = 0; index < 60; index++) await set.create({ phone_number: numberOf(100 + index) });
    expect(set.of("country"), "again an hour later").toHaveLength(2);
  });

  it("`country` is not raised by a retry on counts that are minutes old", async () => {
    const set = setUpAlarms({ policy: { spam: { ...quiet, strangeNetwork: shadow } } });
    for (let index = 0; index < 40; index++) await set.create({ phone_number: numberOf(index) });
    set.clock.advance(54 * minute);
    const { authentication_uuid } = await set.create({ phone_number: numberOf(40) });
    set.clock.advance(7 * minute);
    await set.retry(authentication_uuid);
    expect(set.box.messages).toHaveLength(42);
    expect(set.of("country")).toHaveLength(1);
  });

  it("`crowd` is raised for one range of 10,000 numbers", async () => {
    const set = setUpAlarms({ policy: { spam: { ...quiet, crowd: shadow } } });
    for (let index = 0; index < 30; index++) await set.create({ phone_number: french(index) });
    expect(set.of("crowd")).toMatchObject([{ range: "+3361200****", value: 25, threshold: 25 }]);
    expect(JSON.stringify(set.events)).not.toContain(french(25).slice(1));
  });

  it("`customer_cap` is raised at 80 % of the customer's cap", async () => {
    const set = setUpAlarms({ policy: { spam: quiet, limits: { perCustomer: [{ limit: 10, window: 86_400 }] } } });
    for (let index = 0; index < 7; index++) await set.create({ phone_number: numberOf(index) });
    expect(set.events).toEqual([]);
    await set.create({ phone_number: numberOf(8) });
    expect(set.of("customer_cap")).toMatchObject([{ rule: "perCustomer 10/86400s", value: 8, threshold: 10 }]);
  });

  it("`customer_cap` counts what verified users add to the cap", async () => {
    const limits = { perCustomer: [{ limit: 10, window: 86_400, perVerified: 5 }] };
    const set = setUpAlarms({ policy: { spam: quiet, limits } });
    const { authentication_uuid } = await set.create({ phone_number: numberOf(0) });
    await set.check(authentication_uuid, set.box.code());
    for (let index = 1; index < 11; index++) await set.create({ phone_number: numberOf(index) });
    expect(set.events).toEqual([]);
    await set.create({ phone_number: numberOf(11) });
    expect(set.of("customer_cap")).toMatchObject([{ rule: "perCustomer 10/86400s", value: 12, threshold: 15 }]);
  });

  it("`spend` is raised at 80 % of a spend ceiling", async () => {
    const sender = Object.assign(inbox(), { plan: () => ({ route: "r", price: 0.1 }) });
    const set = setUpAlarms({ sender, policy: { spam: quiet, limits: { spend: [{ amount: 1, per: "day" }] } } });
    for (let index = 0; index < 8; index++) await set.create({ phone_number: numberOf(index) });
    expect(set.of("spend")).toMatchObject([{ rule: "spend 1/day", value: 0.8, threshold: 1 }]);
  });

  it("`wrong_codes` is raised for guesses spread over many authentications, with the odds that a code was guessed today", async () => {
    const set = setUpAlarms({ policy: { spam: quiet, limits: { perCustomer: [{ limit: 100_000, window: 86_400 }] } } });
    for (let index = 0; index < 130; index++) {
      const { authentication_uuid } = await set.create({ phone_number: numberOf(index) });
      for (let guess = 0; guess < 4; guess++) await set.check(authentication_uuid, set.wrong());
      set.clock.advance(11_000);
    }
    await turn();
    const [alarm] = set.of("wrong_codes") as [AlarmEvent & { wrong: number; right: number }];
    expect(alarm).toMatchObject({ alarm: "wrong_codes", right: 0, threshold: 0.001 });
    expect(alarm.value).toBeCloseTo(1 - Math.exp((-2 * alarm.wrong) / 1e6), 9);
    expect(alarm.wrong).toBeGreaterThanOrEqual(500);
  });

  it("`wrong_codes` is not raised if users enter the right code in the end", async () => {
    const set = setUpAlarms({ policy: { spam: quiet, limits: { perCustomer: [{ limit: 100_000, window: 86_400 }] } } });
    for (let index = 0; index < 300; index++) {
      const { authentication_uuid } = await set.create({ phone_number: numberOf(index) });
      for (let guess = 0; guess < 2; guess++) await set.check(authentication_uuid, set.wrong());
      await set.check(authentication_uuid, set.box.code());
      set.clock.advance(11_000);
    }
    await turn();
    expect(set.of("wrong_codes")).toEqual([]);
  });

  it("`shadow` is raised for a rule in shadow mode that would have blocked more than 1 %", async () => {
    const set = setUpAlarms({ policy: { spam: { ...quiet, range: shadow }, limits: { perCustomer: [{ limit: 100_000, window: 86_400 }] } } });
    for (let index = 0; index < 190; index++) await set.create({ phone_number: french(1, index % 100) });
    expect(set.of("shadow")).toEqual([]);
    for (let index = 0; index < 30; index++) await set.create({ phone_number: french(index, 7) });
    expect(set.of("shadow").map((event) => (event as { rule?: string }).rule)).toContain("range 4");
  });

  it.each([
    { pace: 6, nth: 20, raised: true },
    { pace: 24, nth: 20, raised: true },
    { pace: 24, nth: 1_000, raised: false },
    { pace: 480, nth: 1, raised: false },
  ])("`shadow` is raised, or not, with a message every $pace s, one in $nth flagged: $raised", async ({ pace, nth, raised }) => {
    let judged = 0;
    const judge = () => (judged++ % nth === 0 ? { reason: "late" } : undefined);
    const set = setUpAlarms({ policy: { spam: quiet, limits: { perCustomer: [] } }, spamRules: [{ name: "mine", mode: "shadow", judge }] });
    for (let index = 0; index < 450; index++) {
      await set.create({ phone_number: numberOf(index) });
      set.clock.advance(pace * 1_000);
    }
    expect(set.of("shadow").length > 0).toBe(raised);
  });

  it("an `onEvent` that throws is logged once and affects no request", async () => {
    const set = setUp({
      onEvent: () => {
        throw new Error("no");
      },
      policy: { spam: { ...quiet, crowd: shadow } },
    });
    for (let index = 0; index < 30; index++) expect((await set.create({ phone_number: french(index) })).status).toBe("pending");
    expect(set.log.lines.filter(({ message }) => message === "onEvent failed")).toHaveLength(1);
  });
});

describe("signals: shadow by default (docs/contract.md#spam-signals)", () => {
  const android = "9774d56d682e549c";
  const apple = "6D92078A-8246-4BA4-AE5B-76104861E7DC";
  const why = async (set: ReturnType<typeof setUp>, fields: Record<string, unknown>) => {
    const { authentication_uuid, status } = await set.create(fields);
    const { decisions } = await set.verifier.explain({ customer_uuid: set.customer, authentication_uuid });
    return [status, ...decisions.map(({ rule, mode, reason }) => `${rule} ${mode}: ${reason}`)];
  };

  it.each([
    [{ device_type: "ANDROID", device_id: apple }, "signals shadow: device_id looks like an iOS device's, device_type is ANDROID"],
    [{ device_type: "IOS", device_id: android }, "signals shadow: device_id does not look like an iOS device's but of an Android one's, device_type is IOS"],
    [{ device_type: "ANDROID", device_id: android }, undefined],
    [{ device_type: "IOS", device_id: apple }, undefined],
    [{ device_type: "WEB", device_id: "anything" }, undefined],
    [{ device_id: android }, undefined],
  ])("device_type is checked against the shape of device_id: %j", async (fields, word) => {
    const set = setUp({ policy: { spam: { ...quiet, signals: shadow } } });
    expect(await why(set, fields)).toEqual(word === undefined ? ["pending"] : ["pending", word]);
  });

  it("ip is checked against the caller's resolver of countries and kinds of networks", async () => {
    const ipInfo = (ip: string) => (ip.startsWith("203.") ? { country: "VN" } : ip.startsWith("198.") ? { country: "FR", kind: "hosting" } : { country: "FR" });
    const set = setUp({ ipInfo, policy: { spam: { ...quiet, signals: { mode: "enforce" } } } });
    expect(await why(set, { ip: "203.0.113.1" })).toEqual(["spam_detected", "signals enforce: the ip is in VN, the number in FR"]);
    expect(await why(set, { ip: "198.51.100.1" })).toEqual(["spam_detected", "signals enforce: the ip is in a network of kind hosting"]);
    expect(await why(set, { ip: "192.0.2.1" })).toEqual(["pending"]);
  });

  it("a resolver that throws or hangs for a second is logged, and the request is allowed", async () => {
    const broken = setUp({ ipInfo: () => Promise.reject(new Error("no")), policy: { spam: { ...quiet, signals: { mode: "enforce" } } } });
    expect((await broken.create({ ip: "203.0.113.1" })).status).toBe("pending");
    const hanging = setUp({ ipInfo: () => new Promise(() => undefined), policy: { spam: { ...quiet, signals: { mode: "enforce" } } } });
    const creating = hanging.create({ ip: "203.0.113.1" });
    await turn();
    hanging.clock.advance(1000);
    expect((await creating).status).toBe("pending");
    expect([broken, hanging].map(({ log }) => log.lines.length)).toEqual([1, 1]);
  });
});
