import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { ruleWords } from "../../src/cli/operators/rules.js";
import { errorCode, numberOf, onePerTenMinutes, setUp } from "../support/verifier.js";

const minute = 60_000;
const hour = 60 * minute;

/** The statuses of `count` creates, each with the fields for its index. */
async function createMany(set: ReturnType<typeof setUp>, count: number, fields: (index: number) => Record<string, unknown>): Promise<string[]> {
  const statuses: string[] = [];
  for (let index = 0; index < count; index++) statuses.push((await set.create(fields(index))).status);
  return statuses;
}

const pendingThenLimited = (pending: number, limited = 1) => [...Array(pending).fill("pending"), ...Array(limited).fill("rate_limited")];

describe("caps: `rate_limited` (docs/contract.md#caps)", () => {
  it("per number: 5 sends in any 10 minutes", async () => {
    const set = setUp();
    for (let send = 0; send < 5; send++) {
      expect((await set.create()).status).toBe("pending");
      set.clock.advance(minute);
    }
    expect((await set.create()).status).toBe("rate_limited");
    set.clock.advance(5 * minute - 1);
    expect((await set.create()).status).toBe("rate_limited");
    set.clock.advance(1);
    expect((await set.create()).status).toBe("pending");
    expect((await set.create()).status).toBe("rate_limited");
  });

  it("per number: 10 sends in 24 hours", async () => {
    const set = setUp();
    for (let send = 0; send < 10; send++) {
      expect((await set.create()).status).toBe("pending");
      set.clock.advance(hour);
    }
    expect((await set.create()).status).toBe("rate_limited");
    set.clock.advance(14 * hour - 1);
    expect((await set.create()).status).toBe("rate_limited");
    set.clock.advance(1);
    expect((await set.create()).status).toBe("pending");
  });

  it("per number: retries count as sends", async () => {
    const set = setUp();
    const { authentication_uuid } = await set.create();
    for (const seconds of [30, 60, 90, 120]) {
      set.clock.advance(seconds * 1000);
      expect((await set.retry(authentication_uuid)).status).toBe("approved");
    }
    expect((await set.create()).status).toBe("rate_limited");
  });

  it("per number: different spellings count as their canonical form", async () => {
    const set = setUp();
    // A trunk zero after the country code is dropped in the canonical form.
    const statuses = await createMany(set, 6, (index) => ({ phone_number: index % 2 === 0 ? "+447400123456" : "+4407400123456" }));
    expect(statuses).toEqual(pendingThenLimited(5));
    expect(new Set(set.box.messages.map(({ to }) => to))).toEqual(new Set(["+447400123456"]));
  });

  it("per device_id: 5 creates in an hour", async () => {
    const set = setUp();
    expect(await createMany(set, 6, (index) => ({ phone_number: numberOf(index % 3), device_id: "d1" }))).toEqual(pendingThenLimited(5));
    expect((await set.create({ phone_number: numberOf(9), device_id: "d2" })).status).toBe("pending");
    set.clock.advance(hour);
    expect((await set.create({ phone_number: numberOf(1), device_id: "d1" })).status).toBe("pending");
  });

  it("per device_id: creates for 3 distinct numbers in 24 hours", async () => {
    const set = setUp();
    expect(await createMany(set, 4, (index) => ({ phone_number: numberOf(index), device_id: "d1" }))).toEqual(pendingThenLimited(3));
    expect((await set.create({ phone_number: numberOf(0), device_id: "d1" })).status, "a number it had before").toBe("pending");
    set.clock.advance(24 * hour);
    expect((await set.create({ phone_number: numberOf(3), device_id: "d1" })).status).toBe("pending");
  });

  it("per ip: none by default; if set, IPv6 counts by /64, an IPv4-mapped address as IPv4, and distinct numbers have their own cap", async () => {
    const free = setUp();
    expect(await createMany(free, 31, (index) => ({ phone_number: numberOf(index), ip: "198.51.100.7" }))).toEqual(pendingThenLimited(31, 0));
    const set = setUp({ policy: { limits: { perIp: [{ limit: 1, window: 60 }], numbersPerIp: [{ limit: 1, window: 600 }] } } });
    expect(await createMany(set, 2, (index) => ({ phone_number: numberOf(index), ip: `2001:db8:1:2::${index}` }))).toEqual(pendingThenLimited(1));
    expect((await set.create({ phone_number: numberOf(5), ip: "2001:db8:1:3::1" })).status).toBe("pending");
    expect((await set.create({ phone_number: numberOf(6), ip: "198.51.100.7" })).status).toBe("pending");
    expect((await set.create({ phone_number: numberOf(7), ip: "::ffff:198.51.100.7" })).status).toBe("rate_limited");
    set.clock.advance(60_000);
    expect((await set.create({ phone_number: numberOf(7), ip: "198.51.100.7" })).status, "another number").toBe("rate_limited");
    expect((await set.create({ phone_number: numberOf(6), ip: "198.51.100.7" })).status).toBe("pending");
  });

  it("per customer: sends in 24 hours, here 20, plus 3 for each user verified in them (docs/contract.md#growing-cap)", async () => {
    const set = setUp({ policy: { limits: { perCustomer: [{ limit: 20, window: 86_400, perVerified: 3 }] } } });
    const { authentication_uuid } = await set.create({ phone_number: numberOf(100) });
    expect((await set.check(authentication_uuid, set.box.code())).status).toBe("valid");
    expect(await createMany(set, 23, (index) => ({ phone_number: numberOf(index) }))).toEqual(pendingThenLimited(22));
    const refused = await set.create({ phone_number: numberOf(50) });
    const { decisions } = await set.verifier.explain({ customer_uuid: set.customer, authentication_uuid: refused.authentication_uuid });
    expect(decisions).toMatchObject([{ rule: "perCustomer 20/86400s", mode: "enforce", value: 23, threshold: 23 }]);
    set.clock.advance(26 * hour);
    expect(await createMany(set, 21, (index) => ({ phone_number: numberOf(index) })), "a refusal consumes nothing").toEqual(pendingThenLimited(20));
  });

  it("per customer: sends in 24 hours, here 20, without growth", async () => {
    const set = setUp({ policy: { limits: { perCustomer: [{ limit: 20, window: 86_400 }] } } });
    expect(await createMany(set, 21, (index) => ({ phone_number: numberOf(index) }))).toEqual(pendingThenLimited(20));
  });

  it("a missing `ip` or `device_id` skips its cap", async () => {
    const set = setUp();
    expect(await createMany(set, 40, (index) => ({ phone_number: numberOf(index) }))).toEqual(pendingThenLimited(40, 0));
  });

  it("two customers do not share a cap", async () => {
    const one = setUp();
    const two = setUp({ store: one.store, clock: one.clock });
    expect(await createMany(one, 6, () => ({}))).toEqual(pendingThenLimited(5));
    expect((await two.create()).status).toBe("pending");
  });

  it("a rejection consumes nothing: a number at its cap does not use up the device's and customer's caps", async () => {
    const set = setUp({ policy: { limits: { perCustomer: [{ limit: 6, window: 600 }] } } });
    const fields = { device_id: "d1", ip: "198.51.100.7" };
    expect(await createMany(set, 5, () => ({}))).toEqual(pendingThenLimited(5, 0));
    expect(await createMany(set, 20, () => fields)).toEqual(pendingThenLimited(0, 20));
    expect((await set.create({ ...fields, phone_number: numberOf(2) })).status).toBe("pending");
    expect((await set.create({ phone_number: numberOf(3) })).status).toBe("rate_limited");
  });

  it("a cap allows messages again after its window, however many were rejected", async () => {
    const set = setUp();
    for (let second = 0; second < 600; second += 20) {
      await set.create();
      set.clock.advance(20_000);
    }
    expect((await set.create()).status).toBe("pending");
  });

  it("rejected creates do not fill the store: of a number only the first twenty an hour are stored, and all return a result", async () => {
    const set = setUp({ store: memoryStore({ name: randomUUID(), maxRecords: 100 }) });
    await createMany(set, 5, () => ({}));
    const refused = [];
    for (let index = 0; index < 1_000; index++) refused.push(await set.create());
    expect(new Set(refused.map(({ status }) => status))).toEqual(new Set(["rate_limited"]));
    expect((await set.create({ phone_number: numberOf(2) })).status).toBe("pending");
    const known = await Promise.all(refused.map(({ authentication_uuid }) => errorCode(set.check(authentication_uuid, "1"))));
    expect(known.filter((fault) => fault === "no error")).toHaveLength(20);
    set.clock.advance(hour);
    await createMany(set, 5, () => ({}));
    expect(await errorCode(set.check((await set.create()).authentication_uuid, "1")), "the next hour's are kept again").toBe("no error");
  });

  it("an invalid request counts in no cap", async () => {
    const set = setUp();
    for (let index = 0; index < 20; index++) await errorCode(set.create({ device_type: "FRIDGE" }));
    expect(await createMany(set, 6, () => ({}))).toEqual(pendingThenLimited(5));
  });

  it("every decision is recorded with rule, value and threshold and can be queried by authentication id (`explain`)", async () => {
    const set = setUp();
    await createMany(set, 5, () => ({}));
    const { authentication_uuid } = await set.create();
    const explained = await set.verifier.explain({ customer_uuid: set.customer, authentication_uuid });
    expect(explained).toMatchObject({
      authentication_uuid,
      status: "rate_limited",
      decisions: [{ at: new Date(set.clock.now()).toISOString(), rule: "perNumber 5/600s", mode: "enforce", value: 5, threshold: 5 }],
    });
  });

  it("a cap holds in every window even if the clocks of processes differ by 5 s: windows reach back by twice `clockSkew`", async () => {
    const ahead = setUp({ clockSkew: 5, policy: onePerTenMinutes });
    const behind = setUp({ clockSkew: 5, store: ahead.store, customers: [{ customer_uuid: ahead.customer, keys: [ahead.apiKey] }], policy: onePerTenMinutes });
    const request = { customer_uuid: ahead.customer, phone_number: numberOf(1) };
    const truth = ahead.clock.now();
    behind.clock.set(truth - 5000);
    expect((await behind.verifier.createAuthentication(request)).status).toBe("pending");
    ahead.clock.set(truth + 599_999 + 5000);
    expect((await ahead.verifier.createAuthentication(request)).status, "599.999 s later").toBe("rate_limited");
    ahead.clock.set(truth + 600_000 + 10_000);
    expect((await ahead.verifier.createAuthentication(request)).status).toBe("pending");
  });
});

