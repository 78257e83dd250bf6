import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { type CodeMessage, type ConfirmRequest, type DeliverRequest, lazyVerifier, type SendOutcome } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { createTestVerifier } from "../../src/testing/index.js";
import { PlainStore, TwoStepStore } from "../store/plain-store.js";
import { spellingsOf, spellingsOfId, traces } from "../support/dump.js";
import { secret } from "../support/verifier.js";
import { ahead, chance } from "./by-number-kit.js";
import {
  alarmsOf,
  at,
  codeAt,
  customer,
  days,
  endings,
  expectOnly,
  held,
  type Party,
  pair,
  parties,
  priced,
  room,
  spellingsOfCode,
  times,
} from "./deliveries-kit.js";
import {
  callbackUrl,
  drive,
  ending,
  type Fate,
  fates,
  keyOf,
  noSpamRules,
  numberAt,
  pass,
  postReceipt,
  receipts,
  sender,
  tallied,
  turns,
  wide,
} from "./kit.js";
import { abroad, day, french, hour, minute, only, type Rule, roomy, seeds, settled } from "./one-commit-kit.js";

const code = "837465";
const number = french(9_000);
const named = { customer_uuid: customer, phone_number: number };
const range = { policy: { ...roomy, spam: only("range") } };
/** Forms in which the whole number may be written. */
const whole = spellingsOf(number, number);
/** Numbers from all over the numbering plan. */
const spread = (i: number) => french(i % 10_000, i % 100, 60 + (i % 30));
const quiet = { info() {}, warn() {}, error() {} };
const never = () => new Promise<never>(() => {});

/** How many messages the range of 10,000 of `number` still allows: 5 if none was counted or confirmed. */
const left = async (one: Party, fields: Partial<DeliverRequest> = {}) => {
  await settled();
  return room(one, french, fields);
};

const stores = [
  ["memory", () => memoryStore({ name: randomUUID() })],
  ["one step", () => new PlainStore()],
  ["two steps", () => new TwoStepStore()],
] as const;

describe.each(stores)("concurrent calls in several processes, on the store: %s", (kind, open) => {
  const isWhole = kind !== "two steps";

  if (isWhole)
    it.each([{ idempotency_key: "k" }, {}])("a thousand deliveries of one code (%o) send one message (docs/contract.md#deliver-repeats)", async (fields) => {
      const set = parties(4, open());
      const answers = await Promise.all(times(1_000, (i) => at(set, i).deliver(number, code, fields)));
      expect(tallied(answers.map(({ status }) => status))).toEqual({ sent: 1, repeated: 999 });
      expect(new Set(answers.map(({ delivery_uuid }) => delivery_uuid)).size).toBe(1);
      expect(at(set, 0).sender.messages).toHaveLength(1);
    });
  else
    it("repeats under one key send one message (docs/contract.md#deliver-repeats)", async () => {
      // The number can get one more message, and its webhook arrives twice at once.
      const perNumber = [
        { limit: 1, window: 600 },
        { limit: 10, window: 86_400 },
      ];
      const set = parties(2, open(), { policy: { limits: { perNumber } } });
      const found = await endings(times(2, (i) => at(set, i).deliver(number, code, { idempotency_key: "k" })));
      expect(at(set, 0).sender.messages).toHaveLength(1);
      // Where claims and record are two steps, more may be rejected than necessary (docs/contract.md#two-steps).
      expect(["repeated", "rate_limited"]).toContain(found.find((one) => one !== "sent"));
    });

  it("200 codes to one number, each under its own key, send five messages, attempts 1 to 5 of one delivery (docs/contract.md#caps)", async () => {
    const set = parties(4, open());
    const found = await endings(times(200, (i) => at(set, i).deliver(number, codeAt(i), { idempotency_key: `k${i}` })));
    expectOnly(found, ["sent", "rate_limited", "unavailable"]);
    for (let i = 0; i < 6; i++) await at(set, i).deliver(number, codeAt(2_000 + i));
    const { messages } = at(set, 0).sender;
    expect(messages.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5]);
    expect(new Set(messages.map(({ authentication_uuid }) => authentication_uuid)).size).toBe(1);
  });

  it("the customer's cap and the spend ceiling hold exactly for 400 numbers (docs/contract.md#spend-ceiling)", async () => {
    for (const limits of [{ perCustomer: [{ limit: 90, window: 3_600 }] }, { spend: [{ amount: 6.3, per: "hour" as const }] }]) {
      const set = parties(4, open(), { price: 0.07, policy: { limits: { ...wide, ...limits } } });
      const found = await endings(times(400, (i) => at(set, i).deliver(numberAt(i), codeAt(i))));
      expectOnly(found, ["sent", "rate_limited"]);
      await room(at(set, 0), (i) => numberAt(5_000 + i));
      expect(at(set, 0).sender.messages).toHaveLength(90);
    }
  });

  it("a thousand confirmations, by id and by number, count once (docs/contract.md#confirm)", async () => {
    const set = parties(4, open(), range);
    const { delivery_uuid: id } = await at(set, 0).deliver(number, code);
    const found = await endings(times(1_000, (i) => at(set, i).confirm(i % 2 ? number : id)));
    expect(tallied(found)).toEqual({ confirmed: 1, already_confirmed: 999 });
    expect(await left(at(set, 1))).toBe(7);
    expect(set.flatMap(({ events }) => events).filter(({ type }) => type === "confirmed")).toHaveLength(1);
  });

  it("in races of deliveries and confirmations, each message is counted once and given back at most once (docs/contract.md#balance)", async () => {
    for (let seed = 1; seed <= 12; seed++) {
      const dice = chance(seed);
      const set = parties(3, open(), range);
      const { delivery_uuid: id } = await at(set, 0).deliver(number, codeAt(0));
      const found = await endings(
        times(12, (i) => (dice.next() < 0.5 ? at(set, i).deliver(number, codeAt(1 + dice.below(3))) : at(set, i).confirm(dice.next() < 0.5 ? number : id))),
      );
      expectOnly(found, ["sent", "repeated", "spam_detected", "confirmed", "already_confirmed"]);
      await settled();
      // A last confirmation gives back what the number filled, and 2 once.
      expect((await at(set, 0).confirm(number)).status).toMatch(/confirmed/);
      const isAll = await at(set, 1).confirm(number);
      expect(isAll.status).toBe("already_confirmed");
      expect(await left(at(set, 2)), `seed ${seed}`).toBe(7);
    }
  });

  it("concurrent confirmations and unlocks give nothing back twice (docs/contract.md#unlock)", async () => {
    for (let seed = 1; seed <= 12; seed++) {
      const dice = chance(seed);
      const set = parties(3, open(), range);
      for (let i = 0; i < 4; i++) await at(set, i).deliver(number, codeAt(i));
      const calls = [
        () => at(set, 1).confirm(number),
        () => at(set, 0).verifier.unlock(named),
        () => at(set, 2).verifier.unlock(named),
        () => at(set, 2).confirm(number),
      ];
      await Promise.all(
        calls
          .map((call) => ({ call, order: dice.next() }))
          .sort((a, b) => a.order - b.order)
          .map(({ call }) => call() as Promise<unknown>),
      );
      expect(await left(at(set, 1)), `seed ${seed}`).toBe(7);
    }
  });

  it("an erasure during concurrent calls, and one after them, leave nothing, and nothing is posted (docs/contract.md#erase)", async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const dice = chance(seed);
      const plain = isWhole ? new PlainStore() : new TwoStepStore();
      const set = parties(3, plain, { statistics: {}, ...range });
      const ids: string[] = [];
      for (let i = 0; i <= seed % 4; i++) {
        ids.push((await at(set, i).deliver(number, codeAt(i), { correlation_id: "reference", callback_url: callbackUrl })).delivery_uuid as string);
        if (seed % 5 === 0) await at(set, 0).confirm(number);
      }
      const calls: (() => Promise<unknown>)[] = [
        () => at(set, 1).confirm(number),
        () => at(set, 2).verifier.erase(named),
        () => at(set, 0).deliver(number, code),
        () => at(set, 1).confirm(ids[0]),
        () => at(set, 1).deliver(number, code, { idempotency_key: "k" }),
      ];
      await Promise.all(
        calls
          .map((call) => ({ call, order: dice.next() }))
          .sort((a, b) => a.order - b.order)
          .map(({ call }) => call()),
      );
      await settled();
      await at(set, 0).verifier.erase(named);
      await settled();
      expect(await endings(ids.map((id) => at(set, 2).confirm(id))), `seed ${seed}`).toEqual(ids.map(() => "not_found"));
      expect(traces(held(plain), [...spellingsOf(number, "+33612****00"), "reference", ...ids.flatMap(spellingsOfId)]), `seed ${seed}`).toEqual([]);
      await at(set, 0).verifier.flush();
      expect(at(set, 0).hook.posted, `seed ${seed}`).toEqual([]);
      expect(await left(at(set, 1)), `seed ${seed}`).toBeLessThanOrEqual(7);
    }
  });
});

