import { describe, expect, it } from "vitest";
import { errorCode, inbox, numberOf, setUp } from "../support/verifier.js";

describe("`Idempotency-Key` on create (docs/contract.md#idempotency)", () => {
  it("the same key and body return the same result without a second message", async () => {
    const { create, box, clock } = setUp();
    const first = await create({}, { idempotencyKey: "k1" });
    clock.advance(5000);
    expect(await create({}, { idempotencyKey: "k1" })).toEqual(first);
    expect(box.messages).toHaveLength(1);
    expect((await create({}, { idempotencyKey: "k2" })).authentication_uuid).not.toBe(first.authentication_uuid);
  });

  it("fifty concurrent duplicates get one result, with one message that the caps count once", async () => {
    const { create, box } = setUp();
    const results = await Promise.all(Array.from({ length: 50 }, () => create({}, { idempotencyKey: "k" })));
    expect(new Set(results.map((result) => JSON.stringify(result))).size).toBe(1);
    expect(box.messages).toHaveLength(1);
    const later = [];
    for (let sent = 0; sent < 5; sent++) later.push((await create()).status);
    expect(later, "five in ten minutes, the twins' one among them").toEqual(["pending", "pending", "pending", "pending", "rate_limited"]);
  });

  it("another body under the key is `bad_request`", async () => {
    const { create, box } = setUp();
    await create({}, { idempotencyKey: "k" });
    expect(await errorCode(create({ phone_number: numberOf(2) }, { idempotencyKey: "k" }))).toBe("bad_request");
    expect(box.messages).toHaveLength(1);
  });

  it("a `rate_limited` result is repeated too, with the current retry_after", async () => {
    const { create, clock } = setUp({ policy: { limits: { perNumber: [{ limit: 1, window: 60 }] }, codeLength: 10 } });
    await create();
    const refused = await create({}, { idempotencyKey: "k" });
    expect(refused.status).toBe("rate_limited");
    clock.advance(59_000);
    expect(await create({}, { idempotencyKey: "k" })).toEqual({ ...refused, retry_after: 1 });
    clock.advance(2_000);
    const { retry_after, ...rest } = refused;
    expect([retry_after, await create({}, { idempotencyKey: "k" })]).toEqual([60, rest]);
  });

  it.each([
    ["a cap of ten sends a day", 100, 10],
    ["a ceiling of seven prices a day", 7, 7],
  ])("a key reused after the record's end is a new create: %s counts it again, and the carrier gets a new key", async (_what, amount, sends) => {
    const sender = Object.assign(inbox(), { plan: () => ({ route: "r", price: 1 }) });
    const set = setUp({ sender, policy: { lifetime: 60, tombstone: 60, limits: { spend: [{ amount, per: "day" }] } } });
    const statuses: string[] = [];
    for (let hour = 0; hour < 23; hour++) {
      statuses.push((await set.create({}, { idempotencyKey: "k" })).status);
      set.clock.advance(3_600_000);
    }
    expect(statuses.filter((status) => status === "pending")).toHaveLength(sends);
    expect(new Set(sender.messages.map(({ idempotency_key }) => idempotency_key)).size, "each message has a key of its own for the carrier").toBe(sends);
  });

  it("a repeat does not run the caller's spam rules again", async () => {
    let asked = 0;
    const { create, box } = setUp({ spamRules: [{ name: "mine", judge: () => void asked++ }] });
    const first = await create({}, { idempotencyKey: "k" });
    for (let repeat = 0; repeat < 3; repeat++) expect(await create({}, { idempotencyKey: "k" })).toEqual(first);
    expect([asked, box.messages.length]).toEqual([1, 1]);
  });

  it("the key is valid as long as the record exists", async () => {
    const { create, clock, box } = setUp();
    const first = await create({}, { idempotencyKey: "k" });
    clock.advance(600_000 + 86_400_000 - 1);
    // The fields beyond the wire show the current state.
    const { next_retry_at, ...result } = first;
    expect(await create({}, { idempotencyKey: "k" })).toEqual({ ...result, remaining_retry: 0, remaining_checks: 0 });
    clock.advance(1);
    expect((await create({}, { idempotencyKey: "k" })).created_at).not.toBe(first.created_at);
    expect(box.messages).toHaveLength(2);
  });

  it("the key is still valid after a rotation of the secret", async () => {
    const set = setUp({ secret: "first secret ".repeat(4) });
    const first = await set.create({}, { idempotencyKey: "k" });
    const rotated = setUp({
      store: set.store,
      clock: set.clock,
      customers: [{ customer_uuid: set.customer, keys: [set.apiKey] }],
      secret: ["second secret ".repeat(4), "first secret ".repeat(4)],
    });
    expect(await rotated.verifier.createAuthentication({ customer_uuid: set.customer, phone_number: numberOf(1) }, { idempotencyKey: "k" })).toEqual(first);
    expect(rotated.box.messages).toHaveLength(0);
  });

  it("the same key of two customers makes two authentications", async () => {
    const one = setUp();
    const two = setUp({ store: one.store, clock: one.clock });
    const results = [await one.create({}, { idempotencyKey: "k" }), await two.create({}, { idempotencyKey: "k" })];
    expect(results[0]?.authentication_uuid).not.toBe(results[1]?.authentication_uuid);
  });

  it.each(["", "é", "k".repeat(256), "a\nb"])("a key that is not 1 to 255 printable ASCII characters is `bad_request`: %j", async (idempotencyKey) => {
    const { create, box } = setUp();
    expect(await errorCode(create({}, { idempotencyKey }))).toBe("bad_request");
    expect(box.messages).toHaveLength(0);
  });
});

