import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { fromIoredis, redisStore } from "../../adapters/store/redis/index.js";
import { destinationError, phoneNumberOf } from "../../src/domain/phone-number.js";
import type { SpamCandidate, SpamRule } from "../../src/index.js";
import type { Store } from "../../src/ports/store.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";
import { agendaOn } from "../../tools/simulate/agenda.js";
import { poisson, stream } from "../../tools/simulate/random.js";
import { type Attack, type Scenario, scenarios } from "../../tools/simulate/scenario.js";
import { simulate } from "../../tools/simulate/simulate.js";
import { worldOf } from "../../tools/simulate/world.js";
import { redisIsInstalled, startRedis } from "../support/redis.js";

/** Without rules, the figures depend on the scenario alone. */
const everythingGoes = { spam: noSpamRules };

const small: Scenario = { name: "small", about: "A few hours with a few people.", visitsPerDay: 600, warmUpDays: 0, hours: 12 };
const raid: Attack = { numbers: { kind: "ranges", country: "UZ", ranges: 3 }, messages: 200, perHour: 400, from: "country" };

/** A rule that records what the verifier is asked, and blocks nothing. */
function witness(): SpamRule & { readonly attempts: SpamCandidate[] } {
  const attempts: SpamCandidate[] = [];
  return { name: "witness", attempts, judge: (attempt) => void attempts.push(attempt) };
}

/** The requests of an attack, without legitimate users. */
async function attemptsOf(attack: Partial<Attack>, scenario: Partial<Scenario> = {}): Promise<SpamCandidate[]> {
  const rule = witness();
  await simulate({ policy: everythingGoes, spamRules: [rule] }, { ...small, visitsPerDay: 0, hours: 3, attack: { ...raid, ...attack }, ...scenario });
  return rule.attempts;
}

describe("the world", () => {
  const world = worldOf(1);
  const random = stream(1, "test");
  const rules = { validation: "valid", testNumbers: new Map(), ambiguousLineType: "Unknown" } as const;

  test("75 countries have users, and at least 40 more have none", () => {
    expect(world.countries.filter(({ share }) => share > 0)).toHaveLength(75);
    expect(world.countries.filter(({ share }) => share === 0).length).toBeGreaterThanOrEqual(40);
  });

  test.each(world.countries)("messages can be sent to each number of $code", (country) => {
    const numbers = [country.subscriber, country.number].flatMap((draw) => Array.from({ length: 20 }, () => draw(random)));
    for (const number of numbers) {
      const phone = phoneNumberOf(number, rules);
      expect(phone, number).toMatchObject({ number, country: country.code });
      expect(destinationError(phone!, { countries: "all", blocked: () => false }), number).toBeUndefined();
    }
  });

  test("no two countries share a network", () => {
    const homes = new Map<string, string>();
    for (const { code, line } of world.countries) {
      for (let drawn = 0; drawn < 200; drawn++) {
        const ip = line(random);
        const network = ip.split(ip.includes(":") ? ":" : ".", 2).join(" ");
        expect(homes.get(network) ?? code).toBe(code);
        homes.set(network, code);
      }
    }
  });

  test("an unknown country is reported with the known ones", () => {
    expect(() => world.country("XX")).toThrow("no country XX; it has IN, US");
  });
});

describe("chance", () => {
  test.each([0.3, 5, 400])("what should happen %d times on average does", (mean) => {
    const random = stream(7, "poisson");
    let sum = 0;
    for (let drawn = 0; drawn < 4_000; drawn++) sum += poisson(random, mean);
    expect(sum / 4_000 / mean).toBeCloseTo(1, 1);
  });

  test("streams with different names differ", () => {
    const [one, other] = [stream(1, "one"), stream(1, "other")];
    expect(Array.from({ length: 5 }, one)).not.toEqual(Array.from({ length: 5 }, other));
  });
});

