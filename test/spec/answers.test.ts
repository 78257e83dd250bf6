import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { factHeaders } from "../../src/contract/facts.js";
import type { AuthenticationResult, CheckResult, RetryResult, VerifierOptions } from "../../src/index.js";
import { dumpOfMemory, spellingsOf, traces } from "../support/dump.js";
import { errorCode, inbox, numberOf, onePerTenMinutes, setUp, start } from "../support/verifier.js";

const phone_number = numberOf(1);
const at = (seconds: number) => new Date(start + seconds * 1000).toISOString();

type Set = ReturnType<typeof setUp>;
type Call = { readonly idempotencyKey?: string };

/** The three calls, direct or over HTTP. */
interface Way {
  create(fields?: object, call?: Call): Promise<AuthenticationResult>;
  retry(authentication_uuid: string): Promise<RetryResult>;
  check(authentication_uuid: string, check_code: string, call?: Call): Promise<CheckResult>;
}

const direct = ({ create, retry, check }: Set): Way => ({ create: (fields = {}, call) => create({ ...fields }, call), retry, check });

/** Over HTTP: the body, which must have exactly the fields of the wire, and the facts from the headers. */
function overHttp({ http, customer }: Set): Way {
  const post = async (path: string, fields: readonly string[], body: object, { idempotencyKey }: Call = {}) => {
    const answer = await http("POST", path, { customer_uuid: customer, ...body }, idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey });
    expect([answer.status, Object.keys(answer.json).sort()]).toEqual([200, fields]);
    const told = Object.entries(factHeaders).flatMap(([fact, header]) => {
      const value = answer.headers[header];
      if (value === undefined) return [];
      return [[fact, fact === "phone_number" || fact === "next_retry_at" ? value : JSON.parse(value)]];
    });
    expect(Object.keys(answer.headers).filter((name) => name.startsWith("x-")).length).toBe(told.length);
    return { ...answer.json, ...Object.fromEntries(told) } as never;
  };
  return {
    create: (fields, call) => post("/v1/authentication", ["authentication_uuid", "created_at", "expires_at", "status"], { phone_number, ...fields }, call),
    retry: (authentication_uuid) =>
      post("/v1/retry", ["authentication_uuid", "created_at", "next_retry_at", "remaining_retry", "status"], { authentication_uuid }),
    check: (authentication_uuid, check_code, call) => post("/v1/check", ["authentication_uuid", "status"], { authentication_uuid, check_code }, call),
  };
}

