import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { defaultSpamPolicy } from "../../src/domain/spam-policy.js";
import type { CodeMessage, ConfirmRequest, DeliverRequest, Store, VerifierEvent } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { inbox, numberOf, onePerTenMinutes, setUp } from "../support/verifier.js";

const number = numberOf(1);
const hour = 3_600_000;
const day = 24 * hour;

type Options = NonNullable<Parameters<typeof setUp>[0]>;

/** A verifier without customers, and its calls. */
function deliveries(options: Options = {}) {
  const events: VerifierEvent[] = [];
  const set = setUp({ customers: undefined, conversion: "reported", onEvent: (event) => void events.push(event), ...options } as Options);
  const { verifier } = set;
  let code = 100_000;
  return {
    ...set,
    events,
    deliver: (fields: Partial<DeliverRequest> = {}) => verifier.deliver({ phone_number: number, code: String(++code), ...fields } as DeliverRequest),
    confirm: (fields: Partial<ConfirmRequest> = {}) => verifier.confirm({ phone_number: number, ...fields } as ConfirmRequest),
  };
}

/** A sender with prices, for a spend ceiling. */
const priced = (box = inbox()) => ({ box, sender: router({ routes: [{ name: "main", sender: box, price: 0.01 }] }) });

const ceiling = { limits: { spend: [{ amount: 1_000_000, per: "day" }] } } as const;

