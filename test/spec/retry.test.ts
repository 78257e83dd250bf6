import { describe, expect, it } from "vitest";
import { numberOf, onePerTenMinutes, setUp, start } from "../support/verifier.js";

const at = (seconds: number) => new Date(start + seconds * 1000).toISOString();

describe("Retry result statuses: the first row that holds (docs/contract.md#retry-order)", () => {
  it("`approved` and a new code, 4 times with cool-downs of 30, 60, 90 and 120 s; then `rate_limited`", async () => {
    const { create, retry, clock, box } = setUp({ policy: { limits: { perNumber: [{ limit: 10, window: 86_400 }] } } });
    const { authentication_uuid } = await create();
    const expected = [
      { wait: 30, remaining: 3, next: 30 + 60 },
      { wait: 60, remaining: 2, next: 90 + 90 },
      { wait: 90, remaining: 1, next: 180 + 120 },
      { wait: 120, remaining: 0, next: 600 },
    ];
    let now = 0;
    for (const { wait, remaining, next } of expected) {
      clock.advance(wait * 1000 - 1);
      expect((await retry(authentication_uuid)).status).toBe("denied");
      clock.advance(1);
      now += wait;
      expect(await retry(authentication_uuid)).toEqual({
        authentication_uuid,
        created_at: at(now),
        next_retry_at: at(next),
        remaining_retry: remaining,
        status: "approved",
        phone_number: numberOf(1),
        remaining_checks: 5,
      });
    }
    expect(box.messages.map((message) => message.attempt)).toEqual([1, 2, 3, 4, 5]);
    expect(new Set(box.messages.map((message) => message.code)).size).toBeGreaterThan(1);
    expect(await retry(authentication_uuid)).toMatchObject({ status: "rate_limited", remaining_retry: 0, next_retry_at: at(600) });
  });

  it("`denied` during the cool-down; `next_retry_at` is its end", async () => {
    const { create, retry, clock, box } = setUp();
    const { authentication_uuid } = await create();
    clock.advance(29_999);
    expect(await retry(authentication_uuid)).toEqual({
      authentication_uuid,
      created_at: at(29.999),
      next_retry_at: at(30),
      remaining_retry: 4,
      status: "denied",
      phone_number: numberOf(1),
      remaining_checks: 5,
    });
    expect(box.messages).toHaveLength(1);
  });

  it("`denied` if no route takes the message: no retry is used up, the caps count it, the cool-down starts again, earlier codes stay live", async () => {
    const { create, retry, check, clock, box } = setUp();
    const { authentication_uuid } = await create();
    const first = box.code();
    clock.advance(30_000);
    box.answer = async () => ({ outcome: "rejected" });
    expect(await retry(authentication_uuid)).toMatchObject({ status: "denied", remaining_retry: 4, next_retry_at: at(60) });
    const dead = box.code();
    const later = [];
    for (let sent = 0; sent < 4; sent++) later.push((await create()).status);
    expect(later, "two of five are charged").toEqual(["pending", "pending", "pending", "rate_limited"]);
    expect(box.messages.splice(2)).toHaveLength(3);
    clock.advance(29_999);
    expect((await retry(authentication_uuid)).status).toBe("denied");
    expect(box.messages).toHaveLength(2);
    if (dead !== first) expect((await check(authentication_uuid, dead)).status).toBe("invalid");
    expect((await check(authentication_uuid, first)).status).toBe("valid");
  });

  it("however many sends in a row are rejected, the code sent before them stays live", async () => {
    const { create, retry, check, clock, box } = setUp({ policy: { limits: { perNumber: [{ limit: 10, window: 86_400 }] } } });
    const { authentication_uuid } = await create();
    const first = box.code();
    box.answer = async () => ({ outcome: "rejected" });
    for (let send = 0; send < 5; send++) {
      clock.advance(30_000);
      expect((await retry(authentication_uuid)).status).toBe("denied");
    }
    expect(box.messages).toHaveLength(6);
    expect((await check(authentication_uuid, first)).status).toBe("valid");
  });

  it("`no_attempt` if every route rejected the first message", async () => {
    const { create, retry, box, clock } = setUp();
    box.answer = async () => ({ outcome: "rejected" });
    const { authentication_uuid } = await create();
    clock.advance(60_000);
    expect(await retry(authentication_uuid)).toMatchObject({ status: "no_attempt", remaining_retry: 0, next_retry_at: at(600) });
    expect(box.messages).toHaveLength(1);
  });

  it("`no_attempt` for an authentication created as `spam_detected`", async () => {
    const { create, retry } = setUp({ spamRules: [{ name: "all", judge: () => ({ reason: "all" }) }] });
    expect(await retry((await create()).authentication_uuid)).toMatchObject({ status: "no_attempt", remaining_retry: 0 });
  });

  it("`rate_limited` for an authentication created as `rate_limited`", async () => {
    const { create, retry } = setUp({ policy: onePerTenMinutes });
    await create();
    expect(await retry((await create()).authentication_uuid)).toMatchObject({ status: "rate_limited", remaining_retry: 0, next_retry_at: at(600) });
  });

  it("`rate_limited` once the checks are used up", async () => {
    const { create, retry, check, clock, wrong, box } = setUp();
    const { authentication_uuid } = await create();
    for (let guess = 0; guess < 5; guess++) await check(authentication_uuid, wrong());
    clock.advance(30_000);
    expect(await retry(authentication_uuid)).toMatchObject({ status: "rate_limited", remaining_retry: 0, next_retry_at: at(600) });
    expect(box.messages).toHaveLength(1);
  });

  it("`rate_limited` if a cap blocks it: neither a retry nor the cool-down is used up, and the earlier code stays live", async () => {
    const { create, retry, check, clock, box, verifier, customer } = setUp({ policy: { limits: { perNumber: [{ limit: 1, window: 60 }] }, codeLength: 10 } });
    const { authentication_uuid } = await create();
    clock.advance(30_000);
    expect(await retry(authentication_uuid)).toMatchObject({ status: "rate_limited", remaining_retry: 0, next_retry_at: at(600) });
    expect(box.messages).toHaveLength(1);
    const { decisions } = await verifier.explain({ customer_uuid: customer, authentication_uuid });
    expect(decisions).toEqual([{ at: at(30), rule: "perNumber 1/60s", mode: "enforce", value: 1, threshold: 1, until: at(60) }]);
    clock.advance(30_000);
    expect(await retry(authentication_uuid)).toMatchObject({ status: "approved", remaining_retry: 3 });
    expect((await check(authentication_uuid, box.code(0))).status).toBe("valid");
  });

  it("`expired_auth` after the end, without the codes in the record", async () => {
    const { create, retry, clock, store, customer } = setUp();
    const { authentication_uuid } = await create();
    clock.advance(600_000);
    expect(await retry(authentication_uuid)).toEqual({
      authentication_uuid,
      created_at: at(600),
      next_retry_at: at(600),
      remaining_retry: 0,
      status: "expired_auth",
      remaining_checks: 0,
    });
    expect((await store.find(customer, authentication_uuid))?.data, "without its codes").toContain('"d":[""]');
  });

  it("`already_validated` after a valid check", async () => {
    const { create, retry, check, clock, box } = setUp();
    const { authentication_uuid } = await create();
    await check(authentication_uuid, box.code());
    clock.advance(30_000);
    expect(await retry(authentication_uuid)).toMatchObject({ status: "already_validated", remaining_retry: 0, next_retry_at: at(600) });
  });

  it("`invalid_auth_uuid` for an unknown id, another customer's and a deleted one", async () => {
    const mine = setUp();
    const theirs = setUp({ store: mine.store, clock: mine.clock });
    const { authentication_uuid } = await theirs.create();
    const faultOf = (call: Promise<unknown>) => call.catch((error: { code: string; message: string }) => [error.code, error.message]);
    const messages = await Promise.all([authentication_uuid, "11111111-2222-3333-4444-555555555555"].map((id) => faultOf(mine.retry(id))));
    expect(messages[0]).toEqual(messages[1]);
    expect((messages[0] as string[])[0]).toBe("invalid_auth_uuid");
    mine.clock.advance(600_000 + 86_400_000);
    expect(await faultOf(theirs.retry(authentication_uuid)), "a deleted one").toEqual(messages[0]);
  });

  it("`next_retry_at` = min(end of the cool-down, `expires_at`)", async () => {
    const { create, retry } = setUp({ policy: { retryCooldowns: [900], lifetime: 600 } });
    expect(await retry((await create()).authentication_uuid)).toMatchObject({ status: "denied", next_retry_at: at(600), remaining_retry: 1 });
  });

  it("a retry ends with the same app hash as the first message", async () => {
    const { create, retry, clock, box } = setUp();
    const { authentication_uuid } = await create({ device_type: "ANDROID", app_realm: "FA+9qCX9VSu" });
    clock.advance(30_000);
    await retry(authentication_uuid);
    expect(box.messages.map(({ text }) => text.endsWith("\n\nFA+9qCX9VSu"))).toEqual([true, true]);
  });
});