describe("the agenda", () => {
  test("entries run one after another, in order of time, and at their times", async () => {
    const clock = fixedClock(0);
    const { agenda, play } = agendaOn(clock);
    const seen: string[] = [];
    const note = (name: string) => async () => {
      await Promise.resolve();
      seen.push(`${name} ${clock.now()}`);
    };
    for (const at of [50, 10, 30, 20, 40]) agenda.at(at, note("at"));
    agenda.at(20, note("second"));
    agenda.at(10, () => agenda.in(5, note("in")));
    agenda.at(60, note("late"));
    await play(60);
    expect(seen).toEqual(["at 10", "in 15", "at 20", "second 20", "at 30", "at 40", "at 50"]);
    expect(clock.now()).toBe(60);
  });
});

describe("simulate", () => {
  test("the same seed gives the same result, and another seed a different one", async () => {
    const scenario = { ...small, hours: 2, attack: { ...raid, typed: 0.3, retries: 2 } };
    const [one, same, other] = await Promise.all([1, 1, 2].map((seed) => simulate({}, scenario, { seed })));
    expect(same).toEqual(one);
    expect(other!.honest).not.toEqual(one!.honest);
  });

  test("without rules every message is sent, and 60 to 85 % of the visits end verified", async () => {
    const { honest, attack, faults } = await simulate({ policy: everythingGoes }, { ...small, attack: raid });
    expect(honest).toMatchObject({ refused: 0, refusedBy: {} });
    expect(honest.visits).toBeGreaterThan(200);
    expect(honest.verified / honest.visits).toBeGreaterThan(0.6);
    expect(honest.verified / honest.visits).toBeLessThan(0.85);
    expect(honest.messages / honest.visits).toBeGreaterThan(1.1);
    expect(attack).toMatchObject({ tried: 200, out: 200, verified: 0, refusedBy: {} });
    expect(attack!.cost).toBeCloseTo(200 * 0.33);
    expect(faults).toBe(0);
  });

  test("blocked requests are counted by the rule that `explain` names, and missed goals are reported", async () => {
    const limits = { perCustomer: [{ limit: 100, window: 86_400 }] };
    const goal = { refused: 0.01, out: 10 };
    const result = await simulate({ policy: { ...everythingGoes, limits } }, { ...small, attack: raid, goal });
    const { honest, attack, goals } = result;
    expect(honest.messages + attack!.out).toBe(100);
    expect(Object.keys(honest.refusedBy)).toEqual(["perCustomer 100/86400s"]);
    expect(honest.refusedBy["perCustomer 100/86400s"]).toBe(honest.refused);
    expect(goals).toEqual([
      { what: "honest visits refused", limit: 0.01, value: honest.refused / honest.visits, reached: false },
      { what: "messages of the attack", limit: 10, value: attack!.out, reached: false },
      { what: "faults", limit: 0, value: 0, reached: true },
    ]);
    expect(result.reached).toBe(false);
    // The cap is full after a quarter of an hour, and a hundred tries take another quarter.
    expect(result.secondsToHold).toBeGreaterThan(1_200);
    expect(result.secondsToHold).toBeLessThan(2_400);
  });

  test("the series adds up to the figures", async () => {
    const limits = { perCustomer: [{ limit: 150, window: 86_400 }] };
    const { honest, attack, series } = await simulate({ policy: { ...everythingGoes, limits } }, { ...small, attack: raid });
    const sum = (line: readonly number[] = []) => line.reduce((all, one) => all + one, 0);
    expect(sum(series.honest.came)).toBe(honest.visits);
    expect(sum(series.honest.sent)).toBe(honest.messages);
    expect(sum(series.honest.verified)).toBe(honest.verified);
    expect(sum(series.honest.cost)).toBeCloseTo(honest.cost);
    expect(Object.values(series.honest.refusedBy).map(sum)).toEqual(Object.values(honest.refusedBy));
    expect(sum(series.attack?.came)).toBe(attack!.tried);
    expect(sum(series.attack?.sent)).toBe(attack!.out);
  });

  test("the warm-up days are run but not counted", async () => {
    const rule = witness();
    const { honest, series } = await simulate({ policy: everythingGoes, spamRules: [rule] }, { ...small, warmUpDays: 1 });
    expect(rule.attempts.length).toBeGreaterThan(2 * honest.visits);
    expect(series.from - series.start).toBe(12 * 3_600_000);
  });

  test("another customer's attack changes nothing for legitimate users", async () => {
    const policy = { ...everythingGoes, limits: { perCustomer: [{ limit: 150, window: 86_400 }] } };
    const calm = await simulate({ policy }, { ...small, hours: 4 });
    const hostile = await simulate({ policy }, { ...small, hours: 4, attack: { ...raid, otherCustomer: true } });
    const same = await simulate({ policy }, { ...small, hours: 4, attack: raid });
    expect(hostile.honest).toEqual(calm.honest);
    expect(hostile.attack).toMatchObject({ tried: 200, out: 150 });
    expect(same.honest.refused).toBeGreaterThan(calm.honest.refused);
  });

  test("legitimate users come from the allowed countries, and an attack on others is rejected with an error", async () => {
    const rule = witness();
    const { attack } = await simulate({ countries: ["FR", "DE"], spamRules: [rule] }, { ...small, hours: 3, attack: raid });
    expect(new Set(rule.attempts.map(({ country_code }) => country_code))).toEqual(new Set(["FR", "DE"]));
    expect(attack).toMatchObject({ out: 0, refusedBy: { unsupported_region: 200 } });
    await expect(simulate({ countries: ["UZ"] }, small)).rejects.toThrow("none of the countries");
  });

  test("a failing store is reported as an error, and misses the goals", async () => {
    let commits = 0;
    const broken = (clock: { now(): number }): Store => {
      const store = memoryStore({ name: "simulate: broken", now: () => clock.now() });
      return Object.assign(Object.create(null) as Store, {
        ...Object.fromEntries((["find", "members", "tally", "lease", "get", "put", "delete"] as const).map((name) => [name, store[name].bind(store)])),
        commit: (change) => (++commits % 50 === 0 ? Promise.reject(new Error("the disk is full")) : store.commit(change)),
        close: async () => store.close?.(),
      } satisfies Partial<Store>);
    };
    const result = await simulate({ store: broken, policy: everythingGoes }, { ...small, hours: 3 });
    expect(result.faults).toBeGreaterThan(0);
    expect(result.faults).toBeLessThanOrEqual(Math.floor(commits / 50));
    expect(result.firstFault).toContain("the disk is full");
    expect(result.reached).toBe(false);
  });

  test("a store passed in stays open and gives the same figures; one made by a function is closed", async () => {
    const closed: string[] = [];
    const storeCalled = (name: string, now: () => number) => {
      const store = memoryStore({ name, now });
      const close = store.close!.bind(store);
      return Object.assign(store, {
        close() {
          closed.push(name);
          return close();
        },
      });
    };
    const own = await simulate({}, { ...small, hours: 2 });
    const given = await simulate({ store: storeCalled("given", () => 0) }, { ...small, hours: 2 });
    const made = await simulate({ store: (clock) => storeCalled("made", clock.now) }, { ...small, hours: 2 });
    expect(closed).toEqual(["made"]);
    expect([given, made]).toEqual([own, own]);
  });

  test.skipIf(!redisIsInstalled("the simulation on Redis"))("the figures are the same on Redis", async () => {
    const server = await startRedis();
    const client = new Redis(server.url);
    try {
      const scenario = { ...small, hours: 1, attack: { ...raid, typed: 0.2, retries: 1 } };
      const store = redisStore({ client: fromIoredis(client) });
      expect(await simulate({ store }, scenario)).toEqual(await simulate({}, scenario));
    } finally {
      client.disconnect();
      await server.stop();
    }
  });

  test("progress is reported every hour, up to the end", async () => {
    const told: number[] = [];
    await simulate({}, { ...small, hours: 4 }, { onProgress: (done) => told.push(done) });
    expect(told).toEqual([0.25, 0.5, 0.75, 1]);
  });
});