describe("deliver", () => {
  it("deliver: sends the code of another server, which check, retry and verifications do not find (docs/contract.md#deliver)", async () => {
    const set = deliveries();
    const sent = await set.deliver({ code: "482913", purpose: "mfa", correlation_id: "user-7" });
    expect(sent).toEqual({ status: "sent", delivery_uuid: expect.any(String), phone_number: number });
    expect(set.box.messages).toMatchObject([{ code: "482913", text: "Your verification code is 482913", to: number, attempt: 1 }]);
    const authentication_uuid = sent.delivery_uuid as string;
    const { verifier } = set;
    await expect(verifier.check({ authentication_uuid, check_code: "482913" })).rejects.toMatchObject({ code: "invalid_auth_uuid" });
    await expect(verifier.retry({ authentication_uuid })).rejects.toMatchObject({ code: "invalid_auth_uuid" });
    expect(await verifier.verifications.check({ phone_number: number, check_code: "482913" })).toEqual({ status: "not_found" });
    expect(await verifier.verifications.get({ authentication_uuid })).toBeUndefined();
    expect(await verifier.verifications.cancel({ authentication_uuid })).toBeUndefined();
    const explained = { authentication_uuid, purpose: "mfa", correlation_id: "user-7", left: { checks: 0, retries: 0 }, validated: false };
    expect(await verifier.explain({ authentication_uuid })).toMatchObject(explained);
    expect(await verifier.history({ phone_number: number })).toMatchObject([explained]);
    expect(await verifier.erase({ phone_number: number })).toMatchObject({ erased: 1 });
    expect(await set.confirm()).toEqual({ status: "not_found" });
  });

  it("deliver: stores neither the code nor the number in clear (docs/contract.md#deliver)", async () => {
    const written: string[] = [];
    const own = memoryStore({ name: "deliveries-written" });
    const store = new Proxy(own, {
      get: (_target, name: keyof Store) =>
        name === "commit"
          ? (change: Parameters<Store["commit"]>[0]) => {
              written.push(JSON.stringify(change));
              return own.commit(change);
            }
          : (own[name] as () => void)?.bind?.(own),
    });
    const set = deliveries({ store });
    await set.deliver({ code: "482913", text: "Code 482913 for you" });
    expect(written.join()).not.toContain("482913");
    expect(written.join()).not.toContain(number.slice(3, -2));
  });

  it("deliver: messages within the lifetime are attempts of one delivery, up to five, without a cool-down (docs/contract.md#deliver)", async () => {
    const set = deliveries({ policy: { maxGuessOdds: 1, limits: { perNumber: [{ limit: 20, window: 600 }] } } });
    const first = await set.deliver();
    for (let attempt = 2; attempt <= 5; attempt++) expect((await set.deliver()).delivery_uuid).toBe(first.delivery_uuid);
    expect(set.box.messages.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5]);
    expect((await set.deliver()).delivery_uuid).not.toBe(first.delivery_uuid);
    set.clock.advance(600_000);
    await set.deliver();
    expect(set.box.messages.at(-1)?.attempt).toBe(1);
  });

  it("deliver: each message carries the end of its own code (docs/contract.md#message-end)", async () => {
    const set = deliveries();
    await set.deliver({ expires_in: 300 });
    set.clock.advance(200_000);
    await set.deliver({ expires_in: 300 });
    expect(set.box.messages.map(({ expires_at, attempt }) => [attempt, expires_at - set.clock.now()])).toEqual([
      [1, 100_000],
      [2, 300_000],
    ]);
  });

  it("deliver: caps and the caller's own rules apply, and both rejections have the same sentence (docs/contract.md#deliver-answers)", async () => {
    const capped = deliveries({ policy: onePerTenMinutes });
    await capped.deliver();
    const limited = await capped.deliver({ locale: "fr-CA" });
    expect(limited).toMatchObject({ status: "rate_limited", retry_after: 600, message: "Trop de messages ont été demandés. Réessayez plus tard." });
    const judged = deliveries({ spamRules: [{ name: "mine", judge: () => ({ reason: "mine" }) }] });
    const spam = await judged.deliver({ locale: "fr" });
    expect(spam).toMatchObject({ status: "spam_detected", message: limited.message, delivery_uuid: expect.any(String) });
    expect(judged.box.messages).toEqual([]);
    expect((await judged.verifier.explain({ authentication_uuid: spam.delivery_uuid as string })).decisions).toMatchObject([{ rule: "mine" }]);
  });

  it("deliver: spam rules apply to later messages of a delivery too (docs/contract.md#deliver-answers)", async () => {
    const set = deliveries({ policy: { spam: { ...defaultSpamPolicy, range: { ...defaultSpamPolicy.range, seeds: [1, 12, 30] } } } });
    expect((await set.deliver()).status).toBe("sent");
    expect((await set.deliver()).status).toBe("spam_detected");
  });

  it.each([
    ["+3361", "invalid_phone_number"],
    ["+14155552671", "unsupported_region"],
    ["+33140205050", "invalid_line"],
    [numberOf(2), "blocked_number"],
  ])("deliver: %s is invalid: %s (docs/contract.md#deliver-answers)", async (phone_number, reason) => {
    const set = deliveries({ countries: ["FR"], blockedNumbers: [numberOf(2)] });
    expect(await set.deliver({ phone_number })).toEqual({ status: "invalid", reason, message: "This phone number cannot receive messages." });
    expect(set.box.messages).toEqual([]);
  });

  it("deliver: no_route if every carrier rejects, pending if the outcome is unknown (docs/contract.md#deliver-answers)", async () => {
    const set = deliveries();
    set.box.answer = async () => ({ outcome: "rejected" });
    expect(await set.deliver()).toMatchObject({ status: "no_route", message: "The message could not be sent. Try again in a moment." });
    set.box.answer = async () => ({ outcome: "unknown" });
    expect(await set.deliver()).toMatchObject({ status: "pending" });
    set.box.answer = async () => ({ outcome: "rejected" });
    expect(await set.deliver()).toMatchObject({ status: "no_route" });
  });

  it("deliver: unavailable if the store fails, and nothing is sent (docs/contract.md#deliver-answers)", async () => {
    const own = memoryStore({ name: "deliveries-down" });
    const store = new Proxy(own, {
      get: (_target, name: keyof Store) => (name === "commit" ? () => Promise.reject(new Error("down")) : (own[name] as () => void)?.bind?.(own)),
    });
    const set = deliveries({ store });
    expect(await set.deliver()).toMatchObject({ status: "unavailable", message: expect.any(String) });
    expect(set.box.messages).toEqual([]);
  });

  it.each<[string, Partial<DeliverRequest>]>([
    ["no code and no text", { code: undefined }],
    ["a code of three characters", { code: "123" }],
    ["a code with a space", { code: "12 34" }],
    ["a text without the code", { code: "482913", text: "Your code is 482914" }],
    ["a text that shows another code", { code: "482913", text: "Your code is 4829133" }],
    ["a text with U+0000", { code: "482913", text: "Your code is 482913\0" }],
    ["a notice with U+0000", { code: undefined, text: "Hello\0" }],
    ["a notice of two segments", { code: undefined, text: "x".repeat(200) }],
    ["an unknown conversion", { conversion: "never" as never }],
    ["a purpose with a space", { purpose: "sign in" }],
    ["a lifetime of a day", { expires_in: 86_400 }],
    ["known that is no boolean", { known: "yes" as never }],
    ["a misspelt field", { deviceId: "x" } as never],
  ])("deliver: %s is bad_request, and sends nothing (docs/contract.md#deliver-answers)", async (_what, fields) => {
    const set = deliveries();
    await expect(set.deliver(fields)).rejects.toMatchObject({ code: "bad_request" });
    expect(set.box.messages).toEqual([]);
  });

  it("deliver: the text is ours or the caller's, or the registered one; without a code it is a notice (docs/contract.md#deliver-text)", async () => {
    const set = deliveries({
      message: { text: { default: "Code {code}", fr: "Votre code {code}" }, domain: "example.com", registered: { IN: { text: "Registered {code}" } } },
    });
    await set.deliver({ code: "482913", device_type: "WEB" });
    await set.deliver({ phone_number: numberOf(5), code: "482914", locale: "de" });
    await set.deliver({ phone_number: numberOf(6), code: "482915", text: "Theirs: 482915" });
    await set.deliver({ phone_number: numberOf(8), code: "482917", text: `${"x".repeat(200)} 482917` });
    await set.deliver({ phone_number: "+919876543210", code: "482916", text: "Theirs: 482916" });
    await set.deliver({ phone_number: numberOf(7), code: undefined, text: "Your password was changed" });
    expect(set.box.messages.map(({ text }) => text)).toEqual([
      "Votre code 482913\n\n@example.com #482913",
      "Votre code 482914",
      "Theirs: 482915",
      "Votre code 482917",
      "Registered 482916",
      "Your password was changed",
    ]);
    expect(set.box.messages.at(-1)?.code).toBe("");
  });

  it("deliver: a repeat under a key, or of the same code within 30 s, sends nothing (docs/contract.md#deliver-repeats)", async () => {
    const set = deliveries();
    const first = await set.deliver({ code: "482913", idempotency_key: "event-1", expires_in: 600 });
    set.clock.advance(60_000);
    const again = await set.deliver({ code: "482913", idempotency_key: "event-1", expires_in: 600 });
    expect(again).toEqual({ ...first, status: "repeated" });
    await expect(set.deliver({ code: "482914", idempotency_key: "event-1" })).rejects.toMatchObject({ code: "bad_request" });
    const keyless = { code: "500000", purpose: "reset" };
    await set.deliver(keyless);
    expect((await set.deliver(keyless)).status).toBe("repeated");
    expect((await set.deliver({ ...keyless, purpose: "sign_in" })).status).toBe("sent");
    set.clock.advance(30_000);
    expect((await set.deliver(keyless)).status).toBe("sent");
    expect(set.box.messages).toHaveLength(4);
  });

  it("deliver: a repeat is found even after the delivery was confirmed (docs/contract.md#deliver-repeats)", async () => {
    const set = deliveries();
    await set.deliver({ code: "482913", idempotency_key: "event-1" });
    await set.confirm();
    expect((await set.deliver({ code: "482913", idempotency_key: "event-1" })).status).toBe("repeated");
    expect(set.box.messages).toHaveLength(1);
  });

  it("deliver: a repeat of a message that every carrier rejected is a new try (docs/contract.md#deliver-repeats)", async () => {
    const set = deliveries();
    set.box.answer = async () => ({ outcome: "rejected" });
    const call = { code: "482913", idempotency_key: "event-1" };
    expect((await set.deliver(call)).status).toBe("no_route");
    set.box.answer = async () => ({ outcome: "accepted" });
    expect((await set.deliver(call)).status).toBe("sent");
  });

  it("deliver: of a hundred concurrent repeats one sends, and all have its outcome (docs/contract.md#deliver-repeats)", async () => {
    const set = deliveries();
    const at = (outcome: "accepted" | "rejected", key: string) => {
      set.box.answer = async () => ({ outcome });
      return Promise.all(Array.from({ length: 100 }, () => set.deliver({ code: "482913", idempotency_key: key })));
    };
    const statuses = (await at("accepted", "one")).map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array(99).fill("repeated"), "sent"]);
    const refused = await at("rejected", "two");
    expect(new Set(refused.map(({ status }) => status))).toEqual(new Set(["no_route"]));
  });

  it("deliver: of a hundred concurrent messages to a number, five are sent, as attempts 1 to 5 (docs/contract.md#deliver)", async () => {
    const set = deliveries({ policy: { maxGuessOdds: 1, limits: { perNumber: [{ limit: 5, window: 600 }] } } });
    const all = await Promise.all(Array.from({ length: 100 }, () => set.deliver()));
    expect(all.filter(({ status }) => status === "sent")).toHaveLength(5);
    expect(all.filter(({ status }) => status === "rate_limited")).toHaveLength(95);
    expect(set.box.messages.map(({ attempt }) => attempt).sort()).toEqual([1, 2, 3, 4, 5]);
  });

  it("deliver: returns `pending` within the time once the message is stored, and the sending continues (docs/contract.md#deliver-time)", async () => {
    const set = deliveries();
    let accept: (() => void) | undefined;
    const handed = new Promise<void>((seen) => {
      set.box.answer = (_message: CodeMessage) => {
        seen();
        return new Promise((resolve) => (accept = () => resolve({ outcome: "accepted" })));
      };
    });
    const answered = set.deliver({ within: 2_000, callback_url: "https://example.com/hook" });
    await handed;
    set.clock.advance(2_000);
    const { status, delivery_uuid } = await answered;
    expect(status).toBe("pending");
    accept?.();
    await set.verifier.close();
    expect((await set.verifier.explain({ authentication_uuid: delivery_uuid as string })).sends).toMatchObject([{ state: "accepted" }]);
  });

  it("deliver: returns `unavailable` within the time if the store hangs, and a late write is undone (docs/contract.md#deliver-time)", async () => {
    const own = memoryStore({ name: "deliveries-hang" });
    let asked: (() => void) | undefined;
    const reached = new Promise<void>((seen) => (asked = seen));
    let hangs = true;
    const store = new Proxy(own, {
      get: (_target, name: keyof Store) =>
        name === "commit"
          ? async (change: Parameters<Store["commit"]>[0]) => {
              const done = await own.commit(change);
              if (!hangs) return done;
              asked?.();
              return new Promise(() => undefined);
            }
          : (own[name] as () => void)?.bind?.(own),
    });
    const set = deliveries({ store });
    const answered = set.deliver({ within: 500 });
    await reached;
    hangs = false;
    set.clock.advance(500);
    expect((await answered).status).toBe("unavailable");
    expect(set.box.messages).toEqual([]);
    await set.verifier.close();
    expect(await set.confirm()).toEqual({ status: "not_found" });
  });
});

