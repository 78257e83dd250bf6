import { describe, expect, it } from "vitest";
import type { CodeMessage, SendOutcome } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/index.js";
import { BoundedStore, type PlainStore, TwoStepStore } from "../store/plain-store.js";
import { start } from "../support/verifier.js";
import { drive, ending, type Fate, fates, pass, rigged, type Sender, sender, service, tallied, turns, wide } from "./kit.js";

type Store = PlainStore | ReturnType<typeof rigged>;

/** Processes of one customer with a ceiling, which share a store, a clock and a carrier. */
function under(amount: number, options: { readonly store?: Store; readonly count?: number; readonly sender?: Sender; readonly per?: "hour" | "day" } = {}) {
  const { store = new BoundedStore(), count = 2, per = "day" } = options;
  const clock = fixedClock(start);
  const out = options.sender ?? priced();
  const policy = {
    limits: {
      ...wide,
      perNumber: [
        { limit: 20, window: 600 },
        { limit: 20, window: 86_400 },
      ],
      spend: [{ amount, per }],
    },
  };
  const first = service({ store, clock, sender: out, policy });
  const all = [first, ...Array.from({ length: count - 1 }, () => service({ store, clock, sender: out, policy, customer: first.customer }))];
  return { clock, store, sender: out, all, at: (i: number) => all[i % count] as typeof first };
}

/** A carrier whose messages cost `plan` at most. */
function priced(plan = 1): Sender & { price: unknown } {
  const one = { ...sender(), price: plan as unknown, plan: () => ({ route: "only", price: one.price as number }) };
  return one;
}

/** A number in [0, 1) for each call, the same in every run. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Spends in steps of `step` until a create is rejected; returns how much was spent. */
async function spendTheRest(group: ReturnType<typeof under>, step: number, from = 50_000): Promise<number> {
  const carrier = group.sender as ReturnType<typeof priced>;
  carrier.price = step;
  carrier.answer = async () => ({ outcome: "accepted" });
  let spent = 0;
  for (let i = 0; ; i++) {
    const how = await drive(group.clock, ending(group.at(i).create(from + i)), 10);
    if (how !== "pending") {
      expect(how).toBe("rate_limited");
      return spent;
    }
    spent += step;
  }
}

/** What carriers do, and what it costs if the planned price is 1. */
const outcomes: readonly [(message: CodeMessage) => Promise<SendOutcome>, number][] = [
  [async () => ({ outcome: "accepted" }), 1],
  [async () => ({ outcome: "accepted", price: 0.25 }), 0.25],
  [async () => ({ outcome: "accepted", price: 0 }), 0],
  [async () => ({ outcome: "rejected" }), 0],
  [async () => ({ outcome: "unknown" }), 1],
  [async () => ({ outcome: "unknown", price: 0.5 }), 0.5],
  [() => Promise.reject(new Error("socket hang up")), 1],
  [() => Promise.reject(Object.assign(new Error("no credit"), { outcome: "rejected" })), 0],
  [
    () => {
      throw new Error("thrown at once");
    },
    1,
  ],
  [async () => "nonsense" as never, 1],
  [() => new Promise(() => {}), 1],
];

