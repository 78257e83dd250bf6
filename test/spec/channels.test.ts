import { describe, expect, it, vi } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { createVerifier, type Store } from "../../src/index.js";
import type { Channel, CodeMessage, SendOutcome, SmsSender } from "../../src/ports/sms-sender.js";
import { type FallbackOptions, type RouteOptions, router } from "../../src/routing/router.js";
import { createTestVerifier, fixedClock } from "../../src/testing/index.js";
import type { TestVerifierOptions } from "../../src/testing/test-verifier.js";

const mobile = "+33612345678";
const landline = "+33145678901";

type Answer = SendOutcome | ((message: CodeMessage) => SendOutcome);

/** A carrier that records its messages. `answer` may be changed. */
function carrier(channel: Channel = "sms", fields: Partial<SmsSender> = {}) {
  const sent: CodeMessage[] = [];
  const made: { sent: CodeMessage[]; answer: Answer; sender: SmsSender } = {
    sent,
    answer: { outcome: "accepted" },
    sender: {
      channel,
      receiptProviders: ["carrier"],
      ...(channel === "whatsapp" || channel === "telegram" ? { confirms: true } : {}),
      ...(channel === "voice" ? { callsFixedLines: (country: string | undefined) => country === "FR" } : {}),
      ...fields,
      async send(message: CodeMessage) {
        sent.push(message);
        return typeof made.answer === "function" ? made.answer(message) : made.answer;
      },
    },
  };
  return made;
}

/** One route for each name (wa, tg, sms, sms2, call, mute), in order of priority. */
function setUp(
  names: readonly string[] = ["wa", "sms"],
  fallback?: FallbackOptions | "none",
  more: TestVerifierOptions = {},
  routes: Partial<RouteOptions> = {},
) {
  const clock = fixedClock();
  const carriers = {
    wa: carrier("whatsapp"),
    tg: carrier("telegram"),
    sms: carrier(),
    sms2: carrier(),
    call: carrier("voice"),
    // As a sender with `receipts: false`.
    mute: carrier("whatsapp", { receiptProviders: undefined, confirms: undefined } as never),
  };
  const list = names.map((name, at): RouteOptions => ({ name, sender: carriers[name as keyof typeof carriers].sender, priority: at, price: 0.01, ...routes }));
  const set = createTestVerifier({
    clock,
    sender: router({ routes: list, clock, ...(fallback !== undefined && fallback !== "none" && { fallback }) }),
    countries: ["FR", "DE"],
    ...more,
  });
  const { verifier } = set;
  const create = async (channel?: Channel, number = mobile) => verifier.createAuthentication({ phone_number: number, channel });
  const ways = () =>
    Object.entries(carriers)
      .flatMap(([name, { sent }]) => sent.map(({ attempt }) => `${attempt} ${name}`))
      .sort();
  const explain = (id: string) => verifier.explain({ authentication_uuid: id });
  return { ...set, carriers, create, ways, explain };
}

const unreachable: SendOutcome = { outcome: "rejected", reason: "not on it", unreachable: true };
const seconds = (count: number) => count * 1000;