describe("`Idempotency-Key` on check (docs/contract.md#idempotency)", () => {
  it("the same key and body return the same result without a second count", async () => {
    const { create, check, wrong, box } = setUp();
    const { authentication_uuid } = await create();
    for (let replay = 0; replay < 20; replay++) expect((await check(authentication_uuid, wrong(), { idempotencyKey: "w" })).status).toBe("invalid");
    for (let guess = 0; guess < 3; guess++) expect((await check(authentication_uuid, wrong())).status).toBe("invalid");
    expect((await check(authentication_uuid, box.code(), { idempotencyKey: "r" })).status).toBe("valid");
    expect((await check(authentication_uuid, box.code(), { idempotencyKey: "r" })).status, "the lost reply").toBe("valid");
    expect((await check(authentication_uuid, box.code())).status).toBe("already_validated");
  });

  it("concurrent duplicates get the same result", async () => {
    const { create, check, wrong, box } = setUp();
    const { authentication_uuid } = await create();
    const wrongs = await Promise.all(Array.from({ length: 50 }, () => check(authentication_uuid, wrong(), { idempotencyKey: "w" })));
    expect(new Set(wrongs.map(({ status }) => status))).toEqual(new Set(["invalid"]));
    const rights = await Promise.all(Array.from({ length: 50 }, () => check(authentication_uuid, box.code(), { idempotencyKey: "r" })));
    expect(new Set(rights.map(({ status }) => status))).toEqual(new Set(["valid"]));
  });

  it("another body under the key is `bad_request`", async () => {
    const { create, check, wrong, box } = setUp();
    const { authentication_uuid } = await create();
    await check(authentication_uuid, wrong(), { idempotencyKey: "k" });
    expect(await errorCode(check(authentication_uuid, box.code(), { idempotencyKey: "k" }))).toBe("bad_request");
  });

  it.each([0, 4])(
    "other codes under the key of a `valid` check count as wrong; once used up, the key returns `already_validated`: after %i",
    async (before) => {
      const { create, check, wrong, box, verifier, customer } = setUp();
      const { authentication_uuid } = await create();
      const wrongCodes = async () => (await verifier.explain({ customer_uuid: customer, authentication_uuid }))?.wrong_codes;
      for (let guess = 0; guess < before; guess++) await check(authentication_uuid, wrong());
      const again = async (code: string) => check(authentication_uuid, code, { idempotencyKey: "k" });
      expect((await again(box.code())).status).toBe("valid");
      for (let guess = before; guess < 5; guess++) {
        expect((await again(box.code())).status).toBe("valid");
        expect(await errorCode(again(wrong()))).toBe("bad_request");
      }
      for (const code of [box.code(), wrong()]) expect((await again(code)).status).toBe("already_validated");
      expect(await wrongCodes()).toBe(5);
    },
  );

  it("of a thousand concurrent other codes under the key of a `valid` check, only as many as there are checks are counted", async () => {
    const { create, check, wrong, box, verifier, customer } = setUp();
    const { authentication_uuid } = await create();
    await check(authentication_uuid, box.code(), { idempotencyKey: "k" });
    const codes = Array.from({ length: 1_000 }, () => errorCode(check(authentication_uuid, wrong(), { idempotencyKey: "k" })));
    expect((await Promise.all(codes)).filter((code) => code === "bad_request")).toHaveLength(5);
    expect((await check(authentication_uuid, box.code(), { idempotencyKey: "k" })).status).toBe("already_validated");
    expect((await verifier.explain({ customer_uuid: customer, authentication_uuid }))?.wrong_codes).toBe(5);
  });

  it("over HTTP the key is a header, on create and check", async () => {
    const { http, customer, box } = setUp();
    const body = { customer_uuid: customer, phone_number: numberOf(1) };
    const [one, two] = [
      await http("POST", "/v1/authentication", body, { "idempotency-key": "k" }),
      await http("POST", "/v1/authentication", body, { "idempotency-key": "k" }),
    ];
    expect(two.json).toEqual(one.json);
    expect(box.messages).toHaveLength(1);
    const check = { customer_uuid: customer, authentication_uuid: one.json.authentication_uuid, check_code: box.code() };
    for (let replay = 0; replay < 2; replay++) expect((await http("POST", "/v1/check", check, { "idempotency-key": "c" })).json.status).toBe("valid");
  });
});