describe("erasure (docs/contract.md#erase)", () => {
  it("a second one finds a delivery that was making room for the next during the first, on a store of two steps", async () => {
    const store = new TwoStepStore();
    const [one, two] = parties(2, store, { policy: roomy }) as [Party, Party];
    const { delivery_uuid: id } = await one.deliver(number, code);
    await one.confirm(number);
    await Promise.all([one.deliver(number, "222222"), two.verifier.erase(named)]);
    await settled();
    await two.verifier.erase(named);
    expect(await ending(two.confirm(id))).toBe("not_found");
    expect(held(store).join()).not.toContain("+33612****00");
  });

  it("leaves nothing of thirty deliveries, confirmed or not, and pending callbacks are not posted", async () => {
    const { one, two, plain } = pair({ statistics: {}, policy: { limits: wide, spam: only("range") } });
    const ids: string[] = [];
    for (let i = 0; i < 30; i++) {
      const answer = await at([one, two], i).deliver(number, codeAt(i), { callback_url: callbackUrl, correlation_id: "reference" });
      ids.push(answer.delivery_uuid as string);
      if (i % 3 === 0) await one.confirm(number);
      one.clock.advance(7 * minute);
      await settled(3);
    }
    await two.verifier.erase(named);
    await settled();
    expect(traces(held(plain), [...spellingsOf(number, "+33612****00"), "reference", ...ids.flatMap(spellingsOfId)])).toEqual([]);
    expect(await one.verifier.history(named)).toEqual([]);
    await one.verifier.flush();
    expect([...one.hook.posted, ...two.hook.posted]).toEqual([]);
  });
});

describe.each(fates)("a commit that is %s", (fate) => {
  const meet = (one: Party, is: Fate) => (one.store.fate = (method) => (method === "commit" ? is : "done"));

  it.each([undefined, "k"])(
    "costs a delivery (key %s) that returned `unavailable` no cap, no money and no place in a cell, and the next one is sent (docs/contract.md#lost-write)",
    async (key) => {
      for (const inner of [new PlainStore(), new TwoStepStore()]) {
        const limits = { ...wide, perCustomer: [{ limit: 3, window: 3_600 }], spend: [{ amount: 3, per: "hour" as const }] };
        const [one, two] = parties(2, inner, { price: 1, policy: { limits, spam: only("range") } }) as [Party, Party];
        const fields = { ...(key !== undefined && { idempotency_key: key }), callback_url: callbackUrl };
        meet(one, fate);
        expect(await drive(one.clock, one.deliver(number, code, fields))).toEqual({ status: "unavailable", message: expect.any(String) });
        meet(one, "done");
        await one.store.release();
        await pass(one.clock, minute);
        expect(one.sender.messages).toEqual([]);
        expect((await drive(one.clock, two.deliver(number, code, fields))).status).toBe("sent");
        expect((await two.deliver(number, code, fields)).status).toBe("repeated");
        expect(one.sender.messages.map(({ attempt }) => attempt)).toEqual([1]);
        expect(await room(two, french)).toBe(2);
        await one.verifier.flush();
        await two.verifier.flush();
        expect(one.hook.story(one.sender.messages[0]?.authentication_uuid as string)).toEqual(["1:submitted"]);
      }
    },
  );

  it("never lets a confirmation count twice, or be lost once it returned (docs/contract.md#confirm)", async () => {
    for (const inner of [new PlainStore(), new TwoStepStore()]) {
      const [one, two] = parties(2, inner, range) as [Party, Party];
      await one.deliver(number, code);
      meet(one, fate);
      expect(await drive(one.clock, ending(one.confirm(number)))).toBe("unavailable");
      meet(one, "done");
      expect(await drive(one.clock, ending(two.confirm(number)))).toMatch(/^(already_)?confirmed$/);
      await one.store.release();
      await pass(one.clock, minute);
      expect(await endings([one.confirm(number), two.confirm(number)])).toEqual(["already_confirmed", "already_confirmed"]);
      expect(await left(two)).toBe(7);
    }
  });

  it("that settles a rejected message causes no error, and a repeat sends at most one more (docs/contract.md#no-error-after-hand-over)", async () => {
    const { one, two } = pair({ price: 1, policy: { limits: { ...wide, spend: [{ amount: 3, per: "hour" }] } } });
    one.sender.answer = async () => {
      meet(one, fate);
      return { outcome: "rejected" };
    };
    expect(await drive(one.clock, ending(one.deliver(number, code, { idempotency_key: "k" })))).toBe("no_route");
    meet(one, "done");
    await one.store.release();
    await pass(one.clock, minute);
    one.sender.answer = async () => ({ outcome: "accepted" });
    // Known not to have been sent, or still open for this process: never two messages.
    const again = await drive(one.clock, ending(two.deliver(number, code, { idempotency_key: "k" })));
    expect(["sent", "repeated"]).toContain(again);
    expect(one.sender.messages).toHaveLength(again === "sent" ? 2 : 1);
  });
});

