import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { type CodeMessage, generateApiKey, type List, type PolicyOverride, type ReceiptSource, type VerifierOptions } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { createTestVerifier, fixedClock, type Scenario, scenarios, simulate } from "../../src/testing/index.js";
import { start } from "../support/verifier.js";
import { turns } from "./kit.js";
import { abroad, address, address6, day, each, far, hour, minute, near, noRules, refusal, service, tally } from "./operator-kit.js";

const root = join(import.meta.dirname, "../..");
const number = near(1);
const odd = <T>(value: unknown) => value as T;

describe("fraud against default options", () => {
  it("blocks a range of 10,000 at five open messages, and allows it again 24 to 36 hours later (docs/fraud.md#what-an-attacker-can-lock-out)", async () => {
    for (let shift = 0; shift < 24; shift += 3) {
      const { clock, status } = service({}, { at: start + shift * hour });
      const attack = await each(8, (index) => status(near(index), { ip: address(index) }));
      expect(tally(attack)).toEqual({ pending: 5, spam_detected: 3 });
      clock.advance(24 * hour - 1);
      expect(await status(near(500), { ip: address(500) })).toBe("spam_detected");
      clock.advance(12 * hour + minute);
      expect(await status(near(500), { ip: address(500) })).toBe("pending");
    }
  });

  it("gives two more messages for each verified number, not for each verification (docs/contract.md#balance)", async () => {
    const { clock, visit, status } = service();
    const own = await each(9, async () => {
      clock.advance(11 * minute);
      return visit(near(1), { ip: address(1) });
    });
    expect(tally(own)).toEqual({ valid: 9 });
    expect(tally(await each(20, (index) => status(near(100 + index), { ip: address(index) })))).toEqual({ pending: 7, spam_detected: 13 });
  });

  it("counts every spelling of an IPv4 address, and a whole /64, as one address (docs/contract.md#address-key)", async () => {
    const spellings = ["192.0.2.7", "::ffff:192.0.2.7", "2002:c000:0207::1", "64:ff9b::192.0.2.7", "::ffff:c000:207", "0:0:0:0:0:FFFF:C000:0207"];
    for (const ip of [(index: number) => spellings[index % spellings.length], (index: number) => `2001:db8:1:1::${index + 1}`]) {
      const { status } = service();
      expect(tally(await each(12, (index) => status(far(index), { ip: ip(index) as string })))).toEqual({ pending: 8, spam_detected: 4 });
    }
  });

  it("limits an attack on an unused country from ever new addresses and devices, and allows the users of a busy one", async () => {
    const { clock, status, visit } = service();
    expect(tally(await each(40, (index) => visit(far(index), { ip: address(index), device_id: `home ${index}` })))).toEqual({ valid: 40 });
    const honest: string[] = [];
    const attack = await each(600, async (index) => {
      clock.advance(10_000);
      if (index % 100 === 0) honest.push(await visit(far(100 + index), { ip: address(100 + index), device_id: `user ${index}` }));
      return status(abroad(index), { ip: address6(index), device_id: `bot ${index}` });
    });
    expect(tally(attack).pending).toBeLessThanOrEqual(30);
    expect(tally(honest)).toEqual({ valid: 6 });
  });

  it("allows users of known networks while a country's alarm is on, and strangers about an hour later (docs/fraud.md)", async () => {
    const { clock, status, visit, alarms } = service();
    await each(180, (index) => {
      clock.advance(24 * minute);
      return visit(far(index), { ip: `81.${index % 20}.${index % 3}.${index}` });
    });
    const [known, strangers]: [string[], string[]] = [[], []];
    const attack = await each(800, async (index) => {
      clock.advance(4000);
      if (index > 200 && index % 50 === 0) {
        known.push(await visit(far(20_000 + index), { ip: `81.${index % 20}.200.${index % 250}` }));
        strangers.push(await visit(far(30_000 + index), { ip: `90.${index % 200}.3.4` }));
      }
      return status(far(5000 + index), { ip: `45.${index % 200}.${index % 250}.9` });
    });
    expect(tally(attack).pending).toBeLessThanOrEqual(35);
    expect(tally(known)).toEqual({ valid: known.length });
    expect(tally(strangers)).toEqual({ spam_detected: strangers.length });
    expect(tally(alarms().map(({ alarm }) => alarm)).country).toBeLessThanOrEqual(2);
    clock.advance(hour + 6 * minute); // a twelfth longer, as for all windows of sums
    expect(await visit(far(40_000), { ip: "91.1.2.3" })).toBe("valid");
  });

  it("blocks an attacker who enters each code at 25, and only the safe list is exempt from the crowd rule (docs/contract.md#spam-crowd)", async () => {
    const { status, visit } = service({ lists: { safe: { numbers: [near(900)] } }, challenge: { verify: async () => true } });
    expect(tally(await each(40, (index) => visit(near(index), { ip: address(index) })))).toEqual({ valid: 25, spam_detected: 15 });
    expect([await status(near(0)), await status(near(901), { proof: "solved" }), await status(near(900))]).toEqual([
      "spam_detected",
      "spam_detected",
      "pending",
    ]);
  });

  it("allows a range full of verified messages again with time, not by unlocking its numbers (docs/fraud.md#what-an-attacker-can-lock-out)", async () => {
    // "25 messages to it, verified or not | 24 to 36 hours | … `unlock` takes back only messages that were not verified".
    const { clock, verifier, status, visit } = service();
    await each(25, (index) => visit(near(index), { ip: address(index) }));
    expect(await status(near(100), { ip: address(100) })).toBe("spam_detected");
    for (let index = 0; index < 25; index++) expect((await verifier.unlock({ phone_number: near(index) })).unlocked).toBe(true);
    expect(await status(near(100), { ip: address(100) })).toBe("spam_detected");
    clock.advance(36 * hour + minute);
    expect(await status(near(100), { ip: address(100) })).toBe("pending");
  });

  it("blocks a number for ten minutes after five messages, and for longer if it is new, as its range is full (docs/fraud.md#what-an-attacker-can-lock-out)", async () => {
    // "one number | … | 10 minutes, or 24 hours. Five unverified messages to a new number also fill its range: 24 to 36 hours".
    const { clock, verifier, status, create } = service();
    expect(tally(await each(5, (index) => status(number, { ip: address(index) })))).toEqual({ pending: 5 });
    const refused = (await create(number, { ip: address(9) })) as { status: string; retry_after?: number };
    expect(refused).toMatchObject({ status: "rate_limited", retry_after: 610 });
    clock.advance((refused.retry_after ?? 0) * 1000);
    expect(await status(number, { ip: address(10) })).toBe("spam_detected");
    await verifier.unlock({ phone_number: number });
    expect(await status(number, { ip: address(11) })).toBe("pending");
  });

  it("allows a trusted number with a full range and a full address while it has fewer than three open (docs/contract.md#trust)", async () => {
    const { clock, status, visit } = service();
    const ip = address(7);
    await visit(number, { ip });
    clock.advance(60 * day);
    await each(40, (index) => status(near(100 + index), { ip }));
    expect(tally(await each(5, () => status(number, { ip })))).toEqual({ pending: 3, spam_detected: 2 });
    clock.advance(91 * day);
    await each(40, (index) => status(near(200 + index), { ip }));
    expect(await status(number, { ip }), "91 days later").toBe("spam_detected");
  });

  it("never sends to toll numbers of any country (docs/contract.md#destinations)", async () => {
    const { status, messages } = service({ policy: { spam: noRules } });
    const tolls = "+33899123456 +33890123456 +449012345678 +448712345678 +447012345678 +19005551234 +18005551234 +881612345678 +881312345678";
    const more = "+882161234567 +883510012345678 +80812345678 +870773123456 +39899123456 +4918012345678 +34803123456 +46900123456 +27862123456";
    for (const toll of `${tolls} ${more}`.split(" ")) expect.soft(await status(toll), toll).toMatch(/^invalid_/);
    expect(messages).toEqual([]);
  });

  it("frees no range and no cap by erasing (docs/privacy.md#erase)", async () => {
    const { verifier, status } = service();
    await each(5, () => status(number));
    await verifier.erase({ phone_number: number });
    expect([await status(number), await status(near(2))]).toEqual(["rate_limited", "spam_detected"]);
  });

  it("unlocks a number once a day across all processes, with its messages in the range that they filled (docs/privacy.md#unlock)", async () => {
    const { clock, verifier, status, released } = service();
    await each(5, () => status(number));
    const other = released({}).verifier;
    const unlocks = await Promise.all(Array.from({ length: 20 }, (_, index) => (index % 2 ? verifier : other).unlock({ phone_number: number })));
    expect(unlocks.filter(({ unlocked }) => unlocked)).toHaveLength(1);
    expect(tally(await each(7, () => status(number)))).toEqual({ pending: 5, rate_limited: 2 });
    clock.advance(day - minute);
    expect((await other.unlock({ phone_number: number })).unlocked).toBe(false);
  });

  it("lifts the caps of an erased number by an unlock, while its messages stay counted in its range (docs/privacy.md#unlock)", async () => {
    // "Verified messages stay counted, and so do all messages of an erased number".
    const { clock, verifier, status } = service();
    await each(5, () => status(number));
    await verifier.erase({ phone_number: number });
    clock.advance(hour);
    expect((await verifier.unlock({ phone_number: number })).unlocked).toBe(true);
    expect(await status(number)).toBe("spam_detected");
    clock.advance(36 * hour + minute);
    expect(await status(number)).toBe("pending");
  });

  it("evaluates 50 wrong codes of a number, then no code for a day, not even the right one (docs/contract.md#guesses-claimed)", async () => {
    const { clock, create, enter, enterWrong } = service({ policy: { spam: noRules } });
    const checks: string[] = [];
    for (let visits = 0; visits < 20; visits++) {
      const { status, authentication_uuid } = await create(number);
      if (status === "pending") checks.push(...(await each(6, () => enterWrong(authentication_uuid))));
      clock.advance(10 * minute + 11_000);
    }
    expect(tally(checks)).toEqual({ invalid: 50, rate_limited: 10 });
    clock.advance(20 * hour + 30 * minute);
    expect(await enter((await create(number)).authentication_uuid)).toBe("rate_limited");
    clock.advance(13 * hour);
    expect(await enter((await create(number)).authentication_uuid)).toBe("valid");
  });

  it("raises the alarm wrong_codes at the 501st wrong code of many numbers (docs/fraud.md#how-the-rules-work)", async () => {
    const { clock, create, enterWrong, alarms } = service({ policy: { spam: noRules } });
    let wrong = 0;
    for (let index = 0; wrong < 520; index++) {
      const { authentication_uuid } = await create(far(index));
      for (let check = 0; check < 5 && authentication_uuid !== ""; check++, wrong++) {
        await enterWrong(authentication_uuid);
        clock.advance(1000);
        await turns(1);
      }
    }
    expect(alarms()).toMatchObject([{ alarm: "wrong_codes", wrong: 501, right: 0, threshold: 0.001 }]);
  });

  it("keeps room for honest users in a small store during a flood of rejected creates (docs/contract.md#refused-records)", async () => {
    const { clock, status, create, visit, log } = service({}, { maxRecords: 2000 });
    await each(3, (index) => visit(far(index), { ip: address(index) }));
    for (let index = 0; index < 1000; index++) {
      await status(abroad(index), { ip: address6(index), device_id: `bot ${index}`, device_model: `model ${index}` });
      await create(abroad(index), { device_id: `key ${index}` }, { idempotencyKey: `key ${index}` });
      if (index % 10 === 0) clock.advance(1000);
    }
    expect(tally(await each(20, (index) => visit(far(100 + index), { ip: address(100 + index), device_id: `user ${index}` })))).toEqual({ valid: 20 });
    expect(log.lines).toEqual([]);
  });

  it("does not count an attack on one customer in another customer's rules (docs/contract.md#spam-rules)", async () => {
    const [one, other] = [randomUUID(), randomUUID()];
    const { status } = service({ customers: [one, other].map((customer_uuid) => ({ customer_uuid, keys: [generateApiKey().key] })) });
    const calls = (customer_uuid: string) => each(60, (index) => status(far(index), { customer_uuid, ip: "192.0.2.1" }));
    expect(tally(await calls(one)).pending).toBe(8);
    expect(tally(await calls(other)).pending).toBe(8);
  });
});

