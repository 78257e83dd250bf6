import { describe, expect, it } from "vitest";
import { fixedClock } from "../../src/testing/index.js";
import { PlainStore, TwoStepStore } from "../store/plain-store.js";
import { start } from "../support/verifier.js";
import { callbackUrl, drive, ending, ForgetfulStore, fates, hook, numberAt, pass, rigged, sender, service, tallied, turns, wide } from "./kit.js";

/** Several verifiers of one customer, like processes that share a store. */
function several(count: number, store: ReturnType<typeof rigged> | PlainStore, options: Parameters<typeof service>[0] = {}) {
  const clock = fixedClock(start);
  const out = sender(options.price);
  const hooked = hook();
  const first = service({ store, clock, sender: out, ...options, callbacks: { sender: hooked } });
  const rest = Array.from({ length: count - 1 }, () =>
    service({ store, clock, sender: out, customer: first.customer, ...options, callbacks: { sender: hooked } }),
  );
  return { clock, sender: out, hook: hooked, all: [first, ...rest], at: (i: number) => [first, ...rest][i % count] as typeof first };
}

describe("a create under a repeated Idempotency-Key, after its record's end", () => {
  const short = { lifetime: 60, tombstone: 60 };

  /** A service with this policy, or undefined if its options are invalid. */
  function built(policy: Record<string, unknown>) {
    const clock = fixedClock(start);
    try {
      return service({ clock, store: new ForgetfulStore(clock.now), policy });
    } catch (error) {
      expect(error).toMatchObject({ code: "invalid_options" });
      return undefined;
    }
  }

  it.each([{ tombstone: 60 }, { tombstone: 1 }, { tombstone: 3600 }, { tombstone: 86_399 }])(
    "stays within the caps (tombstone of $tombstone s)",
    async ({ tombstone }) => {
      const one = built({ lifetime: 60, tombstone });
      if (!one) return;
      const sentAt: number[] = [];
      one.sender.answer = async () => {
        sentAt.push(one.clock.now());
        return { outcome: "accepted" };
      };
      for (let i = 0; i < 1_000; i++) {
        await ending(one.create(1, {}, { idempotencyKey: "k" }));
        one.clock.advance(130_000);
      }
      expect(sentAt.length).toBeGreaterThan(1);
      for (const at of sentAt) {
        expect(sentAt.filter((other) => other > at - 86_400_000 && other <= at).length).toBeLessThanOrEqual(10);
        expect(sentAt.filter((other) => other > at - 600_000 && other <= at).length).toBeLessThanOrEqual(5);
      }
    },
  );

  it("stays within the caps of device, address and customer and the spend ceiling", async () => {
    const hour = 3600;
    const caps = {
      perDevice: [{ limit: 3, window: hour }],
      perIp: [{ limit: 3, window: hour }],
      perCustomer: [{ limit: 3, window: hour }],
      spend: [{ amount: 3, per: "hour" as const }],
    };
    for (const [name, cap] of Object.entries(caps)) {
      const clock = fixedClock(start);
      const one = service({ clock, store: new ForgetfulStore(clock.now), price: 1, policy: { ...short, limits: { ...wide, [name]: cap } } });
      for (let i = 0; i < 20; i++) {
        await ending(one.create(1, { device_id: "device", ip: "203.0.113.7" }, { idempotencyKey: "k" }));
        clock.advance(125_000); // 20 of them within 42 minutes
      }
      expect(one.sender.messages.length, name).toBe(3);
    }
  });

  it("allows no more wrong codes than the budget: five for each counted message", async () => {
    const one = built(short);
    if (!one) return;
    let judged = 0;
    for (let i = 0; i < 600; i++) {
      const created = await one.create(1, {}, { idempotencyKey: "k" });
      for (let guess = 0; guess < 6; guess++)
        if ((await ending(one.check(created.authentication_uuid, one.wrong(created.authentication_uuid)))) === "invalid") judged++;
      one.clock.advance(144_000); // a day in all
    }
    expect(judged).toBeLessThanOrEqual(10 * 5 + 5);
  });

  it("gives each message its own webhook-id and its own idempotency key for the carrier", async () => {
    const one = built(short);
    if (!one) return;
    for (let i = 0; i < 4; i++) {
      await one.create(1, { callback_url: callbackUrl }, { idempotencyKey: "k" });
      await one.verifier.flush();
      one.clock.advance(700_000);
      await one.verifier.flush();
    }
    expect(one.sender.messages).toHaveLength(4);
    expect(new Set(one.sender.messages.map(({ idempotency_key }) => idempotency_key)).size).toBe(4);
    expect(one.hook.posted).toHaveLength(4);
    expect(new Set(one.hook.posted.map(({ id }) => id)).size).toBe(4);
    expect(new Set(one.sender.messages.map(({ code }) => code)).size).toBeGreaterThan(1);
  });

  it("gives each retry of such authentications its own webhook-id and idempotency key", async () => {
    const one = built(short);
    if (!one) return;
    for (let i = 0; i < 3; i++) {
      const { authentication_uuid: id } = await one.create(1, { callback_url: callbackUrl }, { idempotencyKey: "k" });
      one.clock.advance(31_000);
      expect((await one.retry(id)).status).toBe("approved");
      await one.verifier.flush();
      await one.verifier.flush();
      one.clock.advance(1_000_000);
    }
    expect(one.sender.messages).toHaveLength(6);
    expect(new Set(one.sender.messages.map(({ idempotency_key }) => idempotency_key)).size).toBe(6);
    expect(new Set(one.hook.posted.map(({ id }) => id)).size).toBe(6);
  });

  it("returns the first result while the record exists, even after its expiry", async () => {
    const clock = fixedClock(start);
    const one = service({ clock, store: new ForgetfulStore(clock.now), policy: { lifetime: 60, tombstone: 86_400 } });
    const { authentication_uuid, created_at, expires_at, status } = await one.create(1, {}, { idempotencyKey: "k" });
    for (let i = 0; i < 20; i++) {
      clock.advance(4_000_000);
      expect(await one.create(1, {}, { idempotencyKey: "k" })).toMatchObject({ authentication_uuid, created_at, expires_at, status });
    }
    expect(one.sender.messages).toHaveLength(1);
  });
});

