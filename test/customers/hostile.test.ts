import { createHash, randomUUID } from "node:crypto";
import * as zlib from "node:zlib";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { generateApiKey, type Store, type VerifierOptions } from "../../src/index.js";
import { type FixedClock, fixedClock } from "../../src/testing/fixed-clock.js";
import { errorCode, inbox, numberOf, secret, setUp, start } from "../support/verifier.js";
import { storedVerifier } from "./life.js";

const crc32 = (zlib as unknown as { crc32(text: string): number }).crc32;
const turns = async (count = 20) => {
  for (let i = 0; i < count; i++) await new Promise((done) => setImmediate(done));
};

/** A store that records every call and can be made to fail. */
function watched() {
  const inner = memoryStore({ name: randomUUID() });
  const calls: { method: keyof Store; args: unknown[] }[] = [];
  const fault: { of?: keyof Store; how?: "rejects" | "hangs" | "loses the reply" } = {};
  const store = Object.fromEntries(
    (["find", "commit", "members", "tally", "lease", "get", "put", "delete"] as const).map((method) => [
      method,
      async (...args: unknown[]) => {
        calls.push({ method, args: structuredClone(args) });
        const failing = fault.of === method;
        if (failing && fault.how === "rejects") throw new Error("store down");
        if (failing && fault.how === "hangs") return new Promise(() => {});
        const result = await (inner[method] as (...args: unknown[]) => Promise<unknown>)(...args);
        if (failing) throw new Error("reply lost");
        return result;
      },
    ]),
  ) as unknown as Store;
  return { store, calls, fault };
}

/** A verifier on a watched store, and a second one on the same store, as in another process. */
function setting(options: Partial<VerifierOptions> = {}) {
  const clock = (options.clock as FixedClock | undefined) ?? fixedClock(start);
  const { store, calls, fault } = watched();
  const here = storedVerifier(store, clock, options);
  const there = storedVerifier(store, clock, options);
  /** The status of a lookup, the simplest request: its only store calls are those that identify the caller. */
  const call = async (key: string, customer_uuid: string, verifier = there.verifier) => {
    const headers: Record<string, string> = { "x-api-key": key, "customer-uuid": customer_uuid };
    const path = `/v1/lookup/${encodeURIComponent(numberOf(1))}`;
    const { status, body } = await verifier.http.handle({
      method: "GET",
      path,
      header: (name) => headers[name],
      body: async () => ({ kind: "text", text: "" }),
    });
    return status === 200 ? "200" : `${status} ${(JSON.parse(body) as { code: string }).code}`;
  };
  const { customers } = here.verifier;
  return { clock, store, calls, fault, here, there, customers, call };
}

/** One customer with one key. */
async function withCustomer(options: Partial<VerifierOptions> = {}) {
  const set = setting(options);
  const { customer_uuid } = await set.customers.create();
  const { key, key_id } = await set.customers.keys.issue({ customer_uuid });
  set.calls.length = 0;
  return { ...set, customer_uuid, key, key_id };
}

/** The error of a call that may have to time out first. */
async function faultInTime(clock: FixedClock, call: Promise<unknown>): Promise<string> {
  const fault = errorCode(call);
  await turns();
  clock.advance(2_000);
  return fault;
}

describe("a checksum lets secret scanners and people recognise a key", () => {
  it("is the CRC-32 of the 43 digits, in base 62, as in GitHub's tokens", () => {
    const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (let round = 0; round < 500; round++) {
      const { key, digest } = generateApiKey();
      const [, drawn = "", sum = ""] = /^pp_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/.exec(key) ?? [];
      expect([...sum].reduce((value, digit) => value * 62 + digits.indexOf(digit), 0)).toBe(crc32(drawn));
      expect(digest).toBe(`sha256:${createHash("sha256").update(key).digest("hex")}`);
    }
  });

  it("a mistyped key is rejected without a store call: any wrong character, any two swapped", async () => {
    const { calls, call, customer_uuid, key } = await withCustomer();
    for (let at = 3; at < key.length; at++) {
      const other = key[at] === "x" ? "y" : "x";
      const mistyped = [key.slice(0, at) + other + key.slice(at + 1)];
      if (at > 3 && key[at] !== key[at - 1]) mistyped.push(key.slice(0, at - 1) + key[at] + key[at - 1] + key.slice(at + 1));
      for (const one of mistyped) expect(await call(one, customer_uuid)).toBe("403 forbidden");
    }
    expect(calls).toEqual([]);
    expect(await call(key, customer_uuid)).toBe("200");
  });

  it("keys of the old form and your own keys stay valid; a mistyped key of the new form is an invalid option", async () => {
    const old = `pp_${"Ab-_".repeat(10)}abc`;
    const set = setUp();
    const other = setUp({ customers: [{ customer_uuid: set.customer, keys: [old, set.apiKey] }] });
    for (const key of [old, set.apiKey])
      expect((await other.http("GET", "/v1/lookup/%2B33612345678", undefined, { "x-api-key": key, "customer-uuid": set.customer })).status).toBe(200);
    const { key } = generateApiKey();
    const mistyped = key.slice(0, -1) + (key.endsWith("x") ? "y" : "x");
    expect(() => setUp({ customers: [{ customer_uuid: set.customer, keys: [mistyped] }] })).toThrow("customers.0.keys.0 is mistyped");
  });
});