describe("the caller's own spam rules (docs/contract.md#own-rules)", () => {
  const flag = { name: "flag", judge: () => ({ reason: "flagged" }) };

  it.each(Object.keys(ruleWords))("cannot have the name of the built-in %s", (name) => {
    expect(() => setUp({ spamRules: [{ ...flag, name }] })).toThrow("spamRules.0 has the name of a built-in rule: choose another name");
  });

  it("cannot be both a judge and a cell", () => {
    expect(() => setUp({ spamRules: [{ ...flag, cell: () => "a", seed: 1 }] })).toThrow("spamRules.0 has both judge and cell: give either `judge` or `cell`");
  });

  it("`is_returning_user` exempts from none of them", async () => {
    const set = setUp({ spamRules: [flag], policy: onePerTenMinutes });
    expect(await createMany(set, 2, () => ({ is_returning_user: true }))).toEqual(["spam_detected", "spam_detected"]);
  });

  it("a rule in `enforce` blocks the message; one in `shadow` records its decision and allows it; one that is `off` does nothing", async () => {
    expect((await setUp({ spamRules: [{ ...flag, mode: "enforce" }] }).create()).status).toBe("spam_detected");
    const set = setUp({
      spamRules: [
        { ...flag, mode: "off" },
        { ...flag, name: "shadow", mode: "shadow" },
      ],
    });
    const { authentication_uuid, status } = await set.create();
    expect(status).toBe("pending");
    const { decisions } = await set.verifier.explain({ customer_uuid: set.customer, authentication_uuid });
    expect(decisions.map(({ rule, mode }) => [rule, mode])).toEqual([["shadow", "shadow"]]);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("rule down");
      },
    ],
    ["rejects", () => Promise.reject(new Error("rule down"))],
    ["answers nonsense", () => "spam" as never],
  ])("a rule that %s is logged and allows the message", async (_what, judge) => {
    const set = setUp({ spamRules: [{ name: "broken", judge }] });
    expect((await set.create()).status).toBe("pending");
    expect(set.log.lines).toContainEqual(expect.objectContaining({ level: "error", fields: expect.objectContaining({ rule: "broken" }) }));
  });

  it("a rule that hangs for a second allows the message", async () => {
    const set = setUp({ spamRules: [{ name: "slow", judge: () => new Promise(() => undefined) }] });
    const creating = set.create();
    await new Promise((resolve) => setImmediate(resolve));
    set.clock.advance(1000);
    expect((await creating).status).toBe("pending");
  });

  it("a rule receives the canonical number, its country, its line type and the caller's `is_returning_user`", async () => {
    const seen: unknown[] = [];
    const set = setUp({ spamRules: [{ name: "look", judge: (attempt) => void seen.push(attempt) }] });
    await set.create({ phone_number: "+4407400123456", ip: "198.51.100.7", is_returning_user: true });
    const facts = { phone_number: "+447400123456", country_code: "GB", line_type: "Mobile", ip: "198.51.100.7", is_returning_user: true };
    expect(seen).toEqual([expect.objectContaining(facts)]);
  });
});

