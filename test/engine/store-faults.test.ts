import { describe, expect, it } from "vitest";
import type { Store } from "../../src/index.js";
import { errorCode, inbox, numberOf, setUp } from "../support/verifier.js";

const turn = () => new Promise((resolve) => setImmediate(resolve));
const turns = async (count = 20) => {
  for (let index = 0; index < count; index++) await turn();
};

type Fault = "rejects" | "hangs" | "loses the reply" | "lands late";

/** Makes one method fail, after it has run or instead; the function returned fixes it and releases hung calls. */
function fail(store: Store, method: "find" | "commit", how: Fault): () => Promise<void> {
  const whole = store[method] as (...args: unknown[]) => Promise<unknown>;
  const waiting: (() => void)[] = [];
  const broken = {
    rejects: async () => Promise.reject(new Error("store down")),
    hangs: () => new Promise(() => undefined),
    "loses the reply": async (...args: unknown[]) => {
      await whole.apply(store, args);
      throw new Error("reply lost");
    },
    "lands late": (...args: unknown[]) => new Promise((resolve) => waiting.push(() => resolve(whole.apply(store, args)))),
  }[how];
  Object.assign(store, { [method]: broken });
  return async () => {
    Object.assign(store, { [method]: whole });
    for (const land of waiting) land();
    await turns();
  };
}

/** The error code of a call that may have to time out first. */
async function faultInTime(set: ReturnType<typeof setUp>, call: Promise<unknown>): Promise<string> {
  const fault = errorCode(call);
  await turns();
  set.clock.advance(2_000);
  return fault;
}

/** Advances the clock by all the time that undoing may need. */
async function takeBack(set: ReturnType<typeof setUp>): Promise<void> {
  for (const wait of [1, 4, 5, 5, 5, 5, 5, 5, 5, 5]) {
    set.clock.advance(wait * 1_000);
    await turns();
  }
}

const once = { policy: { limits: { perNumber: [{ limit: 1, window: 86_400 }], perCustomer: [{ limit: 1_000, window: 86_400 }] } } };
const faults: readonly Fault[] = ["rejects", "hangs", "loses the reply", "lands late"];

