import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { SmsSender, VerifierOptions } from "../../src/index.js";
import { type RouteOptions, router } from "../../src/routing/router.js";
import { type FixedClock, fixedClock } from "../../src/testing/fixed-clock.js";
import { inbox, numberOf, setUp, start } from "../support/verifier.js";

type Spend = NonNullable<NonNullable<NonNullable<VerifierOptions["policy"]>["limits"]>["spend"]>;

/** A verifier with a ceiling, and routes that each have their own inbox. */
function setUpSpend(spend: Spend, prices: readonly RouteOptions["price"][] = [0.05], options: Partial<VerifierOptions> = {}) {
  const boxes = prices.map(() => inbox());
  const routes = prices.map((price, at) => ({ name: `r${at}`, sender: boxes[at] as SmsSender, price, priority: at }));
  const clock = (options.clock as FixedClock | undefined) ?? fixedClock(start);
  const set = setUp({ clock, sender: router({ routes, clock }), policy: { limits: { spend } }, ...options });
  let last = 0;
  const statuses = async (count: number, fields: Record<string, unknown> = {}) => {
    const answers = [];
    for (let index = 0; index < count; index++) answers.push((await set.create({ phone_number: numberOf(last++), ...fields })).status);
    return answers;
  };
  const why = async (authentication_uuid: string) => (await set.verifier.explain({ customer_uuid: set.customer, authentication_uuid })).decisions;
  return { ...set, boxes, statuses, why, sent: () => boxes.reduce((sum, { messages }) => sum + messages.length, 0) };
}

const times = (pending: number, limited: number) => [...Array(pending).fill("pending"), ...Array(limited).fill("rate_limited")];
const hour = 3_600_000;

