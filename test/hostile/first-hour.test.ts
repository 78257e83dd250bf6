import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { fetchHandler } from "../../adapters/http/fetch.js";
import { nextHandlers } from "../../adapters/http/next.js";
import { nodeHandler } from "../../adapters/http/node.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { createVerifier, lazyVerifier, type Verifier, VerifierError, type VerifierOptions } from "../../src/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { createTestVerifier } from "../../src/testing/test-verifier.js";
import { PlainStore } from "../store/plain-store.js";
import { logger, secret, start } from "../support/verifier.js";
import { drive, keyOf, noSpamRules, numberAt, postReceipt, receipts, sender, turns, wide } from "./kit.js";

type Facts = Record<string, unknown>;

/** A verifier without customers, on a store and a clock that several may share. */
function alone(options: Partial<VerifierOptions> & { readonly price?: number } = {}) {
  const { price, ...rest } = options;
  const clock = (rest.clock as ReturnType<typeof fixedClock> | undefined) ?? fixedClock(start);
  const out = (rest.sender as ReturnType<typeof sender> | undefined) ?? sender(price);
  const store = rest.store ?? new PlainStore();
  const verifier = createVerifier({
    secret,
    countries: "all",
    clockSkew: 0,
    logger: logger(),
    statistics: false,
    callbacks: { worker: false },
    ...rest,
    store,
    clock,
    sender: out,
    policy: { spam: noSpamRules, ...rest.policy },
  });
  const wrong = (id: string) =>
    ["000000", "111111", "222222"].find((code) => !out.messages.some((one) => one.authentication_uuid === id && one.code === code)) as string;
  return { verifier, clock, sender: out, store, wrong };
}

const beyond = (answer: object, wire: readonly string[]): Facts => Object.fromEntries(Object.entries(answer).filter(([key]) => !wire.includes(key)));
const created = ["authentication_uuid", "created_at", "expires_at", "status"];
const at = (ms: number) => new Date(start + ms).toISOString();
const number = numberAt(1);