describe("channel: a preference (docs/contract.md#channel)", () => {
  it("routes of that channel go first, whatever their priority, and those of others follow if none takes the message", async () => {
    const set = setUp(["sms", "wa"]);
    expect(await set.create("whatsapp")).toMatchObject({ status: "pending", channel: "whatsapp" });
    set.carriers.wa.answer = { outcome: "rejected" };
    const second = await set.create("whatsapp");
    expect(second).toMatchObject({ status: "pending" });
    expect(second).not.toHaveProperty("channel");
    expect(set.ways()).toEqual(["1 sms", "1 wa", "1 wa"]);
  });

  it("with `voice` only a call carries the code: if no call can, none is sent", async () => {
    const set = setUp(["sms", "call"]);
    expect(await set.create("voice")).toMatchObject({ status: "pending", channel: "voice" });
    set.carriers.call.answer = { outcome: "rejected" };
    expect(await set.create("voice")).toMatchObject({ status: "pending", carrier_refused: true });
    expect(set.carriers.sms.sent).toEqual([]);
  });

  it("without `voice` no call is made, even if every message is rejected, unless the sender makes nothing but calls", async () => {
    const set = setUp(["call", "sms"]);
    set.carriers.sms.answer = { outcome: "rejected" };
    expect(await set.create()).toMatchObject({ carrier_refused: true });
    expect(set.ways()).toEqual(["1 sms"]);
    const calls = setUp(["call"]);
    await calls.create();
    expect(calls.ways()).toEqual(["1 call"]);
  });

  it("after a create by call, a retry without a channel is a call; other retries go to a route that was not used", async () => {
    const called = setUp(["sms", "call"]);
    const { authentication_uuid } = await called.create("voice");
    called.clock.advance(seconds(60));
    expect(await called.verifier.retry({ authentication_uuid })).toMatchObject({ status: "approved", channel: "voice" });
    called.clock.advance(seconds(60));
    expect(await called.verifier.retry({ authentication_uuid, channel: "sms" })).toMatchObject({ status: "approved" });
    expect(called.ways()).toEqual(["1 call", "2 call", "3 sms"]);
    const set = setUp();
    const wished = await set.create("whatsapp");
    set.clock.advance(seconds(30));
    await set.verifier.retry({ authentication_uuid: wished.authentication_uuid });
    expect(set.ways()).toEqual(["1 wa", "2 sms"]);
  });

  it.each(["telegram", "voice", "viber"] as const)("channel %s, which no sender has, is bad_request, and nothing is sent", async (channel) => {
    const set = setUp();
    const { authentication_uuid } = await set.create();
    const refused = { code: "bad_request", status: 400, message: expect.stringContaining("whatsapp, sms") };
    await expect(set.create(channel)).rejects.toMatchObject(refused);
    await expect(set.verifier.retry({ authentication_uuid, channel })).rejects.toMatchObject(refused);
    await expect(set.verifier.verifications.start({ phone_number: mobile, channel })).rejects.toMatchObject(refused);
    await expect(set.verifier.deliver({ phone_number: mobile, code: "123456", conversion: "reported", channel })).rejects.toMatchObject(refused);
    expect(set.ways()).toEqual(["1 wa"]);
  });

  it("an unknown channel is bad_request", async () => {
    const set = setUp();
    await expect(set.create("fax" as Channel)).rejects.toMatchObject({
      code: "bad_request",
      message: expect.stringContaining("channel must be sms, whatsapp"),
    });
  });

  it("is part of the request under an idempotency key", async () => {
    const set = setUp();
    const key = { idempotencyKey: "k" };
    await set.verifier.createAuthentication({ phone_number: mobile, channel: "whatsapp" }, key);
    await set.verifier.createAuthentication({ phone_number: mobile, channel: "whatsapp" }, key);
    await expect(set.verifier.createAuthentication({ phone_number: mobile, channel: "sms" }, key)).rejects.toMatchObject({ code: "bad_request" });
    expect(set.ways()).toEqual(["1 wa"]);
  });

  it("works for a start and a delivery as for a create", async () => {
    const set = setUp(["sms", "wa"], undefined, { limits: false });
    await set.verifier.verifications.start({ phone_number: mobile, channel: "whatsapp" });
    await set.verifier.deliver({ phone_number: mobile, code: "123456", conversion: "reported", channel: "whatsapp" });
    expect(set.ways()).toEqual(["1 wa", "1 wa"]);
  });

  it("needs no router: the channel of a single sender works too", async () => {
    const { sender } = carrier("telegram");
    const { verifier } = createTestVerifier({ sender });
    expect(await verifier.createAuthentication({ phone_number: mobile, channel: "telegram" })).toMatchObject({ channel: "telegram" });
    await expect(verifier.createAuthentication({ phone_number: mobile, channel: "sms" })).rejects.toMatchObject({ code: "bad_request" });
  });
});

describe("fixed lines (docs/contract.md#fixed-lines)", () => {
  it("are called in countries where a sender calls them, and get nothing but calls, whatever channel the request prefers", async () => {
    const set = setUp(["sms", "call"]);
    const created = await set.create(undefined, landline);
    expect(created).toMatchObject({ status: "pending", channel: "voice" });
    set.clock.advance(seconds(60));
    expect(await set.verifier.retry({ ...created, channel: "sms" })).toMatchObject({ status: "approved", channel: "voice" });
    await set.create("sms", landline);
    expect(set.ways()).toEqual(["1 call", "1 call", "2 call"]);
  });

  it("are invalid_line elsewhere: without calls, in another country, and on a route that calls mobile phones only", async () => {
    const refused = { code: "invalid_line" };
    await expect(setUp().create(undefined, landline)).rejects.toMatchObject(refused);
    await expect(setUp(["sms", "call"]).create(undefined, "+493012345678")).rejects.toMatchObject(refused);
    const list = [carrier("voice")].map(({ sender }): RouteOptions => ({ name: "call", sender, lines: ["Mobile"] }));
    const { verifier } = createTestVerifier({ sender: router({ routes: [...list, { name: "sms", sender: carrier().sender }] }) });
    await expect(verifier.createAuthentication({ phone_number: landline })).rejects.toMatchObject(refused);
  });

  it("a route for fixed lines alone calls no mobile phone", async () => {
    const call = carrier("voice");
    const sms = carrier();
    const routes: RouteOptions[] = [
      { name: "call", sender: call.sender, lines: ["FixedLine"] },
      { name: "sms", sender: sms.sender },
    ];
    const { verifier } = createTestVerifier({ sender: router({ routes }) });
    expect(await verifier.createAuthentication({ phone_number: mobile, channel: "voice" })).toMatchObject({ carrier_refused: true });
    expect(await verifier.createAuthentication({ phone_number: landline })).toMatchObject({ channel: "voice" });
    expect([call.sent.length, sms.sent.length]).toEqual([1, 0]);
  });
});

