import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import type { AuthenticationResult, Customers, VerifierOptions } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/index.js";
import { callbackUrl, drive, ending, keyOf, numberAt, pass, rigged, type Service, sender, service, tallied, turns, wide } from "../hostile/kit.js";
import { PlainStore } from "../store/plain-store.js";
import { start } from "../support/verifier.js";

/** Everything in the life of an authentication that depends on options. */
async function life(one: Service): Promise<unknown> {
  const created = await one.create(1, { device_id: "device", ip: "203.0.113.7", device_type: "WEB" });
  const id = created.authentication_uuid;
  const first = one.sender.codeOf(id);
  const denied = await one.retry(id);
  one.clock.advance(30_000);
  const approved = await one.retry(id);
  const wrong = [await ending(one.check(id, one.wrong(id))), await ending(one.check(id, one.wrong(id)))];
  const right = await ending(one.check(id, first));
  const more: string[] = [];
  for (let i = 0; i < 5; i++) more.push(await ending(one.create(1, { device_id: `d${i}` })));
  const devices: string[] = [];
  for (let i = 0; i < 6; i++) devices.push(await ending(one.create(10 + i, { device_id: "another" })));
  const second = await one.create(30);
  one.clock.advance(600_000);
  const late = await ending(one.check(second.authentication_uuid, one.sender.codeOf(second.authentication_uuid)));
  const at = (text: string) => Date.parse(text) - start;
  return {
    lifetime: at(created.expires_at) - at(created.created_at),
    retries: [denied, approved].map(({ status, remaining_retry, next_retry_at }) => [status, remaining_retry, at(next_retry_at)]),
    checks: [...wrong, right],
    more,
    devices,
    late,
    codeLength: first.length,
    text: one.sender.messages[0]?.text.replace(/\d+/, "#"),
    lookup: await one.verifier.lookup({ phone_number: "+14155552671", customer_uuid: one.customer } as never),
  };
}