describe("carriers", () => {
  const answers: Readonly<Record<string, readonly [string, (message: CodeMessage) => unknown]>> = {
    hangs: ["pending", never],
    throws: ["pending", () => Promise.reject(new Error("x"))],
    "throws at once": [
      "pending",
      () => {
        throw new Error("x");
      },
    ],
    "throws a rejection": ["no_route", () => Promise.reject(Object.assign(new Error("x"), { outcome: "rejected" }))],
    "returns a number": ["pending", async () => 7],
    "returns null": ["pending", async () => null],
    "returns nothing": ["pending", () => undefined],
    "returns another outcome": ["pending", async () => ({ outcome: "sent" })],
    "returns a prototype": ["pending", async () => JSON.parse('{"__proto__":{"outcome":"accepted"}}')],
    "returns a route that is none": ["sent", async () => ({ outcome: "accepted", route: 5, messageId: {} })],
    "returns a huge id": ["sent", async () => ({ outcome: "accepted", messageId: "x".repeat(1_000_000), keepId: true })],
    "returns a negative price": ["sent", async () => ({ outcome: "accepted", price: -50 })],
    "returns no price": ["sent", async () => ({ outcome: "accepted", price: Number.NaN })],
    "repeats the message in its reason": ["no_route", async ({ text, to }) => ({ outcome: "rejected", reason: `${text} to ${to}` })],
    "does not know": ["pending", async () => ({ outcome: "unknown" })],
  };

  it.each(Object.entries(answers))(
    "one that %s: the status is correct, and a repeat sends again only what was rejected (docs/contract.md#send-outcome)",
    async (_, [status, answer]) => {
      const { one, two } = pair({ price: 1, policy: { limits: { ...wide, spend: [{ amount: 3, per: "day" }] } } });
      one.sender.answer = answer as (message: CodeMessage) => Promise<SendOutcome>;
      const first = await drive(one.clock, one.deliver(number, code, { idempotency_key: "k" }));
      expect(first.status).toBe(status);
      await settled();
      expect(await drive(one.clock, two.deliver(number, code, { idempotency_key: "k" }))).toMatchObject({
        status: status === "no_route" ? status : "repeated",
      });
      expect(one.sender.messages).toHaveLength(status === "no_route" ? 2 : 1);
      await settled();
      expect((await two.confirm(first.delivery_uuid)).status).toBe(status === "no_route" ? "not_found" : "confirmed");
      one.sender.answer = async () => ({ outcome: "accepted" });
      // The price that it reports counts as at most what was reserved, and at least zero.
      expect(await room(two, numberAt)).toBe(status === "no_route" ? 3 : 2);
    },
  );

  it.each([
    [2, ""],
    [3, ""],
    [4, ""],
  ])(
    "if %i others overtake a message, %sits outcome is reported, and a late rejection gives back its cost and its place (docs/contract.md#spend-ceiling)",
    async (others) => {
      const policy = { ...roomy, spam: only("range"), limits: { ...roomy.limits, spend: [{ amount: 7, per: "day" as const }] } };
      const { one, two } = pair({ price: 1, policy });
      let answer = (_: SendOutcome) => {};
      one.sender.answer = ({ attempt, to }) =>
        attempt === 1 && to === number ? new Promise((resolve) => (answer = resolve)) : Promise.resolve({ outcome: "accepted" });
      const first = one.deliver(number, codeAt(0), { callback_url: callbackUrl });
      await turns();
      for (let i = 1; i <= others; i++) expect(await ending(two.deliver(number, codeAt(i), { callback_url: callbackUrl }))).toBe("sent");
      answer({ outcome: "rejected" });
      await first;
      await settled();
      for (let i = 0; i < 3; i++) await one.verifier.flush();
      const story = one.hook.story(one.sender.messages[0]?.authentication_uuid as string);
      expect([...story].sort()).toEqual(["1:undeliverable", ...times(others, (i) => `${i + 2}:submitted`)]);
      expect(await room(one, french)).toBe(5 - others);
      expect(await room(two, spread)).toBe(7 - 5);
    },
  );

  it("one that responds after `within`: the send continues, and its outcome counts (docs/contract.md#deliver-time)", async () => {
    for (const outcome of ["accepted", "rejected"] as const) {
      const { one } = pair(range);
      let answer = (_: SendOutcome) => {};
      one.sender.answer = () => new Promise((resolve) => (answer = resolve));
      const began = one.clock.now();
      const first = await drive(one.clock, one.deliver(number, code, { within: 300 }));
      expect(first.status).toBe("pending");
      expect(one.clock.now() - began).toBe(300);
      answer({ outcome });
      await settled();
      one.sender.answer = async () => ({ outcome: "accepted" });
      expect((await one.confirm(first.delivery_uuid)).status).toBe(outcome === "accepted" ? "confirmed" : "not_found");
      expect(await left(one)).toBe(outcome === "accepted" ? 7 : 5);
    }
  });

  it.each(["silent", "deaf", "held", "late"] as const)(
    "a store that is %s for longer than `within`: unavailable, and nothing is sent, then or later (docs/contract.md#deliver-time)",
    async (fate) => {
      const { one, two } = pair({ sendTimeout: 600, storeTimeout: 2 });
      one.store.fate = (method) => (method === "commit" ? fate : "done");
      const began = one.clock.now();
      expect((await drive(one.clock, one.deliver(number, code, { within: 100, idempotency_key: "k" }))).status).toBe("unavailable");
      expect(one.clock.now() - began).toBe(100);
      one.store.fate = () => "done";
      await one.store.release();
      await pass(one.clock, minute);
      expect(one.sender.messages).toEqual([]);
      expect((await two.deliver(number, code, { idempotency_key: "k" })).status).toBe("sent");
    },
  );

  it.each([
    ["an own rule", { spamRules: [{ name: "slow", judge: never }] }],
    ["a list", { lists: { block: never } }],
    ["a lookup before the send", { lookupBeforeSend: true, lookup: { lookup: never, price: 0 } }],
  ])("%s that hangs for longer than `within`: unavailable at that time, and nothing is sent (docs/contract.md#deliver-time)", async (_, options) => {
    const { one } = pair({ sendTimeout: 600, ...options } as never);
    const began = one.clock.now();
    const answer = await drive(one.clock, one.deliver(number, code, { within: 300 }));
    expect(one.clock.now() - began).toBeLessThanOrEqual(400);
    expect(answer.status).toBe("unavailable");
    await pass(one.clock, 2 * minute);
    expect(one.sender.messages).toEqual([]);
  });

  it("a source of customers that fails gives the status `unavailable`, not an error (docs/contract.md#deliver-answers)", async () => {
    for (const find of [() => Promise.reject(new Error("down")), never]) {
      const { one } = pair({ customers: { find, findByKeyDigest: find } });
      expect(await drive(one.clock, one.deliver(number, code, { within: 3_000 }))).toMatchObject({ status: "unavailable" });
      expect(one.sender.messages).toEqual([]);
    }
  });

  it("a repeat that waits for the message of this process returns within its own `within` (docs/contract.md#deliver-time)", async () => {
    const { one } = pair({ sendTimeout: 60 });
    one.sender.answer = never;
    const first = one.deliver(number, code, { idempotency_key: "k", within: 100 });
    await turns();
    const began = one.clock.now();
    const repeat = await drive(one.clock, one.deliver(number, code, { idempotency_key: "k", within: 200 }));
    expect((await first).status).toBe("pending");
    expect(one.clock.now() - began).toBeLessThanOrEqual(300);
    expect(["pending", "repeated"]).toContain(repeat.status);
  });
});

describe("secrets that are rotated (docs/contract.md#secret-rotation)", () => {
  const [old, next] = [secret, "zZ7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6"];
  const pepper = "pPpvX2mR9kLw4ZbN8cJfH5sYdG3pAeU6";
  const steps = [
    [old, [old, next]],
    [
      [old, next],
      [next, old],
    ],
    [[next, old], next],
  ];

  it.each(steps)("%j next to %j, under one pepper: repeats, attempts, confirmations and credit are shared", async (mine, yours) => {
    for (const flip of [false, true]) {
      const { one, two } = pair(range, (i) => ({ secret: ((i === 1) === flip ? mine : yours) as string, pepper }));
      const first = await one.deliver(number, code, { idempotency_key: "k" });
      expect(await endings([two.deliver(number, code, { idempotency_key: "k" })])).toEqual(["repeated"]);
      expect(await endings([one.deliver(number, "222222")])).toEqual(["sent"]);
      expect(await endings([two.deliver(number, "222222")])).toEqual(["repeated"]);
      expect(await two.confirm(first.delivery_uuid)).toMatchObject({ status: "confirmed" });
      expect(await endings([one.confirm(number), two.confirm(number)])).toEqual(["already_confirmed", "already_confirmed"]);
      expect(one.sender.messages.map(({ attempt }) => attempt)).toEqual([1, 2]);
      expect(await left(one)).toBe(7);
    }
  });

  it("without a pepper, processes with two secrets in either order share a delivery", async () => {
    const { one, two } = pair(range, (i) => ({ secret: (i === 0 ? [old, next] : [next, old]) as [string, string] }));
    await one.deliver(number, code, { idempotency_key: "k" });
    expect(await endings([two.deliver(number, code, { idempotency_key: "k" }), two.confirm(number)])).toEqual(["repeated", "confirmed"]);
    expect(await left(one)).toBe(7);
  });
});

describe("privacy (docs/contract.md#logs)", () => {
  it("no code, text or whole number is stored, logged, reported, measured or explained, whatever fails", async () => {
    const outcomes: readonly ((message: CodeMessage) => Promise<SendOutcome>)[] = [
      async () => ({ outcome: "accepted" }),
      async ({ text, to, code: sent }) => ({ outcome: "rejected", reason: `bad text ${text} code ${sent} to ${to}` }),
      async ({ text, to, code: sent }) => Promise.reject(new Error(`bad text ${text} code ${sent} to ${to}`)),
      async ({ text, to }) => ({ outcome: "unknown", reason: `${to}: ${text}` }),
    ];
    const requests: readonly Partial<DeliverRequest>[] = [
      {},
      { text: `Zugang mit ${code} bei uns` },
      { correlation_id: "reference", device_id: "device", ip: "203.0.113.7" },
      { purpose: "mfa", locale: "fr" },
    ];
    const { one, two, plain } = pair({ statistics: {}, policy: roomy });
    for (const outcome of outcomes) {
      one.sender.answer = outcome;
      for (const fields of requests) {
        one.clock.advance(31_000);
        expectOnly(await endings([one.deliver(number, code, { callback_url: callbackUrl, ...fields })]), ["sent", "pending", "no_route"]);
      }
      await settled();
    }
    two.store.fate = (method) => (method === "commit" ? "refused" : "done");
    await two.deliver(number, code, { text: `Zugang mit ${code} bei uns` });
    await one.verifier.deliver({ ...named, code: `${code}${"0".repeat(20)}`, text: code }).catch((error: unknown) => one.log.length + String(error));
    await one.verifier.flush();
    await settled();
    const history = await one.verifier.history(named);
    expect(history.length).toBeGreaterThan(2);
    const posted = one.hook.posted.map(({ body }) => body);
    const told = [JSON.stringify(one.events), JSON.stringify(two.events), one.verifier.metrics(), JSON.stringify(history), ...posted];
    const logs = [...one.log, ...two.log].map((line) => JSON.stringify(line, (_, value) => (value instanceof Error ? String(value.stack) : value)));
    expect(posted.length).toBeGreaterThan(3);
    expect(traces([...held(plain), ...told, ...logs], [...spellingsOfCode(code), ...whole])).toEqual([]);
  });

  it("the code in a text without `code` never reaches logs and events, even if the carrier repeats the text (docs/contract.md#logs)", async () => {
    const { one, plain } = pair({ policy: roomy });
    // Chosen so that nothing else in the process knows it as a code.
    const digits = "904817";
    one.sender.answer = async ({ text }) => ({ outcome: "rejected", reason: `bad text: ${text}` });
    expect(await ending(one.deliver(number, undefined, { text: `Ihr Code ist ${digits}` }))).toBe("no_route");
    await settled();
    const logs = one.log.map((line) => JSON.stringify(line));
    expect(traces([...held(plain), JSON.stringify(one.events), ...logs, JSON.stringify(await one.verifier.history(named))], [digits])).toEqual([]);
  });

  it("after a confirmation the number is masked in its record, and nowhere whole (docs/contract.md#sealed-number)", async () => {
    const { one, plain } = pair(range);
    const first = await one.deliver(number, code);
    expect(held(plain).join()).not.toContain("+33612****00");
    await one.confirm(number);
    expect(held(plain).join()).toContain("+33612****00");
    expect(traces(held(plain), whole)).toEqual([]);
    expect((await one.verifier.explain({ customer_uuid: customer, authentication_uuid: first.delivery_uuid as string })).validated).toBe(true);
  });

  it("errors of malformed requests repeat nothing of the request", async () => {
    const { one } = pair();
    const bad = [
      { code: `${code}${"9".repeat(12)}` },
      { text: `${code.slice(1)} is not it` },
      { phone_number: 33_612_009_000 },
      { correlation_id: `\n${code}` },
    ];
    for (const fields of bad) {
      const error = await one.verifier.deliver({ ...named, code, ...fields } as never).catch((one: Error) => one);
      expect(error).toMatchObject({ code: "bad_request" });
      expect(traces([String((error as Error).stack)], [code, code.slice(1), number.slice(1)])).toEqual([]);
    }
    one.store.fate = () => "refused";
    const error = (await one.confirm(number).catch((one: Error) => one)) as Error;
    expect(error).toMatchObject({ code: "unavailable" });
    expect(String(error.stack)).not.toContain(number.slice(1));
  });
});