describe("a revoked key and a suspended customer stop working within two seconds in every process", () => {
  it.each([
    ["revoked", "forbidden"],
    ["suspended", "forbidden"],
  ])("%s, called every 50 ms", async (how, code) => {
    const { clock, customers, call, customer_uuid, key, key_id } = await withCustomer();
    expect(await call(key, customer_uuid)).toBe("200");
    clock.advance(950);
    expect(await call(key, customer_uuid)).toBe("200");
    await (how === "revoked" ? customers.keys.revoke({ customer_uuid, key_id }) : customers.suspend({ customer_uuid }));
    let last = 0;
    for (let ms = 0; ms < 5_000; ms += 50, clock.advance(50)) {
      const answer = await call(key, customer_uuid);
      if (answer === "200") last = ms;
      else expect(answer).toBe(`403 ${code}`);
    }
    expect(last).toBeLessThan(2_000);
  });

  it("the customer is read once a second, however many requests come, and the key not at all", async () => {
    const { clock, calls, call, customer_uuid, key } = await withCustomer();
    await call(key, customer_uuid);
    await turns();
    calls.length = 0;
    clock.advance(1_000);
    const answers = await Promise.all(Array.from({ length: 100 }, () => call(key, customer_uuid)));
    expect(new Set(answers)).toEqual(new Set(["200"]));
    expect(calls.map(({ method }) => method)).toEqual(["find"]);
  });

  it("a store response that was delayed does not count for later requests", async () => {
    const { clock, store, customers, call, customer_uuid, key, key_id, there } = await withCustomer();
    await call(key, customer_uuid);
    clock.advance(1_000);
    const find = store.find;
    let release = () => {};
    // The response to this read is delayed.
    Object.assign(store, {
      find: async (...args: Parameters<Store["find"]>) => {
        const found = await find(...args);
        await new Promise<void>((done) => (release = done));
        return found;
      },
    });
    const waiting = call(key, customer_uuid, there.verifier);
    await turns();
    Object.assign(store, { find });
    await customers.keys.revoke({ customer_uuid, key_id });
    clock.advance(1_900);
    expect(await call(key, customer_uuid)).toBe("403 forbidden");
    release();
    // The store was asked before the revocation.
    expect(await waiting).toBe("200");
    expect(await call(key, customer_uuid)).toBe("403 forbidden");
  });

  it("setting the clock back does not keep a revoked key alive", async () => {
    const { clock, customers, call, customer_uuid, key, key_id } = await withCustomer();
    expect(await call(key, customer_uuid)).toBe("200");
    await customers.keys.revoke({ customer_uuid, key_id });
    clock.set(start - 3_600_000);
    expect(await call(key, customer_uuid)).toBe("403 forbidden");
  });

  it("a suspended customer's callbacks are still signed with its own secrets", async () => {
    const { customers, there, customer_uuid } = await withCustomer();
    const webhookSecrets = [`whsec_${Buffer.alloc(32, 7).toString("base64")}`];
    await customers.update({ customer_uuid, webhookSecrets });
    await customers.suspend({ customer_uuid });
    expect(await there.verifier.webhookSecrets(customer_uuid)).toEqual(webhookSecrets);
  });

  it("the operator can read and erase a suspended customer's numbers, and do nothing else", async () => {
    const phone_number = "+33612345678";
    const { verifier } = setUp({ customers: "store" });
    const { customer_uuid } = await verifier.customers.create();
    const of = { customer_uuid, phone_number };
    const { authentication_uuid } = await verifier.createAuthentication(of);
    await verifier.customers.suspend({ customer_uuid });
    for (const refused of [verifier.createAuthentication(of), verifier.unlock(of), verifier.retry({ customer_uuid, authentication_uuid })])
      expect(await errorCode(refused)).toBe("account_invalid");
    expect(await verifier.explain({ customer_uuid, authentication_uuid })).toMatchObject({ authentication_uuid });
    expect(await verifier.history(of)).toHaveLength(1);
    expect(await verifier.refusals(of)).toEqual([]);
    expect(await verifier.erase(of)).toMatchObject({ erased: 1 });
    expect(await verifier.history(of)).toEqual([]);
  });

  it("a customer in the configuration can be suspended too", async () => {
    const set = setUp();
    const { http, create } = setUp({ customers: [{ customer_uuid: set.customer, keys: [set.apiKey], suspended: true }] });
    const answer = await http("GET", "/v1/lookup/%2B33612345678", undefined, { "x-api-key": set.apiKey, "customer-uuid": set.customer });
    expect([answer.status, answer.json["code"]]).toEqual([403, "forbidden"]);
    expect(await errorCode(create({ customer_uuid: set.customer }))).toBe("account_invalid");
  });
});

