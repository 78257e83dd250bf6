import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { nodeHandler } from "../../adapters/http/node.js";
import { inboxSender } from "../../adapters/sms/inbox.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { generateApiKey, VerifierError } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { createTestVerifier, fixedClock, type TestVerifier } from "../../src/testing/index.js";
import { receiver } from "../support/receiver.js";

const number = "+33612345678";
const callback_url = "https://app.example/hook";

const create = ({ verifier }: TestVerifier, fields: object = {}) => verifier.createAuthentication({ phone_number: number, ...fields });

describe("a verifier for one test", () => {
  it("accepts direct calls with its customer_uuid or without, and the code in its inbox is the right one", async () => {
    const test = createTestVerifier();
    const { authentication_uuid, status } = await create(test);
    expect(status).toBe("pending");
    const check = { authentication_uuid, check_code: test.inbox.codeFor(number) };
    expect((await test.verifier.check({ ...check, check_code: "000000" })).status).toBe("invalid");
    expect((await test.verifier.check({ ...check, customer_uuid: test.customer_uuid })).status).toBe("valid");
    await test.close();
  });

  it("serves /v1 for its API key and customer_uuid, with the authentications of direct calls too", async () => {
    const test = createTestVerifier();
    const server = createServer(nodeHandler(test.verifier));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const post = async (path: string, body: object, key = test.apiKey) => {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/${path}`;
      const answer = await fetch(url, {
        method: "POST",
        headers: { "x-api-key": key, "content-type": "application/json" },
        body: JSON.stringify({ customer_uuid: test.customer_uuid, ...body }),
      });
      return { http: answer.status, ...((await answer.json()) as { status: string; authentication_uuid: string }) };
    };
    expect((await post("authentication", { phone_number: number })).status).toBe("pending");
    const { authentication_uuid } = await create(test);
    expect((await post("check", { authentication_uuid, check_code: test.inbox.codeFor(number) })).status).toBe("valid");
    expect((await post("authentication", { phone_number: number }, generateApiKey().key)).http).toBe(403);
    server.close();
    await test.close();
  });

  it("shares no messages, counts or authentications with another one", async () => {
    const [one, two] = [createTestVerifier(), createTestVerifier()];
    const { authentication_uuid } = await create(one);
    for (let send = 1; send < 5; send++) await create(one);
    expect((await create(one)).status).toBe("rate_limited");
    expect((await create(two)).status).toBe("pending");
    expect([one.inbox.messages.length, two.inbox.messages.length]).toEqual([5, 1]);
    await expect(two.verifier.check({ authentication_uuid, check_code: "1234" })).rejects.toMatchObject({ code: "invalid_auth_uuid" });
    expect([one.apiKey, one.customer_uuid]).not.toEqual([two.apiKey, two.customer_uuid]);
  });

  it("accepts the options of createVerifier, and rejects invalid ones", async () => {
    const key = generateApiKey().key;
    const customer_uuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
    const test = createTestVerifier({
      countries: ["GB"],
      policy: { lifetime: 60 },
      customers: [{ customer_uuid, keys: [key] }],
      store: undefined,
      secret: undefined,
    });
    await expect(create(test)).rejects.toMatchObject({ code: "unsupported_region" });
    const { created_at, expires_at } = await create(test, { customer_uuid, phone_number: "+447400123456" });
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(60_000);
    expect(() => createTestVerifier({ countries: ["UK!" as "GB"] })).toThrow(VerifierError);
  });

  it("shares one service with another on the same store, even from another copy of the library, as in Next.js", async () => {
    const make = (create: typeof createTestVerifier) => create({ store: memoryStore({ name: "one service" }), code: "424242", limits: false });
    const one = make(createTestVerifier);
    vi.resetModules();
    const copy = await import("../../src/testing/index.js");
    expect(copy.createTestVerifier).not.toBe(createTestVerifier);
    const two = make(copy.createTestVerifier);
    const { authentication_uuid } = await create(one);
    expect((await two.verifier.check({ authentication_uuid, check_code: "424242" })).status).toBe("valid");
    expect([two.apiKey, two.customer_uuid]).toEqual([one.apiKey, one.customer_uuid]);
    await one.close();
    expect(make(createTestVerifier).customer_uuid).not.toBe(one.customer_uuid);
  });

  it.each([null, 5, "redis://"])("whose store is %j is rejected", (store) => {
    expect(() => createTestVerifier({ store: store as never })).toThrow(expect.objectContaining({ code: "invalid_options" }));
  });

  it("is closed by `await using`, together with its store", async () => {
    const store = memoryStore({ name: "closed by await using" });
    const test = createTestVerifier({ store });
    await test[Symbol.asyncDispose]();
    expect(memoryStore({ name: "closed by await using" })).not.toBe(store);
  });
});

describe("limits", () => {
  it("are those of production unless they are turned off", async () => {
    const statuses = async (test: TestVerifier) => {
      const all = Array.from({ length: 40 }, (_, at) => create(test, { phone_number: at < 10 ? number : `+336120000${at}`, ip: "192.0.2.1" }));
      return new Set((await Promise.all(all)).map(({ status }) => status));
    };
    expect(await statuses(createTestVerifier())).toEqual(new Set(["pending", "rate_limited", "spam_detected"]));
    expect(await statuses(createTestVerifier({ limits: false }))).toEqual(new Set(["pending"]));
  });

  it("set in the policy apply even if the others are turned off", async () => {
    const test = createTestVerifier({ limits: false, policy: { limits: { perDevice: [{ limit: 1, window: 60 }] } } });
    const statuses = [await create(test, { device_id: "one" }), await create(test, { device_id: "one" })].map(({ status }) => status);
    expect(statuses).toEqual(["pending", "rate_limited"]);
  });
});

describe("the inbox", () => {
  it("returns the newest message, overall or to a number in any spelling, until it is cleared", async () => {
    const { inbox, ...test } = createTestVerifier();
    expect(inbox.lastMessage()).toBeUndefined();
    await create({ inbox, ...test });
    await create({ inbox, ...test }, { phone_number: "+447400123456" });
    await create({ inbox, ...test });
    expect(inbox.messages.map(({ to }) => to)).toEqual([number, "+447400123456", number]);
    expect(inbox.lastMessage()).toBe(inbox.messages[2]);
    expect(inbox.lastMessage("+44 7400 123456")).toBe(inbox.messages[1]);
    expect(inbox.codeFor("+33 6 12 34 56 78")).toBe(inbox.messages[2]?.code);
    inbox.clear();
    expect(inbox.lastMessage(number)).toBeUndefined();
  });

  it("reports which numbers have messages if the requested one has none", async () => {
    const test = createTestVerifier();
    expect(() => test.inbox.codeFor(number)).toThrow(`no message went to ${number}; no message went to anyone. Did the create return pending?`);
    await create(test);
    expect(() => test.inbox.codeFor("+447400123456")).toThrow(`no message went to +447400123456; there are messages to ${number}`);
  });

  it("contains what another sender accepts, through a router too, but not what it rejects", async () => {
    const taking = createTestVerifier({ sender: router({ routes: [{ name: "one", sender: inboxSender() }] }) });
    await create(taking);
    expect(taking.inbox.messages).toHaveLength(1);
    const rejecting = createTestVerifier({
      sender: inboxSender({ outcome: { outcome: "rejected", reason: "no" } }),
      logger: { info() {}, warn() {}, error() {} },
    });
    const { authentication_uuid } = await create(rejecting);
    expect(rejecting.inbox.messages).toEqual([]);
    expect((await rejecting.verifier.check({ authentication_uuid, check_code: "123456" })).status).toBe("without_attempt");
  });
});

describe("fixed codes", () => {
  it("one for all messages, which are still sent, and for retries", async () => {
    const test = createTestVerifier({ code: "424242" });
    const { authentication_uuid } = await create(test);
    test.clock.advance(30_000);
    expect((await test.verifier.retry({ authentication_uuid })).status).toBe("approved");
    expect(test.inbox.messages.map(({ code, text }) => [code, text])).toEqual(Array(2).fill(["424242", "Your verification code is 424242"]));
    expect((await test.verifier.check({ authentication_uuid, check_code: "424242" })).status).toBe("valid");
  });

  it("one per number; other numbers get random codes", async () => {
    const test = createTestVerifier({ code: { [number]: "0000" } });
    await create(test);
    await create(test, { phone_number: "+447400123456" });
    expect(test.inbox.codeFor(number)).toBe("0000");
    expect(test.inbox.codeFor("+447400123456")).toMatch(/^\d{6}$/);
  });

  it("a number with a trunk prefix is read without it", async () => {
    const test = createTestVerifier({ code: { [number.replace("+33", "+330")]: "0000" } });
    await create(test);
    expect(test.inbox.codeFor(number)).toBe("0000");
  });

  it.each(["123", "12345678901", "12345a", { [number]: "" }])("%j is rejected", (code) => {
    expect(() => createTestVerifier({ code })).toThrow("must be a string of 4 to 10 digits");
  });
});

describe("the clock", () => {
  it("starts at the system's time, stands still until it is moved, and is used by the verifier", async () => {
    const before = Date.now();
    const test = createTestVerifier();
    expect(test.clock.now()).toBeGreaterThanOrEqual(before);
    const { authentication_uuid } = await create(test);
    test.clock.advance(600_000);
    expect((await test.verifier.check({ authentication_uuid, check_code: test.inbox.codeFor(number) })).status).toBe("expired_auth");
    expect(createTestVerifier({ clock: fixedClock(0) }).clock.now()).toBe(0);
  });

  it("can be moved during any work, with a callback worker too, without warnings in the log", async () => {
    const told = ["warn", "error"].map((level) => vi.spyOn(console, level as "warn").mockImplementation(() => {}));
    const test = createTestVerifier({ callbacks: { worker: true } });
    const { authentication_uuid } = await create(test, { callback_url });
    test.clock.advance(600_001);
    await test.receipt(number, "delivered");
    const checking = test.verifier.check({ authentication_uuid, check_code: "000000" });
    // The record has not ended yet, so the check finds it, whether or not the worker has delivered by then.
    test.clock.advance(86_000_000);
    expect((await checking).status).toBe("expired_auth");
    await test.flush();
    await test.close();
    for (const one of told) {
      expect(one.mock.calls).toEqual([]);
      one.mockRestore();
    }
  });

  it("ignores fake timers: a hanging carrier is abandoned once it is moved (docs/testing.md#the-clock)", async () => {
    onTestFinished(() => void vi.useRealTimers());
    vi.useFakeTimers();
    let asked = () => {};
    const isAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const send = () => {
      asked();
      return new Promise<never>(() => {});
    };
    const test = createTestVerifier({ sender: { send }, sendTimeout: 5, logger: { info() {}, warn() {}, error() {} } });
    const creating = create(test);
    await isAsked;
    test.clock.advance(5_000);
    expect((await creating).status).toBe("pending");
    await test.close();
  });

  it("ignores fake timers when it reads a long list (docs/testing.md#the-clock)", async () => {
    onTestFinished(() => void vi.useRealTimers());
    vi.useFakeTimers();
    const numbers = Array.from({ length: 2_000 }, (_, at) => `+3361${String(at).padStart(7, "0")}`);
    const test = createTestVerifier({ lists: { block: async () => ({ numbers }) } });
    expect((await create(test)).status).toBe("pending");
    await test.close();
  });
});

describe('a clock that is "running"', () => {
  it("follows the system's time: the first cool-down ends on its own", async () => {
    const test = createTestVerifier({ clock: "running", policy: { retryCooldowns: [1, 1, 1, 1] } });
    const { authentication_uuid } = await create(test);
    expect((await test.verifier.retry({ authentication_uuid })).status).toBe("denied");
    await vi.waitFor(async () => expect((await test.verifier.retry({ authentication_uuid })).status).toBe("approved"), { timeout: 20_000 });
    await test.close();
  });

  it("follows fake timers (docs/testing.md#the-clock)", async () => {
    onTestFinished(() => void vi.useRealTimers());
    vi.useFakeTimers();
    const test = createTestVerifier({ clock: "running" });
    const { authentication_uuid } = await create(test);
    vi.advanceTimersByTime(600_000);
    expect((await test.verifier.check({ authentication_uuid, check_code: "000000" })).status).toBe("expired_auth");
    await test.close();
  });

  it("can also be advanced and set back", async () => {
    const test = createTestVerifier({ clock: "running" });
    const { authentication_uuid } = await create(test);
    test.clock.advance(600_000);
    expect(test.clock.now()).toBeGreaterThanOrEqual(Date.now() + 599_000);
    expect((await test.verifier.check({ authentication_uuid, check_code: "000000" })).status).toBe("expired_auth");
    test.clock.set(0);
    expect(test.clock.now()).toBeLessThan(60_000);
    await test.close();
  });

  it.each([
    [0.5, 0],
    [30, 30_000],
  ])("gives up after %i s on a sender that hangs, if it is advanced by %i ms", async (sendTimeout, ahead) => {
    const asked = vi.fn(() => new Promise<never>(() => {}));
    const test = createTestVerifier({ sender: { send: asked }, sendTimeout, clock: "running", logger: { info() {}, warn() {}, error() {} } });
    const creating = create(test);
    await vi.waitFor(() => expect(asked).toHaveBeenCalled());
    test.clock.advance(ahead);
    expect((await creating).status).toBe("pending");
    await test.close();
  });
});

describe("receipts and callbacks", () => {
  it("a receipt by number or message is treated like a real one, and its signed callbacks arrive in order", async () => {
    const test = createTestVerifier();
    const { authentication_uuid } = await create(test, { callback_url });
    await test.receipt(number, "in_transit");
    await test.receipt(test.inbox.messages[0] as never, "undeliverable", { error: "30003" });
    expect(test.callbacks).toEqual([]);
    expect(await test.flush()).toEqual({ delivered: 3, failed: 0, dead: 0 });
    expect(test.callbacks.map(({ event }) => event.data.status)).toEqual(["submitted", "in_transit", "undeliverable"]);
    const last = test.callbacks[2];
    expect(last).toMatchObject({ url: callback_url, customer_uuid: test.customer_uuid, event: { data: { authentication_uuid, attempt: 1, error: "30003" } } });
    expect(JSON.parse(last?.body ?? "")).toEqual(last?.event);
    expect(last?.headers["webhook-signature"]).toMatch(/^v1,/);
  });

  it("a receipt without a message is rejected", async () => {
    await expect(createTestVerifier().receipt(number, "delivered")).rejects.toThrow("no message went to");
  });

  it("an unknown receipt status is rejected, and changes nothing", async () => {
    const test = createTestVerifier();
    await create(test, { callback_url });
    await expect(test.receipt(number, "lost" as "unknown")).rejects.toThrow("a receipt reports one of submitted, in_transit, delivered");
    await expect(test.receipt({} as never, "delivered")).rejects.toThrow("a receipt is of a number, or of a message of the inbox");
    await test.flush();
    expect(test.callbacks.map(({ event }) => event.data.status)).toEqual(["submitted"]);
  });

  it("a failed callback is retried once the clock has moved", async () => {
    let status = 503;
    const warn = vi.fn();
    const test = createTestVerifier({ callbacks: { sender: { post: async () => ({ status }) } }, logger: { info() {}, warn, error: warn } });
    await create(test, { callback_url });
    expect(await test.flush()).toEqual({ delivered: 0, failed: 1, dead: 0 });
    status = 204;
    expect(await test.flush()).toEqual({ delivered: 0, failed: 0, dead: 0 });
    test.clock.advance(10_000);
    expect(await test.flush()).toEqual({ delivered: 1, failed: 0, dead: 0 });
    expect(new Set(test.callbacks.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
    expect(warn).toHaveBeenCalledTimes(1);
  });

  it("postCallbacks also posts them", async () => {
    const hook = await receiver();
    const test = createTestVerifier({ postCallbacks: true, callbacks: { allowOrigins: [hook.origin] } });
    await create(test, { callback_url: `${hook.origin}/hook` });
    await test.flush();
    expect(hook.received.map(({ body }) => body)).toEqual(test.callbacks.map(({ body }) => body));
    expect(hook.received).toHaveLength(1);
    await test.close();
    await hook.close();
  });

  it("flush waits for work after responses, but not for timers of the clock, with fake timers too", async () => {
    onTestFinished(() => void vi.useRealTimers());
    vi.useFakeTimers();
    const works: Promise<unknown>[] = [];
    const store = memoryStore();
    const test = createTestVerifier({ store, callbacks: { waitUntil: (work) => void works.push(work) }, logger: { info() {}, warn() {}, error() {} } });
    Object.assign(store, { commit: () => Promise.reject(new Error("down")) });
    await expect(create(test)).rejects.toMatchObject({ code: "unavailable" });
    expect(works.length).toBeGreaterThan(0);
    await test.flush();
  });
});