describe("calls (docs/contract.md#calls)", () => {
  it("have their own cool-down, 60 s after the last message of any kind, and use up a retry", async () => {
    const set = setUp(["sms", "call"]);
    const created = await set.create();
    set.clock.advance(seconds(59));
    expect(await set.verifier.retry({ ...created, channel: "voice" })).toMatchObject({
      status: "denied",
      next_retry_at: new Date(set.clock.now() + seconds(1)).toISOString(),
      remaining_retry: 4,
    });
    set.clock.advance(seconds(1));
    expect(await set.verifier.retry({ ...created, channel: "voice" })).toMatchObject({ status: "approved", channel: "voice", remaining_retry: 3 });
    set.clock.advance(seconds(60));
    expect(await set.verifier.retry({ ...created })).toMatchObject({ status: "approved", remaining_retry: 2 });
    expect(set.ways()).toEqual(["1 sms", "2 call", "3 sms"]);
  });

  it("next_retry_at is that of a retry without a channel, unless one with a channel is denied (docs/contract.md#next-retry)", async () => {
    const { verifier, clock, create } = setUp(["sms", "call"]);
    const { authentication_uuid } = await create();
    const retry = (channel?: Channel) => verifier.retry({ authentication_uuid, channel });
    const wait = ({ next_retry_at }: { readonly next_retry_at: string }) => clock.advance(Date.parse(next_retry_at) - clock.now());
    clock.advance(30_000);
    await retry();
    const denied = await retry("voice");
    expect(denied.status).toBe("denied");
    wait(denied);
    const called = await retry("voice");
    expect(called.status).toBe("approved");
    expect((await verifier.check({ authentication_uuid, check_code: "wrong" })).next_retry_at).toBe(called.next_retry_at);
    wait(called);
    expect((await retry()).status).toBe("approved");
  });

  it("callsPerNumber: up to 3 calls a day to a number, over all its authentications; an unlock resets the count", async () => {
    const set = setUp(["sms", "call"], undefined, { policy: { spam: { calls: { mode: "off" } } } });
    const day = async () => {
      const statuses: string[] = [];
      for (let at = 0; at < 4; at++) {
        statuses.push((await set.create("voice")).status);
        set.clock.advance(seconds(700));
      }
      return statuses;
    };
    expect(await day()).toEqual(["pending", "pending", "pending", "rate_limited"]);
    expect((await set.create()).status, "a message").toBe("pending");
    await set.verifier.unlock({ phone_number: mobile });
    expect(await day()).toEqual(["pending", "pending", "pending", "rate_limited"]);
  });

  it("callSpend: a ceiling on the cost of calls, which messages do not count toward", async () => {
    const set = setUp(["sms", "call"], undefined, { policy: { limits: { callSpend: [{ amount: 0.02, per: "day" }] } } });
    const to = (at: number) => `+336123456${70 + at}`;
    expect((await set.create("voice", to(0))).status).toBe("pending");
    expect((await set.create(undefined, to(1))).status).toBe("pending");
    expect((await set.create("voice", to(2))).status).toBe("pending");
    const refused = await set.create("voice", to(3));
    expect(refused.status).toBe("rate_limited");
    await set.flush();
    expect((await set.explain(refused.authentication_uuid)).decisions).toMatchObject([{ rule: "callSpend 0.02/day", threshold: 0.02 }]);
    expect((await set.create(undefined, to(4))).status).toBe("pending");
  });

  it("calls are blocked at 10 open ones to a country; a right code gives its own calls back and two more (docs/contract.md#spam-calls)", async () => {
    const off = { mode: "off" } as const;
    const spam = { range: off, crowd: off, country: off, newCountries: off, address: off, strangeNetwork: off };
    const set = setUp(["sms", "call"], undefined, { policy: { spam }, code: "123456" });
    const to = (at: number) => `+3361${1000000 + at}`;
    let at = 0;
    const calls = async (count: number) => {
      const results = await Promise.all(Array.from({ length: count }, () => set.create("voice", to(at++))));
      return results.filter(({ status }) => status === "pending").length;
    };
    expect(await calls(15)).toBe(10);
    expect((await set.create(undefined, to(at++))).status, "messages go on").toBe("pending");
    const refused = await set.create("voice", to(at++));
    await set.flush();
    expect((await set.explain(refused.authentication_uuid)).decisions).toMatchObject([{ rule: "calls", value: 10, threshold: 10 }]);
    const [first] = set.carriers.call.sent;
    await set.verifier.check({ authentication_uuid: first!.authentication_uuid, check_code: "123456" });
    expect(await calls(5)).toBe(3);
  });
});