describe("what happens to users", () => {
  const visitsOf = (rule: { readonly attempts: readonly SpamCandidate[] }, country: string) =>
    rule.attempts.filter(({ country_code }) => country_code === country).length;

  test("an advertisement brings many times the usual users of its country", async () => {
    const [calm, rush] = [witness(), witness()];
    await simulate({ policy: everythingGoes, spamRules: [calm] }, { ...small, hours: 2 });
    await simulate({ policy: everythingGoes, spamRules: [rush] }, { ...small, hours: 2, strain: { kind: "rush", country: "FR", factor: 200, hours: 1 } });
    expect(visitsOf(rush, "FR")).toBeGreaterThan(20 * visitsOf(calm, "FR"));
    expect(visitsOf(rush, "DE")).toBe(visitsOf(calm, "DE"));
  });

  test("a launch brings users from a new country", async () => {
    const rule = witness();
    const { target } = await simulate(
      { policy: everythingGoes, spamRules: [rule] },
      { ...small, warmUpDays: 1, strain: { kind: "launch", country: "TZ", share: 0.3 } },
    );
    expect(visitsOf(rule, "TZ")).toBeGreaterThan(30);
    expect(target.visits).toBeGreaterThan(30);
  });

  test("if messages are accepted but never arrive, no one verifies and users ask again", async () => {
    const scenario = { ...small, visitsPerDay: 2_000, hours: 2 };
    const calm = await simulate({ policy: everythingGoes }, scenario);
    const outage = await simulate({ policy: everythingGoes }, { ...scenario, strain: { kind: "outage", hours: 2 } });
    expect(outage.honest.verified).toBe(0);
    expect(outage.honest.messages).toBeGreaterThan(1.5 * calm.honest.messages);
  });

  test("with low conversion, fewer visits end verified", async () => {
    const calm = await simulate({ policy: everythingGoes }, small);
    const low = await simulate({ policy: everythingGoes }, { ...small, strain: { kind: "low conversion", factor: 0.5 } });
    expect(low.honest.verified / calm.honest.verified).toBeCloseTo(0.5, 1);
  });

  test("carrier NAT puts users behind one address", async () => {
    const rule = witness();
    const strain = { kind: "carrier NAT", country: "IN", addresses: 1 } as const;
    await simulate({ policy: everythingGoes, spamRules: [rule] }, { ...small, hours: 4, visitsPerDay: 3_000, strain });
    const byAddress = new Map<string, number>();
    for (const { country_code, ip } of rule.attempts) if (country_code === "IN" && ip) byAddress.set(ip, (byAddress.get(ip) ?? 0) + 1);
    expect(Math.max(...byAddress.values()) / visitsOf(rule, "IN")).toBeGreaterThan(0.3);
  });

  test("school classes come from one address", async () => {
    const rule = witness();
    await simulate({ policy: everythingGoes, spamRules: [rule] }, { ...small, strain: { kind: "classes", share: 1 } });
    const byAddress = new Map<string, number>();
    for (const { ip } of rule.attempts) byAddress.set(ip ?? "", (byAddress.get(ip ?? "") ?? 0) + 1);
    expect([...byAddress.values()].filter((count) => count >= 30).length).toBeGreaterThan(3);
  });
});