describe("the additional fields of direct calls, without a customer", () => {
  it("from create to valid, and after", async () => {
    const { verifier, clock, sender: out, wrong } = alone();
    const first = await verifier.createAuthentication({ phone_number: number });
    const id = first.authentication_uuid;
    expect(beyond(first, created)).toEqual({ phone_number: number, remaining_retry: 4, remaining_checks: 5, next_retry_at: at(30_000) });
    expect(await verifier.check({ authentication_uuid: id, check_code: wrong(id) })).toEqual({
      authentication_uuid: id,
      status: "invalid",
      phone_number: number,
      remaining_retry: 4,
      remaining_checks: 4,
      next_retry_at: at(30_000),
    });
    expect(await verifier.retry({ authentication_uuid: id })).toMatchObject({
      status: "denied",
      phone_number: number,
      remaining_retry: 4,
      remaining_checks: 4,
      next_retry_at: at(30_000),
    });
    clock.advance(30_000);
    expect(await verifier.retry({ authentication_uuid: id })).toMatchObject({
      status: "approved",
      remaining_retry: 3,
      remaining_checks: 4,
      next_retry_at: at(90_000),
    });
    const right = await verifier.check({ authentication_uuid: id, check_code: out.codeOf(id) });
    expect(right).toMatchObject({ status: "valid", phone_number: number });
    expect(right).not.toHaveProperty("next_retry_at");
    for (const after of [await verifier.check({ authentication_uuid: id, check_code: out.codeOf(id) }), await verifier.retry({ authentication_uuid: id })]) {
      expect(after).toMatchObject({ status: "already_validated", remaining_retry: 0, remaining_checks: 0 });
      expect(after).not.toHaveProperty("phone_number");
    }
    clock.advance(600_000);
    for (const after of [await verifier.check({ authentication_uuid: id, check_code: out.codeOf(id) }), await verifier.retry({ authentication_uuid: id })]) {
      expect(after).toMatchObject({ status: "expired_auth", remaining_retry: 0, remaining_checks: 0 });
      expect(after).not.toHaveProperty("phone_number");
    }
  });

  it("a number with a trunk prefix is returned and sent to in its canonical form", async () => {
    const { verifier, sender: out } = alone();
    const answer = await verifier.createAuthentication({ phone_number: number.replace("+33", "+330") });
    expect(answer.phone_number).toBe(number);
    expect(out.messages[0]?.to).toBe(number);
    expect((await verifier.check({ authentication_uuid: answer.authentication_uuid, check_code: out.codeOf(answer.authentication_uuid) })).phone_number).toBe(
      number,
    );
  });

  it("remaining_checks runs down to 0, and the right code is then rate_limited", async () => {
    const { verifier, sender: out, wrong } = alone();
    const { authentication_uuid } = await verifier.createAuthentication({ phone_number: number });
    for (const left of [4, 3, 2, 1, 0])
      expect(await verifier.check({ authentication_uuid, check_code: wrong(authentication_uuid) })).toMatchObject({
        status: "invalid",
        remaining_checks: left,
      });
    const late = await verifier.check({ authentication_uuid, check_code: out.codeOf(authentication_uuid) });
    expect(late).toMatchObject({ status: "rate_limited", remaining_checks: 0, remaining_retry: 0 });
    expect(late).not.toHaveProperty("next_retry_at");
    expect(late).not.toHaveProperty("retry_after");
  });

  it.each([
    [
      "per number",
      {
        limits: {
          ...wide,
          perNumber: [
            { limit: 2, window: 600 },
            { limit: 9, window: 86_400 },
          ],
        },
      },
      600,
    ],
    ["per number, the day's", { limits: { ...wide, perNumber: [{ limit: 2, window: 86_400 }] } }, 86_400],
    ["per device", { limits: { ...wide, perDevice: [{ limit: 2, window: 3600 }] } }, 3_600],
    ["per ip", { limits: { ...wide, perIp: [{ limit: 2, window: 60 }] } }, 60],
    ["per customer", { limits: { ...wide, perCustomer: [{ limit: 2, window: 120 }] } }, 120],
  ])("a cap %s: there is room after retry_after, and not a second earlier", async (_, policy, window) => {
    const { verifier, clock } = alone({ policy });
    const request = { phone_number: number, device_id: "a device", ip: "203.0.113.7" };
    await verifier.createAuthentication(request);
    clock.advance(1_500);
    await verifier.createAuthentication(request);
    clock.advance(2_250);
    const refused = await verifier.createAuthentication(request);
    const wait = Math.ceil(window - 3.75);
    expect(beyond(refused, created)).toEqual({ phone_number: number, remaining_retry: 0, remaining_checks: 0, retry_after: wait });
    clock.advance((wait - 1) * 1_000);
    expect(await verifier.createAuthentication(request)).toMatchObject({ status: "rate_limited", retry_after: 1 });
    clock.advance(1_000);
    expect(await verifier.createAuthentication(request)).toMatchObject({ status: "pending" });
    // The record of a rejected create returns no number.
    expect(await verifier.check({ authentication_uuid: refused.authentication_uuid, check_code: "123456" }).catch(() => ({}))).not.toHaveProperty(
      "phone_number",
    );
  });

  it.each(["hour", "day"] as const)("a spend ceiling per %s that blocked a create has room after retry_after", async (per) => {
    const { verifier, clock } = alone({ price: 1, policy: { limits: { ...wide, spend: [{ amount: 2, per }] } } });
    for (const index of [1, 2]) expect((await verifier.createAuthentication({ phone_number: numberAt(index) })).status).toBe("pending");
    const refused = await verifier.createAuthentication({ phone_number: numberAt(3) });
    expect(refused).toMatchObject({ status: "rate_limited" });
    const wait = refused.retry_after as number;
    expect(Number.isInteger(wait) && wait > 0 && wait <= ((per === "hour" ? 3_600 : 86_400) + 10) * (13 / 12)).toBe(true);
    clock.advance(wait * 1_000);
    expect(await verifier.createAuthentication({ phone_number: numberAt(3) })).toMatchObject({ status: "pending" });
  });

  it("a retry that a cap blocks returns retry_after, and no retry is left", async () => {
    const { verifier, clock } = alone({ policy: { limits: { ...wide, perNumber: [{ limit: 1, window: 14_400 }] } } });
    const { authentication_uuid } = await verifier.createAuthentication({ phone_number: number });
    clock.advance(30_000);
    const answer = await verifier.retry({ authentication_uuid });
    expect(answer).toMatchObject({ status: "rate_limited", remaining_retry: 0, remaining_checks: 5, retry_after: 14_370, phone_number: number });
    expect(await verifier.check({ authentication_uuid, check_code: "12345x" })).not.toHaveProperty("retry_after");
  });

  it("concurrent calls under one key, and later repeats, return the current state", async () => {
    const { verifier, clock, sender: out, wrong } = alone();
    const twins = await Promise.all(Array.from({ length: 20 }, () => verifier.createAuthentication({ phone_number: number }, { idempotencyKey: "k" })));
    expect(out.messages.length).toBe(1);
    const id = twins[0]?.authentication_uuid as string;
    for (const one of twins) expect(one).toEqual(twins[0]);
    await verifier.check({ authentication_uuid: id, check_code: wrong(id) });
    clock.advance(30_000);
    await verifier.retry({ authentication_uuid: id });
    expect(await verifier.createAuthentication({ phone_number: number }, { idempotencyKey: "k" })).toMatchObject({
      authentication_uuid: id,
      status: "pending",
      remaining_retry: 3,
      remaining_checks: 4,
      next_retry_at: at(90_000),
    });
    const keyed = () => verifier.check({ authentication_uuid: id, check_code: out.codeOf(id) }, { idempotencyKey: "c" });
    const proofs = await Promise.all(Array.from({ length: 20 }, keyed));
    for (const one of [...proofs, await keyed()]) expect(one).toMatchObject({ status: "valid", phone_number: number });
    expect(await verifier.check({ authentication_uuid: id, check_code: out.codeOf(id) })).toMatchObject({ status: "already_validated" });
    const after = await verifier.createAuthentication({ phone_number: number }, { idempotencyKey: "k" });
    expect(after).toMatchObject({ authentication_uuid: id, status: "pending", remaining_retry: 0, remaining_checks: 0 });
    expect(after).not.toHaveProperty("next_retry_at");
  });

  it("a second process returns the same values", async () => {
    const clock = fixedClock(start);
    const store = new PlainStore();
    const out = sender();
    const [one, two] = [alone({ clock, store, sender: out }), alone({ clock, store, sender: out })];
    const { authentication_uuid } = await one.verifier.createAuthentication({ phone_number: number });
    const invalid = [];
    for (const { verifier } of [one, two, one, two]) invalid.push(await verifier.check({ authentication_uuid, check_code: one.wrong(authentication_uuid) }));
    expect(invalid.map(({ remaining_checks }) => remaining_checks)).toEqual([4, 3, 2, 1]);
    expect(await two.verifier.check({ authentication_uuid, check_code: out.codeOf(authentication_uuid) })).toMatchObject({
      status: "valid",
      phone_number: number,
    });
    expect(await one.verifier.check({ authentication_uuid, check_code: out.codeOf(authentication_uuid) })).toMatchObject({
      status: "already_validated",
      remaining_checks: 0,
    });
  });

  it("after an erasure, check and retry return invalid_auth_uuid in either process", async () => {
    const clock = fixedClock(start);
    const store = new PlainStore();
    const out = sender();
    const [one, two] = [alone({ clock, store, sender: out }), alone({ clock, store, sender: out })];
    const { authentication_uuid } = await one.verifier.createAuthentication({ phone_number: number });
    await two.verifier.check({ authentication_uuid, check_code: one.wrong(authentication_uuid) });
    expect(await one.verifier.erase({ phone_number: number })).toMatchObject({ erased: 1 });
    for (const { verifier } of [one, two]) {
      await expect(verifier.check({ authentication_uuid, check_code: out.codeOf(authentication_uuid) })).rejects.toMatchObject({ code: "invalid_auth_uuid" });
      await expect(verifier.retry({ authentication_uuid })).rejects.toMatchObject({ code: "invalid_auth_uuid" });
    }
  });

  it.each(["rejected", "hangs", "throws", "nonsense"])("a carrier that %s: carrier_refused only if it definitely rejected the message", async (way) => {
    const { verifier, clock, sender: out } = alone();
    out.answer = async () => {
      if (way === "rejected") return { outcome: "rejected" };
      if (way === "hangs") return new Promise(() => {});
      if (way === "throws") throw new Error("boom");
      return { outcome: "perhaps" } as never;
    };
    const answer = await drive(clock, verifier.createAuthentication({ phone_number: number }));
    expect(answer.status).toBe("pending");
    expect(answer.carrier_refused).toBe(way === "rejected" ? true : undefined);
    expect("carrier_refused" in answer).toBe(way === "rejected");
    const id = answer.authentication_uuid;
    if (way === "rejected") {
      expect(answer).toMatchObject({ remaining_retry: 0, remaining_checks: 0 });
      expect(await verifier.check({ authentication_uuid: id, check_code: out.codeOf(id) })).toMatchObject({ status: "without_attempt", remaining_checks: 0 });
      expect(await verifier.retry({ authentication_uuid: id })).toMatchObject({ status: "no_attempt", remaining_retry: 0 });
    } else {
      expect(answer).toMatchObject({ remaining_checks: 5 });
      out.answer = async () => ({ outcome: "rejected" });
      clock.advance(30_000);
      expect(await drive(clock, verifier.retry({ authentication_uuid: id }))).toMatchObject({
        status: "denied",
        carrier_refused: true,
        remaining_retry: 4,
        remaining_checks: 5,
      });
      expect(await verifier.retry({ authentication_uuid: id })).not.toHaveProperty("carrier_refused");
      expect(await verifier.check({ authentication_uuid: id, check_code: out.codeOf(id, 1) })).toMatchObject({ status: "valid" });
    }
  });

  it("a carrier that responds after sendTimeout does not change what was returned", async () => {
    const { verifier, clock, sender: out } = alone();
    let answer: (outcome: { outcome: "rejected" }) => void = () => {};
    out.answer = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    const made = await drive(clock, verifier.createAuthentication({ phone_number: number }));
    expect(made).not.toHaveProperty("carrier_refused");
    answer({ outcome: "rejected" });
    await turns();
    expect(await verifier.check({ authentication_uuid: made.authentication_uuid, check_code: out.codeOf(made.authentication_uuid) })).toMatchObject({
      phone_number: number,
    });
  });

  it("an unknown customer_uuid is account_invalid, and malformed requests are a VerifierError", async () => {
    const { verifier } = alone();
    await expect(verifier.createAuthentication({ phone_number: number, customer_uuid: randomUUID() })).rejects.toMatchObject({
      code: "account_invalid",
      status: 400,
    });
    for (const odd of [
      undefined,
      null,
      5,
      "x",
      [],
      { phone_number: 33612345678 },
      { phone_number: ["+33612345678"] },
      { phone_number: number, customer_uuid: 5 },
    ]) {
      await expect(verifier.createAuthentication(odd as never)).rejects.toBeInstanceOf(VerifierError);
      await expect(verifier.check(odd as never)).rejects.toBeInstanceOf(VerifierError);
      await expect(verifier.retry(odd as never)).rejects.toBeInstanceOf(VerifierError);
    }
  });

  it("mounting it throws an error that names `customers`", () => {
    for (const mount of [nodeHandler, fetchHandler, nextHandlers]) {
      expect(() => mount(alone().verifier)).toThrow(/customers/);
      expect(() => mount([alone().verifier])).toThrow(/customers/);
    }
  });
});

