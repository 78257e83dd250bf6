import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { defaultSpamPolicy } from "../../src/domain/spam-policy.js";
import type { PolicyOverride, VerifierOptions } from "../../src/index.js";
import type { Change } from "../../src/ports/store.js";
import { inbox, setUp } from "../support/verifier.js";

const hour = 3_600_000;
const day = 24 * hour;

type Spam = NonNullable<PolicyOverride["spam"]>;

/** A policy with these rules on, and all others off. */
const only = (...rules: (keyof Spam)[]): Spam =>
  Object.fromEntries(
    Object.keys(defaultSpamPolicy).map((rule) => [rule, rule === "trust" ? { open: 0 } : { mode: (rules as string[]).includes(rule) ? "enforce" : "off" }]),
  );

/** French mobile numbers: `range` is a range of 10,000 within one million. */
const french = (index: number, range = 0, million = 12) => `+336${million}${String(range).padStart(2, "0")}${String(index).padStart(4, "0")}`;
/** A mobile number in a country that is new to the customer. */
const abroad: Record<string, (index: number) => string> = {
  GB: (index) => `+447400${String(100_000 + index)}`,
  DE: (index) => `+4915112${String(100_000 + index)}`,
  ES: (index) => `+346123${String(10_000 + index)}`,
  IT: (index) => `+393401${String(100_000 + index)}`,
};

function setUpSpam(spam: Spam, options: Partial<VerifierOptions> = {}) {
  const wide = { perNumber: [{ limit: 100, window: 86_400 }], perCustomer: [{ limit: 1_000_000, window: 86_400 }] };
  const set = setUp({ ...options, policy: { maxGuessOdds: 1, limits: wide, spam, ...options.policy } });
  const send = async (phone_number: string, fields: Record<string, unknown> = {}) => (await set.create({ phone_number, ...fields })).status;
  const verify = async (phone_number: string, fields: Record<string, unknown> = {}) => {
    const { authentication_uuid, status } = await set.create({ phone_number, ...fields });
    expect(status).toBe("pending");
    expect((await set.check(authentication_uuid, set.box.code())).status).toBe("valid");
    await new Promise(setImmediate);
  };
  const many = async (count: number, number: (index: number) => string, fields: (index: number) => Record<string, unknown> = () => ({})) => {
    const statuses: string[] = [];
    for (let index = 0; index < count; index++) statuses.push(await send(number(index), fields(index)));
    return { sent: statuses.filter((status) => status === "pending").length, refused: statuses.filter((status) => status === "spam_detected").length };
  };
  const why = async (phone_number: string, fields: Record<string, unknown> = {}) => {
    const { authentication_uuid } = await set.create({ phone_number, ...fields });
    return (await set.verifier.explain({ customer_uuid: set.customer, authentication_uuid })).decisions.map(({ at, ...decision }) => decision);
  };
  return { ...set, send, verify, many, why };
}

/** Creates from networks where no one has verified, each from another. */
const strangers = ({ many }: ReturnType<typeof setUpSpam>, from: number, count: number) =>
  many(
    count,
    (index) => french(from + index),
    (index) => ({ ip: `203.${from + index}.0.1` }),
  );