describe("confirm", () => {
  it("confirm: counts once, by number or by id (docs/contract.md#confirm)", async () => {
    const set = deliveries();
    const { delivery_uuid } = await set.deliver();
    expect(await set.confirm()).toEqual({ status: "confirmed", delivery_uuid });
    expect(await set.confirm()).toEqual({ status: "already_confirmed", delivery_uuid });
    expect(await set.verifier.confirm({ delivery_uuid: delivery_uuid as string })).toEqual({ status: "already_confirmed", delivery_uuid });
    const second = await set.deliver();
    expect(second.delivery_uuid).not.toBe(delivery_uuid);
    expect(await set.verifier.confirm({ delivery_uuid: second.delivery_uuid as string })).toMatchObject({ status: "confirmed" });
    expect(set.events.filter(({ type }) => type === "confirmed")).toMatchObject([{ purpose: "sign_in", authentication_uuid: delivery_uuid }, {}]);
  });

  it("confirm: of a hundred concurrent confirmations, one counts (docs/contract.md#confirm)", async () => {
    const set = deliveries();
    await set.deliver();
    const all = await Promise.all(Array.from({ length: 100 }, () => set.confirm()));
    expect(all.filter(({ status }) => status === "confirmed")).toHaveLength(1);
  });

  it("confirm: counts up to 24 hours after the last message (docs/contract.md#confirm)", async () => {
    const late = deliveries();
    await late.deliver();
    late.clock.advance(day - 1);
    expect((await late.confirm()).status).toBe("confirmed");
    const tooLate = deliveries();
    await tooLate.deliver();
    tooLate.clock.advance(day);
    expect(await tooLate.confirm()).toEqual({ status: "not_found" });
  });

  it("confirm: messages sent after `at` do not count (docs/contract.md#confirm)", async () => {
    const set = deliveries();
    await set.deliver();
    expect(await set.confirm({ at: set.clock.now() - 1000 })).toEqual({ status: "not_found" });
    expect(await set.confirm({ at: new Date(set.clock.now()) })).toMatchObject({ status: "confirmed" });
  });

  it("confirm: returns not_found if nothing was sent, or the id is that of an authentication (docs/contract.md#confirm)", async () => {
    const set = deliveries();
    expect(await set.confirm()).toEqual({ status: "not_found" });
    const { authentication_uuid } = await set.verifier.createAuthentication({ phone_number: number });
    expect(await set.verifier.confirm({ delivery_uuid: authentication_uuid })).toEqual({ status: "not_found" });
    set.box.answer = async () => ({ outcome: "rejected" });
    await set.deliver({ phone_number: numberOf(3) });
    expect(await set.confirm({ phone_number: numberOf(3) })).toEqual({ status: "not_found" });
    await expect(set.confirm({ phone_number: "+3361" })).rejects.toMatchObject({ code: "invalid_phone_number" });
    await expect(set.confirm({ phone_number: undefined })).rejects.toMatchObject({ code: "bad_request" });
  });

  it("confirm: gives credit to the spam rules, trust and statistics, as a right code does (docs/contract.md#confirm)", async () => {
    const run = async (confirms: boolean) => {
      const set = deliveries({ policy: { spam: defaultSpamPolicy }, statistics: {} });
      let sent = 0;
      for (let index = 0; index < 40; index++) {
        const phone_number = numberOf(index * 3);
        const { status } = await set.deliver({ phone_number });
        if (status === "sent") sent++;
        if (confirms && status === "sent") await set.confirm({ phone_number });
      }
      const from = new Date(set.clock.now() - hour);
      const { verified } = await set.verifier.stats({ from, to: new Date(set.clock.now() + hour) });
      return { sent, verified };
    };
    expect(await run(true)).toEqual({ sent: 25, verified: 25 });
    expect(await run(false)).toEqual({ sent: 5, verified: 0 });
  });
});

