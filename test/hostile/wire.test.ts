import { describe, expect, it } from "vitest";
import { PlainStore, TwoStepStore } from "../store/plain-store.js";
import { drive, keyOf, numberAt, rigged, type Service, service, wide } from "./kit.js";

type Json = Record<string, unknown>;

const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** One request over HTTP; the body of the response is checked against the rules of its operation. */
async function post(one: Service, operation: "authentication" | "retry" | "check", fields: Json, headers: Record<string, string> = {}): Promise<Json> {
  const all: Record<string, string> = { "x-api-key": keyOf(one.customer), ...headers };
  const answer = await drive(
    one.clock,
    one.verifier.http.handle({
      method: "POST",
      path: `/v1/${operation}`,
      header: (name) => all[name],
      body: async () => ({ kind: "text", text: JSON.stringify({ customer_uuid: one.customer, ...fields }) }),
    }),
  );
  expect(answer.status).toBe(200);
  expect(answer.headers["content-type"]).toMatch(/^application\/json/);
  const body = JSON.parse(answer.body) as Json;
  const keys = {
    authentication: ["authentication_uuid", "created_at", "expires_at", "status"],
    retry: ["authentication_uuid", "created_at", "next_retry_at", "remaining_retry", "status"],
    check: ["authentication_uuid", "status"],
  }[operation];
  expect(Object.keys(body).sort()).toEqual(keys);
  expect(body["authentication_uuid"]).toMatch(uuid);
  for (const key of keys) if (key.endsWith("_at")) expect(body[key]).toMatch(time);
  const statuses = {
    authentication: ["pending", "rate_limited", "spam_detected"],
    retry: ["approved", "denied", "no_attempt", "rate_limited", "expired_auth", "already_validated"],
    check: ["valid", "invalid", "without_attempt", "rate_limited", "already_validated", "expired_auth"],
  }[operation];
  expect(statuses).toContain(body["status"]);
  if (operation === "retry") {
    expect(Number.isInteger(body["remaining_retry"]) && (body["remaining_retry"] as number) >= 0).toBe(true);
    expect(Date.parse(body["created_at"] as string)).toBe(one.clock.now());
    if (["expired_auth", "already_validated", "rate_limited", "no_attempt"].includes(body["status"] as string)) expect(body["remaining_retry"]).toBe(0);
  }
  return body;
}