describe("the id of a delivery, used by someone else (docs/contract.md#deliver)", () => {
  it("is an unknown authentication to /v1 and to verifications, like any id that never existed", async () => {
    const { one, plain } = pair();
    const { delivery_uuid: id = "" } = await one.deliver(number, code);
    const never = randomUUID();
    const slot = `${id.slice(0, -8)}00000000`;
    const stored = [...plain.records.values()].map((record) => record.id);
    const post = async (path: string, body: object) => {
      const headers: Record<string, string> = { "x-api-key": keyOf(customer) };
      const text = JSON.stringify({ customer_uuid: customer, ...body });
      return one.verifier.http.handle({ method: "POST", path, header: (name) => headers[name], body: async () => ({ kind: "text", text }) });
    };
    for (const authentication_uuid of [id, id.toUpperCase(), slot, `${id.slice(0, -8)}ffffffff`, ...stored]) {
      for (const [path, body] of [
        ["/v1/check", { check_code: code }],
        ["/v1/retry", {}],
      ] as const) {
        const [its, unknown] = await Promise.all([post(path, { authentication_uuid, ...body }), post(path, { authentication_uuid: never, ...body })]);
        expect([its.status, its.body]).toEqual([400, unknown.body]);
      }
      const target = { customer_uuid: customer, authentication_uuid };
      const { verifications } = one.verifier;
      for (const call of [verifications.get(target), verifications.cancel(target), verifications.check({ ...target, check_code: code })]) {
        const answer = (await (call as Promise<unknown>).catch(({ code: fault }: { code: string }) => fault)) as { status?: string } | string | undefined;
        expect([undefined, "not_found", "invalid_auth_uuid"]).toContain(typeof answer === "object" ? answer.status : answer);
      }
      if (authentication_uuid.toLowerCase() !== id) expect(await ending(one.confirm(authentication_uuid))).toBe("not_found");
    }
    expect(one.sender.messages).toHaveLength(1);
    expect(await ending(one.confirm(id))).toBe("confirmed");
  });

  it("is found in no scope of verifications by number, and `confirm` finds none of their ids", async () => {
    const { one } = pair();
    await one.deliver(number, code);
    const { verifications } = one.verifier;
    for (const scope of ["deliver", "delivery", "deliveries", "sign-in", "sms", "code", "d", "default"]) {
      expect(await verifications.get(named, { scope })).toBeUndefined();
      expect(await verifications.check({ ...named, check_code: code }, { scope })).toMatchObject({ status: "not_found" });
      expect(await verifications.cancel(named, { scope })).toBeUndefined();
    }
    const started = await verifications.start(named);
    const created = await one.create(french(1));
    expect(await endings([one.confirm(started.authentication_uuid), one.confirm(created.authentication_uuid), one.confirm(french(1))])).toEqual([
      "not_found",
      "not_found",
      "not_found",
    ]);
    expect(await verifications.check({ ...named, check_code: one.sender.codeOf(started.authentication_uuid) })).toMatchObject({ status: "valid" });
    expect(await ending(one.confirm(number))).toBe("confirmed");
  });

  it("confirms nothing and shows nothing to another customer (docs/contract.md#keyed-by-customer)", async () => {
    const other = "7f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
    const plain = new PlainStore();
    const options = { ...range, customers: [customer, other].map((customer_uuid) => ({ customer_uuid, keys: [keyOf(customer_uuid)] })) };
    const [one] = parties(1, plain, options) as [Party];
    const [two] = parties(1, plain, { ...options, customer: other, clock: one.clock, sender: one.sender }) as [Party];
    const { delivery_uuid: id = "" } = await one.deliver(number, code, { idempotency_key: "k" });
    expect(await endings([two.confirm(id), two.confirm(number)])).toEqual(["not_found", "not_found"]);
    expect(await two.verifier.explain({ customer_uuid: other, authentication_uuid: id }).catch(({ code: fault }) => fault)).toBe("invalid_auth_uuid");
    const theirs = await two.deliver(number, code, { idempotency_key: "k" });
    expect(theirs).toMatchObject({ status: "sent" });
    expect(theirs.delivery_uuid?.slice(0, 18)).not.toBe(id.slice(0, 18));
    expect([await left(one), await left(two)]).toEqual([4, 4]);
  });
});