describe("if the store fails, sends and guesses fail closed within a deadline, and nothing is lost (docs/contract.md#stored-first)", () => {
  for (const how of faults) {
    it(`create, the commit ${how}: 503, nothing is sent, and no cap counts it once the store is back`, async () => {
      const set = setUp(once);
      const fix = fail(set.store, "commit", how);
      expect(await faultInTime(set, set.create())).toBe("unavailable");
      expect(set.box.messages).toHaveLength(0);
      await fix();
      await takeBack(set);
      expect((await set.create()).status).toBe("pending");
      expect((await set.create()).status).toBe("rate_limited");
      expect(set.box.messages).toHaveLength(1);
    });

    it(`create, the commit ${how} for 20 s: what it left counted is taken back within five seconds of the end`, async () => {
      const set = setUp(once);
      const fix = fail(set.store, "commit", how);
      expect(await faultInTime(set, set.create())).toBe("unavailable");
      const pass = async (seconds: number) => {
        set.clock.advance(seconds * 1_000);
        await turns();
      };
      for (let second = 2; second < 20; second++) await pass(1);
      await fix();
      for (let second = 0; second < 5; second++) await pass(1);
      expect((await set.create()).status).toBe("pending");
    });

    it(`create with an idempotency key, the commit ${how}: 503, nothing is sent, and the repeat sends once`, async () => {
      const set = setUp(once);
      const fix = fail(set.store, "commit", how);
      expect(await faultInTime(set, set.create({}, { idempotencyKey: "k" }))).toBe("unavailable");
      expect(set.box.messages).toHaveLength(0);
      await fix();
      await takeBack(set);
      const made = await set.create({}, { idempotencyKey: "k" });
      expect(made.status).toBe("pending");
      expect(await set.create({}, { idempotencyKey: "k" })).toEqual(made);
      expect(set.box.messages).toHaveLength(1);
      expect((await set.check(made.authentication_uuid, set.box.code())).status).toBe("valid");
    });

    it(`retry, the commit ${how}: 503, which costs no retry, no cool-down, no live code, no money and no event`, async () => {
      const box = Object.assign(inbox(), { plan: () => ({ route: "only", price: 1 }) });
      const set = setUp({
        sender: box,
        policy: { lifetime: 3_600, limits: { perNumber: [{ limit: 10, window: 86_400 }], spend: [{ amount: 2, per: "day" }] } },
      });
      const { authentication_uuid } = await set.create({ callback_url: "https://example.com/hook" });
      set.clock.advance(30_000);
      const fix = fail(set.store, "commit", how);
      for (let tried = 0; tried < 3; tried++) expect(await faultInTime(set, set.retry(authentication_uuid))).toBe("unavailable");
      expect(box.messages).toHaveLength(1);
      await fix();
      await takeBack(set);
      expect(await set.verifier.explain({ customer_uuid: set.customer, authentication_uuid })).toMatchObject({ status: "pending" });
      const events = [];
      for await (const record of await set.store.lease(set.clock.now(), 10, set.clock.now() + 1))
        events.push(...(record.data.match(/"status":"unknown"/g) ?? []));
      expect(events, "no event of a message that never was").toEqual([]);
      expect(await set.retry(authentication_uuid)).toMatchObject({ status: "approved", remaining_retry: 3 });
      expect((await set.check(authentication_uuid, box.code(0))).status, "the code that the user has").toBe("valid");
    });
  }

  it("retry, the commit lands but its reply is lost: no live code is replaced, even with three codes stored", async () => {
    const set = setUp({ policy: { lifetime: 3_600, retryCooldowns: [0, 0, 0, 0, 0], limits: { perNumber: [{ limit: 10, window: 86_400 }] } } });
    const { authentication_uuid } = await set.create();
    for (let sent = 0; sent < 2; sent++) expect((await set.retry(authentication_uuid)).status).toBe("approved");
    const fix = fail(set.store, "commit", "loses the reply");
    expect(await errorCode(set.retry(authentication_uuid))).toBe("unavailable");
    await fix();
    await takeBack(set);
    set.box.answer = async () => ({ outcome: "rejected" });
    expect((await set.retry(authentication_uuid)).status).toBe("denied");
    expect((await set.check(authentication_uuid, set.box.code(1))).status).toBe("valid");
  });

  for (const how of ["rejects", "loses the reply"] as const) {
    it(`check, the commit ${how}: 503, and a repeat under its key returns the result`, async () => {
      const set = setUp();
      const { authentication_uuid } = await set.create();
      const fix = fail(set.store, "commit", how);
      expect(await errorCode(set.check(authentication_uuid, set.box.code(), { idempotencyKey: "k" }))).toBe("unavailable");
      await fix();
      expect((await set.check(authentication_uuid, set.box.code(), { idempotencyKey: "k" })).status, "the key tells the verdict").toBe("valid");
    });

    it(`check, every other commit ${how}: no more wrong codes are evaluated than otherwise`, async () => {
      const set = setUp();
      const { authentication_uuid } = await set.create();
      const verdicts: string[] = [];
      for (let guess = 0; guess < 10; guess++) {
        const fix = guess % 2 === 0 ? fail(set.store, "commit", how) : async () => undefined;
        verdicts.push(
          await set.check(authentication_uuid, set.wrong()).then(
            ({ status }) => status,
            ({ code }) => code,
          ),
        );
        await fix();
      }
      expect(verdicts.filter((verdict) => verdict === "invalid").length).toBeLessThanOrEqual(5);
      expect((await set.check(authentication_uuid, set.wrong())).status).toBe("rate_limited");
    });
  }

  it("create is no internal error if the store deletes an ended record just as its key is reused", async () => {
    const set = setUp(once);
    await set.create();
    const refused = await set.create({}, { idempotencyKey: "k" });
    expect(refused.status).toBe("rate_limited");
    set.clock.advance(3 * 86_400_000);
    const commit = set.store.commit.bind(set.store);
    let cleared = 0;
    set.store.commit = async (change) => {
      const result = await commit(change);
      if (result.done || result.refusedBy !== undefined || cleared++ > 0) return result;
      const { current } = result;
      const whole = set.store.commit;
      set.store.commit = async (next) => {
        set.store.commit = whole;
        // Deleted between the two commits.
        expect(next.expected).toBe(current?.tokens[0]);
        return { done: false };
      };
      return result;
    };
    expect(await errorCode(set.create({}, { idempotencyKey: "k" }))).not.toBe("internal_server_error");
    expect(cleared).toBeGreaterThan(0);
  });

  it("One deadline (2 s) covers all store calls of a request; past it the request fails closed with 503", async () => {
    const unknown = "11111111-2222-3333-4444-555555555555";
    for (const [method, call] of [
      ["commit", (set: ReturnType<typeof setUp>) => set.create()],
      ["find", (set: ReturnType<typeof setUp>) => set.retry(unknown)],
      ["find", (set: ReturnType<typeof setUp>) => set.check(unknown, "1")],
    ] as const) {
      const set = setUp();
      fail(set.store, method, "hangs");
      let done = false;
      const asked = errorCode(call(set)).finally(() => (done = true));
      await turn();
      set.clock.advance(1999);
      await turn();
      expect(done).toBe(false);
      set.clock.advance(1);
      expect(await asked).toBe("unavailable");
      expect(set.box.messages).toHaveLength(0);
    }
  });

  it("a retry that loses a race against a right check costs nothing", async () => {
    const box = Object.assign(inbox(), { plan: () => ({ route: "only", price: 1 }) });
    const set = setUp({ sender: box, policy: { limits: { spend: [{ amount: 2, per: "hour" }] } } });
    const { authentication_uuid } = await set.create();
    set.clock.advance(30_000);
    const commit = set.store.commit.bind(set.store);
    let raced = false;
    set.store.commit = async (change) => {
      if (!raced) {
        raced = true;
        expect((await set.check(authentication_uuid, box.code())).status).toBe("valid");
      }
      return commit(change);
    };
    expect((await set.retry(authentication_uuid)).status).toBe("already_validated");
    expect((await set.create({ phone_number: numberOf(2) })).status).toBe("pending");
    expect((await set.create({ phone_number: numberOf(3) })).status).toBe("rate_limited");
  });

  it("the deadline counts store time only, not the time of a slow carrier", async () => {
    const set = setUp();
    set.box.answer = async () => {
      set.clock.advance(4_900);
      return { outcome: "rejected" };
    };
    const { authentication_uuid } = await set.create();
    expect((await set.check(authentication_uuid, set.box.code())).status, "the rejection was stored").toBe("without_attempt");
  });

  it("Once a message may have been handed over, no store failure turns the response into an error", async () => {
    const set = setUp({ policy: { limits: { perNumber: [{ limit: 10, window: 86_400 }] } } });
    set.box.answer = async () => {
      fix = fail(set.store, "commit", "rejects");
      return { outcome: "rejected" };
    };
    let fix = async (): Promise<unknown> => undefined;
    expect((await set.create()).status).toBe("pending");
    await fix();
    const good = setUp();
    const { authentication_uuid } = await good.create();
    good.clock.advance(30_000);
    good.box.answer = async () => {
      fail(good.store, "commit", "rejects");
      return { outcome: "rejected" };
    };
    expect(await good.retry(authentication_uuid)).toMatchObject({ status: "denied", remaining_retry: 4 });
    await takeBack(good);
    expect(good.log.lines.some(({ message }) => message.includes("could not be stored"))).toBe(true);
  });

  it("an outcome whose write failed is stored once the store is back: a rejected retry is not used up, its price given back once", async () => {
    for (const how of ["rejects", "loses the reply"] as const) {
      const box = Object.assign(inbox(), { plan: () => ({ route: "only", price: 1 }) });
      const set = setUp({ sender: box, policy: { lifetime: 3_600, limits: { spend: [{ amount: 3, per: "day" }] } } });
      const { authentication_uuid } = await set.create();
      set.clock.advance(30_000);
      let fix = async (): Promise<void> => undefined;
      box.answer = async () => {
        fix = fail(set.store, "commit", how);
        return { outcome: "rejected" };
      };
      expect((await set.retry(authentication_uuid)).status).toBe("denied");
      await fix();
      await takeBack(set);
      box.answer = async () => ({ outcome: "accepted" });
      expect(await set.retry(authentication_uuid)).toMatchObject({ status: "approved", remaining_retry: 3 });
      expect((await set.create({ phone_number: numberOf(2) })).status, "three were paid for, two are spent").toBe("pending");
      expect((await set.create({ phone_number: numberOf(3) })).status).toBe("rate_limited");
    }
  });

  it("a corrupt record gives 503, is left unchanged, and is logged as an error with its id", async () => {
    const base = Date.UTC(2026, 2, 1, 12);
    const good = { c: base.toString(36), p: "+33612345678", x: 600_000, a: 2, n: 2, d: ["digest", { n: 2, d: "digest", t: 30_000 }] };
    for (const data of [
      "",
      "nonsense",
      "[]",
      "[2]",
      "null",
      '{"a":1}',
      ...[
        { c: "?" },
        { c: base },
        { c: "zzzzzzzzzzzz" },
        { s: 9 },
        { r: -5 },
        { w: 1.5 },
        { x: "soon" },
        { d: null },
        { d: [7] },
        { d: [{ n: 1 }] },
        { d: [{ n: 1, d: "", s: 3 }] },
        { q: 7 },
        { u: 5 },
        { v: 2 },
        { p: 1 },
      ].map((change) => JSON.stringify({ ...good, ...change })),
    ]) {
      const set = setUp();
      const { authentication_uuid } = await set.create({ phone_number: numberOf(3) });
      const record = await set.store.find(set.customer, authentication_uuid);
      const corrupt = { ...(record as NonNullable<typeof record>), now: set.clock.now(), tokens: ["corrupt"], data };
      expect(await set.store.commit({ record: corrupt, expected: record?.tokens[0] as string })).toMatchObject({ done: true });
      expect(await errorCode(set.retry(authentication_uuid))).toBe("unavailable");
      expect(await errorCode(set.check(authentication_uuid, set.box.code()))).toBe("unavailable");
      expect(await set.store.find(set.customer, authentication_uuid)).toMatchObject({ data, tokens: ["corrupt"] });
      expect(set.log.lines).toContainEqual(expect.objectContaining({ level: "error", fields: expect.objectContaining({ authentication_uuid }) }));
    }
  });

  it("nothing that is logged holds a code or a whole number (docs/contract.md#logs)", async () => {
    const set = setUp();
    set.box.answer = async (message) => Promise.reject(new Error(`could not send ${message.text} to ${message.to}`));
    await set.create();
    fail(set.store, "commit", "rejects");
    await errorCode(set.create());
    const logged = set.log.lines.map((line) => JSON.stringify([line.message, { ...line.fields, err: String(line.fields.err) }])).join();
    expect(set.log.lines.length).toBeGreaterThan(1);
    expect(logged).not.toContain(set.box.code());
    expect(logged).not.toContain(numberOf(1));
  });
});