describe("not on a channel (docs/contract.md#unreachable)", () => {
  it("reported at once: the same request continues with the next route, and for seven days routes of the channel go last", async () => {
    const set = setUp(["tg", "sms"], undefined, { limits: false });
    set.carriers.tg.answer = unreachable;
    const first = await set.create();
    expect(first).toMatchObject({ status: "pending" });
    expect(first).not.toHaveProperty("channel");
    await set.flush();
    await set.create();
    set.clock.advance(seconds(7 * 86_400 - 1));
    await set.create();
    expect(set.ways()).toEqual(["1 sms", "1 sms", "1 sms", "1 tg"]);
    set.clock.advance(seconds(2));
    await set.create();
    expect(set.carriers.tg.sent).toHaveLength(2);
  });

  it("reported by a receipt: a preference for the channel overrides it, and an erasure removes it", async () => {
    const set = setUp(["wa", "sms"], undefined, { limits: false });
    await set.create();
    await set.receipt(mobile, "undeliverable", { unreachable: true, error: "131026" });
    await set.flush();
    await set.create();
    expect(set.ways()).toEqual(["1 sms", "1 wa"]);
    await set.create("whatsapp");
    expect(set.ways()).toEqual(["1 sms", "1 wa", "1 wa"]);
    await set.verifier.erase({ phone_number: mobile });
    await set.create();
    expect(set.ways()).toEqual(["1 sms", "1 wa", "1 wa", "1 wa"]);
  });

  it("applies to its channel, number and customer only", async () => {
    const customer_uuid = "11111111-2222-3333-4444-555555555555";
    const set = setUp(["tg", "wa", "sms"], undefined, { limits: false, customers: [{ customer_uuid, keys: ["k".repeat(40)] }] });
    set.carriers.tg.answer = unreachable;
    await set.create();
    await set.flush();
    await set.create();
    await set.create(undefined, "+33612345679");
    expect(set.ways()).toEqual(["1 tg", "1 tg", "1 wa", "1 wa", "1 wa"]);
    await set.verifier.createAuthentication({ customer_uuid, phone_number: mobile });
    expect(set.carriers.tg.sent, "another customer tries the channel").toHaveLength(3);
  });

  it("does not affect the health of the route", async () => {
    const tg = carrier("telegram");
    tg.answer = unreachable;
    const made = router({
      routes: [
        { name: "tg", sender: tg.sender, priority: 0 },
        { name: "sms", sender: carrier().sender },
      ],
    });
    const set = createTestVerifier({ sender: made, limits: false });
    for (let at = 0; at < 60; at++) await set.verifier.createAuthentication({ phone_number: `+336123456${10 + at}` });
    expect(tg.sent).toHaveLength(60);
    expect(made.health().find(({ route }) => route === "tg")).toMatchObject({ breaker: "closed", handOver: { all: 0 } });
  });

  it("reported by a receipt in another process, does not affect the health of the route, conversion included", async () => {
    const clock = fixedClock();
    const store = memoryStore({ now: clock.now });
    const carriers = [carrier("whatsapp"), carrier()] as const;
    const process = () => {
      const list = (["wa", "sms"] as const).map((name, at): RouteOptions => ({ name, sender: carriers[at]!.sender, priority: at }));
      const made = router({ routes: list, clock, store });
      return { made, set: createTestVerifier({ clock, store, sender: made, limits: false, countries: ["FR"] }) };
    };
    const [sending, receiving] = [process(), process()];
    const exchanged = async () => {
      clock.advance(3_000);
      await new Promise((resolve) => setImmediate(resolve));
    };
    for (let at = 0; at < 80; at++) {
      await sending.set.verifier.createAuthentication({ phone_number: `+336123456${10 + at}` });
      await exchanged();
      await receiving.set.receipt(carriers[0].sent.at(-1)!, "undeliverable", { unreachable: true });
      await exchanged();
    }
    clock.advance(600_000);
    await sending.set.verifier.createAuthentication({ phone_number: "+33698765432" });
    await exchanged();
    expect(carriers[0].sent).toHaveLength(81);
    expect(carriers[1].sent).toHaveLength(0);
    for (const { made } of [sending, receiving]) {
      const health = made.health().find(({ route }) => route === "wa");
      expect(health).toMatchObject({ breaker: "closed", receipts: { all: 0 } });
      expect(health?.conversion.all).toBeLessThanOrEqual(1);
    }
  });
});