describe("attempts to gain credit (docs/contract.md#credits)", () => {
  it("a confirmation gives none if the number got no message or a rejected one, was erased, or the message is too old", async () => {
    const { one } = pair(range);
    expect(await ending(one.confirm(number))).toBe("not_found");
    one.sender.answer = async () => ({ outcome: "rejected" });
    const rejected = times(30, (i) => french(5_000 + i));
    for (const to of rejected) {
      const { status, delivery_uuid } = await one.deliver(to, code);
      expect(status).toBe("no_route");
      expect(await endings([one.confirm(delivery_uuid), one.confirm(to)])).toEqual(["not_found", "not_found"]);
    }
    one.sender.answer = async () => ({ outcome: "accepted" });
    const erased = await one.deliver(number, code);
    await one.verifier.erase(named);
    expect(await endings([one.confirm(erased.delivery_uuid), one.confirm(number)])).toEqual(["not_found", "not_found"]);
    const old = await one.deliver(number, "222222");
    one.clock.advance(day);
    expect(await endings([one.confirm(old.delivery_uuid), one.confirm(number), one.confirm(number, { at: one.clock.now() - day + 1 })])).toEqual([
      "not_found",
      "not_found",
      "not_found",
    ]);
    // The two that were counted stay so.
    expect(await left(one)).toBe(3);
  });

  it("a confirmation counts up to 24 hours after the last message, to the millisecond (docs/contract.md#confirm)", async () => {
    const { one } = pair(range);
    await one.deliver(number, code);
    one.clock.advance(4 * minute);
    const { delivery_uuid: id } = await one.deliver(number, "222222");
    one.clock.advance(day - 1);
    expect(await ending(one.confirm(id))).toBe("confirmed");
  });

  it.each(["held", "refused"] as const)(
    "a delivery that has just made room for the next one can be confirmed by id, even if the second write is %s (docs/contract.md#confirm)",
    async (fate) => {
      const { one, two } = pair(range);
      const { delivery_uuid: id } = await one.deliver(number, code);
      one.clock.advance(11 * minute);
      let commits = 0;
      one.store.fate = (method) => (method === "commit" && ++commits > 1 ? fate : "done");
      const next = await drive(one.clock, one.deliver(number, "222222"));
      expect(next.delivery_uuid).not.toBe(id);
      await settled();
      expect(await ending(two.confirm(id))).toBe("confirmed");
    },
  );

  it("a number gains credit once in 24 hours, however many deliveries are confirmed (docs/contract.md#balance)", async () => {
    const { one, two } = pair(range);
    for (let i = 0; i < 10; i++) {
      const { status, delivery_uuid } = await at([one, two], i).deliver(number, codeAt(i));
      expect(status).toBe("sent");
      expect(await endings([one.confirm(delivery_uuid)])).toEqual(["confirmed"]);
      one.clock.advance(minute);
    }
    expect(await left(one)).toBe(7);
  });

  it("a code of our own and one of another server to the same number gain credit once (docs/contract.md#balance)", async () => {
    const { one } = pair(range);
    await one.deliver(number, code);
    const { authentication_uuid: id } = await one.create(number);
    expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
    expect(await ending(one.confirm(number))).toBe("confirmed");
    expect(await left(one)).toBe(7);
  });

  it("a `known` message fills no cell but the crowd's, and is not given back (docs/contract.md#known)", async () => {
    const { one } = pair(range);
    for (let i = 0; i < 40; i++) expect(await ending(one.deliver(french(5_000 + i), code, { known: true }))).toBe("sent");
    expect(await left(one)).toBe(5);
    const { one: crowded } = pair({ policy: { ...roomy, spam: only("crowd") } });
    expect(await room(crowded, french, { known: true })).toBe(25);
    expect(await ending(crowded.deliver(french(50), code))).toBe("spam_detected");
    const { one: mixed } = pair(range);
    await mixed.deliver(number, "111111", { known: true });
    await mixed.deliver(number, "222222");
    await mixed.confirm(number);
    // The counted message and 2 are given back, but not the uncounted one.
    expect(await left(mixed)).toBe(7);
  });

  it("confirmations of `known` users give none: a right code credits only cells that its messages had filled (docs/contract.md#credits)", async () => {
    const { one } = pair(range);
    for (let i = 0; i < 10; i++) {
      await one.deliver(french(5_000 + i), code, { known: true });
      expect(await ending(one.confirm(french(5_000 + i)))).toBe("confirmed");
    }
    expect(await left(one)).toBe(5);
  });

  it("a `known` number passes a full cell only while it has fewer than 3 open (docs/contract.md#trust)", async () => {
    for (const [rule, seed] of [
      ["range", 5],
      ["address", 8],
    ] as const) {
      const limits = { ...roomy.limits, perNumber: [{ limit: 100, window: 86_400 }] };
      const { one, two } = pair({ policy: { ...roomy, limits, spam: { ...only(rule), trust: { open: 3 } } } });
      const fields = { ip: "203.0.113.9" };
      expect(await room(one, french, fields)).toBe(seed);
      const found = await endings(times(12, (i) => at([one, two], i).deliver(number, codeAt(i), { ...fields, known: true })));
      expect(tallied(found)).toEqual({ sent: 3, spam_detected: 9 });
    }
  });

  it("`at` before the message confirms nothing, and any later one confirms once, on clocks that differ too (docs/contract.md#confirm)", async () => {
    const { one } = pair(range);
    const sent = one.clock.now();
    const { delivery_uuid: id } = await one.deliver(number, code);
    one.clock.advance(minute);
    for (const moment of [sent - 1, 0, -1, 1e300, -1e300, new Date(0)]) {
      expect(await endings([one.confirm(number, { at: moment }), one.confirm(id, { at: moment })])).toEqual(["not_found", "not_found"]);
    }
    expect(await left(one)).toBe(4);
    for (const moment of [sent, new Date(sent), new Date(sent).toISOString(), sent + 0.5, sent + 365 * day]) {
      const { one: fresh } = pair(range);
      await fresh.deliver(number, code);
      expect(await ending(fresh.confirm(number, { at: moment }))).toBe("confirmed");
      expect(await ending(fresh.confirm(number, { at: moment }))).toBe("already_confirmed");
      expect(await left(fresh)).toBe(7);
    }
    for (const skew of [5_000, -5_000]) {
      const clock = one.clock;
      const set = parties(2, new PlainStore(), { clock, clockSkew: 5, ...range }, (i) => (i === 0 ? { clock: ahead(clock, skew) as never } : {}));
      await at(set, 0).deliver(number, code, { idempotency_key: "k" });
      expect(await endings([at(set, 1).deliver(number, code, { idempotency_key: "k" })])).toEqual(["repeated"]);
      expect(tallied(await endings(times(10, (i) => at(set, i).confirm(number))))).toEqual({ confirmed: 1, already_confirmed: 9 });
      expect(await left(at(set, 0))).toBe(7);
    }
  });

  it("with `at` between two messages, the later one does not count (docs/contract.md#confirm)", async () => {
    const { one } = pair(range);
    const sent = one.clock.now();
    await one.deliver(number, "111111");
    one.clock.advance(minute);
    await one.deliver(number, "222222");
    expect(await ending(one.confirm(number, { at: sent + 1_000 }))).toBe("confirmed");
    // 2 and the first message are given back, but not the second one.
    expect(await left(one)).toBe(6);
  });

  it("messages that a carrier rejects fill no cell, and a confirmation after one gives back only what was sent (docs/contract.md#send-outcome)", async () => {
    const { one } = pair(range);
    one.sender.answer = async () => ({ outcome: "rejected" });
    for (let i = 0; i < 40; i++) expect(await ending(one.deliver(french(5_000 + i), code))).toBe("no_route");
    one.sender.answer = async () => ({ outcome: "accepted" });
    await one.deliver(number, "111111");
    one.sender.answer = async () => ({ outcome: "rejected" });
    await one.deliver(number, "222222");
    one.sender.answer = async () => ({ outcome: "accepted" });
    expect(await ending(one.confirm(number))).toBe("confirmed");
    expect(await left(one)).toBe(7);
  });

  it("test numbers earn nothing: no cell, no cap and no conversion (docs/contract.md#test-numbers)", async () => {
    const testNumbers = [{ number, code: "123456" }];
    const limits = { ...roomy.limits, perCustomer: [{ limit: 20, window: 86_400, perVerified: 3 }] };
    const { one } = pair({ testNumbers, policy: { ...roomy, limits, spam: only("range") } });
    for (let i = 0; i < 8; i++) {
      expect(await endings([one.deliver(number, codeAt(i))])).toEqual(["sent"]);
      expect(await endings([one.confirm(number)])).toEqual(["confirmed"]);
    }
    expect(await left(one)).toBe(5);
    expect(await room(one, numberAt)).toBe(15);
    const { one: watched } = pair({ testNumbers, policy: roomy });
    await watched.deliver(number, code);
    await watched.confirm(number);
    for (let i = 0; i < 51; i++) await watched.deliver(numberAt(i), code);
    watched.clock.advance(3 * hour);
    await watched.deliver(numberAt(51), code);
    await settled();
    expect(alarmsOf([watched])).toEqual(["no_conversion"]);
  });

  it("unconfirmed messages to test numbers do not raise the alarm `no_conversion` (docs/contract.md#test-numbers)", async () => {
    const { one } = pair({ testNumbers: [{ number, code: "123456" }], policy: roomy });
    for (let i = 0; i < 120; i++) {
      one.clock.advance(31_000);
      await one.deliver(number, codeAt(i));
    }
    await settled();
    expect(alarmsOf([one])).toEqual([]);
  });

  it("numbers on the safe list earn nothing (docs/contract.md#credits)", async () => {
    const { one } = pair({ ...range, lists: { safe: { numbers: [number] } } });
    for (let i = 0; i < 9; i++) expect(await ending(one.deliver(number, codeAt(i)))).toBe("sent");
    await one.confirm(number);
    expect(await left(one)).toBe(5);
  });
});