describe("a spend ceiling under concurrency", () => {
  it.each([
    ["one step", () => new BoundedStore()],
    ["two steps", () => new TwoStepStore()],
  ])("4 processes count exactly what was paid, to the quarter (a store of %s)", async (_, open) => {
    for (const seed of [1, 2, 3]) {
      const group = under(100, { store: open(), count: 4 });
      const draw = chance(seed);
      let paid = 0;
      let calls = 0;
      group.sender.answer = (message) => {
        calls++;
        const [answer, cost] = outcomes[Math.floor(draw() * outcomes.length)] as (typeof outcomes)[number];
        paid += cost;
        return answer(message);
      };
      const endings = await drive(group.clock, Promise.all(Array.from({ length: 400 }, (_, i) => ending(group.at(i).create(i)))));
      expect(new Set([...endings, "pending", "rate_limited"])).toEqual(new Set(["pending", "rate_limited"]));
      expect(tallied(endings)["pending"]).toBe(calls);
      expect(paid).toBeLessThanOrEqual(100);
      expect(calls).toBeGreaterThanOrEqual(100 - 8);
      await pass(group.clock, 20_000);
      expect(await spendTheRest(group, 0.25)).toBe(100 - paid);
    }
  });

  it("counts exactly what was paid for retries that are rejected, thrown, expensive or cheap", async () => {
    const group = under(60, { count: 2 });
    const draw = chance(7);
    let paid = 0;
    group.sender.answer = (message) => {
      const [answer, cost] = outcomes[Math.floor(draw() * outcomes.length)] as (typeof outcomes)[number];
      paid += cost;
      return answer(message);
    };
    const created = await drive(group.clock, Promise.all(Array.from({ length: 30 }, (_, i) => group.at(i).create(i))));
    for (let round = 0; round < 3; round++) {
      await pass(group.clock, 130_000, 5_000);
      // Both processes request the same retry.
      await drive(group.clock, Promise.all(created.flatMap(({ authentication_uuid: id }) => [ending(group.at(0).retry(id)), ending(group.at(1).retry(id))])));
    }
    await pass(group.clock, 20_000);
    expect(paid).toBeLessThanOrEqual(60);
    expect(await spendTheRest(group, 0.25)).toBe(60 - paid);
  });

  it("rejects a message with an invalid planned price, and counts nothing", async () => {
    for (const price of [Number.NaN, -1, Number.POSITIVE_INFINITY, "1", null, undefined, {}, 1e18]) {
      const group = under(10);
      (group.sender as ReturnType<typeof priced>).price = price;
      expect(await ending(group.at(0).create(1)), String(price)).toBe("rate_limited");
      expect(group.sender.messages).toEqual([]);
      expect(await spendTheRest(group, 1)).toBe(10);
    }
  });

  it("never gives back more than was claimed for an invalid price in the outcome", async () => {
    for (const price of [Number.NaN, -5, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, "0", null, {}, 50]) {
      const group = under(10);
      group.sender.answer = async () => ({ outcome: "accepted", price: price as number });
      expect(await ending(group.at(0).create(1)), String(price)).toBe("pending");
      expect(await spendTheRest(group, 1), String(price)).toBeLessThanOrEqual(price === "0" || price === null ? 10 : 9);
    }
  });

  it("is not charged for requests rejected by a cap, a spam rule, an error or another ceiling", async () => {
    const store = new BoundedStore();
    const out = priced();
    const one = service({
      store,
      sender: out,
      policy: {
        limits: {
          ...wide,
          perDevice: [{ limit: 1, window: 3600 }],
          spend: [
            { amount: 3, per: "hour" },
            { amount: 4, per: "day" },
          ],
        },
      },
      spamRules: [{ name: "mine", judge: ({ device_model }) => (device_model === "spam" ? { reason: "mine" } : undefined) }],
    });
    const at = (number: number, fields: Record<string, unknown> = {}) => ending(one.create(number, fields));
    expect(await at(1, { device_id: "a" })).toBe("pending");
    for (let i = 0; i < 20; i++) {
      expect(await at(2, { device_id: "a" })).toBe("rate_limited");
      expect(await at(3, { device_model: "spam" })).toBe("spam_detected");
      expect(await at("+33" as never)).toBe("invalid_phone_number");
      expect(await at(3, { ip: "nowhere" })).toBe("bad_request");
    }
    expect([await at(4), await at(5), await at(6), await at(7)]).toEqual(["pending", "pending", "rate_limited", "rate_limited"]);
    one.clock.advance(2 * 3_600_000);
    // One message is left for the day, whatever was rejected before.
    expect([await at(8), await at(9), await at(10)]).toEqual(["pending", "rate_limited", "rate_limited"]);
    one.clock.advance(26 * 3_600_000);
    expect([await at(8), await at(9), await at(10), await at(11)]).toEqual(["pending", "pending", "pending", "rate_limited"]);
  });

  it("an hourly ceiling holds in every window of an hour, over most of a day of mixed traffic", async () => {
    const group = under(20, { per: "hour", count: 3 });
    const draw = chance(11);
    const bills: { at: number; cost: number }[] = [];
    group.sender.answer = async (message) => {
      const [answer, cost] = outcomes[Math.floor(draw() * 10)] as (typeof outcomes)[number]; // all but the one that hangs
      bills.push({ at: group.clock.now(), cost });
      return answer(message);
    };
    let refused = 0;
    for (let i = 0; i < 2_000; i++) {
      if ((await ending(group.at(i).create(i))) === "rate_limited") refused++;
      group.clock.advance(Math.floor(draw() * 80_000));
    }
    for (const { at } of bills) {
      const paid = bills.filter((bill) => bill.at > at - 3_600_000 && bill.at <= at).reduce((sum, { cost }) => sum + cost, 0);
      expect(paid).toBeLessThanOrEqual(20);
    }
    // It rejects little more than necessary: 20 an hour at about 0.42 each is 47 sends; 90 an hour were requested.
    expect(refused).toBeGreaterThan(100);
    expect(bills.length).toBeGreaterThan(700);
  });

  it("one customer's ceiling does not affect another's", async () => {
    const store = new BoundedStore();
    const a = service({ store, sender: priced(), policy: { limits: { ...wide, spend: [{ amount: 2, per: "day" }] } } });
    const b = service({ store, sender: priced(), policy: { limits: { ...wide, spend: [{ amount: 2, per: "day" }] } } });
    const endings: string[] = [];
    for (let i = 0; i < 3; i++) endings.push(await ending(a.create(i)), await ending(b.create(i)));
    expect(endings).toEqual(["pending", "pending", "pending", "pending", "rate_limited", "rate_limited"]);
  });
});