describe("a create with an Idempotency-Key", () => {
  it.each([
    ["one step", () => new PlainStore()],
    ["two steps", () => new TwoStepStore()],
  ])("sent a thousand times at once to four processes sends one message and counts once, on a store of %s", async (_, open) => {
    const group = several(4, open(), { policy: { limits: { ...wide, perCustomer: [{ limit: 2, window: 3600 }] } } });
    const answers = await Promise.all(Array.from({ length: 1_000 }, (_, i) => group.at(i).create(1, {}, { idempotencyKey: "k" })));
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0]?.status).toBe("pending");
    expect(group.sender.messages).toHaveLength(1);
    expect(await ending(group.at(1).create(2))).toBe("pending");
    expect(await ending(group.at(2).create(3))).toBe("rate_limited");
  });

  it.each([
    ["one step", () => new PlainStore(), 0],
    // "racers, crashes and repeats may then refuse more than needed"
    ["two steps", () => new TwoStepStore(), 1],
  ])("with different bodies: one body wins, the others get `bad_request`, and one message is sent, on a store of %s", async (_, open, more) => {
    const group = several(4, open());
    const endings = await Promise.all(Array.from({ length: 200 }, (_, i) => ending(group.at(i).create(i % 10, {}, { idempotencyKey: "k" }))));
    expect(tallied(endings)).toEqual({ pending: 20, bad_request: 180 });
    expect(group.sender.messages).toHaveLength(1);
    // The losers' numbers were not counted.
    const winner = group.sender.messages[0]?.to;
    for (let i = 0; i < 10; i++) {
      const { pending = 0 } = tallied(await Promise.all(Array.from({ length: 5 }, (_, n) => ending(group.at(n).create(i)))));
      const left = numberAt(i) === winner ? 4 : 5;
      expect(pending).toBeLessThanOrEqual(left);
      expect(pending).toBeGreaterThanOrEqual(left - more);
    }
  });

  it("is independent of the same key of another customer", async () => {
    const store = new PlainStore();
    const a = service({ store });
    const b = service({ store });
    const [first, second] = [await a.create(1, {}, { idempotencyKey: "k" }), await b.create(2, {}, { idempotencyKey: "k" })];
    expect(first.authentication_uuid).not.toBe(second.authentication_uuid);
    expect(a.sender.messages.length + b.sender.messages.length).toBe(2);
  });

  it("beyond a cap: all concurrent repeats return `rate_limited` with one id", async () => {
    const group = several(4, new TwoStepStore(), { policy: { limits: { ...wide, perCustomer: [{ limit: 1, window: 3600 }] } } });
    await group.at(0).create(1);
    const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => group.at(i).create(2, {}, { idempotencyKey: "k" })));
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0]?.status).toBe("rate_limited");
    expect(group.sender.messages).toHaveLength(1);
  });

  it("at a full cap returns the same to its repeats, and no repeat takes the last place twice", async () => {
    const group = several(4, new TwoStepStore(), { policy: { limits: { ...wide, perCustomer: [{ limit: 5, window: 3600 }] } } });
    const rounds = await Promise.all(Array.from({ length: 200 }, (_, i) => group.at(i).create(i % 8, {}, { idempotencyKey: `k${i % 8}` })));
    const byKey = Array.from({ length: 8 }, (_, key) => new Set(rounds.filter((_, i) => i % 8 === key).map((answer) => JSON.stringify(answer))));
    expect(byKey.map((answers) => answers.size)).toEqual(Array(8).fill(1));
    const sent = group.sender.messages.length;
    // A store of two steps may reject more racers than necessary, but never admits more.
    expect(sent).toBeLessThanOrEqual(5);
    expect(tallied(rounds.map(({ status }) => status))["pending"] ?? 0).toBe(sent * 25);
    // Only sent messages are counted.
    let more = 0;
    for (let i = 20; i < 30; i++) if ((await ending(group.at(i).create(i))) === "pending") more++;
    expect(sent + more).toBe(5);
  });

  it.each(fates)("whose repeats race while some commits are %s sends once, and never counts twice", async (fate) => {
    const store = rigged(new PlainStore());
    const group = several(4, store, { policy: { limits: { ...wide, perCustomer: [{ limit: 2, window: 86_400 }] } } });
    let calls = 0;
    store.fate = (method) => (method === "commit" && calls++ % 2 === 0 ? fate : "done");
    const endings = await drive(group.clock, Promise.all(Array.from({ length: 100 }, (_, i) => ending(group.at(i).create(1, {}, { idempotencyKey: "k" })))));
    for (const one of endings) expect(["pending", "unavailable"]).toContain(one);
    store.fate = () => "done";
    await store.release();
    await pass(group.clock, 60_000);
    expect(group.sender.messages.length).toBeLessThanOrEqual(1);
    const created = await group.at(0).create(1, {}, { idempotencyKey: "k" });
    expect(created.status).toBe("pending");
    expect(group.sender.messages.length).toBeLessThanOrEqual(1);
    if (group.sender.messages.length === 0) expect((await group.at(1).retry(created.authentication_uuid)).status).toBe("approved");
    expect(group.sender.messages).toHaveLength(1);
    expect(await ending(group.at(2).create(2))).toBe("pending");
    expect(await ending(group.at(3).create(3))).toBe("rate_limited");
    expect(await group.at(1).check(created.authentication_uuid, group.sender.codeOf(created.authentication_uuid))).toMatchObject({ status: "valid" });
  });

  it("gives the same result to a repeat that arrives while the first request waits for the carrier", async () => {
    const group = several(2, new PlainStore());
    let accept: (outcome: { outcome: "accepted" }) => void = () => {};
    group.sender.answer = () => new Promise((resolve) => (accept = resolve));
    const first = group.at(0).create(1, {}, { idempotencyKey: "k" });
    await turns();
    const twin = group.at(1).create(1, {}, { idempotencyKey: "k" });
    await turns();
    accept({ outcome: "accepted" });
    expect(await twin).toEqual(await first);
    expect(group.sender.messages).toHaveLength(1);
  });

  it("rejected by its route repeats its result and sends nothing again; check returns `without_attempt`", async () => {
    const group = several(2, new PlainStore());
    group.sender.answer = async () => ({ outcome: "rejected" });
    const first = await group.at(0).create(1, { callback_url: callbackUrl }, { idempotencyKey: "k" });
    expect(await group.at(1).create(1, { callback_url: callbackUrl }, { idempotencyKey: "k" })).toEqual(first);
    expect(group.sender.messages).toHaveLength(1);
    expect(await ending(group.at(1).check(first.authentication_uuid, "123456"))).toBe("without_attempt");
    expect(await ending(group.at(1).retry(first.authentication_uuid))).toBe("no_attempt");
    await group.at(0).verifier.flush();
    expect(group.hook.story(first.authentication_uuid)).toEqual(["1:undeliverable"]);
  });

  it("sends one message for each of 2,000 keys in 20 racing processes", async () => {
    const group = several(20, new TwoStepStore(), { policy: { limits: { ...wide } } });
    const answers = await Promise.all(
      Array.from({ length: 4_000 }, (_, i) => group.at(i).create(Math.floor(i / 2), {}, { idempotencyKey: `k${Math.floor(i / 2)}` })),
    );
    expect(new Set(answers.map(({ authentication_uuid }) => authentication_uuid)).size).toBe(2_000);
    expect(group.sender.messages).toHaveLength(2_000);
  });
});