describe("fallback (docs/contract.md#fallback)", () => {
  it.each(["wa", "sms"] as const)(
    "after 20 s without delivery and without the right code, a new code is sent on another route, and both are live: %s",
    async (entered) => {
      const set = setUp(["wa", "sms"], {});
      const { authentication_uuid } = await set.create();
      expect(set.carriers.wa.sent[0]?.replaced_at).toBe(set.clock.now() + seconds(20));
      set.clock.advance(seconds(20) - 1);
      await set.flush();
      expect(set.ways()).toEqual(["1 wa"]);
      set.clock.advance(1);
      await set.flush();
      expect(set.ways()).toEqual(["1 wa", "2 sms"]);
      const [wa, sms] = [set.carriers.wa.sent[0]!, set.carriers.sms.sent[0]!];
      expect(sms.fallback).toBe(true);
      expect(sms.code).not.toBe(wa.code);
      const told = await set.explain(authentication_uuid);
      expect(told.sends).toMatchObject([
        { attempt: 1, route: "wa", channel: "whatsapp" },
        { attempt: 2, route: "sms", fallback: true },
      ]);
      expect(told.decisions[1]).toMatchObject({ rule: "fallback", mode: "route", reason: "wa silent for 20 s", attempt: 1 });
      expect(await set.verifier.check({ authentication_uuid, check_code: "000000" })).toMatchObject({ remaining_checks: 4 });
      expect(await set.verifier.check({ authentication_uuid, check_code: { wa, sms }[entered].code })).toMatchObject({ status: "valid" });
    },
  );

  it("a right code at 19 s ends it", async () => {
    const set = setUp(["wa", "sms"], {});
    const { authentication_uuid } = await set.create();
    set.clock.advance(seconds(19));
    await set.verifier.check({ authentication_uuid, check_code: set.inbox.codeFor(mobile) });
    set.clock.advance(seconds(60));
    await set.flush();
    expect(set.ways()).toEqual(["1 wa"]);
  });

  it.each(["delivered"] as const)("a receipt with `%s` ends it, one with `in_transit` does not", async (status) => {
    const set = setUp(["wa", "sms"], {});
    await set.create();
    await set.receipt(mobile, "in_transit");
    await set.receipt(mobile, status);
    set.clock.advance(seconds(60));
    await set.flush();
    expect(set.ways()).toEqual(["1 wa"]);
    const other = setUp(["wa", "sms"], {});
    await other.create();
    await other.receipt(mobile, "in_transit");
    other.clock.advance(seconds(20));
    await other.flush();
    expect(other.ways()).toEqual(["1 wa", "2 sms"]);
  });

  it("a receipt with `undeliverable` causes it at once, also from one SMS route to another, and only once if repeated", async () => {
    for (const names of [
      ["wa", "sms"],
      ["sms", "sms2"],
    ]) {
      const set = setUp(names, { on: ["undeliverable"] });
      await set.create();
      const message = set.inbox.lastMessage(mobile)!;
      await set.receipt(message, "undeliverable");
      await set.receipt(message, "undeliverable");
      await set.flush();
      await set.receipt(message, "delivered");
      await set.flush();
      expect(set.ways()).toEqual([`1 ${names[0]}`, `2 ${names[1]}`]);
    }
  });

  it("with `unreachable` alone, only a receipt that the number is not on the channel causes it", async () => {
    const set = setUp(["wa", "sms"], { on: ["unreachable"] });
    await set.create();
    await set.receipt(mobile, "undeliverable");
    set.clock.advance(seconds(60));
    await set.flush();
    expect(set.ways()).toEqual(["1 wa"]);
    const other = setUp(["wa", "sms"], { on: ["unreachable"] });
    await other.create();
    await other.receipt(mobile, "undeliverable", { unreachable: true });
    await other.flush();
    expect(other.ways()).toEqual(["1 wa", "2 sms"]);
  });

  it("an SMS, a call or a message whose sender has no receipts causes none", async () => {
    const mute = setUp(["mute", "tg", "sms"], {});
    await mute.create();
    mute.clock.advance(seconds(300));
    await mute.flush();
    expect(mute.ways()).toEqual(["1 mute"]);
    const set = setUp(["sms", "wa", "call"], {});
    await set.create();
    await set.create("voice", "+33612345679");
    set.clock.advance(seconds(300));
    await set.flush();
    expect(set.ways()).toEqual(["1 call", "1 sms"]);
  });

  it("only the newest message falls back: after a retry, a receipt of the older message sends nothing", async () => {
    const set = setUp(["wa", "sms"], {});
    const { authentication_uuid } = await set.create();
    const [first] = set.inbox.messages;
    set.clock.advance(seconds(30));
    await set.verifier.retry({ authentication_uuid });
    await set.receipt(first!, "undeliverable");
    set.clock.advance(seconds(60));
    await set.flush();
    expect(set.ways()).toEqual(["1 wa", "2 sms"]);
  });

  it("at most `most` times, each time on a route that no earlier message used", async () => {
    const once = setUp(["wa", "tg", "sms"], {});
    await once.create();
    for (let at = 0; at < 5; at++) {
      once.clock.advance(seconds(20));
      await once.flush();
    }
    expect(once.ways()).toEqual(["1 wa", "2 tg"]);
    const twice = setUp(["wa", "tg", "sms"], { most: 2 });
    await twice.create();
    for (let at = 0; at < 5; at++) {
      twice.clock.advance(seconds(20));
      await twice.flush();
    }
    expect(twice.ways()).toEqual(["1 wa", "2 tg", "3 sms"]);
  });

  it("if another route took the message, that route counts, not the planned one", async () => {
    const moved = setUp(["wa", "sms", "sms2"], {});
    moved.carriers.wa.answer = { outcome: "rejected" };
    await moved.create();
    moved.clock.advance(seconds(60));
    await moved.flush();
    expect(moved.ways(), "an SMS is never silent").toEqual(["1 sms", "1 wa"]);
    const back = setUp(["sms", "wa", "sms2"], {});
    back.carriers.sms.answer = { outcome: "rejected" };
    await back.create();
    back.clock.advance(seconds(20));
    await back.flush();
    expect(back.ways(), "the SMS route has taken nothing yet").toEqual(["1 sms", "1 wa", "2 sms", "2 sms2"]);
  });

  it("no call follows a message, unless its route says so", async () => {
    const set = setUp(["wa", "sms", "call"], { most: 3 });
    set.carriers.sms.answer = { outcome: "rejected" };
    await set.create();
    set.clock.advance(seconds(20));
    await set.flush();
    expect(set.ways()).toEqual(["1 wa", "2 sms"].sort());
    const told = setUp(["wa", "call"], {}, {}, { fallback: true });
    await told.create();
    told.clock.advance(seconds(20));
    await told.flush();
    expect(told.ways()).toEqual(["1 wa", "2 call"]);
  });

  it("a verification that has expired, was canceled or has used up its checks has none", async () => {
    const set = setUp(["wa", "sms"], { after: 600 }, { limits: false });
    const used = await set.create();
    for (let at = 0; at < 5; at++) await set.verifier.check({ ...used, check_code: `00000${at}` });
    await set.create(undefined, "+33612345679");
    await set.verifier.verifications.start({ phone_number: "+33612345670" });
    await set.verifier.verifications.cancel({ phone_number: "+33612345670" });
    set.clock.advance(seconds(601));
    await set.flush();
    expect(set.ways()).toEqual(["1 wa", "1 wa", "1 wa"]);
  });
});