describe("Policy errors return 400, nothing sent, nothing charged (docs/contract.md#destinations)", () => {
  it.each([
    ["country not allowed", "unsupported_region", "+447400123456", { countries: ["FR"] }],
    ["calling code is not country (Guernsey)", "unsupported_region", "+447911123456", { countries: ["GB"] }],
    ['non-geographic number outside "all"', "unsupported_region", "+88213000000", { countries: ["FR"] }],
    ["premium rate", "invalid_line", "+19005550199", {}],
    ["toll free", "invalid_line", "+18005550199", {}],
    ["pager", "invalid_line", "+447640123456", {}],
    ["UAN", "invalid_line", "+443001234567", {}],
    ["fixed line", "invalid_line", "+33142345678", {}],
    ["shared cost", "invalid_line", "+41840123456", {}],
    ["personal number", "invalid_line", "+447012345678", {}],
    ["satellite", "invalid_line", "+870773111632", {}],
    ["satellite (Iridium)", "invalid_line", "+881612345678", {}],
    ["satellite (Thuraya)", "invalid_line", "+8821612345678", {}],
    ["international premium rate", "invalid_line", "+979123456789", {}],
    ["global VoIP range", "invalid_line", "+88213000000", {}],
    ["block list", "blocked_number", numberOf(1), { blockedNumbers: [numberOf(1)] }],
    ["block list, by prefix", "blocked_number", numberOf(1), { blockedNumbers: ["+3361*"] }],
  ] as const)("%s → `%s`", async (_what, code, phone_number, options) => {
    const set = setUp(options as never);
    expect(await errorCode(set.create({ phone_number }))).toBe(code);
    expect(set.box.messages).toHaveLength(0);
  });

  it.each(["+14155552671", "+525512345678", "+445600123456"])("NANP, Mexican and VoIP numbers are sendable: %s", async (phone_number) => {
    expect((await setUp().create({ phone_number })).status).toBe("pending");
  });

  it.each([
    "123",
    "+1",
    "0033612345678",
    "+33 6 12 34 56 78",
    "+33612345678 ",
    "+3361234567",
    "+336123456789",
    "+0123456789",
    "tel:+33612345678",
    "+33６12345678",
    "",
    "+447700900123",
    `+${"1".repeat(5000)}`,
  ])("`phone_number` must be E.164 and valid for its country: %j", async (phone_number) => {
    const set = setUp();
    expect(await errorCode(set.create({ phone_number }))).toBe("invalid_phone_number");
    expect(set.box.messages).toHaveLength(0);
  });

  it('Numbers listed in `testNumbers` are exempt from validity; `phoneValidation: "possible"` accepts ranges newer than the metadata', async () => {
    const set = setUp({ testNumbers: ["+447700900123"], countries: ["FR"] });
    expect((await set.create({ phone_number: "+447700900123" })).status).toBe("pending");
    expect(await errorCode(set.create({ phone_number: "+447700900124" }))).toBe("invalid_phone_number");
    expect((await setUp({ phoneValidation: "possible" }).create({ phone_number: "+447700900124" })).status).toBe("pending");
  });
});