describe("options that change while traffic runs", () => {
  it.each<[string, Partial<VerifierOptions>]>([
    ["a number", { blockedNumbers: [number] }],
    ["a prefix", { blockedNumbers: ["+3306*", "+33612*"] }],
  ])("sends nothing more to %s in blockedNumbers: a retry is rate_limited (docs/options.md, docs/errors.md#blocked_number)", async (_, blocked) => {
    const { clock, create, messages, released } = service();
    const { authentication_uuid } = await create(number);
    clock.advance(31_000);
    const after = released(blocked);
    expect(await after.status(number)).toBe("blocked_number");
    expect((await after.verifier.retry({ authentication_uuid })).status).toBe("rate_limited");
    expect(messages).toHaveLength(1);
  });

  it("sends nothing more to a country that was removed from countries (docs/operations.md#when-something-is-down)", async () => {
    const { clock, create, messages, released } = service();
    const { authentication_uuid } = await create(abroad(1));
    const after = released({ countries: ["FR"] });
    for (let retries = 0; retries < 4; retries++) {
      clock.advance(121_000);
      await after.verifier.retry({ authentication_uuid }).catch(() => {});
    }
    expect(messages).toHaveLength(1);
  });

  it.each<[string, Partial<VerifierOptions>, string[]]>([
    ["as before", {}, ["first", "second"]],
    ["on the block list", { lists: { block: { numbers: [number] } } }, ["first"]],
    ["in blockedNumbers", { blockedNumbers: [number] }, ["first"]],
    ["of a country no longer in countries", { countries: ["DE"] }, ["first"]],
  ])("decides on a fallback as on a retry: a number %s (docs/contract.md#fallback-costs)", async (_, changed, expected) => {
    const sent: string[] = [];
    const route = (name: string) => ({
      name,
      priority: sent.length + (name === "first" ? 0 : 1),
      sender: { receiptProviders: ["other"], send: async () => ({ outcome: "accepted", count: sent.push(name) }) as const },
    });
    const store = memoryStore();
    const options = () => ({
      store,
      sender: router({ routes: [route("first"), route("second")], fallback: { on: ["undeliverable"] } }),
      receipts: { baseUrl: "https://app.example", sources: [odd<ReceiptSource>({ provider: "other", read: async () => [], parse: async () => [] })] },
    });
    const before = createTestVerifier(options());
    await before.verifier.createAuthentication({ phone_number: number });
    const after = createTestVerifier({ ...options(), ...(changed as object), clock: before.clock });
    onTestFinished(async () => {
      for (const one of [before, after]) await one.close();
    });
    await after.receipt(before.inbox.lastMessage(number) as CodeMessage, "undeliverable");
    await after.flush();
    after.clock.advance(30_000);
    await after.flush();
    expect(sent).toEqual(expected);
  });

  it("reports a delivery to a number newly on the block list as blocked, not as spam (docs/contract.md#lists)", async () => {
    // "A number on the block list is `blocked_number` (retry: `rate_limited`), an address or device on it `spam_detected`."
    const { clock, verifier, released } = service({ conversion: "reported" });
    const message = { phone_number: number, purpose: "login" };
    expect((await verifier.deliver({ ...message, code: "123456" })).status).toBe("sent");
    clock.advance(minute);
    const after = released({ lists: { block: { numbers: [number] } } });
    const { status } = await after.verifier.deliver({ ...message, code: "654321" });
    expect(["invalid", "rate_limited"]).toContain(status);
  });

  it("keeps what a cap counted when its limit or window changes (docs/contract.md#every-window)", async () => {
    const daily = { limit: 10, window: 86_400 };
    const caps = [[{ limit: 3, window: 600 }, daily], [{ limit: 5, window: 1200 }, daily], [{ limit: 5, window: 86_400 }], [daily, { limit: 5, window: 600 }]];
    for (const perNumber of caps) {
      const { status, released } = service({ policy: { spam: noRules } });
      await each(5, () => status(number));
      const after = released({ policy: { spam: noRules, limits: { perNumber } } });
      expect(await after.status(number), JSON.stringify(perNumber)).toBe("rate_limited");
    }
    const { status, released } = service({ policy: { spam: noRules } });
    await each(5, () => status(number));
    const more = released({ policy: { spam: noRules, limits: { perNumber: [{ limit: 6, window: 600 }, daily] } } });
    expect([await more.status(number), await more.status(number)]).toEqual(["pending", "rate_limited"]);
  });

  it("allows a pending code at least one check, and at most as many as its length allows (docs/contract.md#guess-budget)", async () => {
    const { create, released } = service();
    const { authentication_uuid } = await create(number);
    const { verifier } = released({ policy: { codeLength: 8, limits: { perNumber: [{ limit: 1000, window: 86_400 }] } } });
    const checks = await each(3, async () => (await verifier.check({ authentication_uuid, check_code: "no" })).status);
    expect(checks).toEqual(["invalid", "rate_limited", "rate_limited"]);
  });

  it("enforces a spend ceiling under concurrency, in every hour, and when it is lowered or raised (docs/routing.md#spend-ceiling)", async () => {
    const sent: number[] = [];
    const clock = fixedClock(start);
    const sender = () =>
      router({ clock, routes: [{ name: "a", price: 0.1, sender: { send: async () => ({ outcome: "accepted", kept: sent.push(clock.now()) }) as const } }] });
    const of = (amount: number): Partial<VerifierOptions> => ({ sender: sender(), policy: { spam: noRules, limits: { spend: [{ amount, per: "hour" }] } } });
    const { status, released, verifier } = service({ clock, ...of(0.3) });
    await Promise.all(Array.from({ length: 40 }, (_, index) => status(far(index))));
    expect(sent).toHaveLength(3);
    await verifier.erase({ phone_number: far(0) });
    await verifier.unlock({ phone_number: far(1) });
    expect(await released(of(0.2)).status(far(50))).toBe("rate_limited");
    const raised = released(of(0.5));
    expect(tally(await each(5, (index) => raised.status(far(60 + index))))).toEqual({ pending: 2, rate_limited: 3 });
    for (let index = 0; index < 400; index++) {
      clock.advance(37_000);
      await raised.status(far(100 + index));
    }
    for (const from of sent) expect(sent.filter((at) => at >= from && at < from + hour).length).toBeLessThanOrEqual(5);
    expect(sent.length).toBeGreaterThan(15);
  });

  it("keeps the last valid list when its function returns something invalid, and logs it (docs/fraud.md#lists-and-challenges)", async () => {
    for (const broken of [undefined, null, [], "x", [number], new Map(), { numbers: number }, { numbers: new Set([number]) }, JSON.stringify({})]) {
      let list: unknown = { numbers: [number] };
      const { clock, status, log } = service({ lists: { block: () => list as List } });
      expect(await status(number)).toBe("blocked_number");
      list = broken;
      clock.advance(31_000);
      await status(far(1));
      await turns();
      expect(await status(number)).toBe("blocked_number");
      expect(log.lines).toHaveLength(1);
    }
  });

  it("rejects no one if ipInfo returns something other than a country code (docs/operations.md#when-something-is-down)", async () => {
    // "`ipInfo` …: nothing: these fail open, and are logged". Sources write countries in many ways.
    for (const country of ["fr", "France", "FRA", "", "unknown"]) {
      const { status } = service({ ipInfo: () => ({ country }), policy: { spam: { signals: { mode: "enforce" } } } });
      expect.soft(await status(number, { ip: address(1) }), country).toBe("pending");
    }
  });

  it("finds nothing of a number that was erased while its message was being sent (docs/privacy.md#erase)", async () => {
    let accept = () => {};
    const sent: CodeMessage[] = [];
    const sender = {
      send: (message: CodeMessage) => {
        sent.push(message);
        return new Promise<{ outcome: "accepted" }>((resolve) => {
          accept = () => resolve({ outcome: "accepted" });
        });
      },
    };
    const { clock, verifier, create } = service({ sender });
    const creating = create(number, { callback_url: "https://app.example/hook" }, { idempotencyKey: "once" });
    while (sent.length === 0) await turns(1);
    expect(await verifier.erase({ phone_number: number })).toMatchObject({ erased: 1 });
    accept();
    const { authentication_uuid } = await creating;
    clock.advance(minute);
    await turns();
    expect(await verifier.history({ phone_number: number })).toEqual([]);
    const check_code = (sent[0] as CodeMessage).code;
    await expect(verifier.check({ authentication_uuid, check_code })).rejects.toMatchObject({ code: "invalid_auth_uuid" });
    expect(await verifier.flush()).toEqual({ delivered: 0, failed: 0, dead: 0 });
  });

  it("moves a list of customers into the store with keys, policies and suspensions (docs/customers.md)", async () => {
    const [first, second] = [generateApiKey(), generateApiKey()];
    const policy: PolicyOverride = { codeLength: 8 };
    const list = [
      { customer_uuid: randomUUID(), keys: [first.key], suspended: true },
      { customer_uuid: randomUUID(), keys: [second.digest], policy, webhookSecrets: [`whsec_${Buffer.alloc(32, 1).toString("base64")}`] },
    ] as const;
    const { verifier, status, messages } = service({ customers: "store" });
    for (const one of list) await verifier.customers.create(one);
    for (const one of list) await expect(verifier.customers.create(one)).rejects.toMatchObject({ code: "bad_request" });
    expect(await status(far(1), { customer_uuid: list[0].customer_uuid })).toBe("account_invalid");
    expect(await status(far(2), { customer_uuid: list[1].customer_uuid })).toBe("pending");
    expect(messages.map(({ code }) => code.length)).toEqual([8]);
    expect(await verifier.webhookSecrets(list[1].customer_uuid)).toEqual(list[1].webhookSecrets);
  });
});