describe("money (docs/contract.md#spend-ceiling)", () => {
  it.each([
    ["one step", () => new PlainStore()],
    ["two steps", () => new TwoStepStore()],
  ])("a thousand concurrent deliveries through a router that fails over spend exactly the ceiling, on the store: %s", async (_, open) => {
    const [cheap, dear] = [sender(), sender()];
    cheap.answer = async () => ({ outcome: "rejected" });
    const out = router({
      routes: [
        { name: "cheap", sender: cheap, price: 0.03 },
        { name: "dear", sender: dear, price: 0.07 },
      ],
      logger: quiet,
    });
    const set = parties(4, open(), { sender: out as never, policy: { limits: { ...wide, spend: [{ amount: 7, per: "day" }] } } });
    expect(tallied(await endings(times(1_000, (i) => at(set, i).deliver(numberAt(i), codeAt(i)))))).toEqual({ sent: 100, rate_limited: 900 });
    expect(dear.messages).toHaveLength(100);
    expect(new Set([...dear.messages, ...cheap.messages].map(({ max_price }) => max_price))).toEqual(new Set([0.07]));
  });

  it("messages that every route rejects cost nothing", async () => {
    const { one, two } = pair({ price: 1, policy: { limits: { ...wide, spend: [{ amount: 3, per: "day" }] } } });
    one.sender.answer = async () => ({ outcome: "rejected" });
    expectOnly(await endings(times(100, (i) => at([one, two], i).deliver(numberAt(i), code))), ["no_route", "rate_limited"]);
    await settled();
    for (let i = 0; i < 20; i++) expect(await ending(one.deliver(numberAt(200 + i), code))).toBe("no_route");
    one.sender.answer = async () => ({ outcome: "accepted" });
    expect(await room(two, (i) => numberAt(1_000 + i))).toBe(3);
    expect(await one.deliver(numberAt(3_000), code)).toMatchObject({ status: "rate_limited", retry_after: expect.any(Number), message: expect.any(String) });
  });

  it("unknown conversion without a ceiling sends nothing, wherever the ceiling is missing (docs/contract.md#unknown-conversion)", async () => {
    const unlimited = { limits: { spend: [] } };
    const own = { customers: { findByKeyDigest: () => undefined, find: () => ({ customer_uuid: customer, policy: unlimited }) } };
    const cases: readonly (readonly [object, Partial<DeliverRequest>])[] = [
      [{ conversion: undefined }, {}],
      [{ conversion: "reported" }, { conversion: "unknown" }],
      [{ conversion: "unknown", price: 1, policy: priced(), ...own }, {}],
      [{ conversion: undefined, price: 1, policy: priced(), customers: [{ customer_uuid: customer, keys: [keyOf(customer)], policy: unlimited }] }, {}],
    ];
    for (const [options, fields] of cases) {
      const { one } = pair(options as never);
      expect(await ending(one.deliver(number, code, fields))).toBe("invalid_options");
      expect(one.sender.messages).toEqual([]);
    }
    for (const conversion of ["unknown", "nonsense", null, "__proto__"]) expect(() => pair({ conversion } as never)).toThrow(/conversion|spend/);
    const { one } = pair({ conversion: "unknown", price: 1, policy: priced() });
    expect(await ending(one.deliver(number, code))).toBe("sent");
  });
});

describe("growth instead of credit (docs/contract.md#growth-rules)", () => {
  const unknown = (...rules: Rule[]) => ({ conversion: "unknown" as const, price: 1, policy: priced({ spam: only(...rules) }) });
  const some = async (set: readonly Party[], count: number, to: (i: number) => string = french, fields: Partial<DeliverRequest> = {}) =>
    tallied(await endings(times(count, (i) => at(set, i).deliver(to(i), codeAt(i), fields))));
  const later = (to: (i: number) => string) => (i: number) => to(2_000 + i);

  it.each([
    ["range", 5, 3, french],
    ["country", 30, 3, spread],
    ["newCountries", 30, 2, (i: number) => (abroad[i % 40] as (index: number) => string)(Math.floor(i / 40) * 100)],
  ] as const)("%s: allows seed %i + %i × the mean of seven days, enforced from five days on, with or without statistics", async (rule, seed, factor, to) => {
    for (const [count, of] of [
      [7, 7],
      [1, 5],
      [10, 5],
      [10, 4],
    ] as const) {
      const set = parties(2, new PlainStore(), { ...unknown(rule), statistics: of === 7 ? {} : false });
      await days(of, at(set, 0), () => some(set, count, to));
      const limit = of < 5 ? 300 : Math.ceil(seed + (factor * count * of) / 7);
      expect(await room(at(set, 0), later(to)), `${count} on ${of} days`).toBe(limit);
    }
  });

  it.each([
    ["one step", () => new PlainStore()],
    ["two steps", () => new TwoStepStore()],
  ])("concurrent deliveries in processes that have just started meet the limit exactly, on the store: %s", async (_, open) => {
    const store = open();
    const set = parties(2, store, unknown("range"));
    await days(7, at(set, 0), () => some(set, 7));
    const fresh = parties(4, store, { ...unknown("range"), clock: at(set, 0).clock, sender: at(set, 0).sender });
    expect(await some(fresh, 300, later(french))).toEqual({ sent: 26, spam_detected: 274 });
    expect(await room(at(fresh, 1), (i) => french(5_000 + i))).toBe(0);
  });

  it.each([
    ["repeats", (set: readonly Party[]) => some(set, 7)],
    ["messages that a rule blocks", (set: readonly Party[]) => some(set, 40, french, { ip: "203.0.113.7", device_id: "blocked" })],
    ["confirmations", async (set: readonly Party[]) => endings(times(7, (i) => at(set, i).confirm(french(i))))],
    ["messages of users who are vouched for", (set: readonly Party[]) => some(set, 40, later(french), { known: true })],
  ] as const)("%s do not count toward the usual day", async (_, more) => {
    const set = parties(2, new PlainStore(), { ...unknown("range"), lists: { block: { devices: ["blocked"] } } });
    await days(7, at(set, 0), async () => {
      expect(await some(set, 7)).toEqual({ sent: 7 });
      await more(set);
      await settled();
    });
    expect(await room(at(set, 1), (i) => french(5_000 + i))).toBe(26);
  });

  it("messages that every carrier rejected do not count toward the usual day: they cost an attacker nothing", async () => {
    const set = parties(2, new PlainStore(), unknown("range"));
    await days(7, at(set, 0), async () => {
      at(set, 0).sender.answer = async () => ({ outcome: "accepted" });
      await some(set, 7);
      at(set, 0).sender.answer = async () => ({ outcome: "rejected" });
      expect(Object.keys(await some(set, 20, later(french)))).not.toContain("sent");
      await settled();
    });
    at(set, 0).sender.answer = async () => ({ outcome: "accepted" });
    expect(await room(at(set, 1), (i) => french(5_000 + i))).toBe(26);
  });

  it("an attack in the first days meets the crowd rule, from the first message on", async () => {
    const set = parties(2, new PlainStore(), unknown("range", "country", "newCountries", "crowd", "address", "strangeNetwork"));
    expect(await room(at(set, 0), french)).toBe(25);
    for (let i = 0; i < 9; i++) await at(set, 0).confirm(french(i));
    expect(await room(at(set, 0), (i) => french(3_000 + i))).toBe(0);
  });

  it("confirmations give nothing back while conversion is unknown", async () => {
    const set = parties(2, new PlainStore(), unknown("range"));
    await days(7, at(set, 0), () => some(set, 1));
    for (let i = 0; i < 8; i++) {
      expect(await ending(at(set, i).deliver(french(2_000 + i), code))).toBe("sent");
      expect(await ending(at(set, i).confirm(french(2_000 + i)))).toBe("confirmed");
    }
    expect(await ending(at(set, 0).deliver(french(3_000), code))).toBe("spam_detected");
  });

  it("while the past days cannot be read, deliveries return `unavailable` and send nothing", async () => {
    for (const fate of ["refused", "silent"] as const) {
      const { one } = pair({ ...unknown("range"), storeTimeout: 2 });
      one.store.fate = (method) => (method === "tally" ? fate : "done");
      expect(await drive(one.clock, ending(one.deliver(number, code)))).toBe("unavailable");
      expect(one.sender.messages).toEqual([]);
      one.store.fate = () => "done";
      expect(await drive(one.clock, ending(one.deliver(number, code)))).toBe("sent");
    }
  });

  it("unreadable statistics stop neither creates nor deliveries whose confirmations are reported (docs/contract.md#tallies)", async () => {
    const { one } = pair(range);
    one.store.fate = (method) => (method === "tally" ? "refused" : "done");
    expect(await ending(one.create(french(1)))).toBe("pending");
    expect(await ending(one.deliver(number, code))).toBe("sent");
  });
});