describe("unknown keys", () => {
  it("are cached within bounds, and do not evict valid keys", async () => {
    const { calls, call, customer_uuid, key } = await withCustomer();
    expect(await call(key, customer_uuid)).toBe("200");
    await turns();
    calls.length = 0;
    const keys = Array.from({ length: 10_000 }, () => generateApiKey().key);
    for (const one of keys) expect(await call(one, customer_uuid)).toBe("403 forbidden");
    expect(calls).toHaveLength(10_000);
    // The last ones are still cached, the first ones no longer.
    expect(await call(keys.at(-1) as string, customer_uuid)).toBe("403 forbidden");
    expect(calls).toHaveLength(10_000);
    expect(await call(keys[0] as string, customer_uuid)).toBe("403 forbidden");
    expect(calls).toHaveLength(10_001);
    expect(await call(key, customer_uuid)).toBe("200");
    expect(calls).toHaveLength(10_001);
  });

  it.each(["__proto__", "constructor", "toString", "pp_", "sha256:", "ключ", "\u0000", "x".repeat(512), "x".repeat(100_000)])(
    "%j is not a valid key",
    async (key) => {
      const { call, customer_uuid } = await withCustomer();
      expect(await call(key, customer_uuid)).toBe("403 forbidden");
      // Nor is its digest.
      expect(await call(`sha256:${createHash("sha256").update(key).digest("hex")}`, customer_uuid)).toBe("403 forbidden");
    },
  );
});

describe("tenants", () => {
  it("a key works only for its own customer, and cannot be listed or revoked through another", async () => {
    const { customers, call, customer_uuid, key, key_id } = await withCustomer();
    const other = await customers.create();
    const theirs = await customers.keys.issue({ customer_uuid: other.customer_uuid });
    expect(await call(key, other.customer_uuid)).toBe("400 account_invalid");
    expect(await call(theirs.key, customer_uuid)).toBe("400 account_invalid");
    expect(await errorCode(customers.keys.revoke({ customer_uuid: other.customer_uuid, key_id }))).toBe("bad_request");
    expect(await errorCode(customers.keys.rotate({ customer_uuid: other.customer_uuid, key_id }))).toBe("bad_request");
    expect(await customers.keys.list({ customer_uuid: other.customer_uuid })).toMatchObject([{ key_id: theirs.key_id }]);
    expect(await errorCode(customers.create({ keys: [key] }))).toBe("bad_request");
    expect(await call(key, customer_uuid)).toBe("200");
  });

  it("a key_id in capitals, as PowerShell prints it, names the same key", async () => {
    const { customers, customer_uuid, key_id } = await withCustomer();
    const capitals = key_id.toUpperCase();
    await customers.keys.rotate({ customer_uuid, key_id: capitals });
    expect(await customers.keys.revoke({ customer_uuid, key_id: capitals })).toMatchObject({ key_id });
  });

  it("a thousand customers with two thousand keys: each key works for its customer only, and list returns all in pages", async () => {
    const { customers, call, clock } = setting();
    const made: { customer_uuid: string; keys: string[] }[] = [];
    for (let i = 0; i < 1_000; i++) {
      clock.advance(1);
      const { customer_uuid } = await customers.create({ name: `${i}` });
      const keys = [await customers.keys.issue({ customer_uuid }), await customers.keys.issue({ customer_uuid })];
      made.push({ customer_uuid, keys: keys.map(({ key }) => key) });
    }
    for (const [at, { customer_uuid, keys }] of made.entries()) {
      for (const key of keys) expect(await call(key, customer_uuid)).toBe("200");
      expect(await call(keys[0] as string, made[(at + 1) % made.length]?.customer_uuid as string)).toBe("400 account_invalid");
    }
    const listed: string[] = [];
    for (let after: string | undefined; ; after = listed.at(-1)) {
      const page = await customers.list({ limit: 300, after });
      listed.push(...page.map(({ customer_uuid }) => customer_uuid));
      if (page.length < 300) break;
    }
    expect(listed).toEqual(made.map(({ customer_uuid }) => customer_uuid).reverse());
  });

  it("a key rotated three hundred times leaves a small record, which lists up to two keys in use and eight ended ones", async () => {
    const { customers, call, calls, customer_uuid, key: first } = await withCustomer();
    let key = first;
    for (let round = 0; round < 300; round++) ({ key } = await customers.keys.rotate({ customer_uuid, overlap: 0, name: "ü".repeat(128) }));
    expect(await customers.keys.list({ customer_uuid })).toHaveLength(9);
    await customers.keys.issue({ customer_uuid, name: "ü".repeat(128) });
    expect((await customers.keys.list({ customer_uuid })).map(({ status }) => status)).toEqual(["active", "active", ...Array(8).fill("ended")]);
    expect(await call(first, customer_uuid)).toBe("403 forbidden");
    expect(await call(key, customer_uuid)).toBe("200");
    const sizes = calls.flatMap(({ method, args }) => (method === "commit" ? JSON.stringify(args).length : []));
    expect(Math.max(...sizes)).toBeLessThan(8_192);
  });
});