describe('spend ceiling: `{ amount, per: "hour" or "day" }` over the route\'s price (docs/contract.md#spend-ceiling)', () => {
  it("off until set", async () => {
    const set = setUpSpend([], [1000]);
    expect(await set.statuses(30)).toEqual(times(30, 0));
  });

  it("per hour: blocks at the amount, and allows messages again when the hour is over", async () => {
    const set = setUpSpend([{ amount: 0.25, per: "hour" }]);
    expect(await set.statuses(7)).toEqual(times(5, 2));
    set.clock.advance(hour - 1);
    expect(await set.statuses(1)).toEqual(times(0, 1));
    set.clock.advance(hour / 12 + 1);
    expect(await set.statuses(6)).toEqual(times(5, 1));
    expect(set.sent()).toBe(10);
  });

  it("per day: blocks at the amount, and allows messages again when the day is over", async () => {
    const set = setUpSpend([{ amount: 0.25, per: "day" }]);
    expect(await set.statuses(6)).toEqual(times(5, 1));
    set.clock.advance(24 * hour - 1);
    expect(await set.statuses(1)).toEqual(times(0, 1));
    set.clock.advance(2 * hour + 1);
    expect(await set.statuses(6)).toEqual(times(5, 1));
  });

  it("`explain` shows the ceiling, what would be spent, and the amount", async () => {
    const set = setUpSpend([{ amount: 0.1, per: "day" }], [0.06]);
    await set.statuses(1);
    const { authentication_uuid } = await set.create({ phone_number: numberOf(50) });
    expect(await set.why(authentication_uuid)).toEqual([
      { at: expect.any(String), rule: "spend 0.1/day", mode: "enforce", value: 0.12, threshold: 0.1, until: expect.any(String) },
    ]);
  });

  it("a retry counts too: one that the ceiling blocks is `rate_limited`, uses up nothing, and is approved later", async () => {
    const set = setUpSpend([{ amount: 0.1, per: "hour" }], [0.05], { policy: { lifetime: 7200, limits: { spend: [{ amount: 0.1, per: "hour" }] } } });
    const { authentication_uuid } = await set.create();
    set.clock.advance(30_000);
    expect(await set.retry(authentication_uuid)).toMatchObject({ status: "approved", remaining_retry: 3 });
    set.clock.advance(60_000);
    expect(await set.retry(authentication_uuid)).toMatchObject({ status: "rate_limited", remaining_retry: 0 });
    expect((await set.why(authentication_uuid)).at(-1)).toMatchObject({ rule: "spend 0.1/hour", value: 0.15, threshold: 0.1 });
    expect(set.sent()).toBe(2);
    set.clock.advance(1.1 * hour);
    expect(await set.retry(authentication_uuid)).toMatchObject({ status: "approved", remaining_retry: 2 });
  });

  it("a message known not to have been sent costs nothing; one that may have been sent costs its price", async () => {
    const set = setUpSpend([{ amount: 0.15, per: "hour" }]);
    const [box] = set.boxes;
    box!.answer = async () => ({ outcome: "rejected" });
    await set.statuses(10);
    expect(set.sent()).toBe(10);
    box!.answer = async () => Promise.reject(new Error("cut"));
    expect(await set.statuses(4)).toEqual(times(3, 1));
    expect(set.sent()).toBe(13);
  });

  it("the most that a failover may cost is reserved before, and only what it did cost is charged", async () => {
    const set = setUpSpend([{ amount: 1, per: "hour" }], [0.1, 0.5]);
    expect(await set.statuses(1)).toEqual(["pending"]);
    set.boxes[0]!.answer = async () => ({ outcome: "rejected" });
    expect(await set.statuses(3), "0.1 + 0.5, and 0.5 more would be too much").toEqual(times(1, 2));
    expect(set.boxes.map(({ messages }) => messages.length)).toEqual([2, 1]);
    // The rest would pay for the cheap route, but whether that takes the message is not known before.
    expect(
      (await set.verifier.explain({ customer_uuid: set.customer, authentication_uuid: (await set.create()).authentication_uuid })).decisions,
    ).toMatchObject([{ rule: "spend 1/hour", value: 1.1 }]);
  });

  it("a rejection by the ceiling uses up no cap, and one by a cap costs nothing", async () => {
    const spend: Spend = [{ amount: 0.1, per: "hour" }];
    const set = setUpSpend(spend, [0.05], { policy: { limits: { spend, perNumber: [{ limit: 1, window: 7200 }] } } });
    const same = { phone_number: numberOf(900) };
    expect(await set.statuses(6, same), "the number's cap").toEqual(times(1, 5));
    const { authentication_uuid } = await set.create(same);
    expect(await set.why(authentication_uuid)).toMatchObject([{ rule: "perNumber 1/7200s" }]);
    expect(await set.statuses(2), "one message was left").toEqual(times(1, 1));
    const other = { phone_number: numberOf(901) };
    expect(await set.statuses(3, other)).toEqual(times(0, 3));
    set.clock.advance(1.1 * hour);
    expect(await set.statuses(1, other), "refused by the ceiling, the number has its send still").toEqual(times(1, 0));
  });

  it("the caller's spam rules come first: a flagged create is `spam_detected`, even at the ceiling, and costs nothing", async () => {
    let flag = true;
    const rule = { name: "test", judge: () => (flag ? { reason: "flagged" } : undefined) };
    const set = setUpSpend([{ amount: 0.05, per: "hour" }], [0.05], { spamRules: [rule] });
    expect(await set.statuses(2)).toEqual(["spam_detected", "spam_detected"]);
    flag = false;
    expect(await set.statuses(1)).toEqual(["pending"]);
    flag = true;
    expect(await set.statuses(1)).toEqual(["spam_detected"]);
  });

  it("Idempotency-Key: a message under one key is charged once, even for concurrent duplicates", async () => {
    for (const amount of [0.05, 0.1]) {
      const set = setUpSpend([{ amount, per: "hour" }]);
      const twins = await Promise.all(Array.from({ length: 20 }, () => set.create({}, { idempotencyKey: "k" })));
      expect(new Set(twins.map(({ authentication_uuid, status }) => `${authentication_uuid} ${status}`)).size).toBe(1);
      expect(twins[0]?.status).toBe("pending");
      expect(await set.statuses(2)).toEqual(amount === 0.1 ? times(1, 1) : times(0, 2));
      expect((await set.create({ phone_number: numberOf(70) }, { idempotencyKey: "late" })).status).toBe("rate_limited");
      set.clock.advance(hour / 12);
      expect((await set.create({ phone_number: numberOf(70) }, { idempotencyKey: "late" })).status, "the answer stays").toBe("rate_limited");
      expect(set.sent()).toBe(amount * 20);
    }
  });

  it("Idempotency-Key: once a rejected create has expired, the next message under its key is charged", async () => {
    const spend: Spend = [{ amount: 0.1, per: "hour" }];
    const set = setUpSpend(spend, [0.05], { policy: { lifetime: 10, maxGuessOdds: 1, limits: { spend, perNumber: [{ limit: 1, window: 20 }] } } });
    const number = { phone_number: numberOf(900) };
    expect(await set.statuses(1, number)).toEqual(["pending"]);
    const keyed = () => set.create(number, { idempotencyKey: "k" }).then(({ status }) => status);
    expect(await keyed()).toBe("rate_limited");
    set.clock.advance(21_000);
    expect(await keyed(), "the refusal has expired").toBe("pending");
    expect(await set.statuses(1)).toEqual(["rate_limited"]);
    expect(set.sent()).toBe(2);
  });

  it("a test number that is never sent to costs nothing", async () => {
    const testNumbers = [{ number: "+447700900123", code: "424242" }];
    const set = setUpSpend([{ amount: 0.05, per: "hour" }], [0.05], { testNumbers });
    expect(await set.statuses(1)).toEqual(["pending"]);
    expect(await set.statuses(2, { phone_number: "+447700900123" })).toEqual(times(2, 0));
    expect(await set.statuses(1)).toEqual(["rate_limited"]);
  });

  it("each customer has its own ceiling and its own spending", async () => {
    const one = setUpSpend([{ amount: 0.05, per: "hour" }]);
    const two = setUpSpend([{ amount: 0.05, per: "hour" }], [0.05], { store: one.store, clock: one.clock });
    const customers = [{ customer_uuid: randomUUID(), keys: [`pp_${randomUUID()}`], policy: { limits: { spend: [{ amount: 0.1, per: "hour" as const }] } } }];
    const three = setUp({
      store: one.store,
      clock: one.clock,
      sender: router({ clock: one.clock, routes: [{ name: "r", sender: inbox(), price: 0.05 }] }),
      customers,
    });
    expect([await one.statuses(2), await two.statuses(2)]).toEqual([times(1, 1), times(1, 1)]);
    const create = (index: number) => three.verifier.createAuthentication({ customer_uuid: customers[0]!.customer_uuid, phone_number: numberOf(index) });
    expect([(await create(1)).status, (await create(2)).status, (await create(3)).status]).toEqual(times(2, 1));
  });

  it("a message for which a custom sender gives no valid price is blocked, with an error in the log", async () => {
    let price: unknown;
    const box = inbox();
    const sender = { send: box.send.bind(box), plan: () => ({ route: "mine", price }) as never };
    const set = setUp({ sender, policy: { limits: { spend: [{ amount: 1, per: "hour" }] } } });
    for (price of [undefined, Number.NaN, -1, "0.01"]) {
      const { status, authentication_uuid } = await set.create();
      expect(status).toBe("rate_limited");
      const { decisions } = await set.verifier.explain({ customer_uuid: set.customer, authentication_uuid });
      expect(decisions).toMatchObject([{ rule: "spend 1/hour", reason: "the sender gave no price" }]);
      // The log has it at most once a minute.
      set.clock.advance(60_000);
    }
    expect(set.log.lines.filter(({ level, message }) => level === "error" && message.includes("policy.limits.spend"))).toHaveLength(4);
    price = 0.5;
    expect((await set.create()).status).toBe("pending");
    expect(box.messages).toHaveLength(1);
  });

  it("an outcome that costs more than was planned counts in full", async () => {
    const box = inbox();
    box.answer = async () => ({ outcome: "accepted", price: 0.9 });
    const sender = { send: box.send.bind(box), plan: () => ({ route: "mine", price: 0.1 }) };
    const set = setUp({ sender, policy: { limits: { spend: [{ amount: 1, per: "hour" }] } } });
    expect([(await set.create()).status, (await set.create()).status, (await set.create()).status]).toEqual(["pending", "pending", "rate_limited"]);
  });
});