describe("a spend ceiling with a router that fails over", () => {
  it.each([false, true])("afterUnknown %s: two processes with 300 concurrent creates count exactly what was paid", async (afterUnknown) => {
    for (const seed of [3, 5]) {
      const draw = chance(seed);
      let paid = 0;
      let all: "free" | "last" = "free";
      const carrier = (price: number) => {
        const one = sender();
        one.answer = async () => {
          const at = all === "last" ? 0 : draw();
          if (at < 0.4) {
            paid += price;
            return { outcome: "accepted" };
          }
          if (at < 0.7) return { outcome: "rejected" };
          paid += price;
          if (at < 0.85) return { outcome: "unknown" };
          throw new Error("socket hang up");
        };
        return one;
      };
      const prices = [0.25, 0.5, 0.75];
      const clock = fixedClock(start);
      const store = new BoundedStore();
      const policy = { limits: { ...wide, spend: [{ amount: 90, per: "day" as const }] } };
      const makeRouter = () =>
        router({
          routes: prices.map((price, i) => ({ name: `r${i}`, sender: carrier(price), price, priority: i })),
          failover: { afterUnknown },
          clock,
          random: draw,
        });
      const first = service({ store, clock, policy, sender: makeRouter() as never });
      const second = service({ store, clock, policy, sender: makeRouter() as never, customer: first.customer });
      const endings = await drive(clock, Promise.all(Array.from({ length: 300 }, (_, i) => ending((i % 2 ? first : second).create(i)))));
      expect(new Set([...endings, "pending", "rate_limited"])).toEqual(new Set(["pending", "rate_limited"]));
      expect(paid).toBeLessThanOrEqual(90);
      await pass(clock, 20_000);
      // A third process, with one route at 0.25, spends the rest.
      all = "last";
      const before = paid;
      const third = service({
        store,
        clock,
        policy,
        sender: router({ routes: [{ name: "r0", sender: carrier(0.25), price: 0.25 }], clock }) as never,
        customer: first.customer,
      });
      let more = 0;
      while ((await ending(third.create(60_000 + more))) === "pending") more++;
      expect(before + more * 0.25).toBe(90);
    }
  });
});