describe("stored as SHA-256", () => {
  it("no key and no secret is stored in clear text, logged, or shown again", async () => {
    const { customers, calls, call, here, there, fault, clock } = setting();
    const webhookSecrets = [`whsec_${Buffer.alloc(32, 9).toString("base64")}`];
    const mine = generateApiKey().key;
    const { customer_uuid } = await customers.create({ webhookSecrets, keys: [mine] });
    const issued = await customers.keys.issue({ customer_uuid });
    const shown: unknown[] = [];
    for (const of of ["get", "find", "put", "commit"] as const) {
      Object.assign(fault, { of, how: "rejects" });
      clock.advance(3_600_000);
      shown.push(await call(issued.key, customer_uuid), await call(mine, customer_uuid), await call(generateApiKey().key, customer_uuid));
      shown.push(
        await errorCode(customers.keys.rotate({ customer_uuid, key_id: issued.key_id })),
        await errorCode(customers.update({ customer_uuid, webhookSecrets })),
      );
      await turns();
    }
    Object.assign(fault, { of: undefined });
    shown.push(await customers.get({ customer_uuid }), await customers.list(), await customers.keys.list({ customer_uuid }));
    const lines = [...here.log.lines, ...there.log.lines];
    expect(lines.length).toBeGreaterThan(5);
    const told = [
      ...lines.map(({ fields, message }) => `${message} ${JSON.stringify(fields)} ${String(fields["err"])}`),
      JSON.stringify(shown),
      JSON.stringify(calls),
    ];
    for (const text of told) {
      expect(text).not.toContain(issued.key);
      expect(text).not.toContain(mine);
      expect(text).not.toContain(webhookSecrets[0]?.slice("whsec_".length));
      expect(text).not.toMatch(/pp_[0-9A-Za-z]{8}/);
    }
    expect(JSON.stringify(calls)).toContain(createHash("sha256").update(issued.key).digest("hex"));
  });
});