/** The options of the table of defaults, docs/options.md. */
const paths = [...readFileSync(new URL("../../docs/options.md", import.meta.url), "utf8").matchAll(/^\| `([A-Za-z.]+)` \| `[^`]*` \|/gm)]
  .map(([, path]) => path as string)
  .filter((path) => /^(policy|callbacks|message|sendTimeout|storeTimeout|lookupTimeout|clockSkew|phoneValidation|ambiguousLineType)/.test(path));

const under = (path: string, value: unknown): Record<string, unknown> =>
  path.split(".").reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Record<string, unknown>;

describe("an option that is `undefined`", () => {
  it("is listed in the table of defaults", () => expect(paths.length).toBeGreaterThan(20));

  it("changes nothing, for each option alone", async () => {
    const expected = await life(service());
    for (const path of paths) expect(await life(service(under(path, undefined) as Partial<VerifierOptions>)), path).toEqual(expected);
  });

  it("changes nothing in a customer's policy, for each option alone", async () => {
    const expected = await life(service());
    for (const path of paths) {
      if (!path.startsWith("policy.")) continue;
      const customer = randomUUID();
      const one = service({
        customer,
        customers: [{ customer_uuid: customer, keys: [keyOf(customer)], webhookSecrets: undefined, ...under(path, undefined) }],
      });
      expect(await life(one), path).toEqual(expected);
    }
  });

  it("changes nothing for all options at once, and for whole groups", async () => {
    const expected = await life(service());
    const all: Record<string, unknown> = {};
    for (const path of paths) {
      const [group, ...rest] = path.split(".") as [string, ...string[]];
      const merge = (into: Record<string, unknown>, keys: readonly string[]): void => {
        const [key, ...more] = keys as [string, ...string[]];
        if (more.length === 0) into[key] = undefined;
        else merge(((into[key] as Record<string, unknown> | undefined) ??= {}) as Record<string, unknown>, more);
      };
      if (rest.length === 0) all[group] = undefined;
      else merge((all[group] ??= {}) as Record<string, unknown>, rest);
    }
    expect(
      await life(
        service({
          ...all,
          pepper: undefined,
          spamRules: undefined,
          testNumbers: undefined,
          blockedNumbers: undefined,
          receipts: undefined,
          lookup: undefined,
          docUrl: undefined,
          callbacks: { ...(all["callbacks"] as object), allowOrigins: undefined, waitUntil: undefined, worker: false },
        } as Partial<VerifierOptions>),
      ),
    ).toEqual(expected);
    expect(await life(service({ policy: undefined, message: undefined, logger: undefined, callbacks: { concurrency: undefined } }))).toEqual(expected);
    expect(
      await life(service({ policy: { limits: undefined }, message: { text: undefined, locale: undefined, maxSegments: undefined, domain: undefined } })),
    ).toEqual(expected);
  });

  it("in an override keeps the value of the verifier's policy, not the default", async () => {
    const customer = randomUUID();
    const one = service({
      customer,
      policy: {
        lifetime: 120,
        codeLength: 8,
        limits: {
          perNumber: [
            { limit: 2, window: 600 },
            { limit: 10, window: 86_400 },
          ],
        },
      },
      customers: [
        {
          customer_uuid: customer,
          keys: [keyOf(customer)],
          policy: { lifetime: undefined, codeLength: undefined, checks: 3, limits: { perNumber: undefined, perDevice: undefined } },
        },
      ],
    });
    const created = await one.create(1);
    expect(Date.parse(created.expires_at) - Date.parse(created.created_at)).toBe(120_000);
    expect(one.sender.codeOf(created.authentication_uuid)).toHaveLength(8);
    expect([await ending(one.create(1)), await ending(one.create(1))]).toEqual(["pending", "rate_limited"]);
  });

  it("of the router changes nothing", async () => {
    const plain = sender();
    const route = router({
      routes: [
        { name: "a", sender: plain, countries: undefined, prefixes: undefined, networks: undefined, priority: undefined, weight: undefined, price: undefined },
      ],
      network: undefined,
      cheapestFirst: undefined,
      failover: { afterUnknown: undefined, maxRoutes: undefined },
      health: {
        window: undefined,
        settle: undefined,
        slowAfter: undefined,
        minSample: undefined,
        tolerance: { conversion: undefined, latency: undefined } as never,
        probeAfter: undefined,
        probeShare: undefined,
        probes: undefined,
      },
      store: undefined,
      logger: undefined,
      clock: undefined,
      random: undefined,
    });
    for (const routed of [
      route,
      router({ routes: [{ name: "a", sender: plain }], failover: undefined, health: undefined }),
      router({ routes: [{ name: "a", sender: plain }], health: { tolerance: undefined } }),
    ]) {
      const one = service({ sender: routed as never, clock: undefined });
      expect(await ending(one.create(1))).toBe("pending");
      expect(Number.isNaN(routed.health()[0]?.health)).toBe(false);
    }
    expect(plain.messages).toHaveLength(3);
  });

  it("of the memory store changes nothing", async () => {
    const one = service({ store: memoryStore({ name: randomUUID(), maxRecords: undefined, now: undefined } as never), clock: undefined });
    expect(await ending(one.create(1))).toBe("pending");
  });

  it("of a test number or of a request changes nothing", async () => {
    const one = service({ testNumbers: [{ number: "+447700900123", code: undefined, outcome: undefined }] });
    expect(
      await ending(
        one.create(
          "+447700900123",
          { device_id: undefined, ip: undefined, callback_url: undefined, is_returning_user: undefined, app_realm: undefined, device_type: undefined },
          { idempotencyKey: undefined },
        ),
      ),
    ).toBe("pending");
  });
});

describe("invalid options", () => {
  const rubbish: Record<string, unknown[]> = {
    "policy.lifetime": [0, -1, Number.NaN, Number.POSITIVE_INFINITY, "600", null, {}, 1e300],
    "policy.tombstone": [-1, Number.NaN, Number.POSITIVE_INFINITY, "1", null],
    "policy.checks": [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "5", null],
    "policy.codeLength": [3, 11, 4.5, "6", null],
    "policy.retryCooldowns": [[-1], [Number.NaN], ["30"], 30, null, [Number.POSITIVE_INFINITY]],
    "policy.limits.perNumber": [
      [],
      null,
      [{ limit: 0, window: 600 }],
      [{ limit: 1.5, window: 600 }],
      [{ limit: 5 }],
      [{ limit: 5, window: 0 }],
      [{ limit: 5, window: Number.POSITIVE_INFINITY }],
    ],
    "policy.limits.perDevice": [null, [{ limit: -1, window: 3600 }], 5, "off"],
    "policy.limits.spend": [
      [{ amount: 0, per: "hour" }],
      [{ amount: -1, per: "day" }],
      [{ amount: Number.POSITIVE_INFINITY, per: "day" }],
      [{ amount: 1, per: "week" }],
      [
        { amount: 1, per: "day" },
        { amount: 2, per: "day" },
      ],
    ],
    sendTimeout: [0, -1, Number.NaN, Number.POSITIVE_INFINITY, "5", null],
    storeTimeout: [0, -1, Number.NaN, Number.POSITIVE_INFINITY, "2", null],
    lookupTimeout: [0, -1, Number.NaN, Number.POSITIVE_INFINITY, null],
    clockSkew: [-1, Number.NaN, Number.POSITIVE_INFINITY, "5", null],
    "callbacks.pollInterval": [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 86_401, 2_147_484, 86_400 * 25, "5", null],
    "callbacks.concurrency.total": [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "8", null],
    "callbacks.concurrency.perHost": [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "8", null, 129],
  };

  it.each(Object.entries(rubbish))("are rejected with their path when the verifier is created: %s", (path, values) => {
    for (const value of values) {
      let fault: unknown;
      try {
        service(under(path, value) as Partial<VerifierOptions>);
      } catch (error) {
        fault = error;
      }
      expect(fault, `${path} = ${String(JSON.stringify(value))}`).toMatchObject({
        code: "invalid_options",
        message: expect.stringContaining(path.split(".").slice(0, 2).join(".")),
      });
    }
  });

  it("perHost is rejected if it is more than total, or than the default total", () => {
    for (const concurrency of [{ total: 4, perHost: 5 }, { perHost: 200 }]) expect(() => service({ callbacks: { concurrency } })).toThrow(/concurrency/);
    for (const concurrency of [{ total: 4 }, { perHost: 128 }, { total: 4, perHost: 4 }, { total: undefined, perHost: 3 }])
      service({ callbacks: { concurrency } });
  });
});

describe("timers beyond 2^31 - 1 ms", () => {
  it.each([86_400, 86_399.5, 43_200])("a pollInterval of %d s does not poll in a loop on the system clock", async (pollInterval) => {
    const store = rigged(new PlainStore());
    const one = service({ store, clock: undefined, callbacks: { worker: true, pollInterval } });
    await new Promise((done) => setTimeout(done, 300));
    expect(store.count("lease")).toBeLessThanOrEqual(2);
    await one.verifier.close();
  });

  it.each(["sendTimeout", "storeTimeout", "lookupTimeout"])("%s of 30 days is rejected or works", async (name) => {
    let one: Service;
    try {
      one = service({
        [name]: 86_400 * 30,
        clock: undefined,
        lookup: { lookup: async () => ({ carrier: await new Promise((done) => setTimeout(done, 60, "Orange")) }) },
      });
    } catch (error) {
      expect(error).toMatchObject({ code: "invalid_options" });
      return;
    }
    one.sender.answer = () => new Promise((done) => setTimeout(done, 60, { outcome: "rejected" }));
    const { authentication_uuid: id } = await one.create(1);
    // A time-out that fired at once would have made it `unknown`, and the code live.
    expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("without_attempt");
    expect(await one.verifier.lookup({ phone_number: "+33612345678", customer_uuid: one.customer } as never)).toMatchObject({ carrier: "Orange" });
  });

  it.each([{ lifetime: 86_400 * 400 }, { tombstone: 86_400 * 400 }, { retryCooldowns: [86_400 * 30] }])(
    "%o works on the system clock or is rejected",
    async (policy) => {
      let one: Service;
      try {
        one = service({ policy, clock: undefined });
      } catch (error) {
        expect(error).toMatchObject({ code: "invalid_options" });
        return;
      }
      const { authentication_uuid: id } = await one.create(1);
      expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
    },
  );

  it("a Retry-After of 30 days causes no burst of posts by a worker on the system clock", async () => {
    const one = service({ clock: undefined, callbacks: { worker: true, pollInterval: 0.1 } });
    one.hook.answer = async () => ({ status: 503, retryAfter: 86_400_000 * 30 });
    await one.create(1, { callback_url: callbackUrl });
    await new Promise((done) => setTimeout(done, 600));
    expect(one.hook.posted).toHaveLength(1);
    await one.verifier.close();
  });
});

describe("a customer source", () => {
  const customer = randomUUID();
  const key = keyOf(customer);
  const found = { customer_uuid: customer };

  async function answers(customers: Customers): Promise<{ http: number; code: string; direct: string; took: number; logged: readonly string[] }> {
    const one = service({ customer, customers });
    const before = one.clock.now();
    const answer = await drive(
      one.clock,
      one.verifier.http.handle({
        method: "POST",
        path: "/v1/authentication",
        header: (name) => (name === "x-api-key" ? key : undefined),
        body: async () => ({ kind: "text", text: JSON.stringify({ customer_uuid: customer, phone_number: numberAt(1) }) }),
      }),
    );
    const took = one.clock.now() - before;
    const body = JSON.parse(answer.body) as { code?: string; status?: string };
    const direct = await drive(one.clock, ending(one.create(2)));
    return { http: answer.status, code: body.code ?? body.status ?? "", direct, took, logged: one.log.map(({ message }) => message) };
  }
  const always = (answer: () => unknown): Customers => ({ findByKeyDigest: answer as never, find: answer as never });
  const thenable = (then: (resolve: (value: unknown) => void, reject: (reason: unknown) => void) => void) => ({ then });

  it.each<[string, () => unknown]>([
    ["a customer", () => found],
    ["a promise of one", async () => found],
    ["a thenable that is no Promise", () => thenable((resolve) => resolve(found))],
    ["a thenable that answers later", () => thenable((resolve) => void setImmediate(resolve, found))],
    [
      "a thenable that answers twice",
      () =>
        thenable((resolve) => {
          resolve(found);
          resolve(null);
        }),
    ],
    ["a customer without a policy", () => ({ ...found, policy: null, webhookSecrets: null })],
    ["a frozen one", () => Object.freeze({ ...found })],
    ["one with fields of the application's own", () => ({ ...found, id: 7, name: "Acme", _doc: { a: 1 }, policy: undefined })],
    [
      "an instance of a class, with getters",
      () =>
        new (class {
          get customer_uuid() {
            return customer;
          }
          get policy() {
            return undefined;
          }
        })(),
    ],
    ["one whose UUID is in upper case", () => ({ customer_uuid: customer.toUpperCase() })],
  ])("that returns %s gives 200", async (_, answer) => {
    expect(await answers(always(answer))).toMatchObject({ http: 200, code: "pending", direct: "pending" });
  });

  it.each<[string, () => unknown]>([
    ["null", () => null],
    ["undefined", () => undefined],
    ["a promise of null", async () => null],
    ["a thenable of null", () => thenable((resolve) => resolve(null))],
  ])("that returns %s does not know the customer", async (_, answer) => {
    expect(await answers(always(answer))).toMatchObject({ http: 403, code: "forbidden", direct: "account_invalid" });
  });

  it.each<[string, () => unknown]>([
    ["a string", () => "customer"],
    ["a number", () => 7],
    ["0", () => 0],
    ["false", () => false],
    ["an empty string", () => ""],
    ["true", () => true],
    ["an array", () => []],
    ["an array of one", () => [found]],
    ["an empty object", () => ({})],
    ["a function", () => () => found],
    ["a customer with another UUID's shape", () => ({ customer_uuid: "not a uuid" })],
    ["a policy that breaks the guess budget", () => ({ ...found, policy: { codeLength: 4 } })],
    ["a policy of junk", () => ({ ...found, policy: "strict" })],
    ["a policy with a junk value", () => ({ ...found, policy: { lifetime: "long" } })],
    ["webhook secrets of junk", () => ({ ...found, webhookSecrets: ["secret"] })],
    [
      "a getter that throws",
      () => ({
        get customer_uuid() {
          throw new Error("lazy loading failed");
        },
      }),
    ],
    [
      "a policy's getter that throws",
      () => ({
        ...found,
        get policy() {
          throw new Error("lazy loading failed");
        },
      }),
    ],
    [
      "a proxy that throws",
      () =>
        new Proxy(
          {},
          {
            get() {
              throw new Error("revoked");
            },
          },
        ),
    ],
    [
      "an exception",
      () => {
        throw new Error("database away");
      },
    ],
    [
      "an exception of null",
      () => {
        throw null;
      },
    ],
    ["a rejection", () => Promise.reject(new Error("database away"))],
    ["a rejection of undefined", () => Promise.reject(undefined)],
    ["a thenable that rejects", () => thenable((_resolve, reject) => reject(new Error("away")))],
    [
      "a thenable whose then throws",
      () =>
        thenable(() => {
          throw new Error("away");
        }),
    ],
    [
      "a then that is a getter that throws",
      () =>
        new Proxy(found, {
          get() {
            throw new Error("away");
          },
        }),
    ],
  ])("whose result is %s gives 503, and the log has it", async (_, answer) => {
    const logged = ["the customer source failed"];
    expect(await answers(always(answer))).toMatchObject({ http: 503, code: "unavailable", direct: "unavailable", logged });
  });

  it.each<[string, () => unknown]>([
    ["a promise that never settles", () => new Promise(() => {})],
    ["a thenable that never settles", () => thenable(() => {})],
    ["a thenable that resolves with one that never settles", () => thenable((resolve) => resolve(thenable(() => {})))],
  ])("whose result is %s gives 503 within storeTimeout", async (_, answer) => {
    const answered = await answers(always(answer));
    expect(answered).toMatchObject({ http: 503, direct: "unavailable" });
    expect(answered.took).toBeLessThanOrEqual(2_200);
  });

  it("that returns another customer than the requested one gives 503, and nothing is sent", async () => {
    const other = randomUUID();
    const one = service({ customer, customers: { findByKeyDigest: () => found, find: () => ({ customer_uuid: other }) } });
    expect(await ending(one.create(1))).toBe("unavailable");
    expect(one.sender.messages).toEqual([]);
  });

  it("whose customer object changes during a request does not send for the other customer", async () => {
    const moving = { customer_uuid: customer };
    const one = service({ customer, customers: { findByKeyDigest: () => moving, find: () => moving } });
    const call = ending(one.create(1));
    moving.customer_uuid = randomUUID();
    expect(["pending", "unavailable"]).toContain(await call);
    for (const message of one.sender.messages) expect(message.customer_uuid).toBe(customer);
  });

  it("that hangs during 1,000 requests fails all of them within storeTimeout, and then works again at once", async () => {
    let hangs = true;
    const one = service({ customer, customers: always(() => (hangs ? new Promise(() => {}) : found)), policy: { limits: wide } });
    const before = one.clock.now();
    expect(tallied(await drive(one.clock, Promise.all(Array.from({ length: 1_000 }, (_, i) => ending(one.create(i))))))).toEqual({ unavailable: 1_000 });
    expect(one.clock.now() - before).toBeLessThan(2_500);
    hangs = false;
    expect(await ending(one.create(1))).toBe("pending");
  });

  it("that is a class is called with itself as `this`", async () => {
    class Database implements Customers {
      private readonly rows = [found];
      findByKeyDigest() {
        return this.rows[0];
      }
      async find() {
        return this.rows[0];
      }
    }
    expect(await answers(new Database())).toMatchObject({ http: 200, direct: "pending" });
  });
});

describe("further input from a host", () => {
  it("a full cap of distinct numbers allows a number that it has counted before", async () => {
    const one = service({ policy: { limits: { ...wide, numbersPerDevice: [{ limit: 2, window: 86_400 }] } } });
    const at = (number: number) => ending(one.create(number, { device_id: "device" }));
    expect([await at(1), await at(2), await at(3), await at(1), await at(2), await at(1), await at(3)]).toEqual([
      "pending",
      "pending",
      "rate_limited",
      "pending",
      "pending",
      "pending",
      "rate_limited",
    ]);
  });

  it("a full cap of distinct numbers allows a counted number next to a spam rule of the caller too", async () => {
    const one = service({
      policy: { limits: { ...wide, numbersPerDevice: [{ limit: 1, window: 86_400 }] } },
      spamRules: [{ name: "mine", judge: () => undefined }],
    });
    const at = (number: number) => ending(one.create(number, { device_id: "device" }));
    expect([await at(1), await at(1), await at(2), await at(1)]).toEqual(["pending", "pending", "rate_limited", "pending"]);
  });

  it("a clock with fractions of a millisecond leads to whole timestamps and to records that other processes can read", async () => {
    const store = new PlainStore();
    const whole = fixedClock(start);
    const fractional = { ...whole, now: () => whole.now() + 0.123_456 };
    const one = service({ store, clock: fractional as never });
    const created = await one.create(1, { callback_url: callbackUrl });
    expect(created.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    whole.advance(30_000);
    const retried = await one.retry(created.authentication_uuid);
    expect(retried).toMatchObject({ status: "approved", remaining_retry: 3 });
    for (const record of store.records.values()) expect(Number.isInteger(record.keepUntil) && Number.isInteger(record.wakeAt ?? 0)).toBe(true);
    for (const window of store.windows.values()) for (const at of window.values()) expect(Number.isInteger(at)).toBe(true);
    const other = service({ store, clock: whole, customer: one.customer });
    await other.verifier.flush();
    await other.verifier.flush();
    expect(other.hook.story(created.authentication_uuid)).toEqual(["1:submitted", "2:submitted"]);
    expect(await ending(other.check(created.authentication_uuid, one.sender.codeOf(created.authentication_uuid)))).toBe("valid");
  });

  it("a clock that goes back and forth does not make room in a cap", async () => {
    const clock = fixedClock(start);
    let step = 0;
    const jumpy = { ...clock, now: () => clock.now() + ([0, -700, 600, -300][step++ % 4] as number) };
    const one = service({ clock: jumpy as never, clockSkew: 5, policy: { limits: wide } });
    const endings: string[] = [];
    for (let i = 0; i < 8; i++) endings.push(await ending(one.create(1)));
    expect(tallied(endings)).toEqual({ pending: 5, rate_limited: 3 });
  });

  it("the caller's spam rules run once for a create under a key, and not for its repeats", async () => {
    let asked = 0;
    const one = service({ spamRules: [{ name: "mine", judge: () => (asked++ === 0 ? undefined : { reason: "now it is" }) }] });
    const keyed = () => one.create(1, {}, { idempotencyKey: "k" });
    const first = await keyed();
    for (let i = 0; i < 5; i++) expect(await keyed()).toEqual(first);
    expect(asked).toBe(1);
    expect(await ending(one.create(1))).toBe("spam_detected");
    expect(await ending(one.create(1, {}, { idempotencyKey: "another" }))).toBe("spam_detected");
  });

  it.each([
    ["6to4", (i: number) => `2002:c633:6407:${(i + 1).toString(16)}::1`],
    ["6to4 with other interface ids", (i: number) => `2002:c633:6407::${(i + 1).toString(16)}`],
    ["NAT64", () => "64:ff9b::198.51.100.7"],
    ["NAT64 in hexadecimal", () => "64:ff9b::c633:6407"],
    ["Teredo", (i: number) => `2001:0:4136:e378:8000:${(63_000 + i).toString(16)}:39cc:9bf8`],
    ["an IPv4-mapped address", () => "::ffff:198.51.100.7"],
    ["an IPv4-mapped address in hexadecimal", () => "::ffff:c633:6407"],
  ])("%s counts as the IPv4 address that it represents, 198.51.100.7", async (_, address) => {
    const one = service({ policy: { limits: { ...wide, perIp: [{ limit: 4, window: 3600 }] } } });
    const endings = [await ending(one.create(1, { ip: "198.51.100.7" }))];
    for (let i = 0; i < 5; i++) endings.push(await ending(one.create(2 + i, { ip: address(i) })));
    expect(tallied(endings)).toEqual({ pending: 4, rate_limited: 2 });
  });

  it("NAT64 forms of different IPv4 addresses count separately", async () => {
    const one = service({ policy: { limits: { ...wide, perIp: [{ limit: 1, window: 3600 }] } } });
    const endings: string[] = [];
    for (let i = 0; i < 20; i++) endings.push(await ending(one.create(i, { ip: `64:ff9b::198.51.100.${i}` })));
    expect(tallied(endings)).toEqual({ pending: 20 });
  });

  it.each([
    ["of one number", (_i: number) => [1, {}] as const],
    ["of one device, of ever other numbers", (i: number) => [1_000 + i, { device_id: "attacker" }] as const],
  ])("5,000 rejected creates %s do not fill a store of 1,000 records: other creates and their codes work", async (_, next) => {
    const one = service({
      store: memoryStore({ name: randomUUID(), maxRecords: 1_000 }),
      policy: { limits: { ...wide, perDevice: [{ limit: 1, window: 3600 }] } },
    });
    const endings: string[] = [];
    for (let i = 0; i < 5_000; i++) {
      const [number, fields] = next(i);
      endings.push(await ending(one.create(number, fields)));
    }
    expect(tallied(endings)["unavailable"] ?? 0).toBe(0);
    const created = [];
    for (let i = 0; i < 200; i++) created.push(await one.create(20_000 + i));
    expect(tallied(created.map(({ status }) => status))).toEqual({ pending: 200 });
    for (const { authentication_uuid: id } of created) expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
  });

  it("a rejected create is an authentication until it expires: retry and check return `rate_limited`", async () => {
    const one = service({ store: memoryStore({ name: randomUUID(), maxRecords: 1_000 }), policy: { limits: wide } });
    for (let i = 0; i < 5; i++) await one.create(1);
    const refused = [];
    for (let i = 0; i < 50; i++) refused.push(await one.create(1));
    expect(new Set(refused.map(({ authentication_uuid }) => authentication_uuid)).size).toBe(50);
    const first = refused[0] as (typeof refused)[0];
    expect(await one.retry(first.authentication_uuid)).toMatchObject({ status: "rate_limited", remaining_retry: 0, next_retry_at: first.expires_at });
    expect(await one.check(first.authentication_uuid, "123456")).toMatchObject({ status: "rate_limited" });
  });

  it("a rejected create under a key is repeated with the same result, even after many rejections of its number", async () => {
    const one = service({ policy: { limits: wide } });
    for (let i = 0; i < 40; i++) await one.create(1);
    const keyed = () => one.create(1, {}, { idempotencyKey: "k" });
    const { retry_after: wait = 0, ...first } = (await keyed()) as AuthenticationResult;
    expect(first.status).toBe("rate_limited");
    one.clock.advance(1_000);
    expect(await keyed(), "and when there is room").toEqual({ ...first, retry_after: wait - 1 });
    one.clock.advance(590_000);
    expect(await keyed()).toMatchObject(first);
  });

  it("a router without the verifier's clock sends, whatever the time of that clock", async () => {
    for (const at of [start, Date.now() - 86_400_000 * 365, Date.now() + 86_400_000 * 365]) {
      const carrier = sender();
      const clock = fixedClock(at);
      const one = service({
        clock,
        sender: router({
          routes: [
            { name: "a", sender: carrier },
            { name: "b", sender: carrier, priority: 2 },
          ],
        }) as never,
      });
      const { authentication_uuid: id, status } = await one.create(1);
      expect(status).toBe("pending");
      expect(carrier.messages).toHaveLength(1);
      expect(await ending(one.check(id, carrier.codeOf(id)))).toBe("valid");
    }
  });

  it("a router without the verifier's clock fails over too", async () => {
    const broken = sender();
    broken.answer = async () => ({ outcome: "rejected" });
    const well = sender();
    const one = service({
      sender: router({
        routes: [
          { name: "a", sender: broken, priority: 0 },
          { name: "b", sender: well },
        ],
      }) as never,
    });
    const { authentication_uuid: id } = await one.create(1);
    await turns();
    expect([broken.messages.length, well.messages.length]).toEqual([1, 1]);
    expect(await ending(one.check(id, well.codeOf(id)))).toBe("valid");
  });

  it("a full memory store of an idle process deletes ended records, and then accepts new ones", async () => {
    const clock = fixedClock(start);
    const one = service({
      clock,
      store: memoryStore({ name: randomUUID(), maxRecords: 100, now: clock.now }),
      policy: { limits: wide, lifetime: 60, tombstone: 86_400 },
    });
    const endings: string[] = [];
    for (let i = 0; i < 150; i++) endings.push(await ending(one.create(i)));
    expect(tallied(endings)).toEqual({ pending: 100, unavailable: 50 });
    await pass(clock, 86_460_000, 3_600_000);
    clock.advance(60_000);
    const later: string[] = [];
    for (let i = 0; i < 100; i++) later.push(await ending(one.create(1_000 + i)));
    expect(tallied(later)).toEqual({ pending: 100 });
  });
});