describe("over HTTP the same facts are headers, and the bodies are exact", () => {
  it("each fact of a direct call is a header with the same value, and there are no others", async () => {
    const customer_uuid = randomUUID();
    const make = (over: Partial<VerifierOptions>) =>
      alone({
        customers: [{ customer_uuid, keys: [keyOf(customer_uuid)] }],
        policy: {
          limits: {
            ...wide,
            perNumber: [
              { limit: 2, window: 600 },
              { limit: 10, window: 86_400 },
            ],
          },
        },
        ...over,
      });
    const [direct, http] = [make({}), make({})];
    const handle = fetchHandler(http.verifier);
    const post = async (path: string, body: object) => {
      const answer = await handle(
        new Request(`https://otp.example/v1/${path}`, {
          method: "POST",
          headers: { "x-api-key": keyOf(customer_uuid), "content-type": "application/json" },
          body: JSON.stringify({ customer_uuid, ...body }),
        }),
      );
      expect(answer.status).toBe(200);
      const told = [...answer.headers]
        .filter(([name]) => name.startsWith("x-phoneproof-"))
        .map(([name, value]) => [name.slice(13).replaceAll("-", "_"), value]);
      return { body: (await answer.json()) as Facts, facts: Object.fromEntries(told) as Record<string, string> };
    };
    const ids: string[][] = [];
    const both = async (operation: "createAuthentication" | "retry" | "check", fields: (side: 0 | 1) => object) => {
      const answer = (await direct.verifier[operation]({ customer_uuid, ...fields(0) } as never)) as unknown as Facts;
      const over = await post(operation === "createAuthentication" ? "authentication" : operation, fields(1));
      ids.push([String(answer["authentication_uuid"]), String(over.body["authentication_uuid"])]);
      const wire = {
        createAuthentication: created,
        retry: ["authentication_uuid", "created_at", "next_retry_at", "remaining_retry", "status"],
        check: ["authentication_uuid", "status"],
      }[operation];
      expect(Object.keys(over.body).sort()).toEqual(wire);
      for (const key of wire) if (key !== "authentication_uuid") expect(over.body[key]).toEqual(answer[key]);
      for (const [fact, value] of Object.entries(over.facts)) expect(value).toBe(String(answer[fact]));
      for (const fact of Object.keys(beyond(answer, wire))) expect(over.facts, `${operation} ${fact}`).toHaveProperty(fact);
    };
    const id = (side: 0 | 1) => ids[0]?.[side] as string;
    const code = (side: 0 | 1) => [direct, http][side]?.sender.codeOf(id(side)) as string;
    const pass = (ms: number) => {
      for (const { clock } of [direct, http]) clock.advance(ms);
    };
    await both("createAuthentication", () => ({ phone_number: number }));
    await both("check", (side) => ({ authentication_uuid: id(side), check_code: "wrong" }));
    await both("retry", (side) => ({ authentication_uuid: id(side) }));
    pass(30_000);
    await both("retry", (side) => ({ authentication_uuid: id(side) }));
    await both("createAuthentication", () => ({ phone_number: number }));
    pass(60_000);
    await both("retry", (side) => ({ authentication_uuid: id(side) }));
    await both("check", (side) => ({ authentication_uuid: id(side), check_code: code(side) }));
    await both("check", (side) => ({ authentication_uuid: id(side), check_code: code(side) }));
    await both("retry", (side) => ({ authentication_uuid: id(side) }));
    pass(600_000);
    await both("check", (side) => ({ authentication_uuid: id(side), check_code: code(side) }));
    for (const { sender: out } of [direct, http]) out.answer = async () => ({ outcome: "rejected" });
    await both("createAuthentication", () => ({ phone_number: number }));
  });
});