describe("the last use of a key", () => {
  it("is written outside requests, at most once an hour per process, and shown as a day", async () => {
    const { clock, calls, call, customers, customer_uuid, key, here, there } = await withCustomer();
    const written = () => calls.filter(({ method }) => method === "put").length;
    for (let ms = 0; ms < 3_600_000; ms += 60_000, clock.advance(60_000)) {
      for (const { verifier } of [here, there]) await call(key, customer_uuid, verifier);
    }
    await turns();
    expect(written()).toBe(2);
    await Promise.all([call(key, customer_uuid), call(key, customer_uuid)]);
    await turns();
    expect(written()).toBe(3);
    expect(await customers.keys.list({ customer_uuid })).toMatchObject([{ last_used_on: "2026-03-01" }]);
  });

  it("is not awaited by requests and cannot fail them, and is not written for a rejected key", async () => {
    const { calls, call, fault, customers, customer_uuid, key, there } = await withCustomer();
    Object.assign(fault, { of: "put", how: "hangs" });
    expect(await call(key, customer_uuid)).toBe("200");
    Object.assign(fault, { of: undefined });
    const other = await customers.create();
    const suspended = await customers.keys.issue({ customer_uuid: other.customer_uuid });
    await customers.suspend({ customer_uuid: other.customer_uuid });
    calls.length = 0;
    expect(await call(suspended.key, other.customer_uuid)).toBe("403 forbidden");
    expect(calls.filter(({ method }) => method === "put")).toEqual([]);
    expect(there.log.lines).toEqual([]);
  });
});

describe("store errors and timeouts at every step: fail closed, with 503", () => {
  const steps = ["get", "find", "put", "commit", "members"] as const;
  const ways = ["rejects", "hangs", "loses the reply"] as const;

  it.each(steps.flatMap((of) => ways.map((how) => [of, how] as const)))(
    "%s %s: every call returns 503 or succeeds, and nothing is left in an invalid state",
    async (of, how) => {
      const { clock, fault, customers, call, customer_uuid, key, key_id } = await withCustomer();
      Object.assign(fault, { of, how });
      clock.advance(1_000);
      const asked = call(key, customer_uuid);
      await turns();
      const elsewhere = of === "put" || of === "commit" || of === "members";
      if (how === "hangs" && !elsewhere) clock.advance(2_000);
      expect(await asked).toBe(elsewhere ? "200" : "503 unavailable");

      const outcomes: Record<string, string> = {};
      const operations: Record<string, () => Promise<unknown>> = {
        create: () => customers.create({ keys: [generateApiKey().key] }),
        get: () => customers.get({ customer_uuid }),
        list: () => customers.list(),
        update: () => customers.update({ customer_uuid, name: "new" }),
        suspend: () => customers.suspend({ customer_uuid }),
        issue: () => customers.keys.issue({ customer_uuid }),
        rotate: () => customers.keys.rotate({ customer_uuid, key_id }),
        revoke: () => customers.keys.revoke({ customer_uuid, key_id }),
        "list keys": () => customers.keys.list({ customer_uuid }),
      };
      for (const [name, run] of Object.entries(operations)) {
        outcomes[name] = await (how === "hangs" ? faultInTime(clock, run()) : errorCode(run()));
        expect(["no error", "unavailable", "bad_request"], name).toContain(outcomes[name]);
      }
      const needs: Record<string, readonly string[]> = {
        get: ["create", "issue", "rotate", "list keys"],
        find: ["create", "get", "list", "update", "suspend", "issue", "rotate", "revoke", "list keys"],
        put: ["create", "issue"],
        commit: ["create", "update", "suspend", "issue", "rotate", "revoke"],
        members: ["list"],
      };
      for (const name of needs[of] as readonly string[]) expect(outcomes[name] === "no error", `${name} by ${of}`).toBe(false);
      // If the reply was lost the write may have landed; once the store works, its state is consistent and can be
      // corrected.
      Object.assign(fault, { of: undefined });
      clock.advance(2_000);
      const keys = await customers.keys.list({ customer_uuid });
      expect(keys.filter(({ status }) => status === "active" || status === "ending").length).toBeLessThanOrEqual(2);
      const { status } = await customers.get({ customer_uuid });
      const usable = keys.some((one) => one.key_id === key_id && (one.status === "active" || one.status === "ending"));
      expect(await call(key, customer_uuid)).toBe(status === "active" && usable ? "200" : "403 forbidden");
      for (const one of keys) await customers.keys.revoke({ customer_uuid, key_id: one.key_id });
      await customers.resume({ customer_uuid });
      clock.advance(2_000);
      expect(await call(key, customer_uuid)).toBe("403 forbidden");
      const next = await customers.keys.issue({ customer_uuid });
      expect(await call(next.key, customer_uuid)).toBe("200");
    },
  );

  it("a store error is not answered from the cache", async () => {
    const { clock, fault, call, customer_uuid, key } = await withCustomer();
    expect(await call(key, customer_uuid)).toBe("200");
    Object.assign(fault, { of: "find", how: "rejects" });
    clock.advance(1_000);
    expect(await call(key, customer_uuid)).toBe("503 unavailable");
    Object.assign(fault, { of: undefined });
    // Nor is the error cached.
    expect(await call(key, customer_uuid)).toBe("200");
  });

  it("a create that failed before the customer was written does not block its keys", async () => {
    const { clock, fault, customers, call } = setting();
    const { key } = generateApiKey();
    Object.assign(fault, { of: "commit", how: "rejects" });
    expect(await errorCode(customers.create({ keys: [key] }))).toBe("unavailable");
    Object.assign(fault, { of: undefined });
    expect(await call(key, randomUUID())).toBe("403 forbidden");
    const { customer_uuid } = await customers.create({ keys: [key] });
    clock.advance(1_000);
    expect(await call(key, customer_uuid)).toBe("200");
    expect(await customers.keys.list({ customer_uuid })).toMatchObject([{ status: "active" }]);
  });

  it.each(["not JSON", "null", "{}", '{"createdAt":1}', '{"createdAt":1,"keys":[{"id":"x"}]}', '{"createdAt":1,"keys":{}}', '{"createdAt":"1","keys":[]}'])(
    "a corrupt customer record, %s: 503, logged, and left unchanged",
    async (data) => {
      const { clock, store, call, customers, customer_uuid, key, there } = await withCustomer();
      const stored = await store.find(customer_uuid, "customer");
      await store.commit({
        record: { customer: customer_uuid, id: "customer", tokens: ["t"], data, now: start, keepUntil: start + 1e9 },
        expected: stored?.tokens[0] ?? null,
      });
      clock.advance(1_000);
      expect(await call(key, customer_uuid)).toBe("503 unavailable");
      expect(there.log.lines).toHaveLength(1);
      expect(await errorCode(customers.suspend({ customer_uuid }))).toBe("unavailable");
      expect((await store.find(customer_uuid, "customer"))?.data).toBe(data);
    },
  );
});