describe("a spend ceiling with a store that fails", () => {
  it.each(fates)("if some creates' commits are %s, nothing is overspent, and everything unpaid can still be spent", async (fate) => {
    const store = rigged(new BoundedStore());
    const group = under(50, { store, count: 2 });
    const draw = chance(13);
    let paid = 0;
    group.sender.answer = async () => {
      paid += 1;
      return { outcome: "accepted" };
    };
    // Only commits before a message fail; the next test also covers those that settle it.
    store.fate = (method, [change]): Fate => {
      const { record, expected = null } = (change ?? {}) as { record?: unknown; expected?: string | null };
      return method === "commit" && record && expected === null && draw() < 0.3 ? fate : "done";
    };
    const endings: string[] = [];
    for (let i = 0; i < 10; i++)
      endings.push(...(await drive(group.clock, Promise.all(Array.from({ length: 6 }, (_, n) => ending(group.at(n).create(10 * i + n)))))));
    store.fate = () => "done";
    await store.release();
    await pass(group.clock, 60_000);
    expect(tallied(endings)["unavailable"]).toBeGreaterThan(3);
    expect(paid).toBe(group.sender.messages.length);
    expect(await spendTheRest(group, 1)).toBe(50 - paid);
  });

  it.each(fates)("if any commits are %s, first or settling ones, it is never overspent", async (fate) => {
    const store = rigged(new BoundedStore());
    const group = under(30, { store, count: 3 });
    const draw = chance(17);
    let paid = 0;
    group.sender.answer = (message) => {
      const [answer, cost] = outcomes[Math.floor(draw() * 9)] as (typeof outcomes)[number];
      paid += cost;
      return answer(message);
    };
    store.fate = (method) => (method === "commit" && draw() < 0.3 ? fate : "done");
    for (let i = 0; i < 12; i++) {
      await drive(group.clock, Promise.all(Array.from({ length: 10 }, (_, n) => ending(group.at(n).create(20 * i + n)))));
      await store.release();
    }
    store.fate = () => "done";
    await store.release();
    await pass(group.clock, 60_000);
    expect(paid).toBeLessThanOrEqual(30);
    expect(await spendTheRest(group, 0.25)).toBeLessThanOrEqual(30 - paid);
  });
});

describe("a spend ceiling, whatever happens to the first three commits", () => {
  const each = ["done", "refused", "lost", "silent"] as const satisfies readonly Fate[];
  const carriers: Record<string, readonly [() => Promise<SendOutcome>, number]> = {
    accepts: [async () => ({ outcome: "accepted" }), 1],
    rejects: [async () => ({ outcome: "rejected" }), 0],
  };

  /** Of a ceiling of 7, spends 3 and requests 1 under these fates. Returns what can still be spent, and what should. */
  async function leftAfter(
    operation: "create" | "keyed create" | "retry",
    carrier: string,
    commits: readonly Fate[],
  ): Promise<{ left: number; right: number; how: string }> {
    const store = rigged(new BoundedStore());
    const group = under(7, { store, count: 1 });
    const one = group.at(0);
    const created = [await one.create(1), await one.create(2), await one.create(3)];
    group.clock.advance(31_000);
    const [answer, cost] = carriers[carrier] as (typeof carriers)[string];
    group.sender.answer = answer;
    const sent = group.sender.messages.length;
    let n = 0;
    store.fate = (method) => (method === "commit" ? (commits[n++] ?? "done") : "done");
    const how = await drive(
      group.clock,
      ending(
        operation === "retry" ? one.retry(created[0]?.authentication_uuid ?? "") : one.create(4, {}, operation === "create" ? {} : { idempotencyKey: "k" }),
      ),
      250,
    );
    await pass(group.clock, 5_000, 1_000);
    await store.release();
    await pass(group.clock, 60_000, 2_000);
    store.fate = () => "done";
    await store.release();
    await turns();
    const right = 7 - 3 - (group.sender.messages.length - sent) * cost;
    return { left: await spendTheRest(group, 1), right, how };
  }

  describe.each(["create", "keyed create", "retry"] as const)("of a %s", (operation) => {
    it.each(Object.keys(carriers))("gives back nothing that was paid, if its carrier %s", async (carrier) => {
      const wrong: string[] = [];
      for (const a of each)
        for (const b of each)
          for (const c of each) {
            const { left, right } = await leftAfter(operation, carrier, [a, b, c]);
            if (left > right) wrong.push(`${a}, ${b}, ${c}: ${left} can be spent, ${right} is left`);
          }
      expect(wrong).toEqual([]);
    });

    it("gives back everything if it returns 503", async () => {
      const wrong: string[] = [];
      for (const a of each.slice(1))
        for (const b of each)
          for (const c of each) {
            const { left, right, how } = await leftAfter(operation, "accepts", [a, b, c]);
            if (how === "unavailable" && left < right) wrong.push(`${a}, ${b}, ${c}: ${left} can be spent, ${right} is left`);
          }
      expect(wrong).toEqual([]);
    });
  });
});