describe("what a fallback costs (docs/contract.md#fallback-costs)", () => {
  it("uses up no retry; next_retry_at counts from it", async () => {
    const set = setUp(["wa", "sms"], {});
    const created = await set.create();
    set.clock.advance(seconds(20));
    await set.flush();
    expect(await set.verifier.retry(created)).toMatchObject({
      status: "denied",
      remaining_retry: 4,
      next_retry_at: new Date(set.clock.now() + seconds(30)).toISOString(),
    });
    set.clock.advance(seconds(30));
    expect(await set.verifier.retry(created)).toMatchObject({ status: "approved", remaining_retry: 3 });
  });

  it("counts in the caps: a full cap or ceiling blocks it, it is not tried again, and explain has the reason", async () => {
    const set = setUp(["wa", "sms"], {}, { policy: { limits: { spend: [{ amount: 0.02, per: "day" }] } } });
    const { authentication_uuid } = await set.create();
    await set.create(undefined, "+33612345679");
    set.clock.advance(seconds(20));
    await set.flush();
    set.clock.advance(seconds(120));
    await set.flush();
    expect(set.ways()).toEqual(["1 wa", "1 wa"]);
    const { decisions, left } = await set.explain(authentication_uuid);
    expect(decisions).toContainEqual(expect.objectContaining({ rule: "spend 0.02/day", mode: "enforce" }));
    expect(left.retries).toBe(4);
    const perNumber = setUp(["wa", "sms"], {}, { policy: { limits: { perNumber: [{ limit: 1, window: 86_400 }] } } });
    await perNumber.create();
    perNumber.clock.advance(seconds(20));
    await perNumber.flush();
    expect(perNumber.ways()).toEqual(["1 wa"]);
  });

  it("spam rules and the caller's own rules decide on it as on a retry", async () => {
    const blocked = setUp(
      ["wa", "sms"],
      {},
      { spamRules: [{ name: "mine", judge: ({ attempt }) => (attempt > 1 ? { reason: "one is enough" } : undefined) }] },
    );
    await blocked.create();
    blocked.clock.advance(seconds(20));
    await blocked.flush();
    expect(blocked.ways()).toEqual(["1 wa"]);
    const seeds: readonly [number, number, number] = [1, 1, 1];
    const cell = setUp(["wa", "sms"], {}, { policy: { spam: { range: { seeds } } } });
    const { authentication_uuid } = await cell.create();
    cell.clock.advance(seconds(20));
    await cell.flush();
    expect(cell.ways()).toEqual(["1 wa"]);
    expect((await cell.explain(authentication_uuid)).decisions).toContainEqual(expect.objectContaining({ rule: "range 4" }));
  });

  it("is not tried again if its carrier rejects it, and the first code stays live", async () => {
    const set = setUp(["wa", "sms"], { most: 3 });
    set.carriers.sms.answer = { outcome: "rejected", reason: "no credit" };
    const { authentication_uuid } = await set.create();
    set.clock.advance(seconds(20));
    await set.flush();
    set.clock.advance(seconds(60));
    await set.flush();
    expect(set.ways()).toEqual(["1 wa", "2 sms"]);
    const told = await set.explain(authentication_uuid);
    expect(told).toMatchObject({ left: { retries: 4 } });
    expect(await set.verifier.check({ authentication_uuid, check_code: set.carriers.wa.sent[0]!.code })).toMatchObject({ status: "valid" });
  });
});