describe("wrong types from JavaScript callers", () => {
  const junk = [undefined, null, 1, "x", [], { $ne: null }, () => {}, Symbol("s"), Number.NaN, new Map()];

  it("are bad_request, and never reach the store", async () => {
    const { customers, calls, customer_uuid, key_id } = await withCustomer();
    const asks: ((value: never) => Promise<unknown>)[] = [
      (value) => customers.get(value),
      (value) => customers.get({ customer_uuid: value }),
      (value) => customers.update({ customer_uuid: value }),
      (value) => customers.suspend({ customer_uuid: value }),
      (value) => customers.resume(value),
      (value) => customers.keys.issue({ customer_uuid: value }),
      (value) => customers.keys.rotate({ customer_uuid: value }),
      (value) => customers.keys.revoke({ customer_uuid, key_id: value }),
      (value) => customers.keys.revoke({ customer_uuid: value, key_id }),
      (value) => customers.keys.list({ customer_uuid: value }),
    ];
    for (const ask of asks) for (const value of junk) expect(await errorCode(ask(value as never))).toBe("bad_request");
    for (const name of [1, {}, "", "x".repeat(129), "x".repeat(10_000_000), "a\u0000b", "a\nb", "\ud800"])
      expect(await errorCode(customers.create({ name: name as never }))).toBe("bad_request");
    for (const limit of [0, 1.5, 1_001, "1", Number.NaN]) expect(await errorCode(customers.list({ limit: limit as never }))).toBe("bad_request");
    for (const overlap of [-1, Number.NaN, Number.POSITIVE_INFINITY, "60", 31_536_001])
      expect(await errorCode(customers.keys.rotate({ customer_uuid, overlap: overlap as never }))).toBe("bad_request");
    expect(await errorCode(customers.create({ nmae: "x" } as never))).toBe("bad_request");
    expect(await errorCode(customers.create(JSON.parse('{"__proto__":{"name":"x"}}')))).toBe("bad_request");
    expect(calls).toEqual([]);
  });

  it("names may be any text", async () => {
    const { customers } = setting();
    for (const name of ["__proto__", "constructor", "👩", "ü".repeat(128), "' OR 1=1", "../../x", "<b>"]) {
      const { customer_uuid } = await customers.create({ name });
      expect(await customers.get({ customer_uuid })).toMatchObject({ name });
      expect(await customers.keys.issue({ customer_uuid, name })).toMatchObject({ name });
    }
    expect(await customers.list()).toHaveLength(7);
  });
});