describe("confirmations that stop (docs/contract.md#no-conversion)", () => {
  const reported = { conversion: "reported" as const, price: 1, policy: priced({ spam: only("range") }) };
  const withPast = async (count: number) => {
    const set = parties(2, new PlainStore(), reported);
    await days(count, at(set, 0), async () => {
      for (let i = 0; i < 7; i++) {
        expect(await ending(at(set, i).deliver(french(i), code))).toBe("sent");
        expect(await ending(at(set, i).confirm(french(i)))).toBe("confirmed");
      }
      await settled();
    });
    // More than 24 hours after the last confirmation, on the day after the next.
    at(set, 0).clock.advance(12 * hour);
    return set;
  };
  const unconfirmed = async (set: readonly Party[], count: number) => {
    for (let i = 0; i < count; i++) await at(set, i).deliver(spread(i), codeAt(i));
    await settled();
  };

  it.each(["reported", "late", "unknown"] as const)(
    "%s: after 50 messages without confirmation for long enough, the alarm is raised once, but never if unknown",
    async (conversion) => {
      const { one } = pair({ ...reported, conversion });
      await unconfirmed([one], 49);
      expect(alarmsOf([one])).toEqual([]);
      one.clock.advance((conversion === "late" ? 24 : 3) * hour);
      for (let i = 0; i < 30; i++) await one.deliver(spread(1_000 + i), code);
      await settled();
      expect(alarmsOf([one])).toEqual(conversion === "unknown" ? [] : ["no_conversion"]);
    },
  );

  it.each([
    [7, 23],
    [5, 20],
    [4, 5],
  ])("with %i days of messages, the range allows %i instead of 5, and credit returns within ten minutes of a confirmation", async (count, limit) => {
    const set = await withPast(count);
    await unconfirmed(set, 60);
    at(set, 0).clock.advance(3 * hour);
    for (const one of set) await one.deliver(spread(500), codeAt(500));
    await settled();
    expect(alarmsOf(set).length).toBeGreaterThan(0);
    expect(await room(at(set, 0), (i) => french(2_000 + i))).toBe(limit);
    const again = await withPast(count);
    await unconfirmed(again, 60);
    at(again, 0).clock.advance(3 * hour);
    for (const one of again) await one.deliver(spread(500), codeAt(500));
    await at(again, 0).confirm(spread(59));
    await settled();
    at(again, 0).clock.advance(10 * minute + 1);
    expect(await room(at(again, 1), (i) => french(2_000 + i))).toBe(5);
  });

  it.each([0.5, 1, 1.5])("an attacker causes no alarm while one user in %s hours confirms", async (gap) => {
    const set = await withPast(7);
    const honest = async (i: number) => {
      expect(await ending(at(set, i).deliver(spread(5_000 + i), code))).toBe("sent");
      expect(await ending(at(set, i + 1).confirm(spread(5_000 + i)))).toBe("confirmed");
    };
    let last = at(set, 0).clock.now();
    await honest(0);
    for (let i = 0; i < 200; i++) {
      const now = at(set, 0).clock.now();
      if (now - last >= gap * hour) {
        await honest(i);
        last = now;
      }
      for (let j = 0; j < 3; j++) await at(set, j).deliver(spread(10_000 + i * 7 + j * 13), codeAt(i));
      at(set, 0).clock.advance(15 * minute);
    }
    await settled();
    expect(alarmsOf(set)).toEqual([]);
  });
});

describe("requests (docs/contract.md#deliver-answers)", () => {
  const wrong: Readonly<Record<string, readonly unknown[]>> = {
    phone_number: [undefined, null, 7, {}, [], true, 1n, Symbol("x"), new String(number)],
    code: [
      null,
      7,
      837_465,
      "",
      "123",
      "a".repeat(17),
      "１２３４５６",
      "٤٨٢٩١٣",
      "12 34",
      "12\u00a034",
      "482913\n",
      "😀😀😀😀",
      "48\u200b2913",
      {},
      [],
      ["482913"],
      "482_913",
    ],
    text: [null, 7, "", "x".repeat(1_601), "x".repeat(1_000_000), "without it", {}, [], `${code.slice(0, 3)} ${code.slice(3)}`],
    purpose: [null, 7, "", "a b", "x".repeat(65), "é", {}, "<script>", "sign_in\n"],
    locale: [null, 7, "", "xx-nonsense-".repeat(50), {}, "__proto__", "constructor"],
    ip: [null, 7, "", "999.1.1.1", "::1::", {}, "localhost", "1.2.3.4; x", "0x7f.1"],
    device_id: [null, 7, {}],
    device_type: [null, 7, "ios", "", {}, "__proto__"],
    app_realm: [null, 7, {}],
    callback_url: [
      null,
      7,
      "",
      "http://x.example",
      "https://localhost/x",
      "https://127.0.0.1/",
      "javascript:alert(1)",
      "https://u:p@x.example/",
      "https://x.example/#f",
      {},
    ],
    expires_in: [null, "300", 29, 3_601, 30.5, Number.NaN, Number.POSITIVE_INFINITY, -1, 0, {}, 1e308],
    known: [null, 1, 0, "true", {}],
    conversion: [null, 7, "", "Reported", "__proto__", {}],
    correlation_id: [null, 7, "", "x".repeat(129), "a\nb", {}],
    idempotency_key: [null, 7, "", "x".repeat(256), "é", "a\nb", {}, []],
    within: [null, "100", 99, 600_001, -1, Number.NaN, Number.POSITIVE_INFINITY, 100.5, {}, 0],
    customer_uuid: [undefined, null, 7, "", "nope", {}],
  };

  it.each(Object.entries(wrong))("an invalid %s is bad_request, and sends nothing", async (field, values) => {
    const { one, plain } = pair();
    for (const value of values)
      expect([value, await ending(one.verifier.deliver({ ...named, code, [field]: value } as never))]).toEqual([value, "bad_request"]);
    expect(one.sender.messages).toEqual([]);
    expect(held(plain)).toEqual([]);
  });

  it.each([[{ device_id: "a\nb" }], [{ app_realm: "abc" }], [{ app_realm: "abcdefghijk" }]])(
    "%j is malformed, which is bad_request, as deliver documents (docs/contract.md#deliver-answers)",
    async (fields) => {
      const { one } = pair();
      expect(await ending(one.deliver(number, code, fields))).toBe("bad_request");
    },
  );

  it("requests that are not objects, or have only a __proto__, are bad_request and send nothing", async () => {
    const { one } = pair();
    const all = [undefined, null, 7, "x", [], () => 0, JSON.parse(`{"__proto__":${JSON.stringify({ ...named, code })}}`)];
    for (const whole of all) {
      expect(await ending(one.verifier.deliver(whole))).toBe("bad_request");
      expect(await ending(one.verifier.confirm(whole))).toBe("bad_request");
    }
    expect(one.sender.messages).toEqual([]);
    expect(({} as { code?: string }).code).toBeUndefined();
  });

  it("an invalid number gives `invalid` with its reason and a sentence, and no id (docs/contract.md#destinations)", async () => {
    const { one } = pair({
      countries: ["FR"],
      blockedNumbers: ["+336980*"],
      lookupBeforeSend: true,
      lookup: {
        lookup: async ({ phone_number }: { readonly phone_number: string }) => ({ ...(phone_number.endsWith("77") && { line_type: "FixedLine" as const }) }),
        price: 0,
      },
    } as never);
    const reasons = {
      "": "invalid_phone_number",
      abc: "invalid_phone_number",
      " +33612009000": "invalid_phone_number",
      "+٣٣٦١٢٠٠٩٠٠٠": "invalid_phone_number",
      "33612009000": "invalid_phone_number",
      "+33612009000\u0000": "invalid_phone_number",
      [`+${"3".repeat(10_000)}`]: "invalid_phone_number",
      "+4915112345678": "unsupported_region",
      "+33142685300": "invalid_line",
      "+33899123456": "invalid_line",
      "+33698012345": "blocked_number",
      "+33612009077": "invalid_line",
    };
    for (const [phone, reason] of Object.entries(reasons)) {
      const answer = await one.deliver(phone, code, { locale: "de" });
      expect(answer).toMatchObject({ status: "invalid", reason, message: expect.stringMatching(/\.$/) });
      expect(answer).not.toHaveProperty("delivery_uuid");
    }
    expect(one.sender.messages).toEqual([]);
    expect(await endings(["abc", "+33", "33612009000"].map((phone_number) => one.verifier.confirm({ customer_uuid: customer, phone_number })))).toEqual(
      times(3, () => "invalid_phone_number"),
    );
    expect(await one.deliver("+330612009000", code)).toMatchObject({ status: "sent", phone_number: number });
    expect(await ending(one.confirm("+330612009000"))).toBe("confirmed");
  });

  it("a confirm with an invalid time or target is bad_request", async () => {
    const { one } = pair(range);
    await one.deliver(number, code);
    const moments = [
      Number.NaN,
      Number.POSITIVE_INFINITY,
      new Date(Number.NaN),
      "2026-03-01",
      "2026-03-01T12:00:00",
      "",
      null,
      true,
      [],
      {},
      1n,
      "9999999999999",
    ];
    for (const moment of moments) expect(await ending(one.confirm(number, { at: moment as never }))).toBe("bad_request");
    const targets = [{}, { ...named, delivery_uuid: randomUUID() }, { delivery_uuid: "x" }, { delivery_uuid: 7 }, { phone_number: 7 }, { phone_number: null }];
    for (const target of targets)
      expect(await ending(one.verifier.confirm({ customer_uuid: customer, ...target } as never as ConfirmRequest))).toBe("bad_request");
    expect(await ending(one.verifier.confirm({ phone_number: number, customer_uuid: randomUUID() }))).toBe("account_invalid");
    expect(await left(one)).toBe(4);
  });

  it("blocks by a cap and by a rule have the same sentence for the user, in every language", async () => {
    for (const locale of [undefined, "fr", "de", "pt-BR", "ar", "zz-nonsense"]) {
      const fields = locale === undefined ? {} : { locale };
      const { one } = pair({ policy: { limits: { ...wide, perCustomer: [{ limit: 1, window: 3_600 }] } } });
      await one.deliver(number, code);
      const capped = await one.deliver(french(1), code, fields);
      const { one: other } = pair({ spamRules: [{ name: "mine", judge: () => ({ reason: "mine" }) }] });
      const judged = await other.deliver(french(1), code, fields);
      expect([capped.status, judged.status]).toEqual(["rate_limited", "spam_detected"]);
      expect(capped.message).toMatch(/\S/);
      expect(judged.message).toBe(capped.message);
    }
  });

  it("the same key with another code or text is bad_request, and sends nothing (docs/contract.md#deliver-repeats)", async () => {
    const { one, two } = pair();
    await one.deliver(number, code, { idempotency_key: "k" });
    expect(
      await endings([two.deliver(number, "222222", { idempotency_key: "k" }), two.deliver(number, code, { idempotency_key: "k", text: `Own ${code}` })]),
    ).toEqual(["bad_request", "bad_request"]);
    expect(one.sender.messages).toHaveLength(1);
  });
});