describe.each([
  ["direct calls", direct],
  ["over HTTP, in headers beside the wire's body", overHttp],
] as const)("facts returned beyond the wire's fields: %s", (_name, way) => {
  const begin = (options: Partial<VerifierOptions> = {}) => {
    const set = setUp(options);
    return { ...set, ...way(set) };
  };

  it("create, pending: returns the number, the remaining retries and checks, and the time of the next retry", async () => {
    const { create } = begin();
    expect(await create()).toEqual({
      authentication_uuid: expect.any(String),
      created_at: at(0),
      expires_at: at(600),
      status: "pending",
      phone_number,
      remaining_retry: 4,
      remaining_checks: 5,
      next_retry_at: at(30),
    });
  });

  it("create, a policy without retries: next_retry_at is absent", async () => {
    const { create } = begin({ policy: { retryCooldowns: [] } });
    expect(await create()).not.toHaveProperty("next_retry_at");
  });

  it("create, rate_limited: returns retry_after in whole seconds, and no remaining retries or checks", async () => {
    const { create, clock } = begin({ policy: onePerTenMinutes });
    await create();
    clock.advance(100_500);
    const refused = await create();
    expect(refused).toMatchObject({ status: "rate_limited", phone_number, remaining_retry: 0, remaining_checks: 0, retry_after: 500 });
    expect(refused).not.toHaveProperty("next_retry_at");
    clock.advance(499_499);
    expect(await create()).toMatchObject({ status: "rate_limited", retry_after: 1 });
    clock.advance(1);
    const room = await create();
    expect(room.status).toBe("pending");
    expect(room).not.toHaveProperty("retry_after");
  });

  it("create, spam_detected: retry_after is absent, since no limit was reached", async () => {
    const { create } = begin({ spamRules: [{ name: "mine", judge: () => ({ reason: "no" }) }] });
    const refused = await create();
    expect(refused).toMatchObject({ status: "spam_detected", phone_number, remaining_retry: 0, remaining_checks: 0 });
    expect(Object.keys(refused)).not.toContain("retry_after");
  });

  it("every route rejects: create, its repeat and retry return carrier_refused; a later check or retry does not", async () => {
    const { create, retry, check, box, clock } = begin();
    box.answer = async () => ({ outcome: "rejected" });
    const refused = await create({}, { idempotencyKey: "k" });
    expect(refused).toMatchObject({ status: "pending", carrier_refused: true, remaining_retry: 0, remaining_checks: 0 });
    expect(await create({}, { idempotencyKey: "k" })).toEqual(refused);
    const checked = await check(refused.authentication_uuid, "123456");
    expect(checked).toMatchObject({ status: "without_attempt", phone_number });
    expect(checked).not.toHaveProperty("carrier_refused");
    expect(await retry(refused.authentication_uuid)).toMatchObject({ status: "no_attempt", phone_number, remaining_checks: 0 });

    box.answer = async () => ({ outcome: "accepted" });
    const { authentication_uuid, ...accepted } = await create();
    expect(accepted).not.toHaveProperty("carrier_refused");
    box.answer = async () => ({ outcome: "rejected" });
    clock.advance(30_000);
    expect(await retry(authentication_uuid)).toMatchObject({
      status: "denied",
      carrier_refused: true,
      remaining_retry: 4,
      next_retry_at: at(60),
      remaining_checks: 5,
    });
    expect(await retry(authentication_uuid)).not.toHaveProperty("carrier_refused");
  });

  it("retry: returns the remaining budgets with `approved`, and retry_after if a cap blocks it", async () => {
    const policy = { limits: { perNumber: [{ limit: 2, window: 300 }] }, codeLength: 8 };
    const { create, retry, clock } = begin({ policy });
    const { authentication_uuid } = await create();
    clock.advance(30_000);
    expect(await retry(authentication_uuid)).toEqual({
      authentication_uuid,
      created_at: at(30),
      next_retry_at: at(90),
      remaining_retry: 3,
      status: "approved",
      phone_number,
      remaining_checks: 5,
    });
    expect(await retry(authentication_uuid), "the cool-down is no limit").not.toHaveProperty("retry_after");
    clock.advance(60_000);
    expect(await retry(authentication_uuid)).toMatchObject({ status: "rate_limited", retry_after: 210, phone_number, remaining_checks: 5 });
    clock.advance(210_000);
    expect(await retry(authentication_uuid)).toMatchObject({ status: "approved" });
  });

  it("check: returns what is left after each wrong code, and the number except with already_validated", async () => {
    const { create, retry, check, wrong, box } = begin();
    const { authentication_uuid } = await create();
    for (const left of [4, 3])
      expect(await check(authentication_uuid, wrong())).toEqual({
        authentication_uuid,
        status: "invalid",
        phone_number,
        remaining_checks: left,
        remaining_retry: 4,
        next_retry_at: at(30),
      });
    const over = { remaining_checks: 0, remaining_retry: 0 };
    expect(await check(authentication_uuid, box.code())).toEqual({ authentication_uuid, status: "valid", phone_number, ...over });
    expect(await check(authentication_uuid, box.code())).toEqual({ authentication_uuid, status: "already_validated", ...over });
    const again = await retry(authentication_uuid);
    expect(again).toMatchObject({ status: "already_validated", remaining_checks: 0 });
    expect(again).not.toHaveProperty("phone_number");

    const other = await create({ phone_number: numberOf(2) });
    for (let guess = 0; guess < 4; guess++) await check(other.authentication_uuid, wrong());
    const last = { authentication_uuid: other.authentication_uuid, phone_number: numberOf(2), ...over };
    expect(await check(other.authentication_uuid, wrong())).toEqual({ ...last, status: "invalid" });
    expect(await check(other.authentication_uuid, wrong())).toEqual({ ...last, status: "rate_limited" });
  });

  it("expired_auth: the number is absent, whether or not the record still holds it", async () => {
    const { create, retry, check, clock } = begin();
    const { authentication_uuid } = await create();
    clock.advance(600_000);
    for (let again = 0; again < 2; again++) {
      expect(await check(authentication_uuid, "123456")).toEqual({ authentication_uuid, status: "expired_auth", remaining_checks: 0, remaining_retry: 0 });
      expect(Object.keys(await retry(authentication_uuid))).not.toContain("phone_number");
    }
  });

  it("a number with a trunk zero after its country code is returned, sent to and counted in its canonical form", async () => {
    const { create, check, box } = begin({ policy: onePerTenMinutes });
    const typed = phone_number.replace("+33", "+330");
    const { authentication_uuid, ...created } = await create({ phone_number: typed });
    expect(created).toMatchObject({ status: "pending", phone_number });
    expect(box.messages.map(({ to }) => to)).toEqual([phone_number]);
    expect((await create()).status, "one number, one cap").toBe("rate_limited");
    expect(await check(authentication_uuid, box.code())).toMatchObject({ status: "valid", phone_number });
  });

  it("a check repeated under its idempotency key, valid or invalid, returns the number as long as the record exists", async () => {
    const { create, check, wrong, box, clock } = begin();
    const { authentication_uuid } = await create();
    const miss = wrong();
    await check(authentication_uuid, miss, { idempotencyKey: "miss" });
    const valid = await check(authentication_uuid, box.code(), { idempotencyKey: "hit" });
    clock.advance(600_000 + 86_400_000 - 1);
    expect(await check(authentication_uuid, box.code(), { idempotencyKey: "hit" })).toEqual({ ...valid, phone_number });
    expect(await check(authentication_uuid, miss, { idempotencyKey: "miss" })).toMatchObject({ status: "invalid", phone_number, remaining_checks: 0 });
    expect(await check(authentication_uuid, box.code())).not.toHaveProperty("phone_number");
  });
});