describe.each([
  ["one step", () => new PlainStore()],
  ["two steps", () => new TwoStepStore()],
])("the results of create, retry and check, on a store of %s", (_, open) => {
  const create = (one: Service, fields: Json = {}, headers?: Record<string, string>) =>
    post(one, "authentication", { phone_number: numberAt(1), ...fields }, headers);
  const retry = (one: Service, id: unknown) => post(one, "retry", { authentication_uuid: id });
  const check = (one: Service, id: unknown, code: string) => post(one, "check", { authentication_uuid: id, check_code: code });
  const codeOf = (one: Service, id: unknown) => one.sender.codeOf(id as string);

  it("a verification's statuses: pending, denied, approved, invalid, valid, already_validated, expired_auth", async () => {
    const one = service({ store: open() });
    const created = await create(one);
    expect(created).toMatchObject({ status: "pending" });
    const at = one.clock.now();
    expect(Date.parse(created["expires_at"] as string) - at).toBe(600_000);
    const id = created["authentication_uuid"];
    const iso = (ms: number) => new Date(ms).toISOString();
    expect(await retry(one, id)).toMatchObject({ status: "denied", remaining_retry: 4, next_retry_at: iso(at + 30_000) });
    one.clock.advance(29_999);
    expect(await retry(one, id)).toMatchObject({ status: "denied", remaining_retry: 4, next_retry_at: iso(at + 30_000) });
    one.clock.advance(1);
    expect(await retry(one, id)).toMatchObject({ status: "approved", remaining_retry: 3, next_retry_at: iso(at + 90_000) });
    expect(await check(one, id, one.wrong(id as string))).toMatchObject({ status: "invalid", authentication_uuid: id });
    expect(await check(one, id, codeOf(one, id))).toMatchObject({ status: "valid" });
    expect(await check(one, id, codeOf(one, id))).toMatchObject({ status: "already_validated" });
    expect(await retry(one, id)).toMatchObject({ status: "already_validated", remaining_retry: 0, next_retry_at: created["expires_at"] });
    one.clock.advance(600_000);
    expect(await check(one, id, codeOf(one, id))).toMatchObject({ status: "expired_auth" });
    expect(await retry(one, id)).toMatchObject({ status: "expired_auth", remaining_retry: 0, next_retry_at: created["expires_at"] });
  });

  it("a create that a cap rejects is rate_limited, and so are its retry and check", async () => {
    const one = service({ store: open(), policy: { limits: { ...wide, perCustomer: [{ limit: 1, window: 3600 }] } } });
    await create(one);
    const refused = await create(one, { phone_number: numberAt(2) });
    expect(refused).toMatchObject({ status: "rate_limited" });
    const id = refused["authentication_uuid"];
    expect(await retry(one, id)).toMatchObject({ status: "rate_limited", remaining_retry: 0, next_retry_at: refused["expires_at"] });
    expect(await check(one, id, "123456")).toMatchObject({ status: "rate_limited" });
  });

  it("a create that is spam_detected gives without_attempt on check and no_attempt on retry", async () => {
    const one = service({ store: open(), spamRules: [{ name: "mine", judge: () => ({ reason: "always" }) }] });
    const flagged = await create(one);
    expect(flagged).toMatchObject({ status: "spam_detected" });
    expect(one.sender.messages).toEqual([]);
    const id = flagged["authentication_uuid"];
    // Nothing was sent.
    expect(await check(one, id, "123456")).toMatchObject({ status: "without_attempt" });
    expect(await retry(one, id)).toMatchObject({ status: "no_attempt", remaining_retry: 0, next_retry_at: flagged["expires_at"] });
  });

  it("rate_limited: a check after five wrong codes, a retry after four retries, and a retry beyond a cap", async () => {
    const one = service({ store: open() });
    const id = (await create(one))["authentication_uuid"];
    for (let i = 0; i < 5; i++) expect(await check(one, id, one.wrong(id as string))).toMatchObject({ status: "invalid" });
    expect(await check(one, id, codeOf(one, id))).toMatchObject({ status: "rate_limited" });
    one.clock.advance(31_000);
    expect(await retry(one, id)).toMatchObject({ status: "rate_limited", remaining_retry: 0 });

    const second = await create(one, { phone_number: numberAt(2) });
    for (const wait of [30, 60, 90, 120]) {
      one.clock.advance(wait * 1_000);
      expect(await retry(one, second["authentication_uuid"])).toMatchObject({ status: "approved" });
    }
    one.clock.advance(120_000);
    expect(await retry(one, second["authentication_uuid"])).toMatchObject({ status: "rate_limited", remaining_retry: 0, next_retry_at: second["expires_at"] });
    expect(await check(one, second["authentication_uuid"], codeOf(one, second["authentication_uuid"]))).toMatchObject({ status: "valid" });

    const third = await create(one, { phone_number: numberAt(3) });
    for (let i = 0; i < 4; i++) await create(one, { phone_number: numberAt(3) });
    one.clock.advance(31_000);
    expect(await retry(one, third["authentication_uuid"])).toMatchObject({ status: "rate_limited", remaining_retry: 0, next_retry_at: third["expires_at"] });
    expect(await check(one, third["authentication_uuid"], codeOf(one, third["authentication_uuid"]))).toMatchObject({ status: "valid" });
  });

  it("without_attempt and no_attempt if every route rejects the first message; denied if it rejects a retry's", async () => {
    const one = service({ store: open() });
    one.sender.answer = async () => ({ outcome: "rejected" });
    const created = await create(one);
    expect(created).toMatchObject({ status: "pending" });
    const id = created["authentication_uuid"];
    expect(await check(one, id, "123456")).toMatchObject({ status: "without_attempt" });
    expect(await retry(one, id)).toMatchObject({ status: "no_attempt", remaining_retry: 0, next_retry_at: created["expires_at"] });

    one.sender.answer = async () => ({ outcome: "accepted" });
    const second = (await create(one, { phone_number: numberAt(2) }))["authentication_uuid"];
    one.clock.advance(30_000);
    one.sender.answer = async () => ({ outcome: "rejected" });
    const at = one.clock.now();
    // "the cool-down starts again": that of this retry.
    const denied = await retry(one, second);
    expect(denied).toMatchObject({ status: "denied", remaining_retry: 4 });
    expect(Date.parse(denied["next_retry_at"] as string)).toBeGreaterThan(at);
    expect(await retry(one, second)).toMatchObject({ status: "denied", remaining_retry: 4, next_retry_at: denied["next_retry_at"] });
    expect(await check(one, second, one.sender.codeOf(second as string, 1))).toMatchObject({ status: "valid" });
  });

  it("next_retry_at is never later than expires_at", async () => {
    const one = service({ store: open(), policy: { lifetime: 100 } });
    const created = await create(one);
    const id = created["authentication_uuid"];
    one.clock.advance(60_000);
    expect(await retry(one, id)).toMatchObject({ status: "approved", remaining_retry: 3, next_retry_at: created["expires_at"] });
    expect(await retry(one, id)).toMatchObject({ status: "denied", remaining_retry: 3, next_retry_at: created["expires_at"] });
    one.clock.advance(39_999);
    expect(await retry(one, id)).toMatchObject({ status: "denied" });
    one.clock.advance(1);
    expect(await retry(one, id)).toMatchObject({ status: "expired_auth", remaining_retry: 0 });
  });

  it("a check while the message is still being sent is evaluated", async () => {
    const one = service({ store: open() });
    let seen: Json | undefined;
    one.sender.answer = async ({ authentication_uuid, code }) => {
      seen = await check(one, authentication_uuid, code);
      return { outcome: "accepted" };
    };
    const created = await create(one);
    expect(seen).toMatchObject({ status: "valid" });
    expect(created).toMatchObject({ status: "pending" });
    expect(await check(one, created["authentication_uuid"], "123456")).toMatchObject({ status: "already_validated" });
  });

  it("a rejection that arrives after the code was entered does not revoke `valid`", async () => {
    const one = service({ store: open() });
    let seen: Json | undefined;
    one.sender.answer = async ({ authentication_uuid, code }) => {
      seen = await check(one, authentication_uuid, code);
      return { outcome: "rejected" };
    };
    const created = await create(one);
    expect(seen).toMatchObject({ status: "valid" });
    expect(await check(one, created["authentication_uuid"], "123456")).toMatchObject({ status: "already_validated" });
    expect(await retry(one, created["authentication_uuid"])).toMatchObject({ status: "already_validated" });
  });

  it("of 200 concurrent wrong codes in two processes, five are `invalid`", async () => {
    const store = open();
    const one = service({ store });
    const two = service({ store, clock: one.clock, customer: one.customer });
    const id = (await create(one))["authentication_uuid"];
    const statuses = await Promise.all(Array.from({ length: 200 }, async (__, i) => (await check(i % 2 ? one : two, id, one.wrong(id as string)))["status"]));
    expect(statuses.filter((status) => status === "invalid")).toHaveLength(5);
    expect(statuses.filter((status) => status === "rate_limited")).toHaveLength(195);
  });

  it("of 200 concurrent right codes in two processes, one is `valid`; 200 concurrent retries send one message", async () => {
    const store = open();
    const one = service({ store });
    const two = service({ store, clock: one.clock, customer: one.customer });
    const id = (await create(one))["authentication_uuid"];
    one.clock.advance(30_000);
    const retries = await Promise.all(Array.from({ length: 200 }, async (__, i) => (await retry(i % 2 ? one : two, id))["status"]));
    expect(retries.filter((status) => status === "approved")).toHaveLength(1);
    expect(retries.filter((status) => status === "denied")).toHaveLength(199);
    expect(one.sender.messages.length + two.sender.messages.length).toBe(2);
    const code = [...one.sender.messages, ...two.sender.messages].find(({ attempt }) => attempt === 2)?.code ?? "";
    const checks = await Promise.all(Array.from({ length: 200 }, async (__, i) => (await check(i % 2 ? one : two, id, code))["status"]));
    expect(checks.filter((status) => status === "valid")).toHaveLength(1);
    expect(checks.filter((status) => status === "already_validated")).toHaveLength(199);
  });
});