/** A store whose reads take `ms` of real time, and whose commits take twice that. */
function slow(inner: PlainStore, ms: () => number): PlainStore & { commits: number; finds: number } {
  const wait = () => new Promise((done) => setTimeout(done, ms()));
  const self = Object.assign(Object.create(inner) as PlainStore, { commits: 0, finds: 0 });
  self.commit = async (change) => {
    self.commits++;
    await wait();
    const result = await inner.commit(change);
    await wait();
    return result;
  };
  self.find = async (customer, id) => {
    self.finds++;
    await wait();
    return inner.find(customer, id);
  };
  return self as PlainStore & { commits: number; finds: number };
}

describe("contention", () => {
  it.each([
    [200, 4, 300],
    [300, 20, 80],
  ])("%i processes, %i ms to the store, %i creates a second: no 503, no overspending, all spent, one round trip each", async (processes, latency, rate) => {
    const seconds = 2;
    const total = rate * seconds;
    const run = async (amount: number | undefined) => {
      const store = slow(new BoundedStore(), () => (latency / 2) * (0.5 + Math.random()));
      const out = priced();
      const policy = { limits: { ...wide, ...(amount !== undefined && { spend: [{ amount, per: "day" as const }] }) } };
      const first = service({ store, clock: undefined, sender: out, policy });
      const all = [first, ...Array.from({ length: processes - 1 }, () => service({ store, clock: undefined, sender: out, policy, customer: first.customer }))];
      const began = performance.now();
      const endings = await Promise.all(
        Array.from({ length: total }, async (_, i) => {
          await new Promise((done) => setTimeout(done, began + (i * 1000) / rate - performance.now()));
          return ending((all[Math.floor(Math.random() * processes)] as typeof first).create(i));
        }),
      );
      return { endings: tallied(endings), sent: out.messages.length, commits: store.commits, finds: store.finds };
    };
    const free = await run(undefined);
    expect(free.endings).toEqual({ pending: total });
    expect(free.commits).toBe(total);
    const wideOpen = await run(total);
    expect(wideOpen.endings).toEqual({ pending: total });
    expect([wideOpen.commits, wideOpen.finds]).toEqual([free.commits, free.finds]);
    // Half of what is requested.
    const tight = await run(Math.floor(total / 2));
    expect(tight.endings).toEqual({ pending: Math.floor(total / 2), rate_limited: total - Math.floor(total / 2) });
    expect(tight.sent).toBe(Math.floor(total / 2));
  });

  it("a thousand concurrent creates by 100 processes for one customer send exactly the ceiling", async () => {
    const store = slow(new BoundedStore(), () => Math.random() * 10);
    const out = priced();
    const policy = {
      limits: {
        ...wide,
        spend: [
          { amount: 100, per: "hour" as const },
          { amount: 150, per: "day" as const },
        ],
      },
    };
    const first = service({ store, clock: undefined, sender: out, policy });
    const all = [first, ...Array.from({ length: 99 }, () => service({ store, clock: undefined, sender: out, policy, customer: first.customer }))];
    const endings = await Promise.all(Array.from({ length: 1_000 }, (_, i) => ending((all[i % 100] as typeof first).create(i))));
    expect(tallied(endings)).toEqual({ pending: 100, rate_limited: 900 });
    await turns();
    expect(out.messages).toHaveLength(100);
  });
});
