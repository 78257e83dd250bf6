import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { generateApiKey, type Store } from "../../src/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { start } from "../support/verifier.js";
import { type Fate, rigged, turns } from "./kit.js";
import { counted, flow, keyIdOf, letIn, newNumber, outcome, post, processOn, rightFlow, tenants, wrongFor } from "./store-users-kit.js";

const secretOf = (letter: string) => letter.repeat(40);
const webhookSecret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const stored = (store: Store, more: Parameters<typeof processOn>[1] = {}) => processOn(store, { customers: "store", ...more });

describe("customers in a store", () => {
  it("gives a key to one customer, however many creates race for it (the types of verifier.customers, create)", async () => {
    const store = memoryStore();
    const { key } = generateApiKey();
    const made = await Promise.all([1, 2, 3, 4].map(() => outcome(stored(store).verifier.customers.create({ keys: [key] }))));
    expect(counted(made)).toEqual({ active: 1, bad_request: 3 });
  });

  it("gives a UUID to one customer, and two keys to it, however many processes race (docs/contract.md#customers)", async () => {
    const store = memoryStore();
    const customer_uuid = randomUUID();
    const processes = [1, 2, 3, 4].map(() => stored(store).verifier.customers);
    const made = await Promise.all(
      processes.flatMap((one) => [customer_uuid, customer_uuid.toUpperCase()].map((of) => outcome(one.create({ customer_uuid: of })))),
    );
    expect(counted(made)).toEqual({ active: 1, bad_request: 7 });
    const issued = await Promise.all(processes.flatMap(({ keys }) => [1, 2, 3].map(() => outcome(keys.issue({ customer_uuid })))));
    expect(counted(issued)).toEqual({ active: 2, bad_request: 10 });
    expect(await processes[0]?.list({ limit: 1_000 })).toHaveLength(1);
  });

  it("keeps a revoked key revoked, however many others were revoked after it (docs/customers.md, Keys)", async () => {
    const { verifier } = stored(memoryStore());
    const { key } = generateApiKey();
    const { customer_uuid } = await verifier.customers.create({ keys: [key] });
    await verifier.customers.keys.revoke({ customer_uuid, key_id: keyIdOf(key) });
    expect(await outcome(verifier.customers.create({ keys: [key] }))).toBe("bad_request");
    for (let i = 0; i < 9; i++) {
      const { key_id } = await verifier.customers.keys.issue({ customer_uuid });
      await verifier.customers.keys.revoke({ customer_uuid, key_id });
    }
    expect(await post(verifier, key)).toBe("403 forbidden");
    expect(await outcome(verifier.customers.create({ keys: [key] }))).toBe("bad_request");
    expect(await post(verifier, key)).toBe("403 forbidden");
  });

  it("accepts every documented spelling of a key and a UUID, and no other (docs/contract.md#api-keys)", async () => {
    const { verifier } = stored(memoryStore());
    const { customer_uuid } = await verifier.customers.create({ customer_uuid: randomUUID().toUpperCase() });
    expect(customer_uuid).toBe(customer_uuid.toLowerCase());
    const { key } = await verifier.customers.keys.issue({ customer_uuid });
    for (const right of [key, key.replace("_", "")]) expect(await post(verifier, right), right).toBe(letIn);
    const swapped = key.replace(/[a-zA-Z]/g, (letter) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()));
    for (const wrong of [swapped, ` ${key}`, `${key} `, `${key}\n`, `Bearer ${key}`, `${key},${key}`, keyIdOf(key), key.slice(0, -1), "", "\u0000"])
      expect(await post(verifier, wrong), wrong).toBe("403 forbidden");
    const body = { customer_uuid: customer_uuid.toUpperCase(), phone_number: newNumber() };
    expect(await post(verifier, key, "/v1/authentication", body)).toBe("200 pending");
    const { digest } = generateApiKey();
    await verifier.customers.create({ keys: [digest] });
    for (const taken of [key.replace("_", ""), digest, digest.replace(/[a-f]/g, (letter) => letter.toUpperCase())])
      expect(await outcome(verifier.customers.create({ keys: [taken] })), taken).toBe("bad_request");
  });

  it("loses no change of a customer, and restores no revoked key, while processes use, rotate, re-encrypt and revoke (docs/customers.md, Keys)", async () => {
    for (let round = 0; round < 20; round++) {
      const store = memoryStore();
      const boss = stored(store, { secret: secretOf("a") }).verifier;
      const { customer_uuid } = await boss.customers.create({ webhookSecrets: [webhookSecret], policy: { checks: 3 } });
      const { key, key_id } = await boss.customers.keys.issue({ customer_uuid });
      const users = [1, 2, 3].map(() => stored(store, { secret: [secretOf("b"), secretOf("a")] }).verifier);
      await Promise.all([
        ...users.map((one) => post(one, key)),
        boss.customers.keys.revoke({ customer_uuid, key_id }),
        boss.customers.suspend({ customer_uuid }),
        boss.customers.update({ customer_uuid, webhookSecrets: null }),
        boss.customers.update({ customer_uuid, policy: null, name: "e\u0301" }),
        boss.customers.keys.issue({ customer_uuid }),
      ]);
      await turns();
      expect(await boss.customers.get({ customer_uuid })).toMatchObject({ status: "suspended", name: "e\u0301", webhook_secrets: 0 });
      expect(await boss.customers.get({ customer_uuid })).not.toHaveProperty("policy");
      expect((await boss.customers.keys.list({ customer_uuid })).map(({ status }) => status)).toEqual(["active", "revoked"]);
      expect(await post(stored(store, { secret: secretOf("a") }).verifier, key)).toBe("403 forbidden");
    }
  });

  it.each(["refused", "lost"] as const)(
    "a create whose store call is %s can be repeated, and creates one customer (the types of verifier.customers)",
    async (how) => {
      for (let at = 0; ; at++) {
        const base = memoryStore();
        const rig = rigged(base);
        const [first, second] = [generateApiKey().key, generateApiKey().key];
        const customer = { customer_uuid: randomUUID(), keys: [first, second] };
        rig.fate = (): Fate => (rig.count() === at + 1 ? how : "done");
        const made = await outcome(stored(rig).verifier.customers.create(customer));
        if (rig.count() <= at) break;
        expect(made).toBe("unavailable");
        const { customers } = stored(base).verifier;
        const there = (await outcome(customers.get({ customer_uuid: customer.customer_uuid }))) === "active";
        expect(await outcome(customers.create(customer))).toBe(there ? "bad_request" : "active");
        expect(await customers.list({ limit: 10 })).toHaveLength(1);
        for (const key of [first, second]) expect(await post(stored(base).verifier, key)).toBe(letIn);
      }
    },
  );

  it("re-encrypts the webhook secrets of a customer that calls, although a process with the old order reads them in between (docs/customers.md)", async () => {
    const store = memoryStore();
    const clock = fixedClock(start);
    const at = (...letters: string[]) => stored(store, { clock, secret: letters.map(secretOf) as [string, string] }).verifier;
    const older = at("a", "b");
    const newer = at("b", "a");
    const { customer_uuid } = await older.customers.create({ webhookSecrets: [webhookSecret] });
    const { key } = await older.customers.keys.issue({ customer_uuid });
    // A roll-out of step 2 of docs/operations.md#rotate: for a while both orders run, and in the end only the new one.
    for (const one of [newer, older, newer]) {
      clock.advance(5_000);
      expect(await post(one, key)).toBe(letIn);
      await turns();
    }
    clock.advance(86_400_000);
    expect(await post(stored(store, { clock, secret: secretOf("b") }).verifier, key)).toBe(letIn);
  });

  it("re-encrypts the webhook secrets of a customer that is updated during a rotation (docs/customers.md, Policies, secrets, migration)", async () => {
    const store = memoryStore();
    const before = stored(store, { secret: secretOf("a") }).verifier.customers;
    const { customer_uuid } = await before.create({ webhookSecrets: [webhookSecret] });
    const { key } = await before.keys.issue({ customer_uuid });
    await stored(store, { secret: [secretOf("b"), secretOf("a")] }).verifier.customers.update({ customer_uuid, name: "ACME" });
    const after = stored(store, { secret: secretOf("b") }).verifier;
    expect(await post(after, key)).toBe(letIn);
    expect(await after.webhookSecrets(customer_uuid)).toEqual([webhookSecret]);
  });

  it("posts full or masked numbers, and nothing else, after a rotation of the documented length (docs/operations.md#rotate)", async () => {
    for (const fullNumber of [true, false]) {
      const store = memoryStore();
      const clock = fixedClock(start);
      const bodies: string[] = [];
      let up = false;
      const sender = { post: async ({ body }: { readonly body: string }) => (up ? { status: bodies.push(body) && 204 } : { status: 503 }) };
      const at = (secret: string | [string, string]) => processOn(store, { clock, secret, callbacks: { worker: false, fullNumber, sender } }).verifier;
      const [a, b] = [secretOf("a"), secretOf("b")];
      const first = at([a, b]);
      const numbers = Array.from({ length: 20 }, newNumber);
      for (const phone_number of numbers) await first.createAuthentication({ phone_number, callback_url: "https://receiver.example/hook" });
      // Step 2 lasts longer than `lifetime` and `tombstone`, while the receiver is down; then step 3.
      const second = at([b, a]);
      for (let hours = 0; hours < 25; hours++) {
        clock.advance(3_600_000);
        await second.flush();
      }
      up = true;
      clock.advance(30 * 3_600_000);
      await at(b).flush();
      expect(bodies).toHaveLength(numbers.length);
      const allowed = new Set(numbers.flatMap((number) => [number, `${number.slice(0, 6)}****${number.slice(-2)}`]));
      const posted = bodies.map((body) => JSON.parse(body).data.phone_number as string);
      expect
        .soft(
          posted.filter((number) => !allowed.has(number)),
          `fullNumber: ${fullNumber}`,
        )
        .toEqual([]);
    }
  });

  it("finds and erases what was stored before a rotation, while both secrets are set (docs/privacy.md#erase)", async () => {
    for (const [old, next] of [
      [secretOf("a"), secretOf("b")],
      [secretOf("b"), secretOf("a")],
    ] as const) {
      const store = memoryStore();
      const phone_number = newNumber();
      const before = processOn(store, { secret: old });
      const { authentication_uuid } = await before.verifier.createAuthentication({ phone_number });
      const { verifier } = processOn(store, { secret: [next, old] });
      expect.soft(await verifier.history({ phone_number }), "history").toHaveLength(1);
      expect.soft((await verifier.erase({ phone_number })).erased, "erase").toBe(1);
      expect.soft(await outcome(verifier.explain({ authentication_uuid })), "explain").toBe("invalid_auth_uuid");
      const check_code = before.codeOf(authentication_uuid);
      expect.soft(await outcome(verifier.check({ authentication_uuid, check_code })), "check").toBe("invalid_auth_uuid");
    }
  });

  it("gives pending codes no more guesses than their length allows when the policy changes (docs/contract.md#guess-budget)", async () => {
    const one = stored(memoryStore());
    const { customer_uuid } = await one.verifier.customers.create();
    const { authentication_uuid } = await one.verifier.createAuthentication({ customer_uuid, phone_number: newNumber() });
    await one.verifier.customers.update({ customer_uuid, policy: { codeLength: 8, checks: 1_000 } });
    const code = one.codeOf(authentication_uuid);
    let guesses = 0;
    while (guesses < 150 && (await outcome(one.verifier.check({ customer_uuid, authentication_uuid, check_code: wrongFor(code) }))) === "invalid") guesses++;
    // `maxGuessOdds`: at most 1e-4 for a code of six digits.
    expect(guesses).toBeLessThanOrEqual(100);
  });

  it("counts the checks of a pending verification by the current policy, and never from zero again (docs/contract.md#checks)", async () => {
    const one = stored(memoryStore());
    const { customer_uuid } = await one.verifier.customers.create();
    const { authentication_uuid } = await one.verifier.createAuthentication({ customer_uuid, phone_number: newNumber() });
    const code = one.codeOf(authentication_uuid);
    const check = (check_code: string) => outcome(one.verifier.check({ customer_uuid, authentication_uuid, check_code }));
    for (let i = 0; i < 3; i++) expect(await check(wrongFor(code))).toBe("invalid");
    await one.verifier.customers.update({ customer_uuid, policy: { checks: 2 } });
    expect(await check(code)).toBe("rate_limited");
    await one.verifier.customers.update({ customer_uuid, policy: null });
    await one.verifier.customers.suspend({ customer_uuid });
    expect(await check(code)).toBe("account_invalid");
    await one.verifier.customers.resume({ customer_uuid });
    for (let i = 0; i < 2; i++) expect(await check(wrongFor(code))).toBe("invalid");
    expect(await check(code)).toBe("rate_limited");
  });

  it("locks the codes of a number for at most 36 hours (docs/fraud.md, what an attacker can lock)", async () => {
    const clock = fixedClock(start);
    const one = processOn(memoryStore(), { clock, clockSkew: 0 });
    const phone_number = newNumber();
    for (let message = 0; message < 10; message++) {
      const { authentication_uuid } = await one.verifier.createAuthentication({ phone_number });
      const check_code = wrongFor(one.codeOf(authentication_uuid));
      for (let i = 0; i < 5; i++) expect(await outcome(one.verifier.check({ authentication_uuid, check_code }))).toBe("invalid");
      clock.advance(130_000);
    }
    clock.advance(36 * 3_600_000);
    const { authentication_uuid } = await one.verifier.createAuthentication({ phone_number });
    expect(await outcome(one.verifier.check({ authentication_uuid, check_code: one.codeOf(authentication_uuid) }))).toBe("valid");
  });
});