describe("fallback of deliveries (docs/contract.md#fallback-deliveries)", () => {
  const code = "K7P-904";
  const delivery = { phone_number: mobile, code, text: `Use ${code} to sign in to Acme`, conversion: "reported" as const };
  /** Whether the delivery's record holds an encrypted message. */
  const kept = async (store: Store, customer: string, id = "") => {
    const { data } = (await store.find(customer, `${id.slice(0, -8)}00000000`)) ?? never();
    return JSON.parse(data).K !== undefined;
  };
  const never = (): never => {
    throw new Error("there is no record");
  };

  it("without `keepCode`, only at once when the carrier rejects the message, and the code is not stored", async () => {
    const store = memoryStore();
    const set = setUp(["wa", "sms"], {}, { store });
    const commits = vi.spyOn(store, "commit");
    set.carriers.wa.answer = { outcome: "rejected" };
    await set.verifier.deliver(delivery);
    expect(set.ways()).toEqual(["1 sms", "1 wa"]);
    set.carriers.wa.answer = { outcome: "accepted" };
    await set.verifier.deliver({ ...delivery, phone_number: "+33612345679" });
    set.clock.advance(seconds(120));
    await set.flush();
    expect(set.ways()).toEqual(["1 sms", "1 wa", "1 wa"]);
    expect(JSON.stringify(commits.mock.calls)).not.toContain('\\"K\\"');
  });

  it("with `keepCode`, later too, with the same code and text, which are stored encrypted until then", async () => {
    const store = memoryStore();
    const set = setUp(["wa", "sms"], {}, { keepCode: true, store });
    const commits = vi.spyOn(store, "commit");
    const { delivery_uuid } = await set.verifier.deliver(delivery);
    expect(JSON.stringify(commits.mock.calls)).not.toMatch(/K7P.?904|sign in/);
    set.clock.advance(seconds(20));
    await set.flush();
    expect(set.carriers.sms.sent).toMatchObject([{ code, text: delivery.text, attempt: 2, fallback: true }]);
    expect(await kept(store, set.customer_uuid, delivery_uuid)).toBe(false);
    expect(await set.verifier.confirm({ phone_number: mobile })).toMatchObject({ status: "confirmed" });
    expect(JSON.stringify(commits.mock.calls)).not.toMatch(/K7P.?904|sign in/);
  });

  it("a receipt with `undeliverable` causes it too; a code without the caller's text is sent in our text", async () => {
    const set = setUp(["sms", "sms2"], { on: ["undeliverable"] }, { keepCode: true });
    await set.verifier.deliver({ phone_number: mobile, code, conversion: "reported" });
    await set.receipt(mobile, "undeliverable");
    await set.flush();
    expect(set.carriers.sms2.sent).toMatchObject([{ code, text: `Your verification code is ${code}` }]);
  });

  it.each([
    ["delivered", async (set: ReturnType<typeof setUp>) => set.receipt(mobile, "delivered")],
    ["confirmed", async (set: ReturnType<typeof setUp>) => void (await set.verifier.confirm({ phone_number: mobile }))],
    ["erased", async (set: ReturnType<typeof setUp>) => void (await set.verifier.erase({ phone_number: mobile }))],
    ["after + 60 s old", async (set: ReturnType<typeof setUp>) => void set.clock.advance(seconds(80))],
  ])("the stored code is deleted once the delivery is %s", async (what, happens) => {
    const store = memoryStore();
    const set = setUp(["sms", "sms2"], { on: ["undeliverable"] }, { keepCode: true, store });
    const { delivery_uuid } = await set.verifier.deliver({ phone_number: mobile, code, conversion: "reported" });
    expect(await kept(store, set.customer_uuid, delivery_uuid)).toBe(true);
    await happens(set);
    await set.flush();
    if (what !== "erased") expect(await kept(store, set.customer_uuid, delivery_uuid)).toBe(false);
    set.clock.advance(seconds(1));
    await set.receipt(mobile, "undeliverable");
    await set.flush();
    expect(set.ways()).toEqual(["1 sms"]);
  });

  it("a notice, which has no code, does not fall back later", async () => {
    const set = setUp(["sms", "sms2"], { on: ["undeliverable"] }, { keepCode: true });
    await set.verifier.deliver({ phone_number: mobile, text: "Your password was changed.", conversion: "reported" });
    await set.receipt(mobile, "undeliverable");
    await set.flush();
    expect(set.ways()).toEqual(["1 sms"]);
  });
});