describe("lazyVerifier", () => {
  const options = (): VerifierOptions => ({
    store: memoryStore(),
    sender: sender(),
    secret,
    countries: "all",
    logger: logger(),
    clock: fixedClock(start),
    callbacks: { worker: false },
  });

  it("a factory that throws once rejects that call, and works the next time", async () => {
    let calls = 0;
    const verifier = lazyVerifier(() => {
      if (++calls === 1) throw new Error("no secret yet");
      return options();
    });
    expect(calls).toBe(0);
    await expect(verifier.createAuthentication({ phone_number: number })).rejects.toThrow("no secret yet");
    expect(await verifier.createAuthentication({ phone_number: number })).toMatchObject({ status: "pending" });
    await verifier.retry({ authentication_uuid: randomUUID() }).catch(() => {});
    expect(calls).toBe(2);
    await verifier.close();
  });

  it("a hundred concurrent calls create one verifier", async () => {
    let calls = 0;
    const verifier = lazyVerifier(() => {
      calls++;
      return options();
    });
    const answers = await Promise.all(Array.from({ length: 100 }, () => verifier.createAuthentication({ phone_number: number })));
    expect(calls).toBe(1);
    expect(answers.filter(({ status }) => status === "pending").length).toBe(5);
    await verifier.close();
  });

  it("invalid options reject each call until they are valid", async () => {
    let countries: unknown = "France";
    const verifier = lazyVerifier(() => ({ ...options(), countries: countries as never }));
    for (let i = 0; i < 2; i++) await expect(verifier.createAuthentication({ phone_number: number })).rejects.toMatchObject({ code: "invalid_options" });
    countries = ["FR"];
    expect(await verifier.createAuthentication({ phone_number: number })).toMatchObject({ status: "pending" });
    await verifier.close();
  });

  it.each<[string, unknown]>([
    ["a promise", () => Promise.resolve(options())],
    ["nothing", () => {}],
    ["a verifier", () => createVerifier(options())],
  ])("a factory that returns %s rejects calls with invalid_options", async (_, factory) => {
    const verifier = lazyVerifier(factory as never);
    await expect(verifier.createAuthentication({ phone_number: number })).rejects.toMatchObject({ code: "invalid_options" });
    await verifier.close();
  });

  it("anything but a function throws at once", () => {
    for (const odd of [undefined, null, {}, options(), Promise.resolve(options)]) expect(() => lazyVerifier(odd as never)).toThrow(VerifierError);
  });

  it("mounted with its receipts, it is built on first use, gives 500 without the reason while that fails, and then works", async () => {
    const customer_uuid = randomUUID();
    let isReady = false;
    let calls = 0;
    const out = sender();
    const verifier = lazyVerifier(() => {
      calls++;
      if (!isReady) throw new Error("the database password is hunter2");
      return { ...options(), sender: out, receipts, customers: [{ customer_uuid, keys: [keyOf(customer_uuid)] }] };
    });
    const handle = fetchHandler([verifier, verifier.receipts]);
    expect(calls).toBe(0);
    const ask = () =>
      handle(
        new Request("https://otp.example/v1/authentication/", {
          method: "POST",
          headers: { "x-api-key": keyOf(customer_uuid), "content-type": "application/json" },
          body: JSON.stringify({ customer_uuid, phone_number: number }),
        }),
      );
    const silenced = console.error;
    console.error = () => {};
    const broken = await ask();
    console.error = silenced;
    expect(broken.status).toBe(500);
    expect(await broken.text()).not.toContain("hunter2");
    isReady = true;
    const answers = await Promise.all(Array.from({ length: 100 }, ask));
    expect(answers.map(({ status }) => status)).toEqual(Array(100).fill(200));
    expect(calls).toBe(2);
    expect(await postReceipt(verifier, out.messages[0] as never, "delivered")).toBeGreaterThanOrEqual(200);
    await verifier.close();
  });
});