describe("retry_after", () => {
  it("is exact with several caps: a second earlier the cap still blocks, then it has room", async () => {
    const limits = {
      perNumber: [
        { limit: 3, window: 100 },
        { limit: 6, window: 1_000 },
      ],
      perDevice: [{ limit: 4, window: 300 }],
      numbersPerDevice: [{ limit: 2, window: 500 }],
    };
    const { create, clock } = setUp({ policy: { limits, maxGuessOdds: 1 } });
    let refused = 0;
    for (let step = 0; step < 400; step++) {
      const fields = { phone_number: numberOf((step * 7) % 4), ...(step % 3 === 0 && { device_id: `device ${step % 2}` }) };
      const { retry_after } = await create(fields);
      if (retry_after === undefined) {
        clock.advance(1_000 + ((step * 7_919) % 40_000));
        continue;
      }
      refused++;
      clock.advance((retry_after - 1) * 1_000);
      expect((await create(fields)).retry_after, `step ${step}`).toBe(1);
      clock.advance(1_000);
      // Another cap may block then, for longer.
      const then = await create(fields);
      expect(then.status === "pending" || (then.retry_after ?? 0) > 1, `step ${step}`).toBe(true);
    }
    expect(refused).toBeGreaterThan(100);
  });

  it("is exact with the spend ceiling, which is counted as a sum", async () => {
    const sender = Object.assign(inbox(), { plan: () => ({ route: "r", price: 1 }) });
    const { create, clock } = setUp({ sender, policy: { limits: { spend: [{ amount: 3, per: "hour" }] } } });
    for (let sent = 0; sent < 3; sent++) {
      expect((await create({ phone_number: numberOf(sent) })).status).toBe("pending");
      clock.advance(600_000);
    }
    const { retry_after = 0 } = await create({ phone_number: numberOf(9) });
    expect(retry_after).toBeGreaterThan(1_200);
    expect(retry_after).toBeLessThanOrEqual(1_800 + 300);
    clock.advance((retry_after - 1) * 1_000);
    expect((await create({ phone_number: numberOf(9) })).retry_after).toBe(1);
    clock.advance(1_000);
    expect((await create({ phone_number: numberOf(9) })).status).toBe("pending");
  });

  it("is exact with a cap over 100, which is counted as a sum", async () => {
    const { create, clock } = setUp({ policy: { limits: { perNumber: [{ limit: 101, window: 3_600 }] }, maxGuessOdds: 1 } });
    for (let sent = 0; sent < 101; sent++) {
      expect((await create()).status).toBe("pending");
      clock.advance(10_000);
    }
    const { retry_after = 0 } = await create();
    expect(retry_after).toBeGreaterThanOrEqual(3_600 - 1_010);
    expect(retry_after).toBeLessThanOrEqual(3_600 - 1_010 + 300);
    clock.advance((retry_after - 1) * 1_000);
    expect((await create()).retry_after).toBe(1);
    clock.advance(1_000);
    expect((await create()).status).toBe("pending");
  });

  it("is exact with a cap that grows with verified users, on create and on retry", async () => {
    const perCustomer = [{ limit: 2, window: 3_600, perVerified: 1 }];
    const { create, retry, check, box, clock } = setUp({ policy: { limits: { perCustomer } } });
    const first = await create({ phone_number: numberOf(1) });
    expect((await check(first.authentication_uuid, box.code())).status).toBe("valid");
    clock.advance(1_200_000);
    expect((await create({ phone_number: numberOf(2) })).status).toBe("pending");
    const { authentication_uuid } = await create({ phone_number: numberOf(3) });
    const { status, retry_after = 0 } = await create({ phone_number: numberOf(4) });
    expect(status).toBe("rate_limited");
    // The sum is stored in twelfths of its window. By then the credit of the first verification has ended too.
    expect(retry_after).toBeGreaterThan(3_600);
    expect(retry_after).toBeLessThanOrEqual(3_600 + 320);
    clock.advance(30_000);
    expect(await retry(authentication_uuid)).toMatchObject({ status: "rate_limited", retry_after: retry_after - 30 });
    clock.advance((retry_after - 31) * 1_000);
    expect((await create({ phone_number: numberOf(6) })).retry_after).toBe(1);
    clock.advance(1_000);
    expect((await create({ phone_number: numberOf(6) })).status).toBe("pending");
  });

  it("is absent if the store does not report when there is room", async () => {
    const store = memoryStore({ name: randomUUID() });
    const silent = new Proxy(store, {
      get(target, name) {
        const own: unknown = Reflect.get(target, name, target);
        if (typeof own !== "function") return own;
        return async (...args: unknown[]) => {
          const answer: unknown = await own.apply(target, args);
          return typeof answer === "object" && answer !== null && "roomSince" in answer ? { ...answer, roomSince: undefined } : answer;
        };
      },
    });
    const { create } = setUp({ store: silent, policy: onePerTenMinutes });
    await create();
    const refused = await create();
    expect(refused.status).toBe("rate_limited");
    expect(refused).not.toHaveProperty("retry_after");
  });
});