describe("guess budget, tested when the verifier is built and for every customer's override (docs/contract.md#guess-budget)", () => {
  const build = (options: object) => () => setUp(options as never);

  it("a policy that exceeds it is rejected; the message shows the calculation and what would pass", () => {
    expect(build({ policy: { codeLength: 5 } })).toThrow(
      "the guess budget is broken: 10 sends per number per day × 5 checks × 10^-5 = 5.0e-4, more than maxGuessOdds 1.0e-4; codeLength 6, or checks 1, or limits.perNumber with at most 2 sends a day would pass",
    );
    expect(build({ policy: { checks: 11 } })).toThrow("10 sends per number per day × 11 checks × 10^-6");
    expect(build({ policy: { checks: 10 } })).not.toThrow();
    expect(build({ policy: { limits: { perNumber: [{ limit: 5, window: 600 }] } } })).toThrow("720 sends per number per day");
    expect(build({ policy: { codeLength: 4, checks: 1, limits: { perNumber: [{ limit: 1, window: 86_400 }] } } })).not.toThrow();
  });

  it("every fix that the message names passes", () => {
    expect(build({ policy: { codeLength: 5, checks: 1 } })).not.toThrow();
    expect(build({ policy: { codeLength: 5, limits: { perNumber: [{ limit: 2, window: 86_400 }] } } })).not.toThrow();
  });

  it("a customer's override that exceeds it is rejected, with its path", () => {
    expect(build({ customers: [{ customer_uuid: randomUUID(), keys: ["k".repeat(40)], policy: { codeLength: 4 } }] })).toThrow(
      "customers.0.policy: the guess budget is broken",
    );
  });

  it("an override from a customer source that exceeds it makes create return unavailable and send nothing", async () => {
    const set = setUp({ customers: { findByKeyDigest: () => undefined, find: (customer_uuid: string) => ({ customer_uuid, policy: { codeLength: 4 } }) } });
    expect(await errorCode(set.create())).toBe("unavailable");
    expect(set.box.messages).toHaveLength(0);
  });

  it("per-number caps and the check budget can be changed, never switched off", () => {
    expect(build({ policy: { limits: { perNumber: [] } } })).toThrow("policy.limits.perNumber must hold at least one cap");
    expect(build({ policy: { checks: 0 } })).toThrow("policy.checks must be 1 or more");
  });

  it("a customer's override applies to that customer only", async () => {
    const other = randomUUID();
    const base = setUp();
    const set = setUp({
      customers: [
        { customer_uuid: base.customer, keys: ["a".repeat(40)] },
        { customer_uuid: other, keys: ["b".repeat(40)], policy: { codeLength: 8, lifetime: 60 } },
      ],
    });
    await set.verifier.createAuthentication({ customer_uuid: base.customer, phone_number: numberOf(1) });
    const long = await set.verifier.createAuthentication({ customer_uuid: other.toUpperCase(), phone_number: numberOf(1) });
    expect(set.box.messages.map(({ code }) => code.length)).toEqual([6, 8]);
    expect(Date.parse(long.expires_at) - Date.parse(long.created_at)).toBe(60_000);
  });
});