describe("spam rules: a cell blocks a message when open ≥ seed + k × verified, k = 2 (docs/contract.md#open)", () => {
  it("range: number minus its last 4 digits, seed 5 (docs/contract.md#spam-range)", async () => {
    const set = setUpSpam(only("range"));
    expect(await set.many(20, (index) => french(index))).toEqual({ sent: 5, refused: 15 });
    expect(await set.why(french(30))).toEqual([{ rule: "range 4", mode: "enforce", value: 5, threshold: 5 }]);
    expect(set.box.messages).toHaveLength(5);
  });

  it("range: number minus its last 5 digits, seed 12; minus its last 6 digits, seed 30", async () => {
    const set = setUpSpam(only("range"));
    expect(await set.many(20, (index) => french(index, index % 10))).toEqual({ sent: 12, refused: 8 });
    expect(await set.why(french(99, 5))).toEqual([{ rule: "range 5", mode: "enforce", value: 12, threshold: 12 }]);
    const wide = setUpSpam(only("range"));
    expect(await wide.many(50, (index) => french(index, (index % 10) * 10 + 1))).toEqual({ sent: 30, refused: 20 });
  });

  it("a verification gives its own message back and two more", async () => {
    const set = setUpSpam(only("range"));
    await set.verify(french(9_000));
    expect(await set.many(20, (index) => french(index))).toEqual({ sent: 7, refused: 13 });
    expect(await set.why(french(30))).toEqual([{ rule: "range 4", mode: "enforce", value: 7, threshold: 7 }]);
  });

  it("honest traffic stays below the limit: three hundred users of one range, each verified", async () => {
    const set = setUpSpam(only("range", "country", "newCountries", "address"));
    for (let user = 0; user < 300; user++) await set.verify(french(user), { ip: "198.51.100.7" });
  });

  it("range: the 6-digit level does not block if ≥ 5 verified within the day", async () => {
    const set = setUpSpam(only("range"));
    for (let user = 0; user < 5; user++) await set.verify(french(9_000 + user, user * 10));
    // The 5-digit level allows twelve in each range of 100,000, and the credit of the five verifications.
    expect((await set.many(100, (index) => french(index, index))).sent).toBeGreaterThan(40);
  });

  it("a blocked retry returns `rate_limited` and sends nothing, and the first code stays live", async () => {
    const set = setUpSpam(only("range"), {
      policy: { maxGuessOdds: 1, lifetime: 7_200, limits: { perNumber: [{ limit: 100, window: 86_400 }] }, spam: only("range") },
    });
    const { authentication_uuid } = await set.create({ phone_number: french(1) });
    expect(await set.many(4, (index) => french(100 + index))).toEqual({ sent: 4, refused: 0 });
    set.clock.advance(30_000);
    expect(await set.retry(authentication_uuid)).toMatchObject({ status: "rate_limited", remaining_retry: 0 });
    expect(set.box.messages).toHaveLength(5);
    const { decisions } = await set.verifier.explain({ customer_uuid: set.customer, authentication_uuid });
    expect(decisions).toMatchObject([{ rule: "range 4", mode: "enforce", value: 5, threshold: 5 }]);
    await set.check((await set.create({ phone_number: french(100) })).authentication_uuid, "x").catch(() => undefined);
    expect((await set.check(authentication_uuid, set.box.code(0))).status, "the first code lives").toBe("valid");
  });

  it("a retry adds to its cells, a repeat under an Idempotency-Key does not (docs/contract.md#open)", async () => {
    const set = setUpSpam(only("range"));
    for (let repeat = 0; repeat < 3; repeat++) await set.create({ phone_number: french(1) }, { idempotencyKey: "k" });
    const { authentication_uuid } = await set.create({ phone_number: french(2) });
    set.clock.advance(30_000);
    expect((await set.retry(authentication_uuid)).status).toBe("approved");
    expect(await set.many(5, (index) => french(100 + index))).toEqual({ sent: 2, refused: 3 });
  });

  it("a blocked message adds nothing, so a cell recovers as people verify and the window moves on", async () => {
    const set = setUpSpam(only("range"));
    await set.many(200, (index) => french(index));
    set.clock.advance(37 * hour);
    expect(await set.many(20, (index) => french(index))).toEqual({ sent: 5, refused: 15 });
    set.clock.advance(37 * hour);
    await set.verify(french(500));
    expect(await set.send(french(501))).toBe("pending");
  });

  it("crowd: 25 messages a day to one range of 10,000, however many are verified (docs/contract.md#spam-crowd)", async () => {
    const set = setUpSpam(only("crowd"));
    for (let user = 0; user < 25; user++) await set.verify(french(user));
    expect(await set.send(french(26))).toBe("spam_detected");
    expect(await set.why(french(27))).toEqual([{ rule: "crowd", mode: "enforce", value: 25, threshold: 25 }]);
    expect(await set.send(french(1, 1)), "another range").toBe("pending");
  });

  it("crowd: a tenth of what its million verified, if that is more than 25", async () => {
    const set = setUpSpam(only("crowd"));
    for (let range = 1; range <= 15; range++) for (let user = 0; user < 20; user++) await set.verify(french(user, range));
    expect(await set.many(40, (index) => french(index))).toEqual({ sent: 30, refused: 10 });
    expect(await set.why(french(41))).toEqual([{ rule: "crowd", mode: "enforce", value: 30, threshold: 30 }]);
  });

  it("country: seed 30; does not block if ≥ 100 verified in 24 h (docs/contract.md#spam-country)", async () => {
    const set = setUpSpam(only("country"));
    expect(await set.many(40, (index) => french(index))).toEqual({ sent: 30, refused: 10 });
    expect(await set.send((abroad.GB as (index: number) => string)(1)), "another country").toBe("pending");
    const busy = setUpSpam(only("country"));
    for (let user = 0; user < 100; user++) await busy.verify(french(user));
    expect(await busy.many(400, (index) => french(1_000 + index))).toEqual({ sent: 400, refused: 0 });
  });

  it("new countries: one common pot, seed 30, for all countries with fewer than 3 verified in 7 days (docs/contract.md#spam-new-countries)", async () => {
    const set = setUpSpam(only("newCountries"));
    const countries = Object.values(abroad);
    expect(await set.many(60, (index) => (countries[index % 4] as (index: number) => string)(index))).toEqual({ sent: 30, refused: 30 });
    expect(await set.why(french(1))).toEqual([{ rule: "newCountries", mode: "enforce", value: 30, threshold: 30 }]);
    expect(set.box.messages).toHaveLength(30);
  });

  it("new countries: one with three verified is no longer new: it neither fills the pot nor is blocked by it", async () => {
    const set = setUpSpam(only("newCountries"));
    for (let user = 0; user < 3; user++) await set.verify(french(user));
    expect(await set.many(100, (index) => french(100 + index))).toEqual({ sent: 100, refused: 0 });
    const pot = await set.many(60, abroad.GB as (index: number) => string);
    expect(pot.sent).toBeGreaterThanOrEqual(30);
    expect(pot.sent, "what the three earned for the pot, two each").toBeLessThanOrEqual(36);
    expect(await set.send(french(900))).toBe("pending");
    for (let user = 0; user < 40; user++) {
      set.clock.advance(2 * hour);
      await set.verify(french(2_000 + user));
    }
    set.clock.advance(26 * hour);
    for (let user = 0; user < 10; user++) await set.verify(french(3_000 + user));
    expect((await set.many(60, abroad.GB as (index: number) => string)).sent, "what people verify in a country that is not new earns the pot nothing").toBe(30);
    // Another process, which has not seen the country yet.
    const other = setUpSpam(only("newCountries"), { store: set.store, clock: set.clock, customers: [{ customer_uuid: set.customer, keys: [set.apiKey] }] });
    const request = { customer_uuid: set.customer, phone_number: french(901) };
    expect((await other.verifier.createAuthentication(request)).status).toBe("pending");
  });

  it("address: the ip (IPv6 by /64), seed 8 (docs/contract.md#spam-address)", async () => {
    const set = setUpSpam(only("address"));
    expect(
      await set.many(
        20,
        (index) => french(index),
        () => ({ ip: "198.51.100.7" }),
      ),
    ).toEqual({ sent: 8, refused: 12 });
    expect(await set.send(french(50), { ip: "198.51.100.8" })).toBe("pending");
    expect(await set.send(french(51)), "a missing ip skips that rule").toBe("pending");
    expect(
      await set.many(
        20,
        (index) => french(100 + index),
        (index) => ({ ip: `2001:db8:1:2::${index + 1}` }),
      ),
    ).toEqual({ sent: 8, refused: 12 });
    await set.verify(french(60), { ip: "198.51.100.9" });
    expect(
      await set.many(
        20,
        (index) => french(200 + index),
        () => ({ ip: "198.51.100.9" }),
      ),
    ).toEqual({ sent: 10, refused: 10 });
  });

  it("strange network: while a country's alarm is on, one cell, seed 10, for each /16 and IPv6 /32 from which no one verified in it", async () => {
    const set = setUpSpam(only("strangeNetwork"));
    for (let user = 0; user < 5; user++) await set.verify(french(user), { ip: "198.51.100.7" });
    await set.verify(french(5), { ip: "2001:db8:1::1" });
    set.clock.advance(3 * hour);
    expect(
      await set.many(
        60,
        (index) => french(100 + index),
        (index) => ({ ip: `203.${index}.0.1` }),
      ),
      "the alarm goes on at more than 20 open within the hour, and the cell takes 10",
    ).toEqual({ sent: 31, refused: 29 });
    expect(await set.why(french(300), { ip: "203.99.0.1" })).toEqual([{ rule: "strangeNetwork", mode: "enforce", value: 10, threshold: 10 }]);
    expect(await set.send(french(301), { ip: "198.51.200.9" }), "a network from which people verified").toBe("pending");
    expect(await set.send(french(304), { ip: "2001:db8:ffff::1" }), "the same /32").toBe("pending");
    expect(await set.send(french(305), { ip: "2001:db9:1::1" }), "another /32").toBe("spam_detected");
    expect(await set.send(french(302)), "a missing ip skips that rule").toBe("pending");
    set.clock.advance(3 * hour);
    expect(await set.send(french(303), { ip: "203.99.0.1" }), "the alarm is over").toBe("pending");
  });

  it("strange network: who verifies gives the cell its messages and two more, and makes the network known", async () => {
    const set = setUpSpam(only("strangeNetwork"));
    for (let user = 0; user < 10; user++) await set.verify(french(1_000 + user), { ip: "198.51.100.7" });
    set.clock.advance(3 * hour);
    expect(await strangers(set, 0, 30)).toEqual({ sent: 30, refused: 0 });
    await set.verify(french(30), { ip: "203.30.0.1" });
    expect(await strangers(set, 31, 6)).toEqual({ sent: 3, refused: 3 });
    expect(await set.send(french(60), { ip: "203.30.9.9" }), "the network of who verified").toBe("pending");
  });

  it("strange network: a number earns once a day, and its messages are always given back", async () => {
    const set = setUpSpam(only("strangeNetwork"));
    for (let user = 0; user < 100; user++) await set.verify(french(1_000 + user), { ip: "198.51.100.7" });
    set.clock.advance(3 * hour);
    expect(await strangers(set, 0, 25)).toEqual({ sent: 25, refused: 0 });
    for (const network of [200, 201]) await set.verify(french(500), { ip: `203.${network}.0.1` });
    expect(await strangers(set, 30, 20), "4 are open, and one number verified").toEqual({ sent: 8, refused: 12 });
  });

  it("strange network: the retries of creates from before the alarm are blocked", async () => {
    const set = setUpSpam(only("strangeNetwork"));
    const { authentication_uuid } = await set.create({ phone_number: french(0), ip: "203.200.0.1" });
    await set.many(
      20,
      (index) => french(100 + index),
      (index) => ({ ip: `203.${index}.0.1` }),
    );
    set.clock.advance(30_000);
    await new Promise(setImmediate);
    expect((await set.retry(authentication_uuid)).status).toBe("rate_limited");
    const later = await set.create({ phone_number: french(1), ip: "203.201.0.1" });
    set.clock.advance(30_000);
    expect((await set.retry(later.authentication_uuid)).status, "of a create after it").toBe("approved");
  });

  it("trust: a number that this customer's users verified before (90 days) passes all spam rules while it has fewer than 3 open (docs/contract.md#trust)", async () => {
    const spam = { ...only("range"), trust: { open: 3 } };
    const set = setUpSpam(spam);
    await set.verify(french(1));
    set.clock.advance(60 * day);
    expect((await set.many(20, (index) => french(100 + index))).sent).toBe(5);
    expect([await set.send(french(1)), await set.send(french(1)), await set.send(french(1))]).toEqual(["pending", "pending", "pending"]);
    expect(await set.send(french(1)), "three are open").toBe("spam_detected");
    set.clock.advance(60 * day);
    await set.many(20, (index) => french(100 + index));
    expect(await set.send(french(1)), "120 days later").toBe("spam_detected");
  });

  it("trust: passes the crowd rule if the number verified more than a day ago, while it had fewer than 2 messages within 24 hours", async () => {
    const set = setUpSpam({ ...only("crowd"), trust: { open: 3 } });
    await set.verify(french(0));
    set.clock.advance(day + 1);
    for (let user = 1; user < 25; user++) await set.verify(french(user));
    expect(await set.send(french(1)), "verified today").toBe("spam_detected");
    expect([await set.send(french(0)), await set.send(french(0))]).toEqual(["pending", "pending"]);
    expect(await set.send(french(0)), "two within 24 hours").toBe("spam_detected");
    expect(await set.why(french(0))).toEqual([{ rule: "crowd", mode: "enforce", value: 27, threshold: 25 }]);
    expect(await set.send(french(99)), "a new number").toBe("spam_detected");
    set.clock.advance(90 * day);
    await set.many(40, (index) => french(100 + index));
    expect(await set.send(french(0)), "more than 90 days ago").toBe("spam_detected");
  });

  it.each([
    ["range", 3, 5],
    ["crowd", 2, 25],
  ] as const)(
    "trust: the rule %s in `shadow` lets %d messages of a trusted number pass, as in `enforce` (docs/contract.md#modes)",
    async (rule, passing, room) => {
      const set = setUpSpam({ ...only(), [rule]: { mode: "shadow" }, trust: { open: 3 } });
      await set.verify(french(0));
      set.clock.advance(2 * day);
      await set.many(room, (index) => french(100 + index));
      for (let message = 0; message < passing; message++) expect(await set.why(french(0)), `message ${message}`).toEqual([]);
      expect(await set.why(french(0))).toMatchObject([{ mode: "shadow" }]);
    },
  );

  it("trust: `open: 0` exempts from no rule, the crowd rule included", async () => {
    const set = setUpSpam({ ...only("crowd"), trust: { open: 0 } });
    await set.verify(french(0));
    set.clock.advance(2 * day);
    await set.many(40, (index) => french(100 + index));
    expect(await set.send(french(0))).toBe("spam_detected");
  });

  it("customers do not share cells", async () => {
    const one = setUpSpam(only("range", "country", "newCountries"));
    const two = setUpSpam(only("range", "country", "newCountries"), { store: one.store, clock: one.clock });
    await one.many(200, (index) => french(index));
    expect(await two.many(5, (index) => french(index))).toEqual({ sent: 5, refused: 0 });
  });

  it("`is_returning_user` is the caller's claim and exempts from none of our rules (docs/contract.md#returning-user)", async () => {
    const set = setUpSpam(only("range"));
    expect(
      await set.many(
        20,
        (index) => french(index),
        () => ({ is_returning_user: true }),
      ),
    ).toEqual({ sent: 5, refused: 15 });
  });

  it.each([
    ["a cap", { perCustomer: [{ limit: 6, window: 86_400 }] }],
    ["a spend ceiling", { spend: [{ amount: 6, per: "day" as const }] }],
  ])("caps come before our spam rules, and what these block counts in none: %s", async (_what, limits) => {
    const spam = only("range");
    const sender = Object.assign(inbox(), { plan: () => ({ route: "r", price: 1 }) });
    const set = setUpSpam(spam, { sender, policy: { maxGuessOdds: 1, limits: { perNumber: [{ limit: 100, window: 86_400 }], ...limits }, spam } });
    expect(await set.many(30, (index) => french(index))).toEqual({ sent: 5, refused: 25 });
    expect(await set.send(french(1, 20))).toBe("pending");
    expect(await set.send(french(1, 30)), "six are sent").toBe("rate_limited");
    expect(await set.send(french(40)), "a cap and a rule").toBe("rate_limited");
  });

  it("a rule in `shadow` decides, records and allows; one that is `off` does nothing", async () => {
    const set = setUpSpam({ ...only(), range: { mode: "shadow" } });
    expect(await set.many(10, (index) => french(index))).toEqual({ sent: 10, refused: 0 });
    expect(await set.why(french(20))).toEqual([{ rule: "range 4", mode: "shadow", value: 10, threshold: 5 }]);
    const off = setUpSpam(only());
    expect(await off.many(60, (index) => french(index))).toEqual({ sent: 60, refused: 0 });
    expect(await off.why(french(100))).toEqual([]);
  });

  it("a customer's own thresholds and modes apply to that customer alone (docs/contract.md#modes)", async () => {
    const customer = (range: Spam["range"]) => ({ customer_uuid: randomUUID(), keys: [`pp_${randomUUID()}`], policy: { spam: { range } } });
    const customers = [customer({ seeds: [50, 50, 50] }), customer({ mode: "shadow" }), customer({ mode: "off" }), customer(undefined)];
    const { verifier } = setUpSpam(only("range"), { customers });
    const sent = customers.map(() => 0);
    for (let index = 0; index < 60; index++)
      for (const [at, { customer_uuid }] of customers.entries())
        if ((await verifier.createAuthentication({ customer_uuid, phone_number: french(index) })).status === "pending") sent[at]!++;
    expect(sent).toEqual([50, 60, 60, 5]);
  });

  it("Idempotency-Key: a repeat of a create that a rule blocked returns the same result", async () => {
    const set = setUpSpam(only("range"));
    await set.many(5, (index) => french(index));
    const first = await set.create({ phone_number: french(50) }, { idempotencyKey: "k" });
    expect(first.status).toBe("spam_detected");
    for (let user = 0; user < 3; user++) {
      set.clock.advance(1000);
      expect(await set.create({ phone_number: french(50) }, { idempotencyKey: "k" })).toEqual(first);
    }
  });

  it("they add no round trip to an accepted create, retry or check (1 each), and one to a blocked create (2)", async () => {
    const spam = only("range", "crowd", "country", "newCountries", "address", "strangeNetwork");
    const set = setUpSpam({ ...spam, trust: { open: 3 } });
    const calls: string[] = [];
    for (const method of ["find", "commit"] as const) {
      const whole = set.store[method].bind(set.store) as (...args: unknown[]) => Promise<unknown>;
      Object.assign(set.store, {
        [method](...args: unknown[]) {
          calls.push(method);
          return whole(...args);
        },
      });
    }
    // From the fourth on the process knows that the country is not new.
    for (let user = 0; user < 4; user++) await set.verify(french(9_000 + user));
    calls.splice(0);
    const { authentication_uuid } = await set.create({ phone_number: french(1), ip: "198.51.100.7", device_id: "d" });
    expect(calls.splice(0)).toEqual(["commit"]);
    set.clock.advance(30_000);
    expect((await set.retry(authentication_uuid)).status).toBe("approved");
    expect(calls.splice(0)).toEqual(["commit"]);
    expect((await set.check(authentication_uuid, set.box.code())).status).toBe("valid");
    await new Promise(setImmediate);
    expect(calls.splice(0), "the check's, with what it credits").toEqual(["commit"]);
    await set.many(20, (index) => french(100 + index));
    calls.splice(0);
    expect(await set.send(french(200))).toBe("spam_detected");
    expect(calls.splice(0)).toEqual(["commit", "commit"]);
  });

  it("a right code credits only the cells of rules that are on, and the customer's cap if it grows", async () => {
    const growing = { perNumber: [{ limit: 100, window: 86_400 }], perCustomer: [{ limit: 1_000_000, window: 86_400, perVerified: 3 }] };
    const credited = async (spam: Spam, options: Partial<VerifierOptions> = {}) => {
      const set = setUpSpam(spam, options);
      const sums: string[] = [];
      const commit = set.store.commit.bind(set.store);
      Object.assign(set.store, {
        commit(change: Change) {
          for (const claim of change.claims ?? []) if ("sum" in claim && claim.weight < 0) sums.push(claim.sum.replace(/^[^:]+:/, "").slice(0, 4));
          return commit(change);
        },
      });
      await set.verify(french(1), { ip: "198.51.100.7" });
      return sums.sort();
    };
    expect(await credited(only())).toEqual([]);
    expect(await credited(only(), { policy: { maxGuessOdds: 1, limits: growing, spam: only() } })).toEqual(["c:86"]);
    expect(await credited(only("address"))).toEqual(["b:a:"]);
  });
});