describe("options as users write them", () => {
  it("rejects options that are a promise or a Map, instead of ignoring their content (docs/errors.md#invalid_options)", async () => {
    // `lists: loadLists()` without `await`: nothing would be blocked, without any error.
    const wrong: Record<string, unknown>[] = [
      { policy: Promise.resolve({ codeLength: 8 }) },
      { policy: new Map([["codeLength", 8]]) },
      { policy: { limits: new Map([["perIp", [{ limit: 1, window: 60 }]]]) } },
      { policy: { spam: Promise.resolve({ range: { mode: "off" } }) } },
      { lists: Promise.resolve({ block: { numbers: [number] } }) },
      { message: Promise.resolve({ text: "My app: {code}" }) },
    ];
    for (const options of wrong) {
      const name = Object.keys(options)[0] as string;
      expect
        .soft(
          refusal(() => service(options)),
          name,
        )
        .toContain(name);
    }
    const { verifier } = service({ customers: "store" });
    const { customer_uuid } = await verifier.customers.create({ policy: { codeLength: 8 } });
    await verifier.customers.update({ customer_uuid, policy: odd(Promise.resolve({ codeLength: 9 })) }).catch(() => {});
    expect.soft((await verifier.customers.get({ customer_uuid })).policy).toEqual({ codeLength: 8 });
  });

  it("rejects a test number that is listed twice with different codes or treatments (docs/options.md, testNumbers)", () => {
    const code = { number: "+447700900123", code: "424242" };
    const contradictions: NonNullable<VerifierOptions["testNumbers"]>[] = [
      [code, { ...code, code: "111111" }],
      [code, "+447700900123"],
      [
        { ...code, number: "+4407700900123" },
        { ...code, outcome: "rejected" },
      ],
    ];
    for (const testNumbers of contradictions)
      expect
        .soft(
          refusal(() => service({ testNumbers })),
          JSON.stringify(testNumbers),
        )
        .toContain("testNumbers");
  });

  it("throws when a memory store is created with a `now` that is not a function (docs/testing.md, docs/stores.md)", () => {
    for (const now of [fixedClock(), 5, "now", Date.now()])
      expect
        .soft(
          refusal(() => memoryStore({ now: odd(now) })),
          String(now),
        )
        .toContain("now");
  });

  it("names the mistake in invalid options (docs/errors.md#invalid_options)", () => {
    const wrong: [string, Record<string, unknown>][] = [
      ["countries", { countries: "FR" }],
      ["countries", { countries: ["UK"] }],
      ["countries", { countries: ["FR "] }],
      ["secret.1", { secret: ["x".repeat(32), undefined] }],
      ["lifetime", { policy: { lifetime: "10m" } }],
      ["lifetime", { policy: { lifetime: 600_000 } }],
      ["retryCooldowns.1", { policy: { retryCooldowns: [30, "60"] } }],
      ["did you mean codeLength", { policy: { code_length: 6 } }],
      ["perNumber.0.window", { policy: { limits: { perNumber: [{ limit: 5, window: "1h" }] } } }],
      [
        "at most one cap for each window",
        {
          policy: {
            limits: {
              perDevice: [
                { limit: 5, window: 60 },
                { limit: 6, window: 60 },
              ],
            },
          },
        },
      ],
      ["guess budget", { policy: { limits: { perNumber: [{ limit: 5, window: 600 }] } } }],
      ["did you mean perIp", { policy: { limits: { perIP: [] } } }],
      ["needs to know what a message costs", { policy: { limits: { spend: [{ amount: 20, per: "day" }] } } }],
      ["range.mode", { policy: { spam: { range: { mode: "Shadow" } } } }],
      ["sendTimeout", { sendTimeout: 5000 }],
      ["blockedNumbers.0", { blockedNumbers: ["\ufeff+33612345678"] }],
      ["cidrs.0", { lists: { block: { cidrs: ["010.0.0.1"] } } }],
      ["testNumbers.0.code", { testNumbers: [{ number: "+447700900123", code: 424242 }] }],
      ["conversion", { conversion: "unknown" }],
      ["statistics", { statistics: null }],
    ];
    for (const [named, options] of wrong)
      expect
        .soft(
          refusal(() => service(options)),
          JSON.stringify(options),
        )
        .toContain(named);
  });

  it("treats undefined as omitted at every level (docs/options.md)", async () => {
    const none = undefined;
    const { status, messages } = service({
      ...{ pepper: none, customers: none, testNumbers: none, statistics: none, message: { text: none, domain: none } },
      lists: { block: none, safe: { numbers: none, cidrs: none, devices: none }, refresh: none },
      policy: { codeLength: none, limits: { perNumber: none, perIp: none }, spam: { range: { mode: none, seeds: none }, trust: none } },
    });
    expect(tally(await each(6, () => status(number, { ip: none, device_id: none })))).toEqual({ pending: 5, rate_limited: 1 });
    expect(messages[0]?.text).toMatch(/^Your verification code is \d{6}$/);
  });
});