describe("attacks", () => {
  const numbersOf = (attempts: readonly SpamCandidate[]) => attempts.map(({ phone_number }) => phone_number);

  test("a sequence is consecutive numbers", async () => {
    const numbers = numbersOf(await attemptsOf({ numbers: { kind: "sequence", country: "UZ" } })).map(Number);
    expect(numbers).toEqual(numbers.map((_, index) => numbers[0]! + index));
  });

  test("as many ranges are used as given", async () => {
    const numbers = numbersOf(await attemptsOf({ numbers: { kind: "ranges", country: "UZ", ranges: 7 } }));
    expect(new Set(numbers.map((number) => number.slice(0, -4))).size).toBe(7);
  });

  test("one operator has fewer prefixes than the whole country", async () => {
    const prefixes = async (kind: "operator" | "country") =>
      new Set(numbersOf(await attemptsOf({ numbers: { kind, country: "UZ" } })).map((number) => number.slice(0, 6))).size;
    const [operator, country] = [await prefixes("operator"), await prefixes("country")];
    expect(operator).toBeGreaterThan(1);
    expect(country).toBeGreaterThan(operator);
  });

  test("countries are attacked all together, or one after another", async () => {
    const codes = (attempts: readonly SpamCandidate[]) => attempts.map(({ country_code }) => country_code);
    expect(new Set(codes(await attemptsOf({ numbers: { kind: "countries", countries: 40 } }))).size).toBeGreaterThan(30);
    const hops = codes(await attemptsOf({ numbers: { kind: "countries", countries: 40, stay: 50 } }));
    expect(hops.filter((code, index) => index > 0 && code !== hops[index - 1])).toHaveLength(3);
  });

  test("one number stays the same", async () => {
    expect(new Set(numbersOf(await attemptsOf({ numbers: { kind: "one", country: "FR" } }))).size).toBe(1);
  });

  test("requests come from networks of the country, of the world, of data centres, or of one mobile operator", async () => {
    const addresses = async (from: Attack["from"]) =>
      new Set((await attemptsOf({ from }, { strain: { kind: "carrier NAT", country: "FR", addresses: 2 } })).map(({ ip }) => ip));
    expect((await addresses("country")).size).toBeGreaterThan(150);
    expect((await addresses("world")).size).toBeGreaterThan(190);
    expect((await addresses("hosting")).size).toBeLessThan(190);
    expect((await addresses({ mobile: "FR" })).size).toBe(2);
  });

  test("codes are entered at the given rate, and each message is retried", async () => {
    const scenario = { ...small, hours: 3, visitsPerDay: 0 };
    const typed = await simulate({ policy: everythingGoes }, { ...scenario, attack: { ...raid, typed: 0.5 } });
    expect(typed.attack!.verified).toBeGreaterThan(70);
    expect(typed.attack!.verified).toBeLessThan(130);
    const rule = witness();
    const retried = await simulate({ policy: everythingGoes, spamRules: [rule] }, { ...scenario, attack: { ...raid, retries: 4 } });
    expect(retried.attack!.out).toBeGreaterThan(150);
    expect(new Set(numbersOf(rule.attempts)).size).toBeLessThan(100);
  });

  test("is_returning_user is claimed if the attack says so", async () => {
    expect((await attemptsOf({ claimsReturning: true })).every(({ is_returning_user }) => is_returning_user)).toBe(true);
    expect((await attemptsOf({})).some(({ is_returning_user }) => is_returning_user)).toBe(false);
  });

  test("a burst sends all requests in parallel", async () => {
    let underWay = 0;
    let most = 0;
    const rule: SpamRule = {
      name: "counts",
      async judge() {
        most = Math.max(most, ++underWay);
        await Promise.resolve();
        underWay--;
        return undefined;
      },
    };
    await simulate({ policy: everythingGoes, spamRules: [rule] }, { ...small, hours: 1, attack: { ...raid, perHour: "burst" } });
    expect(most).toBe(200);
  });

  test("an attack begins when counting begins, and keeps its rate", async () => {
    const { series } = await simulate({ policy: everythingGoes }, { ...small, warmUpDays: 1, hours: 3, attack: raid });
    const first = series.attack!.came.findIndex((count) => count > 0);
    expect(series.start + first * series.step).toBe(series.from);
    expect(series.attack!.came[first]!).toBeGreaterThan(80);
    expect(series.attack!.came[first]!).toBeLessThan(120);
  });
});

describe("the scenarios", () => {
  test.each(Object.entries(scenarios))("%s runs with few users", async (_, scenario: Scenario) => {
    const attack = scenario.attack && { ...scenario.attack, messages: 100 };
    const result = await simulate({}, { ...scenario, visitsPerDay: 200, warmUpDays: 0, hours: 2, ...(attack !== undefined && { attack }) });
    expect(result).toMatchObject({ scenario: scenario.name, faults: 0 });
    expect(result.attack?.tried ?? 0).toBeGreaterThanOrEqual(attack === undefined || attack.perHour === 200 ? 0 : 100);
  });

  test("have unique names and descriptions", () => {
    const all = Object.values(scenarios);
    expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
    expect(new Set(all.map(({ about }) => about)).size).toBe(all.length);
  });
});