describe("known and conversion", () => {
  it("known: passes the spam rules with fewer than three open, and adds nothing to their cells (docs/contract.md#known)", async () => {
    const set = deliveries({ policy: { spam: { ...defaultSpamPolicy, range: { ...defaultSpamPolicy.range, seeds: [2, 12, 30] } } } });
    const statuses = async (known: boolean, from: number, count: number) => {
      const all: string[] = [];
      for (let index = from; index < from + count; index++) all.push((await set.deliver({ phone_number: numberOf(index), known })).status);
      return all;
    };
    expect(await statuses(true, 0, 10), "add nothing").toEqual(Array(10).fill("sent"));
    expect(await statuses(false, 20, 3)).toEqual(["sent", "sent", "spam_detected"]);
    expect(await statuses(true, 30, 2), "trusted").toEqual(["sent", "sent"]);
    const same = [];
    for (let turn = 0; turn < 4; turn++) same.push((await set.deliver({ phone_number: numberOf(40), known: true })).status);
    expect(same).toEqual(["sent", "sent", "sent", "spam_detected"]);
  });

  it.each<[string, object, object]>([
    ["range", {}, { range: defaultSpamPolicy.range }],
    ["address", { ip: "81.2.3.4" }, { address: { ...defaultSpamPolicy.address, seed: 5 } }],
  ])(
    "confirm: earns as much in the cell of its %s after an unlock, but nothing for a user who was vouched for (docs/contract.md#confirm)",
    async (_, from, rule) => {
      const off = { mode: "off" } as const;
      const spam = { country: off, newCountries: off, range: off, address: off, ...rule };
      const left = async (known: boolean, unlocked: boolean) => {
        const set = deliveries({ policy: { spam } });
        await set.deliver({ ...from, known });
        if (unlocked) await set.verifier.unlock({ phone_number: number });
        expect(await set.confirm()).toMatchObject({ status: "confirmed" });
        let sent = 0;
        while (sent < 20 && (await set.deliver({ ...from, phone_number: numberOf(100 + sent) })).status === "sent") sent++;
        return sent;
      };
      expect([await left(false, false), await left(false, true)], "the seed, and two more for the user").toEqual([7, 7]);
      expect([await left(true, false), await left(true, true)]).toEqual([5, 5]);
    },
  );

  const smallCrowd = { spam: { ...defaultSpamPolicy, crowd: { ...defaultSpamPolicy.crowd, messages: 2 } } };

  it("known: a message that the carrier rejected leaves the crowd's cell too (docs/contract.md#send-outcome)", async () => {
    const set = deliveries({ policy: smallCrowd });
    set.box.answer = async () => ({ outcome: "rejected" });
    for (let index = 0; index < 4; index++) await set.deliver({ phone_number: numberOf(index), known: true });
    set.box.answer = async () => ({ outcome: "accepted" });
    expect((await set.deliver({ phone_number: numberOf(10) })).status).toBe("sent");
  });

  it("known: a message that was undone leaves the crowd's cell too (docs/contract.md#take-back)", async () => {
    const set = deliveries({ policy: smallCrowd });
    const { commit } = set.store;
    for (let index = 0; index < 4; index++) {
      set.store.commit = async (change) => {
        set.store.commit = commit;
        await commit.call(set.store, change);
        throw new Error("the reply is lost");
      };
      expect((await set.deliver({ phone_number: numberOf(index), known: true })).status).toBe("unavailable");
    }
    await set.verifier.close();
    const again = deliveries({ store: set.store, policy: smallCrowd });
    expect((await again.deliver({ phone_number: numberOf(10) })).status).toBe("sent");
  });

  it("unknown: needs a spend ceiling, as an option and per call (docs/contract.md#unknown-conversion)", async () => {
    expect(() => setUp({ conversion: "unknown" })).toThrow(/policy\.limits\.spend must be set while conversion is "unknown"/);
    const set = deliveries({ conversion: undefined });
    await expect(set.deliver()).rejects.toMatchObject({ code: "invalid_options", message: expect.stringContaining("policy.limits.spend") });
    await expect(deliveries().deliver({ conversion: "unknown" })).rejects.toMatchObject({ code: "invalid_options" });
    expect(set.box.messages).toEqual([]);
    const { sender } = priced();
    expect((await deliveries({ conversion: undefined, sender, policy: ceiling }).deliver()).status).toBe("sent");
  });

  /** Sends `perDay` messages on each day to numbers of one range of 10,000; returns how many were sent on each. */
  async function days(set: ReturnType<typeof deliveries>, perDay: readonly number[], fields: Partial<DeliverRequest> = {}) {
    const sent: number[] = [];
    let index = 0;
    for (const count of perDay) {
      let passed = 0;
      for (let one = 0; one < count; one++) if ((await set.deliver({ ...fields, phone_number: numberOf(index++) })).status === "sent") passed++;
      sent.push(passed);
      set.clock.advance(day);
      await Promise.resolve();
    }
    return sent;
  }

  it("growth: observes until there is a history, then a cell blocks at seed + 3 × its usual day (docs/contract.md#growth-rules)", async () => {
    const { sender } = priced();
    const spam = { ...defaultSpamPolicy, crowd: { ...defaultSpamPolicy.crowd, mode: "off" as const } };
    const set = deliveries({ conversion: "unknown", sender, policy: { ...ceiling, spam } });
    expect(await days(set, [7, 7, 7, 7, 7, 7, 7])).toEqual([7, 7, 7, 7, 7, 7, 7]);
    // The last day's messages still count for half a day.
    set.clock.advance(day);
    expect(await days(set, [60])).toEqual([5 + 3 * 6]);
  });

  it("growth: an address blocks at its seed + 3 × its usual day, new countries at seed + 2 × theirs (docs/contract.md#growth-rules)", async () => {
    const { sender } = priced();
    const off = { mode: "off" as const };
    const spam = { ...defaultSpamPolicy, crowd: { ...defaultSpamPolicy.crowd, ...off }, range: { ...defaultSpamPolicy.range, ...off } };
    const ofAddress = { ...spam, country: { ...spam.country, ...off }, newCountries: { ...spam.newCountries, ...off } };
    const set = deliveries({ conversion: "unknown", sender, policy: { ...ceiling, spam: ofAddress } });
    expect(await days(set, Array(7).fill(70), { ip: "203.0.113.7" })).toEqual(Array(7).fill(70));
    set.clock.advance(day);
    expect(await days(set, [300], { ip: "203.0.113.7" })).toEqual([40 + 3 * 60]);
    expect(await days(set, [100], { ip: "203.0.113.8" }), "without a past").toEqual([40]);

    const ofPot = deliveries({ conversion: "unknown", sender, policy: { ...ceiling, spam } });
    // Four new countries with five messages a week each.
    const prefixes = ["+9989012", "+9945012", "+9929012", "+9965512"];
    const pot = async (count: number) => {
      let passed = 0;
      for (let one = 0; one < count; one++)
        if ((await ofPot.deliver({ phone_number: `${prefixes[one % 4]}${String(10_000 + potIndex++)}` })).status === "sent") passed++;
      return passed;
    };
    let potIndex = 0;
    for (let turn = 0; turn < 7; turn++) {
      expect(await pot(turn < 5 ? 4 : 0)).toBe(turn < 5 ? 4 : 0);
      ofPot.clock.advance(day);
    }
    expect(await pot(60)).toBe(Math.ceil(30 + (2 * 20) / 7));
  });

  it("growth: the customer's cap grows with its usual day (docs/contract.md#growth-rules)", async () => {
    const { sender } = priced();
    const perCustomer = [{ limit: 20, window: 86_400, perVerified: 3 }];
    const set = deliveries({ conversion: "unknown", sender, policy: { limits: { ...ceiling.limits, perCustomer } } });
    expect(await days(set, [100])).toEqual([20]);
    set.clock.advance(day);
    expect(await days(set, [100])).toEqual([20 + Math.ceil((3 * 20) / 7)]);
  });

  it("late: rules that need a history only observe until the third day (docs/contract.md#unknown-conversion)", async () => {
    const spam = { ...defaultSpamPolicy, crowd: { ...defaultSpamPolicy.crowd, mode: "off" as const } };
    const set = deliveries({ conversion: "late", policy: { spam } });
    // The messages of the second day are still open.
    expect(await days(set, [20, 20, 20])).toEqual([20, 20, 0]);
  });

  it("no conversion: 50 messages without a confirmation raise an alarm, and growth takes over (docs/contract.md#no-conversion)", async () => {
    const spam = {
      ...defaultSpamPolicy,
      crowd: { ...defaultSpamPolicy.crowd, mode: "off" as const },
      range: { ...defaultSpamPolicy.range, mode: "off" as const },
    };
    const set = deliveries({ policy: { spam } });
    let index = 0;
    const send = async (count: number, confirms: boolean) => {
      let passed = 0;
      for (let one = 0; one < count; one++) {
        const phone_number = numberOf(index++);
        if ((await set.deliver({ phone_number })).status !== "sent") continue;
        passed++;
        if (confirms) await set.confirm({ phone_number });
      }
      return passed;
    };
    for (let turn = 0; turn < 7; turn++) {
      await send(60, true);
      set.clock.advance(day);
    }
    // Two days later no credit is left.
    set.clock.advance(day);
    const silent = index;
    expect(await send(50, false), "the seed").toBe(30);
    set.clock.advance(hour);
    expect(await send(50, false), "nothing for an hour").toBe(0);
    set.clock.advance(hour);
    // Six days of sixty messages, and one without any.
    expect(await send(300, false), "the seed and three times the usual day").toBe(Math.ceil(30 + (3 * 6 * 60) / 7));
    expect(set.events.filter((event) => event.type === "alarm" && event.alarm === "no_conversion")).toHaveLength(1);
    for (let one = 0; one < 10; one++) expect(await set.confirm({ phone_number: numberOf(silent + one) })).toMatchObject({ status: "confirmed" });
    set.clock.advance(11 * 60_000);
    expect(await send(60, true), "credit again").toBe(60);
  });
});