describe("the caller's own rules", () => {
  it("receive the time, the authentication's id, the attempt, the country and the line type, once for each create and retry", async () => {
    const seen: { now: number; authentication_uuid: string; attempt: number; country_code?: string; line_type: string }[] = [];
    const set = setUp({ spamRules: [{ name: "look", judge: (attempt) => void seen.push(attempt) }] });
    const { authentication_uuid } = await set.create({ device_model: "x" });
    set.clock.advance(30_000);
    await set.retry(authentication_uuid);
    expect(seen).toMatchObject([
      { authentication_uuid, attempt: 1, country_code: "FR", line_type: "Mobile", device_model: "x" },
      { authentication_uuid, attempt: 2, country_code: "FR", line_type: "Mobile", now: set.clock.now() },
    ]);
  });

  it("one that flags a retry makes it `rate_limited`: explain has the reason, and nothing is sent", async () => {
    const set = setUp({ spamRules: [{ name: "late", judge: ({ attempt }) => (attempt > 1 ? { reason: "no retries" } : undefined) }] });
    const { authentication_uuid } = await set.create();
    set.clock.advance(30_000);
    expect((await set.retry(authentication_uuid)).status).toBe("rate_limited");
    expect(set.box.messages).toHaveLength(1);
    const { decisions } = await set.verifier.explain({ customer_uuid: set.customer, authentication_uuid });
    expect(decisions).toMatchObject([{ rule: "late", mode: "enforce", reason: "no retries" }]);
    expect((await set.check(authentication_uuid, set.box.code())).status).toBe("valid");
  });

  it("can be cells like ours: `{ name, cell, seed, perVerified }`", async () => {
    const set = setUpSpam(only(), { spamRules: [{ name: "model", cell: ({ device_model }) => device_model, seed: 3, perVerified: 1 }] });
    const fields = () => ({ device_model: "emulator" });
    expect(await set.many(6, (index) => french(index), fields)).toEqual({ sent: 3, refused: 3 });
    expect(await set.why(french(50), fields())).toEqual([{ rule: "model", mode: "enforce", value: 3, threshold: 3 }]);
    expect(await set.send(french(60)), "no cell, no rule").toBe("pending");
    const other = setUpSpam(only(), { spamRules: [{ name: "model", cell: ({ device_model }) => device_model, seed: 3, perVerified: 1 }] });
    await other.verify(french(1), fields());
    expect(await other.many(8, (index) => french(100 + index), fields)).toEqual({ sent: 4, refused: 4 });
  });

  it("a cell in `shadow` records and allows, one that is `off` does nothing", async () => {
    const cell = (name: string, mode: "shadow" | "off") => ({ name, mode, cell: () => "all", seed: 1 });
    const set = setUpSpam(only(), { spamRules: [cell("shadow", "shadow"), cell("off", "off")] });
    expect(await set.many(3, (index) => french(index))).toEqual({ sent: 3, refused: 0 });
    expect(await set.why(french(50))).toEqual([{ rule: "shadow", mode: "shadow", value: 3, threshold: 1 }]);
  });

  it("a cell that is full makes a retry `rate_limited`, and nothing is sent", async () => {
    const set = setUpSpam(only(), { spamRules: [{ name: "model", cell: ({ device_model }) => device_model, seed: 1 }] });
    const { authentication_uuid } = await set.create({ phone_number: french(1), device_model: "emulator" });
    set.clock.advance(30_000);
    expect((await set.retry(authentication_uuid)).status).toBe("rate_limited");
    expect(set.box.messages).toHaveLength(1);
    const { decisions } = await set.verifier.explain({ customer_uuid: set.customer, authentication_uuid });
    expect(decisions).toMatchObject([{ rule: "model", mode: "enforce", value: 1, threshold: 1 }]);
  });

  it("a cell that throws or returns an invalid value is logged and allows the message", async () => {
    const broken = () => {
      throw new Error("no");
    };
    const set = setUpSpam(only(), {
      spamRules: [
        { name: "a", cell: broken, seed: 0 },
        { name: "b", cell: () => 7 as never, seed: 0 },
      ],
    });
    expect(await set.send(french(1))).toBe("pending");
    expect(set.log.lines.filter(({ message }) => message.includes("spam rule failed"))).toHaveLength(2);
  });

  it.each<[object, RegExp]>([
    [{ name: "x", cell: () => "y" }, /spamRules\.0 must have seed/],
    [{ name: "", judge: () => undefined }, /spamRules\.0 must have a name/],
    [{ name: "a b", cell: () => "y", seed: 1 }, /spamRules\.0 must have a name of 1 to 32/],
    [{ name: "x", mode: "on", judge: () => undefined }, /spamRules\.0 must have the mode/],
    [{ name: "x" }, /spamRules\.0 must be a spam rule/],
  ])("creating the verifier fails with an invalid rule: %j", (rule, fault) => {
    expect(() => setUp({ spamRules: [rule as never] })).toThrow(fault);
  });
});