describe("who sends a fallback (docs/contract.md#fallback-worker)", () => {
  it("needs no extra write: its time is in the commit that writes the message", async () => {
    const store = memoryStore();
    const set = setUp(["wa", "sms"], {}, { store });
    const commits = vi.spyOn(store, "commit");
    await set.create();
    expect(commits).toHaveBeenCalledTimes(1);
    expect(commits.mock.calls[0]![0].record?.wakeAt).toBe(set.clock.now() + seconds(20));
  });

  it("of ten verifiers over one store, exactly one sends it", async () => {
    const store = memoryStore();
    const clock = fixedClock();
    const carriers = { wa: carrier("whatsapp"), sms: carrier() };
    const list = Object.entries(carriers).map(([name, { sender }], priority): RouteOptions => ({ name, sender, priority }));
    const sets = Array.from({ length: 10 }, () => createTestVerifier({ store, clock, sender: router({ routes: list, clock, fallback: {} }) }));
    await sets[0]!.verifier.createAuthentication({ phone_number: mobile });
    clock.advance(seconds(20));
    await Promise.all(sets.map((set) => set.flush()));
    expect(carriers.sms.sent).toHaveLength(1);
  });

  it("a verifier with a worker sends it as soon as a receipt causes it", async () => {
    const set = setUp(["wa", "sms"], { on: ["undeliverable"] }, { callbacks: { worker: true } });
    await set.create();
    await set.receipt(mobile, "undeliverable");
    await vi.waitFor(() => expect(set.ways()).toEqual(["1 wa", "2 sms"]));
    await set.close();
  });

  it("is not sent for a suspended customer", async () => {
    const customer_uuid = "11111111-2222-3333-4444-555555555555";
    let suspended = false;
    const customers = { find: () => ({ customer_uuid, suspended }), findByKeyDigest: () => undefined };
    const clock = fixedClock();
    const carriers = [carrier("whatsapp"), carrier()];
    const routes = carriers.map(({ sender }, at): RouteOptions => ({ name: `r${at}`, sender, priority: at }));
    const verifier = createVerifier({
      store: memoryStore({ now: clock.now }),
      sender: router({ routes, clock, fallback: { worker: "elsewhere" } }),
      secret: "s".repeat(32),
      countries: ["FR"],
      customers,
      clock,
      receipts: { baseUrl: "https://a.example", sources: [{ provider: "carrier", read: async () => ({ receipts: [] }) }] },
      callbacks: { worker: false },
    });
    await verifier.createAuthentication({ customer_uuid, phone_number: mobile });
    suspended = true;
    clock.advance(seconds(20));
    await verifier.flush();
    suspended = false;
    clock.advance(seconds(60));
    await verifier.flush();
    expect(carriers.map(({ sent }) => sent.length)).toEqual([1, 0]);
  });

  it("creating the verifier fails without receipts, and without a worker", () => {
    const sender = router({
      routes: [
        { name: "wa", sender: carrier("whatsapp").sender },
        { name: "sms", sender: carrier().sender },
      ],
      fallback: {},
    });
    const options = { store: memoryStore(), sender, secret: "s".repeat(32), countries: ["FR" as const] };
    expect(() => createVerifier(options)).toThrow("sender has a fallback, which needs receipts: set receipts");
    const receipts = { baseUrl: "https://a.example", sources: [{ provider: "carrier", read: async () => ({ receipts: [] }) }] };
    expect(() => createVerifier({ ...options, receipts, callbacks: { worker: false } })).toThrow("callbacks.worker is false, and the sender has a fallback");
  });

  it("a sender whose receipts reach settleReceipts needs no receipts option, also in a router", async () => {
    const own = () => ({ ...carrier("sms", noReceipts).sender, takesReceipts: true });
    const routes = ["a", "b"].map((name): RouteOptions => ({ name, sender: own() }));
    const sender = router({ routes, fallback: { on: ["undeliverable"] } });
    const verifier = createVerifier({ store: memoryStore(), sender, secret: "s".repeat(32), countries: ["FR"] });
    await verifier.close();
  });

  const routes: readonly RouteOptions[] = [
    { name: "wa", sender: carrier("whatsapp").sender },
    { name: "sms", sender: carrier().sender },
  ];
  const noReceipts = { receiptProviders: undefined } as never;

  it.each<[what: string, routes: readonly RouteOptions[], fallback: FallbackOptions, fault: string]>([
    ["a second route", routes.slice(0, 1), {}, "fallback needs a second route"],
    ["a second route that takes it", routes.map((route) => ({ ...route, fallback: false })), { on: ["undeliverable"] }, "needs a second route"],
    [
      "receipts",
      [
        { name: "a", sender: { send: routes[0]!.sender.send } },
        { name: "b", sender: carrier("sms", noReceipts).sender },
      ],
      {},
      "needs receipts",
    ],
    ["a route that confirms, if silence counts", [routes[1]!, { name: "b", sender: carrier().sender }], {}, 'fallback.on has "silent"'],
    ["a sound time", routes, { after: 20_000 }, "fallback.after must be 5 to 600 seconds"],
    ["a reason", routes, { on: [] }, "fallback.on must not be empty"],
    ["a sound number", routes, { most: 4 }, "fallback.most must be 1 to 3"],
  ])("creating the router fails without %s", (_what, list, fallback, fault) => {
    expect(() => router({ routes: list, fallback })).toThrow(fault);
  });
});

describe("where the channel is shown (docs/contract.md#channel-shown)", () => {
  it("in explain, statistics, events, metrics and callbacks; absent for an SMS, except in metrics", async () => {
    const events: unknown[] = [];
    const set = setUp(["wa", "sms"], {}, { onEvent: (event) => void events.push(event) });
    const { authentication_uuid: id } = await set.verifier.createAuthentication({ phone_number: mobile, callback_url: "https://a.example/" });
    set.clock.advance(seconds(21));
    await set.flush();
    await set.receipt(set.carriers.sms.sent[0]!, "delivered");
    await set.verifier.check({ authentication_uuid: id, check_code: set.carriers.wa.sent[0]!.code });
    await set.flush();

    expect((await set.explain(id)).sends.map(({ attempt, channel }) => [attempt, channel])).toEqual([
      [1, "whatsapp"],
      [2, undefined],
    ]);
    const { messages } = await set.verifier.stats({ from: new Date(set.clock.now() - 3_600_000), to: new Date(set.clock.now()) });
    expect(messages.map(({ route, channel, sends, verified }) => [route, channel, sends, verified])).toEqual(
      expect.arrayContaining([
        ["wa", "whatsapp", 1, 1],
        ["sms", undefined, 1, 0],
      ]),
    );
    expect(events).toContainEqual(expect.objectContaining({ attempt: 1, route: "wa", channel: "whatsapp" }));
    expect(events.filter((event) => (event as { attempt?: number }).attempt === 2).every((event) => !Object.hasOwn(event as object, "channel"))).toBe(true);
    expect(set.verifier.metrics()).toContain('phoneproof_messages_total{country="FR",route="wa",channel="whatsapp",outcome="accepted"} 1\n');
    expect(set.verifier.metrics()).toContain('phoneproof_messages_total{country="FR",route="sms",channel="sms",outcome="accepted"} 1\n');
    const posted = set.callbacks.map(({ event }) => event.data);
    expect(posted.filter(({ channel }) => channel === "whatsapp").map(({ attempt }) => attempt)).toEqual([1]);
    expect(posted.find(({ attempt }) => attempt === 2)).not.toHaveProperty("channel");
  });
});