describe("handlers in awkward mounts", () => {
  async function listening(handler: Parameters<typeof createServer>[1]) {
    const server = createServer(handler);
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    return {
      origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      close: () => {
        server.closeAllConnections();
        server.close();
      },
    };
  }
  const service = () => {
    const customer_uuid = randomUUID();
    const one = alone({ receipts, customers: [{ customer_uuid, keys: [keyOf(customer_uuid)] }] });
    return {
      ...one,
      customer_uuid,
      init: () => ({
        method: "POST",
        headers: { "x-api-key": keyOf(customer_uuid), "content-type": "application/json" },
        body: JSON.stringify({ customer_uuid, phone_number: number }),
      }),
    };
  };

  it("one trailing slash is allowed; two, and other spellings, give 404", async () => {
    const one = service();
    const { origin, close } = await listening(nodeHandler([one.verifier, one.verifier.receipts]) as never);
    const status = async (path: string) => (await fetch(origin + path, one.init())).status;
    expect(await status("/v1/authentication")).toBe(200);
    expect(await status("/v1/authentication/")).toBe(200);
    expect(await status("/v1/authentication/?a=b")).toBe(200);
    for (const path of [
      "/v1/authentication//",
      "/v1//authentication",
      "/V1/authentication",
      "/v1/Authentication",
      "/v1",
      "/v1/",
      "/",
      "/receipts",
      "/receiptsx/mine",
      "/v1x/authentication",
    ]) {
      expect(await status(path), path).toBe(404);
    }
    close();
  });

  it("the host's `rawBody` is read if the stream has been consumed", async () => {
    const one = service();
    for (const keep of [(bytes: Buffer) => bytes, (bytes: Buffer) => bytes.toString(), (bytes: Buffer) => new Uint8Array(bytes)]) {
      const handler = nodeHandler([one.verifier, one.verifier.receipts]);
      const { origin, close } = await listening(async (request, response) => {
        const pieces: Buffer[] = [];
        for await (const piece of request) pieces.push(piece as Buffer);
        Object.assign(request, { rawBody: keep(Buffer.concat(pieces)), body: { not: "what came" } });
        handler(request as never, response as never);
      });
      const answer = await fetch(`${origin}/v1/authentication`, one.init());
      expect([answer.status, Object.keys((await answer.json()) as object).sort()]).toEqual([200, created]);
      close();
    }
  });
});

