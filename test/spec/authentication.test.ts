import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { errorCode, numberOf, onePerTenMinutes, secret, setUp, start } from "../support/verifier.js";

describe("Authentication: the result of create and its outcomes (docs/contract.md#create-authentication)", () => {
  it("authentication_uuid is a unique UUID", async () => {
    const { create } = setUp();
    const [one, two] = [await create(), await create({ phone_number: numberOf(2) })];
    expect(one.authentication_uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(two.authentication_uuid).not.toBe(one.authentication_uuid);
  });

  it("created_at is the timestamp of the creation", async () => {
    expect((await setUp().create()).created_at).toBe(new Date(start).toISOString());
  });

  it("expires_at is 600 s after creation, not extended by a retry; then check and retry return expired_auth (docs/contract.md#lifetime)", async () => {
    const { create, retry, check, clock, box } = setUp();
    const { authentication_uuid, expires_at } = await create();
    expect(expires_at).toBe(new Date(start + 600_000).toISOString());
    clock.advance(500_000);
    expect((await retry(authentication_uuid)).status).toBe("approved");
    clock.advance(99_999);
    expect((await check(authentication_uuid, "nonsense")).status).toBe("invalid");
    clock.advance(1);
    expect((await check(authentication_uuid, box.code())).status).toBe("expired_auth");
    expect((await retry(authentication_uuid)).status).toBe("expired_auth");
  });

  it("`pending`: a message with a 6-digit code is sent to phone_number", async () => {
    const { create, box } = setUp();
    expect((await create()).status).toBe("pending");
    expect(box.messages).toHaveLength(1);
    expect(box.messages[0]).toMatchObject({ to: numberOf(1), attempt: 1, country: "FR" });
    expect(box.code()).toMatch(/^\d{6}$/);
    expect(box.messages[0]?.text).toContain(box.code());
  });

  it("`rate_limited`: the result has the same fields, and nothing is sent", async () => {
    const { create, box } = setUp({ policy: onePerTenMinutes });
    await create();
    const refused = await create();
    expect(refused.status).toBe("rate_limited");
    expect(refused).toMatchObject({ authentication_uuid: expect.any(String), created_at: expect.any(String), expires_at: expect.any(String) });
    expect(box.messages).toHaveLength(1);
  });

  it("`spam_detected`: a rule of the caller blocks the create; explain has its reason, nothing is sent and no cap counts it", async () => {
    const { create, verifier, customer, box } = setUp({
      policy: onePerTenMinutes,
      spamRules: [{ name: "bad model", judge: ({ device_model }) => (device_model === "bot" ? { reason: "a bot", value: 2, threshold: 1 } : undefined) }],
    });
    const flagged = await create({ device_model: "bot" });
    expect(flagged.status).toBe("spam_detected");
    expect(box.messages).toHaveLength(0);
    const { decisions } = await verifier.explain({ customer_uuid: customer, authentication_uuid: flagged.authentication_uuid });
    expect(decisions).toEqual([{ at: new Date(start).toISOString(), rule: "bad model", mode: "enforce", reason: "a bot", value: 2, threshold: 1 }]);
    expect((await create({ device_model: "phone" })).status).toBe("pending");
    expect((await create({ device_model: "bot" })).status, "the caller's rules come before the caps").toBe("spam_detected");
  });

  it("an authentication created as `spam_detected` has no code and is stored until `expires_at` only", async () => {
    const { create, check, clock, store, customer } = setUp({ spamRules: [{ name: "all", judge: () => ({ reason: "all" }) }] });
    const { authentication_uuid } = await create();
    const record = await store.find(customer, authentication_uuid);
    expect(record?.keepUntil).toBe(start + 600_000);
    expect(record?.data).not.toContain('"d":');
    clock.advance(600_000);
    expect(await errorCode(check(authentication_uuid, "123456"))).toBe("invalid_auth_uuid");
  });

  it("the record contains the code only as HMAC-SHA-256 over authentication and code (docs/contract.md#code)", async () => {
    const { create, box, store, customer } = setUp();
    const { authentication_uuid } = await create();
    const record = JSON.stringify(await store.find(customer, authentication_uuid));
    expect(record).not.toContain(box.code());
    const digest = createHmac("sha256", secret).update(`code\0${authentication_uuid}\0${box.code()}`).digest("base64url");
    expect(record).toContain(digest.slice(0, 22));
  });

  it("every route rejects on create: `pending`; check then returns `without_attempt`, retry `no_attempt`, the log gives the reason (docs/contract.md#every-route-rejects)", async () => {
    const { create, check, retry, box, log } = setUp();
    box.answer = async () => ({ outcome: "rejected", reason: `no credit for ${box.code()}` });
    const { authentication_uuid, status } = await create();
    expect(status).toBe("pending");
    expect((await check(authentication_uuid, box.code())).status).toBe("without_attempt");
    expect((await retry(authentication_uuid)).status).toBe("no_attempt");
    const line = log.lines.find(({ message }) => message.includes("rejected"));
    expect(line?.fields.reason).toBe("no credit for ******");
    expect(JSON.stringify(line)).not.toContain(numberOf(1));
  });

  it.each([
    ["throws", async () => Promise.reject(new Error("boom"))],
    ["answers nonsense", async () => ({ sent: true }) as never],
    ["answers unknown", async () => ({ outcome: "unknown" as const })],
  ])("an unknown outcome counts as sent, and the code works: a sender that %s", async (_what, answer) => {
    const { create, check, box } = setUp();
    box.answer = answer;
    const { authentication_uuid, status } = await create();
    expect(status).toBe("pending");
    expect((await check(authentication_uuid, box.code())).status).toBe("valid");
  });

  it("a sender that throws an error with the outcome `rejected` counts as rejected", async () => {
    const { create, check, box } = setUp();
    box.answer = async () => Promise.reject(Object.assign(new Error("blocked"), { outcome: "rejected" }));
    const { authentication_uuid } = await create();
    expect((await check(authentication_uuid, box.code())).status).toBe("without_attempt");
  });

  it("create and retry respond after `sendTimeout` (5 s) if the sender hangs, and the sender's signal is aborted", async () => {
    const { create, retry, check, box, clock } = setUp();
    let aborted = false;
    box.answer = (_message, signal) => new Promise(() => signal.addEventListener("abort", () => (aborted = true)));
    let answered = false;
    const creating = create().finally(() => (answered = true));
    await expect.poll(() => box.messages.length).toBe(1);
    clock.advance(4_999);
    await new Promise((resolve) => setImmediate(resolve));
    expect(answered).toBe(false);
    clock.advance(1);
    const { authentication_uuid, status } = await creating;
    expect([status, aborted]).toEqual(["pending", true]);
    clock.advance(30_000);
    answered = aborted = false;
    const retrying = retry(authentication_uuid).finally(() => (answered = true));
    await expect.poll(() => box.messages.length).toBe(2);
    clock.advance(4_999);
    await new Promise((resolve) => setImmediate(resolve));
    expect(answered).toBe(false);
    clock.advance(1);
    expect([(await retrying).status, aborted]).toEqual(["approved", true]);
    expect((await check(authentication_uuid, box.code())).status).toBe("valid");
  });

  it("while a send is in progress, check already accepts its code", async () => {
    const { create, check, box, store, customer } = setUp();
    let finish: (outcome: { outcome: "accepted" }) => void = () => undefined;
    box.answer = () => new Promise((resolve) => (finish = resolve));
    const creating = create();
    await expect.poll(() => box.messages.length).toBe(1);
    const id = box.messages[0]?.authentication_uuid as string;
    expect(await store.find(customer, id)).toBeDefined();
    expect((await check(id, box.code())).status).toBe("valid");
    finish({ outcome: "accepted" });
    expect((await creating).status).toBe("pending");
  });
});

describe("two secrets during rotation (docs/contract.md#secret-rotation)", () => {
  it("codes made under the previous secret are accepted, those made under a removed one are not", async () => {
    const first = setUp({ secret: "first secret ".repeat(4) });
    const { authentication_uuid } = await first.create();
    const options = { store: first.store, clock: first.clock, customers: [{ customer_uuid: first.customer, keys: [first.apiKey] }] };
    const request = { customer_uuid: first.customer, authentication_uuid, check_code: first.box.code() };
    expect((await setUp({ ...options, secret: "third secret ".repeat(4) }).verifier.check(request)).status).toBe("invalid");
    expect((await setUp({ ...options, secret: ["second secret ".repeat(4), "first secret ".repeat(4)] }).verifier.check(request)).status).toBe("valid");
  });
});