describe("the number in the record after a valid check", () => {
  const stored = async (call?: { idempotencyKey: string }) => {
    const store = memoryStore({ name: randomUUID() });
    const set = setUp({ store });
    const { authentication_uuid } = await set.create();
    await set.check(authentication_uuid, set.box.code(), call);
    return { ...set, authentication_uuid, data: (await store.find(set.customer, authentication_uuid))?.data, dump: () => dumpOfMemory(store) };
  };

  it("is masked without an idempotency key and encrypted with one, so that a repeat can return it; never in clear", async () => {
    const plain = await stored();
    expect(plain.data).toContain('"p":"+33612****01"');
    const keyed = await stored({ idempotencyKey: "k" });
    expect(keyed.data).toMatch(/"p":"\+33612\*[\w-]{6}01"/);
    for (const { dump } of [plain, keyed]) expect(traces(dump(), spellingsOf(phone_number, "no mask"))).toEqual([]);
  });

  it("is deleted by an erasure", async () => {
    const { verifier, customer, check, authentication_uuid, box } = await stored({ idempotencyKey: "k" });
    await verifier.erase({ customer_uuid: customer, phone_number });
    expect(await errorCode(check(authentication_uuid, box.code(), { idempotencyKey: "k" }))).toBe("invalid_auth_uuid");
  });

  it("encrypted under a secret that was removed too early: the check returns unavailable and uses up nothing", async () => {
    const [old, next] = ["previous secret ".repeat(3), "next secret ".repeat(3)] as const;
    const first = setUp({ secret: old });
    const { authentication_uuid } = await first.create();
    const share = { store: first.store, clock: first.clock, customers: [{ customer_uuid: first.customer, keys: [first.apiKey] }] };
    const both = setUp({ ...share, secret: [next, old] });
    first.clock.advance(30_000);
    const of = { customer_uuid: first.customer, authentication_uuid };
    expect((await both.verifier.retry(of)).status).toBe("approved");
    const check_code = both.box.code();
    const alone = setUp({ ...share, secret: next });
    expect(await errorCode(alone.verifier.check({ ...of, check_code }))).toBe("unavailable");
    expect(await both.verifier.check({ ...of, check_code })).toMatchObject({ status: "valid", phone_number });
  });
});