describe("policy overrides and callback secrets follow the rules of the options when they are set", () => {
  it.each([
    [{ policy: { codeLength: 4 } }, "policy: the guess budget is broken"],
    [{ policy: { checks: 0 } }, "policy.checks must be 1 or more"],
    [{ policy: { check: 3 } }, "policy.check is not an option"],
    [{ policy: { limits: { spend: [{ amount: 1, per: "hour" }] } } }, "policy.limits.spend needs to know what a message costs"],
    [{ policy: { retryCooldowns: [30_000] } }, "policy.retryCooldowns.0 is in seconds: after 30000 of them no retry is possible"],
    [{ policy: { limits: { perIp: [{ limit: 1, window: 3_600_000 }] } } }, "policy.limits.perIp.0.window is in seconds: 3600000 of them are 41.7 days"],
    [{ policy: { retryCooldowns: Array(21).fill(1) } }, "policy.retryCooldowns must have at most 20 entries"],
    [{ policy: { limits: { perDevice: Array(1_000).fill({ limit: 1, window: 1 }) } } }, "policy must be at most 16 KiB"],
    [{ webhookSecrets: [`whsec_${Buffer.alloc(23).toString("base64")}`] }, "webhookSecrets.0 must be whsec_ and 24 to 64 bytes in base64"],
    [{ webhookSecrets: [`whsec_${Buffer.alloc(65).toString("base64")}`] }, "webhookSecrets.0 must be whsec_"],
    [{ webhookSecrets: [] }, "webhookSecrets must hold at least one secret"],
    [{ webhookSecrets: "whsec_x" }, "webhookSecrets must be a list"],
  ])("%j is rejected, with the fix", async (change, message) => {
    const { customers, calls, customer_uuid } = await withCustomer();
    for (const asked of [customers.create(change as never), customers.update({ customer_uuid, ...change } as never)])
      await expect(asked).rejects.toMatchObject({ code: "bad_request", status: 400, message: expect.stringContaining(message) });
    expect(calls).toEqual([]);
  });

  it("are checked again by each verifier that reads them: a ceiling without prices is a logged 503", async () => {
    const { clock, store, there } = setting();
    const priced = storedVerifier(store, clock, { sender: { ...inbox(), plan: () => ({ route: "main", price: 0.05 }) } });
    const { customer_uuid } = await priced.verifier.customers.create({ policy: { limits: { spend: [{ amount: 5, per: "day" }] } } });
    expect(await errorCode(there.verifier.createAuthentication({ customer_uuid, phone_number: numberOf(7) }))).toBe("unavailable");
    expect(String(there.log.lines[0]?.fields["err"])).toContain("policy.limits.spend needs to know what a message costs");
  });

  it("apply to this customer only, from then on, until null removes them", async () => {
    const { clock, customers, there, customer_uuid } = await withCustomer();
    const other = (await customers.create()).customer_uuid;
    await customers.update({ customer_uuid, policy: { lifetime: 60 }, name: "short" });
    clock.advance(1_000);
    const lifetime = async (uuid: string) => {
      const made = await there.verifier.createAuthentication({ customer_uuid: uuid, phone_number: numberOf(7) });
      return Date.parse(made.expires_at) - Date.parse(made.created_at);
    };
    expect([await lifetime(customer_uuid), await lifetime(other)]).toEqual([60_000, 600_000]);
    expect(await customers.update({ customer_uuid, name: undefined })).toMatchObject({ name: "short", policy: { lifetime: 60 } });
    await customers.update({ customer_uuid, policy: null, name: null });
    expect(await customers.get({ customer_uuid })).toEqual({
      customer_uuid,
      status: "active",
      created_at: "2026-03-01T12:00:00.000Z",
      webhook_secrets: 0,
    });
    clock.advance(1_000);
    expect(await lifetime(customer_uuid)).toBe(600_000);
  });

  it("secrets are encrypted under the verifier's secret, and again when it is rotated", async () => {
    const { clock, store, customers, customer_uuid, key, call } = await withCustomer();
    const webhookSecrets = [`whsec_${Buffer.alloc(24, 1).toString("base64")}`, `whsec_${Buffer.alloc(64, 2).toString("base64")}`];
    await customers.update({ customer_uuid, webhookSecrets });
    const next = "another secret of the tests, long enough";
    const gone = storedVerifier(store, clock, { secret: next });
    expect(await call(key, customer_uuid, gone.verifier)).toBe("503 unavailable");
    expect(String(gone.log.lines[0]?.fields["err"])).toContain("set them again");
    const rotating = storedVerifier(store, clock, { secret: [next, secret] });
    expect(await rotating.verifier.webhookSecrets(customer_uuid)).toEqual(webhookSecrets);
    await turns();
    expect(await gone.verifier.webhookSecrets(customer_uuid)).toEqual(webhookSecrets);
    expect(await gone.verifier.customers.get({ customer_uuid })).toMatchObject({ webhook_secrets: 2 });
    // Data encrypted for another customer is rejected.
    const other = (await customers.create()).customer_uuid;
    const { data = "", tokens = [] } = (await store.find(customer_uuid, "customer")) ?? {};
    const theirs = await store.find(other, "customer");
    await store.commit({ record: { customer: other, id: "customer", tokens, data, now: start, keepUntil: start + 1e9 }, expected: theirs?.tokens[0] ?? null });
    expect(await errorCode(gone.verifier.webhookSecrets(other))).toBe("unavailable");
  });

  it("two processes with the secrets in different order do not keep re-encrypting", async () => {
    const { clock, store, calls, customers, customer_uuid } = await withCustomer();
    const webhookSecrets = [`whsec_${Buffer.alloc(24, 1).toString("base64")}`];
    await customers.update({ customer_uuid, webhookSecrets });
    const next = "another secret of the tests, long enough";
    const processes = [[secret, next] as const, [next, secret] as const].map((both) => storedVerifier(store, clock, { secret: both }).verifier);
    calls.length = 0;
    for (let ms = 0; ms < 60_000; ms += 1_000, clock.advance(1_000)) {
      for (const verifier of processes) expect(await verifier.webhookSecrets(customer_uuid)).toEqual(webhookSecrets);
      await turns(3);
    }
    expect(calls.filter(({ method }) => method === "commit").length).toBeLessThanOrEqual(2);
  });
});

