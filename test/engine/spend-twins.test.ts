import { describe, expect, it } from "vitest";
import type { SendOutcome, SmsSender } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { faultOf, inbox, numberOf, setUp, start } from "../support/verifier.js";

const hour = 3_600_000;
const turns = async () => {
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
};

/** A verifier whose messages cost what `price` says at the time, and what was really spent. */
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
  /** Until it is mended, nothing can be charged. */
  const breakCaps = () => {
    const reserve = set.store.reserve.bind(set.store);
    set.store.reserve = () => Promise.reject(new Error("down"));
    return () => Object.assign(set.store, { reserve });
  };
  /** Holds up the next charge until it is let go. */
  const holdUpCaps = () => {
    const reserve = set.store.reserve.bind(set.store);
    let go = () => undefined as unknown;
    set.store.reserve = async (claims) => {
      set.store.reserve = reserve;
      await new Promise((resolve) => (go = () => resolve(undefined)));
      return reserve(claims);
    };
    return () => go();
  };
  return { ...set, box, state, keyed, breakCaps, holdUpCaps };
}

describe("a request under an idempotency key, and its repeats", () => {
  it("a repeat whose plan is dearer is held to the ceiling by what it costs now", async () => {
    const set = setUpSpend(0.05);
    set.state.price = 0.03;
    const mend = set.breakCaps();
    expect(await faultOf(set.keyed())).toBe("unavailable");
    mend();
    set.state.price = 1;
    expect((await set.keyed()).status).toBe("rate_limited");
    expect(set.state.spent).toBe(0);
  });

  it("those that failed in an outage are charged to the hour in which they are sent", async () => {
    const set = setUpSpend(0.5);
    const mend = set.breakCaps();
    for (let number = 0; number < 10; number++) expect(await faultOf(set.keyed(number))).toBe("unavailable");
    mend();
    set.clock.advance(2 * hour);
    const statuses = [];
    for (let number = 0; number < 10; number++) statuses.push((await set.keyed(number)).status);
    expect(statuses).toEqual(Array(10).fill("pending"));
    expect((await set.create({ phone_number: numberOf(50) })).status).toBe("rate_limited");
  });

  it("a key that is used again once its authentication is forgotten pays again", async () => {
    const set = setUpSpend(0.05);
    expect((await set.keyed()).status).toBe("pending");
    set.clock.advance((86_400 + 600) * 1000 + 1);
    expect((await set.keyed()).status).toBe("pending");
    expect((await set.create({ phone_number: numberOf(2) })).status).toBe("rate_limited");
  });

  it("a twin that loses to a refusal gives back what it held", async () => {
    let flag = true;
    const set = setUpSpend(0.1, {
      spamRules: [{ name: "t", judge: () => (flag ? { reason: "x" } : undefined) }],
      policy: { limits: { spend: [{ amount: 0.1, per: "hour" }] } },
    });
    const count = set.store.count.bind(set.store);
    let go = () => undefined as unknown;
    set.store.count = async (windows) => {
      await new Promise((resolve) => (go = () => resolve(undefined)));
      return count(windows);
    };
    const flagged = set.keyed();
    await turns();
    flag = false;
    const letGo = set.holdUpCaps();
    const other = set.keyed();
    await turns();
    go();
    expect((await flagged).status).toBe("spam_detected");
    letGo();
    expect((await other).status).toBe("spam_detected");
    const left = [];
    for (let number = 3; number < 6; number++) left.push((await set.create({ phone_number: numberOf(number) })).status);
    expect(left).toEqual(["pending", "pending", "rate_limited"]);
  });

  it("a twin that comes to hold after the winner was rejected holds for nobody", async () => {
    const set = setUpSpend(0.05);
    set.box.answer = async () => ({ outcome: "rejected" });
    const swap = set.store.compareAndSwap.bind(set.store);
    let go = () => undefined as unknown;
    let planned = 0;
    set.store.compareAndSwap = async (next, expected) => {
      const result = await swap(next, expected);
      if (next.customer === set.customer && expected === null && ++planned === 2) await new Promise((resolve) => (go = () => resolve(undefined)));
      return result;
    };
    const [one, two] = [set.keyed(), set.keyed()];
    expect((await one).status).toBe("pending");
    go();
    expect((await two).status).toBe("pending");
    set.box.answer = async () => ({ outcome: "accepted" });
    expect((await set.create({ phone_number: numberOf(3) })).status, "nothing is spent").toBe("pending");
  });
});

describe("what is held and what it costs in the end", () => {
  it("is given back also where the store has used up the request's time", async () => {
    const set = setUpSpend(0.5);
    const reserve = set.store.reserve.bind(set.store);
    set.store.reserve = () => new Promise(() => undefined);
    const asked = Array.from({ length: 10 }, (_, number) => faultOf(set.create({ phone_number: numberOf(number) })));
    await turns();
    set.clock.advance(2000);
    expect(new Set(await Promise.all(asked))).toEqual(new Set(["unavailable"]));
    set.store.reserve = reserve;
    await turns();
    expect((await set.create({ phone_number: numberOf(50) })).status).toBe("pending");
  });

  it("a plan that costs nothing, and an answer that costs: counted in full", async () => {
    const box = inbox();
    box.answer = async () => ({ outcome: "accepted", price: 5 });
    const sender = { send: box.send.bind(box), plan: () => ({ route: "mine", price: 0 }) };
    const set = setUp({ sender, policy: { limits: { spend: [{ amount: 1, per: "hour" }] } } });
    expect([(await set.create()).status, (await set.create()).status]).toEqual(["pending", "rate_limited"]);
  });

  it("a failover never leads to a route for which too little is held, though it matched too late to be planned for", async () => {
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
    const swap = set.store.compareAndSwap.bind(set.store);
    set.store.compareAndSwap = async (next, expected) => {
      if (next.customer === set.customer) known = true;
      return swap(next, expected);
    };
    await set.create();
    expect([cheap.messages.length, dear.messages.length]).toEqual([1, 0]);
  });
});