describe("a number with a trunk zero after its country code is read as its canonical form everywhere", () => {
  const typed = phone_number.replace("+33", "+330");

  it("in lookup, history, unlock and erase", async () => {
    const { verifier, create, customer } = setUp({ policy: onePerTenMinutes });
    const of = { customer_uuid: customer, phone_number: typed };
    expect(await verifier.lookup(of)).toMatchObject({ phone_number });
    await create();
    expect(await verifier.history(of)).toHaveLength(1);
    expect(await verifier.unlock(of)).toMatchObject({ unlocked: true });
    expect((await create({ phone_number: typed })).status).toBe("pending");
    expect(await verifier.erase(of)).toMatchObject({ erased: 2 });
  });

  it("in testNumbers, with and without a code", async () => {
    const { create, check, box } = setUp({ testNumbers: [{ number: typed, code: "424242" }] });
    const { authentication_uuid } = await create();
    expect(box.messages).toEqual([]);
    expect(await check(authentication_uuid, "424242")).toMatchObject({ status: "valid", phone_number });
    const { create: other } = setUp({ countries: ["GB"], testNumbers: [typed] });
    expect((await other()).status).toBe("pending");
  });

  it.each<[string, Partial<VerifierOptions>]>([
    ["blockedNumbers", { blockedNumbers: [typed] }],
    ["lists.block", { lists: { block: { numbers: [typed] } } }],
    ["lists.block, a function", { lists: { block: () => ({ numbers: [typed] }) } }],
  ])("in %s", async (_name, options) => {
    const { create } = setUp(options);
    expect(await errorCode(create())).toBe("blocked_number");
    expect((await create({ phone_number: numberOf(2) })).status).toBe("pending");
  });

  it("in callbacks with the full number", async () => {
    const posted: string[] = [];
    const callbacks = {
      worker: false,
      fullNumber: true,
      allowOrigins: ["http://127.0.0.1:1"],
      sender: {
        async post({ body }: { body: string }) {
          posted.push(body);
          return { status: 200 };
        },
      },
    };
    const { create, verifier } = setUp({ callbacks });
    await create({ phone_number: typed, callback_url: "http://127.0.0.1:1/hook" });
    await verifier.flush();
    expect(posted.map((body) => JSON.parse(body).data.phone_number)).toEqual([phone_number]);
  });
});