describe("stored customers and those from elsewhere", () => {
  it("a verifier with customers from elsewhere rejects the calls that manage customers, with the fix", async () => {
    const { verifier, customer } = setUp();
    for (const asked of [
      verifier.customers.create(),
      verifier.customers.list(),
      verifier.customers.keys.revoke({ customer_uuid: customer, key_id: "0".repeat(16) }),
    ])
      await expect(asked).rejects.toMatchObject({ code: "invalid_options", message: expect.stringContaining('customers: "store"') });
    expect(() => setUp({ customers: "redis" as never })).toThrow('customers must be a list of { customer_uuid, keys, policy? }, or "store"');
  });

  it("a customer of the configuration can be stored as it is, with its keys", async () => {
    const { customers, call } = setting();
    const [one, two] = [generateApiKey(), `your-own-key-${randomUUID()}`] as const;
    const configured = { customer_uuid: randomUUID().toUpperCase(), keys: [one.digest, two], policy: { checks: 3 }, suspended: false };
    const { customer_uuid } = await customers.create(configured);
    expect(customer_uuid).toBe(configured.customer_uuid.toLowerCase());
    for (const key of [one.key, two]) expect(await call(key, customer_uuid)).toBe("200");
    expect(await errorCode(customers.create(configured))).toBe("bad_request");
    expect(await errorCode(customers.create({ keys: [1, 2, 3].map(() => generateApiKey().key) }))).toBe("bad_request");
  });

  it("a customer's key that has long been forgotten can be given to another", async () => {
    const { clock, customers, call, customer_uuid, key } = await withCustomer();
    expect(await call(key, customer_uuid)).toBe("200");
    for (let round = 0; round < 10; round++) await customers.keys.rotate({ customer_uuid, overlap: 0 });
    clock.advance(1_000);
    expect(await call(key, customer_uuid)).toBe("403 forbidden");
    const other = await customers.create({ keys: [key] });
    clock.advance(1_000);
    expect(await call(key, other.customer_uuid)).toBe("200");
    expect(await call(key, customer_uuid)).toBe("400 account_invalid");
  });

  it("a key that cannot be issued causes no write", async () => {
    const { customers, calls, customer_uuid } = await withCustomer();
    await customers.keys.issue({ customer_uuid });
    calls.length = 0;
    expect(await errorCode(customers.keys.issue({ customer_uuid }))).toBe("bad_request");
    expect(await errorCode(customers.keys.rotate({ customer_uuid }))).toBe("bad_request");
    expect(await errorCode(customers.keys.issue({ customer_uuid: randomUUID() }))).toBe("account_invalid");
    expect(calls.map(({ method }) => method)).toEqual(["find", "find", "find"]);
  });
});