describe("round trips", () => {
  it.each([
    ["without a ceiling", {}],
    [
      "with a ceiling",
      {
        spend: [
          { amount: 1_000, per: "day" as const },
          { amount: 1_000, per: "hour" as const },
        ],
      },
    ],
  ])("%s: a create costs 1, a retry up to 2, a check 2 in another process and 1 in the same", async (_, limits) => {
    const store = rigged(new PlainStore());
    const one = service({ store, price: 1, policy: { limits } });
    const trips = async (call: () => Promise<unknown>) => {
      const before = store.count();
      await call();
      return store.count() - before;
    };
    let id = "";
    expect(await trips(async () => void (id = (await one.create(1, { device_id: "device", ip: "203.0.113.7" })).authentication_uuid))).toBe(1);
    expect(await trips(() => one.check(id, one.wrong(id)))).toBe(1);
    one.clock.advance(30_000);
    expect(await trips(() => one.retry(id))).toBeLessThanOrEqual(2);
    const other = service({ store, price: 1, policy: { limits }, clock: one.clock, customer: one.customer });
    expect(await trips(() => other.check(id, one.wrong(id)))).toBe(2);
    // Its own copy is stale: one lost race, and the additional call of a right code.
    expect(await trips(() => one.check(id, one.sender.codeOf(id)))).toBeLessThanOrEqual(3);
  });

  it("a create with every field, a key and a callback waits for one store call before its message is sent", async () => {
    const store = rigged(new PlainStore());
    const one = service({ store });
    let before = 0;
    one.sender.answer = async () => {
      before = Math.max(before, store.count());
      return { outcome: "accepted" };
    };
    await one.create(
      1,
      { device_id: "device", ip: "203.0.113.7", device_type: "ANDROID", app_realm: "abcdefghijk", callback_url: "https://receiver.example/" },
      { idempotencyKey: "k" },
    );
    expect(before).toBe(1);
  });
});