describe("createTestVerifier, misused", () => {
  it("two at once are independent", async () => {
    const [one, two] = [createTestVerifier({ code: "111111" }), createTestVerifier({ code: { [number]: "222222" } })];
    const { authentication_uuid } = await one.verifier.createAuthentication({ phone_number: number });
    await expect(two.verifier.check({ authentication_uuid, check_code: "111111" })).rejects.toMatchObject({ code: "invalid_auth_uuid" });
    expect(() => two.inbox.codeFor(number)).toThrow();
    one.clock.advance(60_000);
    expect(one.clock.now()).not.toBe(two.clock.now());
    await one.close();
    await two.verifier.createAuthentication({ phone_number: number });
    expect(two.inbox.codeFor(number)).toBe("222222");
    await two.close();
  });

  it("twenty tests in parallel each read their own code", async () => {
    const codes = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const test = createTestVerifier();
        const { authentication_uuid } = await test.verifier.createAuthentication({ phone_number: number });
        const answer = await test.verifier.check({ authentication_uuid, check_code: test.inbox.codeFor(number) });
        await test.close();
        return answer.status;
      }),
    );
    expect(codes).toEqual(Array(20).fill("valid"));
  });

  it("codeFor of a number without a message throws, and names the one that got one", async () => {
    const test = createTestVerifier();
    expect(() => test.inbox.codeFor(number)).toThrow(Error);
    await test.verifier.createAuthentication({ phone_number: number });
    for (const odd of ["+33612345679", "", "0612345678"]) expect(() => test.inbox.codeFor(odd as never)).toThrow(number);
    test.inbox.clear();
    expect(() => test.inbox.codeFor(number)).toThrow(Error);
    expect(test.inbox.lastMessage(number)).toBeUndefined();
    await expect(test.receipt("+33612345679", "delivered")).rejects.toThrow();
    await test.close();
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, "1000", undefined])("advance by %j throws, and the time does not change", async (ms) => {
    const test = createTestVerifier();
    const before = test.clock.now();
    expect(() => test.clock.advance(ms as never)).toThrow();
    expect(test.clock.now()).toBe(before);
    await test.close();
  });

  it("advance by 30 days is quick, and leaves a verifier that works", async () => {
    const test = createTestVerifier({ callbacks: { worker: true } });
    const { authentication_uuid } = await test.verifier.createAuthentication({ phone_number: number });
    const started = performance.now();
    test.clock.advance(30 * 86_400_000);
    expect(performance.now() - started).toBeLessThan(30_000);
    await expect(test.verifier.check({ authentication_uuid, check_code: "123456" })).rejects.toMatchObject({ code: "invalid_auth_uuid" });
    expect(await test.verifier.createAuthentication({ phone_number: number })).toMatchObject({ status: "pending" });
    await test.close();
  });

  it("close can be called twice, concurrently, again later, and through await using", async () => {
    const test = createTestVerifier();
    await Promise.all([test.close(), test.close()]);
    await test.close();
    await test[Symbol.asyncDispose]();
  });

  it.each<[string, object]>([
    ["a misspelt option", { cods: "424242" }],
    ["an invalid clock", { clock: Date }],
  ])("%s is rejected", (_, options) => expect(() => createTestVerifier(options as never)).toThrow(VerifierError));

  it.each<[string, object, RegExp]>([
    ["a code of letters", { code: "abcdef" }, /: code must be/],
    ["a code of three digits", { code: "123" }, /: code must be/],
    ["a code that is a number", { code: 424242 }, /: code must be/],
    ["a code that is null", { code: null }, /: code must be/],
    ["a list of codes", { code: [] }, /: code must be .* by number/],
    ["a Map of codes", { code: new Map([[number, "424242"]]) }, /: code must be .* by number/],
    ["a code for a number that is not in E.164 form", { code: { "0612345678": "424242" } }, /: code\["0612345678"\] .*E\.164/],
    ["limits in words", { limits: "off" }, /: limits must be true or false/],
    ["limits that are null", { limits: null }, /: limits must be true or false/],
    ["postCallbacks in words", { postCallbacks: "no" }, /: postCallbacks must be true or false/],
    ["a clock that is null", { clock: null }, /: clock must be a fixedClock/],
    ["a clock that cannot be moved", { clock: { now: () => 0, after: () => () => {} } }, /: clock must be a fixedClock/],
    ["a sender that is null", { sender: null }, /: sender must be an SMS sender/],
    ["customers that are a number", { customers: 5 }, /: customers must be a list/],
  ])("%s: invalid_options that names it", (_, options, named) => {
    const make = () => createTestVerifier(options as never);
    expect(make).toThrow(VerifierError);
    expect(make).toThrow(expect.objectContaining({ code: "invalid_options", message: expect.stringMatching(named) }));
  });

  it("createTestVerifier(null) uses the defaults", async () => {
    const test = createTestVerifier(null as never);
    expect(await test.verifier.createAuthentication({ phone_number: number })).toMatchObject({ status: "pending" });
    await test.close();
  });

  it.each([undefined, null, 5])("codeFor(%s) throws, and returns no one's code", async (nobody) => {
    const test = createTestVerifier();
    await test.verifier.createAuthentication({ phone_number: number });
    expect(() => test.inbox.codeFor(nobody as never)).toThrow(/E\.164/);
    await expect(test.receipt(nobody as never, "delivered")).rejects.toThrow(/E\.164/);
    await test.close();
  });

  it.each([null, 5])("lastMessage(%s) throws, and explains what it accepts", async (nobody) => {
    const test = createTestVerifier();
    expect(() => test.inbox.lastMessage(nobody as never)).toThrow(/E\.164/);
    await test.close();
  });

  it.each(["lost", undefined, null, 5])("a receipt with the status %j rejects, and lists the valid ones", async (odd) => {
    const test = createTestVerifier();
    await test.verifier.createAuthentication({ phone_number: number });
    await expect(test.receipt(number, odd as never)).rejects.toThrow(`submitted, in_transit, delivered, undeliverable, unknown, got ${odd}.`);
    await test.close();
  });
});