describe("simulate", () => {
  const small: Scenario = {
    ...scenarios.range,
    visitsPerDay: 60,
    warmUpDays: 0,
    hours: 1,
    attack: { messages: 30, perHour: 60, from: "country", numbers: { kind: "ranges", country: "UZ", ranges: 1 } },
  };

  it("returns the same result for the same seed, also in parallel, and never calls your sender (docs/fraud.md#simulation)", async () => {
    const sender = {
      send: async () => {
        throw new Error("sent");
      },
    };
    const [one, other, third] = await Promise.all([simulate({}, small), simulate({ sender, customers: "store" }, small, { seed: 1 }), simulate({}, small)]);
    expect(other).toEqual(one);
    expect(third).toEqual(one);
    expect([one.attack?.out, one.faults]).toEqual([5, 0]);
  });

  it("rejects an invalid scenario, and does not report its goals as reached (docs/fraud.md#simulation)", async () => {
    const wrong: [string, Record<string, unknown>][] = [
      ["a misspelled field", { visitPerDay: 800 }],
      ["no number of visits", { visitsPerDay: undefined }],
      ["a misspelled goal", { goal: { refuse: 0.001 } }],
      ["an unknown strain", { strain: { kind: "low-conversion", factor: 0.1 } }],
      ["an attack from an unknown place", { attack: { ...small.attack, from: "datacenter" } }],
      ["a negative number of messages", { attack: { ...small.attack, messages: -5 } }],
    ];
    for (const [what, changed] of wrong) {
      const outcome = await simulate({}, odd({ ...small, ...changed })).then(
        ({ reached }) => (reached ? "reached" : "missed"),
        () => "rejected",
      );
      expect.soft(outcome, what).toBe("rejected");
    }
  });

  it("exits with 2 if the policy file holds no policy (docs/fraud.md#simulation)", async () => {
    const folder = await mkdtemp(join(tmpdir(), "policy-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, "policy.json");
    await writeFile(file, "[]");
    const args = ["--import", "tsx", "tools/simulate/command/command.ts", "--quick", "--volume", "1", "--policy", file, "bombing"];
    const code = await promisify(execFile)(process.execPath, args, { cwd: root }).then(
      () => 0,
      (error: { code: number }) => error.code,
    );
    expect(code).toBe(2);
  });
});