describe("a check with an Idempotency-Key", () => {
  it("sent 500 times at once to four processes is evaluated once and returns `valid` to all", async () => {
    const group = several(4, new TwoStepStore());
    const { authentication_uuid: id } = await group.at(0).create(1);
    const code = group.sender.codeOf(id);
    const answers = await Promise.all(Array.from({ length: 500 }, (_, i) => ending(group.at(i).check(id, code, { idempotencyKey: "c" }))));
    expect(tallied(answers)).toEqual({ valid: 500 });
    expect(await ending(group.at(1).check(id, code))).toBe("already_validated");
    expect(await ending(group.at(1).check(id, code, { idempotencyKey: "another" }))).toBe("already_validated");
  });

  it("with a wrong code counts once across processes, and another code under the key gives `bad_request`", async () => {
    const group = several(4, new TwoStepStore());
    const { authentication_uuid: id } = await group.at(0).create(1);
    const wrong = group.at(0).wrong(id);
    const answers = await Promise.all(Array.from({ length: 500 }, (_, i) => ending(group.at(i).check(id, wrong, { idempotencyKey: "c" }))));
    expect(tallied(answers)).toEqual({ invalid: 500 });
    expect(await ending(group.at(2).check(id, group.sender.codeOf(id), { idempotencyKey: "c" }))).toBe("bad_request");
    const more: string[] = [];
    for (let i = 0; i < 5; i++) more.push(await ending(group.at(i).check(id, wrong)));
    expect(more).toEqual(["invalid", "invalid", "invalid", "invalid", "rate_limited"]);
  });

  it("never gives `valid` to two keys", async () => {
    for (let round = 0; round < 20; round++) {
      const group = several(4, new TwoStepStore());
      const { authentication_uuid: id } = await group.at(0).create(1);
      const code = group.sender.codeOf(id);
      const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => ending(group.at(i).check(id, code, { idempotencyKey: `c${i % 10}` }))));
      expect(tallied(answers)).toEqual({ valid: 4, already_validated: 36 });
    }
  });

  it("repeated once five wrong codes under five keys have used up the checks still returns its first result", async () => {
    const group = several(2, new PlainStore());
    const { authentication_uuid: id } = await group.at(0).create(1);
    const wrong = group.at(0).wrong(id);
    for (let i = 0; i < 5; i++) expect(await ending(group.at(i).check(id, wrong, { idempotencyKey: `w${i}` }))).toBe("invalid");
    for (let i = 0; i < 5; i++) expect(await ending(group.at(i).check(id, wrong, { idempotencyKey: `w${i}` }))).toBe("invalid");
    expect(await ending(group.at(0).check(id, wrong, { idempotencyKey: "w6" }))).toBe("rate_limited");
    expect(await ending(group.at(0).check(id, wrong, { idempotencyKey: "w0" }))).toBe("invalid");
  });
});