describe("creating the verifier fails with a ceiling that cannot be enforced; the error names the option and the fix", () => {
  const ceiling = { limits: { spend: [{ amount: 1, per: "day" as const }] } };
  const priced = { name: "a", sender: inbox(), price: 1 };
  const cases: [what: string, options: Partial<VerifierOptions>, fault: RegExp][] = [
    [
      "a sender without prices",
      { policy: ceiling },
      /policy\.limits\.spend needs to know what a message costs: send through router\(\{ routes: \[\{ name, sender, price \}\] \}\)/,
    ],
    [
      "a route without a price",
      { policy: ceiling, sender: router({ routes: [priced, { name: "b", sender: inbox() }, { name: "c", sender: inbox(), price: { FR: 1 } }] }) },
      /policy\.limits\.spend needs a price for every message: set price of the router's "b", "c"/,
    ],
    [
      "a customer's own ceiling",
      { customers: [{ customer_uuid: randomUUID(), keys: [`pp_${randomUUID()}`], policy: ceiling }] },
      /customers\.0\.policy\.limits\.spend needs to know/,
    ],
    ["no amount", { policy: { limits: { spend: [{ amount: 0, per: "day" }] } } }, /policy\.limits\.spend\.0\.amount must be more than 0/],
    ["another length", { policy: { limits: { spend: [{ amount: 1, per: "week" as never }] } } }, /policy\.limits\.spend\.0\.per must be "hour" or "day"/],
    ["no list", { policy: { limits: { spend: { amount: 1, per: "day" } as never } } }, /policy\.limits\.spend must be a list of \{ amount, per \}/],
  ];
  it.each(cases)("%s", (_, options, fault) => {
    expect(() => setUp(options)).toThrow(fault);
  });
});