describe("deliveries with other options", () => {
  it("the caller's own rules get no code, text or key, and their cells are counted and credited (docs/contract.md#own-rules)", async () => {
    const asked: unknown[] = [];
    const note = (request: unknown) => void asked.push(request);
    const cell = (request: unknown) => {
      note(request);
      return "all";
    };
    const { one } = pair({
      policy: roomy,
      spamRules: [
        { name: "mine", judge: note },
        { name: "cell", cell, seed: 3, perVerified: 2 },
      ] as never,
    });
    await one.deliver(number, code, { text: `Own ${code}`, idempotency_key: `key ${code}`, ip: "203.0.113.7", device_id: "device", purpose: "mfa" });
    expect(asked.length).toBeGreaterThan(1);
    expect(traces([JSON.stringify(asked)], [...spellingsOfCode(code), "Own"])).toEqual([]);
    expect(await room(one, numberAt)).toBe(2);
    await one.confirm(number);
    expect(await room(one, (i) => numberAt(500 + i))).toBe(3);
  });

  it("lists block numbers, addresses and devices (docs/contract.md#lists)", async () => {
    const { one } = pair({ lists: { block: { numbers: [number], cidrs: ["203.0.113.0/24"], devices: ["bad"] } } });
    expect(await one.deliver(number, code)).toMatchObject({ status: "invalid", reason: "blocked_number" });
    expect(await endings([one.deliver(french(1), code, { ip: "203.0.113.7" }), one.deliver(french(1), code, { device_id: "bad" })])).toEqual([
      "spam_detected",
      "spam_detected",
    ]);
    expect(await endings([one.deliver(french(1), code, { ip: "::ffff:203.0.113.7" })])).toEqual(["spam_detected"]);
    expect(one.sender.messages).toEqual([]);
  });

  it.each([
    ["accepted", "sent"],
    ["rejected", "no_route"],
    ["undeliverable", "sent"],
    ["slow", "pending"],
  ] as const)(
    "a test number with the outcome %s is never sent to, and no cap or rule applies to it (docs/contract.md#test-numbers)",
    async (outcome, status) => {
      const { one } = pair({ testNumbers: [{ number, outcome }], policy: { limits: wide, spam: only("range", "country") } });
      for (let i = 0; i < 8; i++) expect(await drive(one.clock, ending(one.deliver(number, codeAt(i), { callback_url: callbackUrl })))).toBe(status);
      expect(one.sender.messages).toEqual([]);
      await one.verifier.flush();
      expect(one.hook.posted.length).toBeGreaterThan(0);
    },
  );

  it("receipts and callbacks work as for a create: by attempt, in order, also after the confirmation (docs/contract.md#callback-order)", async () => {
    const { one, two } = pair({ receipts, policy: roomy });
    const { delivery_uuid: id = "" } = await one.deliver(number, code, { callback_url: callbackUrl });
    const [first] = one.sender.messages as [CodeMessage];
    for (const status of ["delivered", "undeliverable", "delivered"] as const) expect(await postReceipt(two.verifier, first, status)).toBe(200);
    await two.deliver(number, "222222", { callback_url: callbackUrl });
    await one.confirm(number);
    expect(await postReceipt(one.verifier, one.sender.messages[1] as CodeMessage, "delivered")).toBe(200);
    for (let i = 0; i < 3; i++) await one.verifier.flush();
    expect(one.hook.story(id)).toEqual(["1:submitted", "1:delivered", "2:submitted", "2:delivered"]);
  });

  it("each further message takes another route, and a confirmation counts for the newest one's (docs/contract.md#confirm)", async () => {
    const tried: unknown[] = [];
    const told: unknown[] = [];
    const route = (name: string) => {
      const one = sender();
      one.answer = async ({ attempt, routes_tried }) => {
        tried.push([name, attempt, routes_tried]);
        return { outcome: "accepted" };
      };
      return { name, sender: one };
    };
    const out = router({ routes: [route("one"), route("two")], random: () => 0, logger: quiet });
    const feedback = (event: { route?: string; attempt: number; event: string }) => void told.push([event.route, event.attempt, event.event]);
    const { one, two } = pair({ sender: { ...out, send: out.send.bind(out), plan: out.plan?.bind(out), feedback } as never, policy: roomy });
    for (let i = 0; i < 3; i++) await at([one, two], i).deliver(number, codeAt(i));
    await two.confirm(number);
    await settled();
    expect(tried).toEqual([
      ["one", 1, undefined],
      ["two", 2, ["one"]],
      ["one", 3, ["one", "two"]],
    ]);
    expect(told).toEqual([["one", 3, "validated"]]);
  });

  it("a registered text is sent instead of the caller's (docs/contract.md#deliver-text)", async () => {
    const { one } = pair({ message: { registered: { IN: { text: "Your code is {code} - X", ids: { entity: "1", template: "2" } } } } });
    await one.deliver("+919810000000", code, { text: `Own ${code}` });
    expect(one.sender.messages.map(({ text, registered }) => [text, registered])).toEqual([[`Your code is ${code} - X`, { entity: "1", template: "2" }]]);
  });

  it("lazyVerifier and createTestVerifier deliver and confirm", async () => {
    const options = {
      store: new PlainStore(),
      sender: sender(),
      secret,
      countries: "all" as const,
      policy: { spam: noSpamRules },
      logger: quiet,
      callbacks: { worker: false },
    };
    const lazy = lazyVerifier(() => ({ ...options, conversion: "late" }));
    expect(await endings([lazy.deliver({ phone_number: number, code })])).toEqual(["sent"]);
    expect(await endings([lazy.confirm({ phone_number: number })])).toEqual(["confirmed"]);
    const wrongly = lazyVerifier(() => ({ ...options, conversion: "unknown" }));
    expect(await endings([wrongly.deliver({ phone_number: number, code }), wrongly.confirm({ phone_number: number })])).toEqual([
      "invalid_options",
      "invalid_options",
    ]);
    await using test = createTestVerifier({ conversion: "reported", code: "111111" });
    await test.verifier.deliver({ phone_number: number, code, callback_url: "https://receiver.example/hook" });
    expect(test.inbox.codeFor(number)).toBe(code);
    await test.receipt(number, "delivered");
    await test.flush();
    expect(test.callbacks.map(({ event }) => event.data.status)).toEqual(["submitted", "delivered"]);
    expect(await endings([test.verifier.confirm({ phone_number: number })])).toEqual(["confirmed"]);
  });
});

describe("every spam rule alone (docs/contract.md#balance)", () => {
  it.each(seeds)("%s: concurrent deliveries in three processes send exactly the seed", async (_, rule, seed, to, fields) => {
    const set = parties(3, new PlainStore(), { policy: { ...roomy, spam: only(rule) } });
    const found = await endings(times(150, (i) => at(set, i).deliver(to(i), codeAt(i), fields(i) as Partial<DeliverRequest>)));
    expect(tallied(found)).toEqual({ sent: seed, spam_detected: 150 - seed });
  });
});
