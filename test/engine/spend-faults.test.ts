import { describe, expect, it } from "vitest";
import type { SendOutcome, SmsSender } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { errorCode, inbox, numberOf, setUp, start } from "../support/verifier.js";

const hour = 3_600_000;

/** A verifier whose messages cost the current `price`, and the sum that was really spent. */
function setUpSpend(amount: number, options: Parameters<typeof setUp>[0] = {}) {
  const state = { price: 0.05, spent: 0 };
  const box = inbox();
  const sender: SmsSender = {
    plan: () => ({ route: "r", price: state.price }),
    async send(message, context) {
      const outcome = await box.send(message, context);
      if (outcome.outcome !== "rejected") state.spent += state.price;
      return outcome;
    },
  };
  const set = setUp({ sender, policy: { limits: { spend: [{ amount, per: "hour" }] } }, ...options });
  const keyed = (number = 1, key = `k${number}`) => set.create({ phone_number: numberOf(number) }, { idempotencyKey: key });
  const breakStore = () => {
    const { commit } = set.store;
    set.store.commit = () => Promise.reject(new Error("down"));
    return () => Object.assign(set.store, { commit });
  };
  return { ...set, box, state, keyed, breakStore };
}

describe("the spend ceiling when something fails", () => {
  it("a create repeated under its key after a 503 counts at its current, higher price", async () => {
    const set = setUpSpend(0.05);
    set.state.price = 0.03;
    const fix = set.breakStore();
    expect(await errorCode(set.keyed())).toBe("unavailable");
    fix();
    set.state.price = 1;
    expect((await set.keyed()).status).toBe("rate_limited");
    expect(set.state.spent).toBe(0);
  });

  it("creates that failed in an outage are charged to the hour in which they are sent", async () => {
    const set = setUpSpend(0.5);
    const fix = set.breakStore();
    for (let number = 0; number < 10; number++) expect(await errorCode(set.keyed(number))).toBe("unavailable");
    fix();
    set.clock.advance(2 * hour);
    const statuses = [];
    for (let number = 0; number < 10; number++) statuses.push((await set.keyed(number)).status);
    expect(statuses).toEqual(Array(10).fill("pending"));
    expect((await set.create({ phone_number: numberOf(50) })).status).toBe("rate_limited");
  });

  it("a key reused after its authentication was deleted is charged again", async () => {
    const set = setUpSpend(0.05);
    expect((await set.keyed()).status).toBe("pending");
    set.clock.advance((86_400 + 600) * 1000 + 1);
    expect((await set.keyed()).status).toBe("pending");
    expect((await set.create({ phone_number: numberOf(2) })).status).toBe("rate_limited");
  });

  it("an outcome with a price counts in full, even if the planned price was 0", async () => {
    const box = inbox();
    box.answer = async () => ({ outcome: "accepted", price: 5 });
    const sender = { send: box.send.bind(box), plan: () => ({ route: "mine", price: 0 }) };
    const set = setUp({ sender, policy: { limits: { spend: [{ amount: 1, per: "hour" }] } } });
    expect([(await set.create()).status, (await set.create()).status]).toEqual(["pending", "rate_limited"]);
  });

  it("a failover skips a route that matches only after planning, and costs more than was reserved", async () => {
    let known = false;
    const [cheap, dear] = [inbox(), inbox()];
    cheap.answer = async (): Promise<SendOutcome> => ({ outcome: "rejected" });
    const clock = fixedClock(start);
    const sender = router({
      clock,
      network: () => (known ? { mcc: "208", mnc: "01" } : undefined),
      routes: [
        { name: "cheap", sender: cheap, price: 0.03 },
        { name: "dear", sender: dear, price: 1, networks: ["208-01"], priority: 2 },
      ],
    });
    const set = setUp({ clock, sender, policy: { limits: { spend: [{ amount: 0.05, per: "hour" }] } } });
    const commit = set.store.commit.bind(set.store);
    set.store.commit = async (change) => {
      known = true;
      return commit(change);
    };
    await set.create();
    expect([cheap.messages.length, dear.messages.length]).toEqual([1, 0]);
  });

  it("a ceiling adds no round trip to create and retry", async () => {
    const counted = async (amount?: number) => {
      const set = amount === undefined ? setUp() : setUpSpend(amount);
      const calls: string[] = [];
      for (const method of ["find", "commit"] as const) {
        const whole = set.store[method].bind(set.store) as (...args: unknown[]) => Promise<unknown>;
        Object.assign(set.store, {
          [method](...args: unknown[]) {
            calls.push(method);
            return whole(...args);
          },
        });
      }
      const { authentication_uuid } = await set.create();
      set.clock.advance(30_000);
      await set.retry(authentication_uuid);
      return calls;
    };
    expect(await counted(10)).toEqual(await counted());
    expect((await counted()).length).toBeLessThanOrEqual(3);
  });
});
