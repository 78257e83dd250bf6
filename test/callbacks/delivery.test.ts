import { Webhook } from "standardwebhooks";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { verifyWebhook } from "../../clients/webhooks.js";
import type { CallbackResponse, DeliveryStatusEvent, VerifierOptions } from "../../src/index.js";
import { type Receiver, receiver } from "../support/receiver.js";
import { numberOf, setUp, start } from "../support/verifier.js";

let hook: Receiver;
beforeEach(async () => {
  hook = await receiver();
});
afterEach(() => hook.close());

const withHook = (options: Partial<VerifierOptions> = {}) => {
  const set = setUp({ ...options, callbacks: { allowOrigins: [hook.origin], ...options.callbacks } });
  return { ...set, create: (fields: object = {}) => set.create({ callback_url: `${hook.origin}/hook`, ...fields }) };
};

const statuses = () => hook.received.map(({ body }) => (JSON.parse(body) as DeliveryStatusEvent).data.status);
const record = async (set: ReturnType<typeof setUp>, id: string) =>
  (await set.store.find(set.customer, id)) as NonNullable<Awaited<ReturnType<typeof set.store.find>>>;

describe("callbacks (docs/contract.md#callbacks)", () => {
  it("are POSTed to `callback_url` as JSON { type, timestamp, data } with the number masked and without the code", async () => {
    const set = withHook();
    const { authentication_uuid } = await set.create();
    await expect.poll(() => hook.received.length).toBe(1);
    const [{ headers, body }] = hook.received as [Receiver["received"][number]];
    expect(headers["content-type"]).toBe("application/json");
    expect(JSON.parse(body)).toEqual({
      type: "delivery_status",
      timestamp: new Date(start).toISOString(),
      data: { authentication_uuid, sequence: 1, attempt: 1, phone_number: "+33612****01", status: "submitted" },
    });
    expect(body).not.toContain(set.box.code());
  });

  it("contain the whole number if `fullNumber` is set", async () => {
    const set = withHook({ callbacks: { allowOrigins: [hook.origin], fullNumber: true } });
    await set.create();
    await expect.poll(() => hook.received.length).toBe(1);
    expect(hook.received[0]?.body).toContain(numberOf(1));
  });

  it("are first delivered right after the response, and never delay it", async () => {
    const set = withHook();
    hook.answer = () => undefined;
    expect((await set.create()).status).toBe("pending");
    await expect.poll(() => hook.received.length).toBe(1);
  });

  it.each([
    ["accepted", "submitted"],
    ["rejected", "undeliverable"],
    ["unknown", "unknown"],
  ] as const)("report a send that was %s as `%s`, with its attempt number", async (outcome, status) => {
    const set = withHook();
    const { authentication_uuid } = await set.create();
    await expect.poll(() => statuses()).toEqual(["submitted"]);
    await set.verifier.flush();
    set.box.answer = async () => ({ outcome });
    set.clock.advance(30_000);
    await set.retry(authentication_uuid);
    await expect.poll(() => statuses()).toEqual(["submitted", status]);
    expect(JSON.parse(hook.received[1]?.body ?? "").data.attempt).toBe(2);
  });

  it("report nothing for a rate_limited create, or without callback_url", async () => {
    const set = withHook({ policy: { limits: { perNumber: [{ limit: 1, window: 86_400 }] } } });
    await set.create({ callback_url: undefined });
    expect((await set.create()).status).toBe("rate_limited");
    await set.verifier.flush();
    expect(hook.received).toEqual([]);
  });

  it("are signed according to Standard Webhooks: the package of that name and our own verify them", async () => {
    const set = withHook();
    const { authentication_uuid } = await set.create();
    await expect.poll(() => hook.received.length).toBe(1);
    const [{ headers, body }] = hook.received as [Receiver["received"][number]];
    const [secret] = (await set.verifier.webhookSecrets(set.customer)) as [string];
    expect(headers["webhook-id"]).toBe(`msg_${authentication_uuid}_${start.toString(36)}_1`);
    // The package reads the real clock, so that is set to the test's; signing again for the check would prove nothing.
    const real = Date.now;
    Date.now = () => start;
    try {
      expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toEqual(JSON.parse(body));
      expect(() => new Webhook(`whsec_${Buffer.alloc(32).toString("base64")}`).verify(body, headers as Record<string, string>)).toThrow();
    } finally {
      Date.now = real;
    }
    expect(verifyWebhook({ secret, headers, body, now: start })).toEqual(JSON.parse(body));
  });

  it("have new webhook-ids for an authentication created again under its idempotency key", async () => {
    const set = setUp({ callbacks: { allowOrigins: [hook.origin] } });
    const create = () => set.create({ callback_url: `${hook.origin}/hook` }, { idempotencyKey: "one" });
    const first = await create();
    await expect.poll(() => hook.received.length).toBe(1);
    await set.verifier.flush();
    set.clock.advance(600_000 + 86_400_000);
    expect((await create()).authentication_uuid).toBe(first.authentication_uuid);
    await expect.poll(() => hook.received.length).toBe(2);
    expect(new Set(hook.received.map(({ headers }) => headers["webhook-id"])).size).toBe(2);
  });

  it("are signed with each of a customer's own secrets, for rotation", async () => {
    const secrets = [`whsec_${Buffer.alloc(32, 1).toString("base64")}`, `whsec_${Buffer.alloc(32, 2).toString("base64")}`];
    const base = setUp();
    const set = setUp({
      callbacks: { allowOrigins: [hook.origin] },
      customers: [{ customer_uuid: base.customer, keys: [base.apiKey], webhookSecrets: secrets }],
    });
    await set.verifier.createAuthentication({ customer_uuid: base.customer, phone_number: numberOf(1), callback_url: `${hook.origin}/hook` });
    await expect.poll(() => hook.received.length).toBe(1);
    const [{ headers, body }] = hook.received as [Receiver["received"][number]];
    for (const secret of secrets) expect(() => verifyWebhook({ secret, headers, body, now: start })).not.toThrow();
  });

  it("keep their id over redeliveries, and their record until 7 days after the last attempt, or its usual end once delivered", async () => {
    const set = withHook();
    hook.answer = (_request, response) => void response.writeHead(hook.received.length < 3 ? 500 : 200).end();
    const { authentication_uuid } = await set.create();
    await expect.poll(() => hook.received.length).toBe(1);
    for (const [wait, count] of [
      [6_000, 2],
      [360_000, 3],
    ] as const) {
      set.clock.advance(wait);
      await set.verifier.flush();
      if (count === 2) expect((await record(set, authentication_uuid)).keepUntil).toBeGreaterThanOrEqual(start + 7 * 86_400_000);
      await expect.poll(() => hook.received.length).toBe(count);
    }
    await set.verifier.flush();
    expect(new Set(hook.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
    expect((await record(set, authentication_uuid)).keepUntil).toBe(start + 600_000 + 86_400_000);
    expect(await set.store.lease(Number.MAX_SAFE_INTEGER, 1, 0), "nothing is left to do").toEqual([]);
  });
});

describe("retries in virtual time", () => {
  /** A verifier whose receiver is a function, so that days pass in an instant. */
  const withReceiver = (answer: (tries: number) => CallbackResponse) => {
    const at: number[] = [];
    const set = setUp({
      callbacks: {
        allowOrigins: ["http://receiver.test"],
        worker: false,
        sender: {
          post: async () => {
            at.push((set.clock.now() - start) / 1000);
            return answer(at.length);
          },
        },
      },
    });
    const run = async (seconds: number, step = 60) => {
      for (let second = 0; second < seconds; second += step) {
        set.clock.advance(step * 1000);
        await set.verifier.flush();
      }
    };
    return { ...set, at, run, create: () => set.create({ callback_url: "http://receiver.test/" }) };
  };

  it("retries come after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h with jitter; then the event is given up, listed, and can be redelivered by id", async () => {
    const set = withReceiver(() => ({ status: 500 }));
    const { authentication_uuid } = await set.create();
    await set.verifier.flush();
    await set.run(60, 1);
    await set.run(5 * 86_400, 60);
    const waits = set.at.slice(1).map((time, index) => time - (set.at[index] as number));
    const ladder = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];
    expect(waits).toHaveLength(ladder.length);
    for (const [index, wait] of waits.entries()) {
      expect(wait).toBeGreaterThanOrEqual(ladder[index] as number);
      expect(wait).toBeLessThanOrEqual((ladder[index] as number) * 1.2 + 61);
    }
    const letters = await set.verifier.deadLetters();
    expect(letters).toEqual([
      {
        customer_uuid: set.customer,
        authentication_uuid,
        sequence: 1,
        callback_url: "http://receiver.test/",
        status: "submitted",
        reason: "not delivered within three days, at last: answered 500",
      },
    ]);
    expect(await set.verifier.redeliver(letters[0] as (typeof letters)[number])).toBe(true);
    await set.verifier.flush();
    expect(set.at).toHaveLength(11);
    expect(await set.verifier.deadLetters()).toEqual([]);
    expect(await set.verifier.redeliver({ customer_uuid: set.customer, authentication_uuid, sequence: 9 })).toBe(false);
  });

  it("a receiver that was down for 24 h gets the event once it is back", async () => {
    const set = withReceiver(() => ({ status: set.clock.now() < start + 86_400_000 ? 502 : 200 }));
    await set.create();
    await set.verifier.flush();
    await set.run(2 * 86_400, 300);
    expect(await set.verifier.deadLetters()).toEqual([]);
    expect(await set.store.lease(Number.MAX_SAFE_INTEGER, 1, 0), "nothing is left to do").toEqual([]);
    expect(set.at.at(-1)).toBeGreaterThan(86_400);
  });

  it.each([301, 302, 307, 308])("a 3xx response is a failure and is retried: %i", async (status) => {
    const set = withReceiver((tries) => ({ status: tries === 1 ? status : 200 }));
    await set.create();
    expect(await set.verifier.flush()).toEqual({ delivered: 0, failed: 1, dead: 0 });
    set.clock.advance(6_000);
    expect(await set.verifier.flush()).toEqual({ delivered: 1, failed: 0, dead: 0 });
  });

  it("a 410 response ends delivery", async () => {
    const set = withReceiver(() => ({ status: 410 }));
    await set.create();
    expect(await set.verifier.flush()).toEqual({ delivered: 0, failed: 0, dead: 1 });
    await set.run(86_400, 3600);
    expect(set.at).toHaveLength(1);
    expect((await set.verifier.deadLetters())[0]?.reason).toBe("answered 410 Gone");
  });

  it.each([429, 503])("%i with `Retry-After` is respected if longer than the next delay", async (status) => {
    const set = withReceiver((tries) => (tries === 1 ? { status, retryAfter: 120_000 } : { status: 200 }));
    await set.create();
    await set.verifier.flush();
    await set.run(119, 1);
    expect(set.at).toHaveLength(1);
    await set.run(2, 1);
    expect(set.at).toEqual([0, 120]);
  });

  it("503 with `Retry-After: 2` is retried for three days at the usual intervals", async () => {
    const set = withReceiver(() => ({ status: 503, retryAfter: 2_000 }));
    await set.create();
    await set.verifier.flush();
    await set.run(300, 1);
    expect(set.at).toHaveLength(2);
    await set.run(3 * 86_400, 300);
    expect(await set.verifier.deadLetters()).toEqual([]);
    await set.run(2 * 86_400, 300);
    expect([set.at.length, (await set.verifier.deadLetters()).length]).toEqual([10, 1]);
  });

  it.each([0, -1, 1.5, Number.NaN, 10_001])("the limit %s of given-up events is rejected", async (limit) => {
    const { verifier } = withReceiver(() => ({ status: 200 }));
    await expect(verifier.deadLetters({ limit })).rejects.toMatchObject({ code: "bad_request", message: "limit must be a whole number from 1 to 10,000." });
  });

  it("events that were given up, and their record, are deleted 7 days after the last attempt", async () => {
    const set = withReceiver(() => ({ status: 410 }));
    const { authentication_uuid } = await set.create();
    await set.verifier.flush();
    expect((await record(set, authentication_uuid)).keepUntil).toBe(start + 7 * 86_400_000);
    set.clock.advance(7 * 86_400_000 - 1_000);
    expect((await set.verifier.deadLetters()).length).toBe(1);
    set.clock.advance(1_000);
    expect(await set.verifier.deadLetters()).toEqual([]);
  });
});