describe.skipIf(!redisIsInstalled("tenants"))("many customers in one store", () => {
  let server: RedisServer;
  let client: Redis;
  beforeAll(async () => {
    server = await startRedis();
    client = new Redis(server.port);
  });
  afterAll(async () => {
    client.disconnect();
    await server.stop();
  });
  const store = () => redisStore({ client });
  const idOf = ({ customer_uuid }: { readonly customer_uuid: string }) => customer_uuid;

  it("keeps the caps, ceilings and statistics of each customer separate when several processes race (docs/contract.md#caps)", async () => {
    const policies = [{ perCustomer: [{ limit: 7, window: 3_600 }] }, { spend: [{ amount: 0.5, per: "hour" as const }] }, {}];
    const customers = policies.flatMap((limits) => tenants(1, { limits }));
    const processes = [1, 2, 3, 4].map(() => processOn(store(), { customers, statistics: { keep: 86_400 } }));
    const numbers = Array.from({ length: 20 }, newNumber);
    const all = await Promise.all(
      customers.flatMap(({ customer_uuid }, who) =>
        numbers.map(
          async (phone_number, i) =>
            `${who} ${await outcome((processes[i % 4] as (typeof processes)[0]).verifier.createAuthentication({ customer_uuid, phone_number }))}`,
        ),
      ),
    );
    expect(counted(all)).toEqual({ "0 pending": 7, "0 rate_limited": 13, "1 pending": 5, "1 rate_limited": 15, "2 pending": 20 });
    for (const { verifier } of processes) await verifier.close();
    const { verifier } = processOn(store(), { customers, statistics: { keep: 86_400 } });
    const [from, to] = [new Date(Date.now() - 3_600_000), new Date()];
    const stats = await Promise.all(customers.map(({ customer_uuid }) => verifier.stats({ customer_uuid, from, to })));
    expect(stats.map(({ sends, refused }) => [sends, refused])).toEqual([
      [7, 13],
      [5, 15],
      [20, 0],
    ]);
  });

  it("reveals nothing of one customer's number to another, and erases it for that customer alone (docs/privacy.md#erase)", async () => {
    const customers = tenants(2);
    const [a, b] = customers.map(idOf) as [string, string];
    const [one, other] = [processOn(store(), { customers }), processOn(store(), { customers })];
    const phone_number = newNumber();
    const call = { idempotencyKey: "the same" };
    const ofA = await one.verifier.createAuthentication({ customer_uuid: a, phone_number }, call);
    const ofB = await other.verifier.createAuthentication({ customer_uuid: b, phone_number }, call);
    expect(ofA.authentication_uuid).not.toBe(ofB.authentication_uuid);
    const { authentication_uuid } = ofA;
    const code = one.codeOf(authentication_uuid);
    expect(await outcome(one.verifier.check({ customer_uuid: b, authentication_uuid, check_code: code }))).toBe("invalid_auth_uuid");
    expect(await outcome(other.verifier.retry({ customer_uuid: b, authentication_uuid }))).toBe("invalid_auth_uuid");
    expect(await outcome(one.verifier.explain({ customer_uuid: b, authentication_uuid }))).toBe("invalid_auth_uuid");
    for (let i = 0; i < 5; i++) await outcome(one.verifier.createAuthentication({ customer_uuid: a, phone_number }));
    const { erased } = await other.verifier.erase({ customer_uuid: a, phone_number });
    expect(erased).toBeGreaterThanOrEqual(5);
    expect(await outcome(one.verifier.check({ customer_uuid: a, authentication_uuid, check_code: code }))).toBe("invalid_auth_uuid");
    expect(await one.verifier.history({ customer_uuid: a, phone_number })).toEqual([]);
    expect(await outcome(one.verifier.createAuthentication({ customer_uuid: a, phone_number }))).toBe("rate_limited");
    const left = { customer_uuid: b, authentication_uuid: ofB.authentication_uuid, check_code: other.codeOf(ofB.authentication_uuid) };
    expect(await outcome(one.verifier.check(left))).toBe("valid");
  });

  it("counts names that only look alike separately, and hides them (docs/contract.md#hashed-names)", async () => {
    const customers = tenants(1, { limits: { perDevice: [{ limit: 1, window: 3_600 }], numbersPerDevice: [] } });
    const customer_uuid = idOf(customers[0] as { customer_uuid: string });
    const { verifier } = processOn(store(), { customers });
    const create = (device_id: string) => outcome(verifier.createAuthentication({ customer_uuid, phone_number: newNumber(), device_id }));
    const long = "x".repeat(127);
    const names = ["é", "e\u0301", "dev", "DEV", "dev ", "a:b", "a|b", "a", "{a}", "a}", "*", `${long}a`, `${long}b`, "😀", "😁", "ß", "ss", "ﬁ", "fi"];
    for (const name of names) expect(await create(name), name).toBe("pending");
    for (const name of names) expect(await create(name), name).toBe("rate_limited");
    for (const name of ["\ud800", `${long}ab`, "", "a\u0000"]) expect(await create(name), name).toBe("invalid_device_id");
    expect((await client.keys("*")).filter((key) => key.includes(long))).toEqual([]);
  });

  it("shares caps, idempotency keys and codes between processes with the secrets in either order (docs/contract.md#secret-rotation)", async () => {
    const customers = tenants(1);
    const customer_uuid = idOf(customers[0] as { customer_uuid: string });
    const [ab, ba] = [["a", "b"] as const, ["b", "a"] as const].map((letters) =>
      processOn(store(), { customers, secret: letters.map(secretOf) as [string, string] }),
    ) as [ReturnType<typeof processOn>, ReturnType<typeof processOn>];
    const phone_number = newNumber();
    const turn = (i: number) => (i % 2 ? ab : ba);
    const sends = await Promise.all(Array.from({ length: 20 }, (_, i) => outcome(turn(i).verifier.createAuthentication({ customer_uuid, phone_number }))));
    expect(counted(sends)).toEqual({ pending: 5, rate_limited: 15 });
    const of = { customer_uuid, phone_number: newNumber() };
    const made = await Promise.all(Array.from({ length: 8 }, (_, i) => turn(i).verifier.createAuthentication(of, { idempotencyKey: "one" })));
    const ids = new Set(made.map(({ authentication_uuid }) => authentication_uuid));
    expect(ids.size).toBe(1);
    const [authentication_uuid] = [...ids] as [string];
    const codes = [ab, ba].map(({ codeOf }) => codeOf(authentication_uuid)).filter((code) => code !== "none");
    expect(codes).toHaveLength(1);
    const checks = await Promise.all(
      Array.from({ length: 6 }, (_, i) => outcome(turn(i).verifier.check({ customer_uuid, authentication_uuid, check_code: codes[0] as string }))),
    );
    expect(counted(checks)).toEqual({ valid: 1, already_validated: 5 });
    const third = processOn(store(), { customers });
    expect(await flow(third, { customer_uuid })).toBe(rightFlow);
  });
});