describe("invalid options", () => {
  const given = (options: object): Verifier =>
    createVerifier({ store: new PlainStore(), sender: sender(), secret, countries: ["FR"], logger: logger(), clock: fixedClock(start), ...options } as never);

  it.each<[string, object, RegExp]>([
    ["the country's name", { countries: ["France"] }, /countries/],
    ["UK", { countries: ["UK"] }, /countries.*GB/s],
    ["three letters", { countries: ["FRA"] }, /countries/],
    ["a calling code", { countries: ["+33"] }, /countries/],
    ["one text of several", { countries: "FR,GB" }, /countries/],
    ["no country", { countries: [] }, /countries/],
    ["none given", { countries: undefined }, /countries/],
    ["ALL", { countries: ["all"] }, /countries/],
    ["a numeral", { countries: [33] }, /countries/],
    ["milliseconds of a lifetime", { policy: { lifetime: 600_000 } }, /policy\.lifetime/],
    ["seconds in quotes", { policy: { lifetime: "600" } }, /policy\.lifetime/],
    ["10m", { policy: { lifetime: "10m" } }, /policy\.lifetime/],
    ["true in quotes", { lookupBeforeSend: "true" }, /lookupBeforeSend/],
    ["a code of 3 digits", { policy: { codeLength: 3 } }, /codeLength/],
    ["a code of 4 digits, whose odds are too good", { policy: { codeLength: 4 } }, /maxGuessOdds|guess/],
    ["no checks", { policy: { checks: 0 } }, /checks/],
    ["a cap that is off", { policy: { limits: { perNumber: [] } } }, /perNumber/],
    ["a misspelt option", { contries: ["FR"] }, /contries/],
    ["a misspelt option deep down", { policy: { limits: { perNumbers: [] } } }, /perNumbers/],
    ["a short secret", { secret: "secret" }, /secret/],
    ["a secret in quotes from an .env file", { secret: '""' }, /secret/],
    ["no secret", { secret: "" }, /secret/],
    ["a message without its code", { message: { text: "Your code" } }, /message\.text/],
    [
      "a message in typographic quotes, which is no GSM-7",
      { message: { text: "“{code}” is your verification code for the application that you have on your telephone" } },
      /message\.text/,
    ],
    ["a domain with its scheme", { message: { domain: "https://example.com" } }, /message\.domain/],
    ["a test number as it is dialled", { testNumbers: ["0612345678"] }, /testNumbers/],
    ["a store that is the client", { store: { get() {}, set() {} } }, /store/],
    ["a sender that is a function", { sender: () => {} }, /sender/],
    ["a spend ceiling per month", { policy: { limits: { spend: [{ amount: 5, per: "month" }] } } }, /spend/],
    ["customers that are none", { customers: [] }, /customers/],
    ["a customer without a UUID", { customers: [{ customer_uuid: "acme", keys: [keyOf("x".repeat(40))] }] }, /customer/],
  ])("%s: invalid_options that names it", (_, options, named) => {
    let told: unknown;
    try {
      void given(options).close();
    } catch (error) {
      told = error;
    }
    expect(told).toBeInstanceOf(VerifierError);
    expect(told).toMatchObject({ code: "invalid_options", status: 500 });
    expect((told as Error).message).toMatch(named);
    expect((told as Error).message).not.toContain(secret);
  });

  it("all errors are reported at once", () => {
    expect(() => given({ countries: ["France"], policy: { lifetime: "600", checks: -1 }, sendTimeout: "5s" })).toThrow(
      /(?=.*countries)(?=.*lifetime)(?=.*checks)(?=.*sendTimeout)/s,
    );
    for (const odd of [undefined, 5, "x"]) expect(() => createVerifier(odd as never)).toThrow(VerifierError);
  });
});
