import { describe, expect, it } from "vitest";
import type { CodeMessage } from "../../src/index.js";
import { type Router, router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/index.js";
import { PlainStore } from "../store/plain-store.js";
import { start } from "../support/verifier.js";
import { ending, pass, postReceipt, receipts, rigged, type Service, sender, service, turns, wide } from "./kit.js";

/** A number in [0, 1) for each call, the same in every run. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

interface World {
  readonly clock: ReturnType<typeof fixedClock>;
  readonly store: ReturnType<typeof rigged>;
  readonly all: readonly (Service & { readonly router: Router })[];
  readonly messages: CodeMessage[];
  readonly draw: () => number;
}

/** Processes with a router each, which share what they know over one store. */
function world(processes: number, names: readonly string[], options: { readonly shared?: boolean } = {}): World {
  const clock = fixedClock(start);
  const store = rigged(new PlainStore());
  const draw = chance(processes);
  const messages: CodeMessage[] = [];
  const quiet = { info() {}, warn() {}, error() {} };
  const makeRouter = () => {
    const out = (name: string) => {
      const one = sender();
      one.answer = async (message) => {
        messages.push(message);
        return { outcome: "accepted", messageId: `${name}/${message.idempotency_key}` };
      };
      return one;
    };
    return router({
      routes: names.map((name) => ({ name, sender: out(name) })),
      clock,
      random: draw,
      logger: quiet,
      ...(options.shared !== false && { store }),
    });
  };
  const policy = {
    limits: {
      ...wide,
      perNumber: [
        { limit: 20, window: 600 },
        { limit: 20, window: 86_400 },
      ],
    },
  };
  const firstRouter = makeRouter();
  const first = { ...service({ clock, store, policy, receipts, sender: firstRouter as never }), router: firstRouter };
  const rest = Array.from({ length: processes - 1 }, () => {
    const own = makeRouter();
    return { ...service({ clock, store, policy, receipts, sender: own as never, customer: first.customer }), router: own };
  });
  return { clock, store, all: [first, ...rest], messages, draw };
}

/**
 * Lets messages settle; then each process sends three more, from which it learns what the others know.
 * These count as handed over, but not yet for conversion.
 */
async function settle({ clock, all }: Pick<World, "clock" | "all">): Promise<void> {
  await pass(clock, 200_000, 1_000);
  for (let round = 0; round < 3; round++) {
    for (const [i, one] of all.entries()) await one.create(800_000 + round * 1_000 + i);
    await pass(clock, 3_000, 500);
  }
}

/** What the processes report of each route: the mean and lowest conversion, the lowest and highest count. */
function told({ all }: World): Record<string, { conversion: number; least: number; all: number; most: number }> {
  const names = new Set(all.flatMap(({ router: own }) => own.health().map(({ route }) => route)));
  return Object.fromEntries(
    [...names].map((name) => {
      const rows = all.map(({ router: own }) =>
        own
          .health()
          .filter(({ route }) => route === name)
          .reduce((sum, { conversion }) => ({ good: sum.good + conversion.good, all: sum.all + conversion.all }), { good: 0, all: 0 }),
      );
      const shares = rows.map(({ good, all: count }) => good / count);
      return [
        name,
        {
          conversion: shares.reduce((a, b) => a + b, 0) / rows.length,
          least: Math.min(...shares),
          all: Math.min(...rows.map((row) => row.all)),
          most: Math.max(...rows.map((row) => row.all)),
        },
      ];
    }),
  );
}

/**
 * Each process sends `each` messages every two seconds. Some seconds later any process checks the right code, with the
 * probability `converts`.
 */
async function traffic(
  made: World,
  { seconds, each, converts }: { readonly seconds: number; readonly each: number; readonly converts: (route: string) => number },
): Promise<void> {
  let number = 0;
  for (let at = 0; at < seconds; at += 2) {
    for (const one of made.all) {
      for (let i = 0; i < each; i++) {
        const before = made.messages.length;
        const { authentication_uuid: id } = await one.create(number++);
        const message = made.messages[before] as CodeMessage;
        const other = made.all[Math.floor(made.draw() * made.all.length)] as Service;
        if (made.draw() < converts(message.planned_route ?? ""))
          made.clock.after(2_000 + made.draw() * 25_000, () => void ending(other.check(id, message.code)));
      }
    }
    made.clock.advance(2_000);
    await turns(6);
  }
}

describe("route health across many processes", () => {
  it("is accurate: 40 processes with 3 messages each per two seconds know all traffic and its conversion", async () => {
    const made = world(40, ["a"]);
    await traffic(made, { seconds: 60, each: 3, converts: () => 1 });
    await settle(made);
    const { a } = told(made);
    expect(a?.conversion).toBeGreaterThan(0.99);
    expect(a?.least).toBeGreaterThan(0.99);
    expect(a?.all).toBeGreaterThan(0.95 * 3_600);
    expect(a?.most).toBeLessThanOrEqual(3_600);
  });

  it("distinguishes a good route from a bad one in every process", async () => {
    const made = world(10, ["good", "bad"]);
    await traffic(made, { seconds: 40, each: 3, converts: (route) => (route === "good" ? 0.9 : 0.5) });
    await settle(made);
    const { good, bad } = told(made);
    expect(good?.conversion).toBeGreaterThan(0.84);
    expect(good?.conversion).toBeLessThan(0.96);
    expect(bad?.conversion).toBeGreaterThan(0.4);
    expect(bad?.conversion).toBeLessThan(0.6);
    for (const { router: own } of made.all) expect(own.health().find(({ route }) => route === "bad")?.health).toBeLessThan(1);
  });

  it("costs the store in proportion to the number of processes, not to its square", async () => {
    const cost = async (processes: number) => {
      const made = world(processes, ["a", "b"]);
      await traffic(made, { seconds: 20, each: 2, converts: () => 1 });
      const tallies = made.store.calls.filter(({ method }) => method === "tally");
      const values = tallies.reduce((sum, { args: [adds, reads] }) => sum + (adds as unknown[]).length + (reads as unknown[]).length, 0);
      return { calls: tallies.length, values };
    };
    const [ten, forty] = [await cost(10), await cost(40)];
    // At most one exchange per process every 2 s for 20 s, and one more at either end.
    expect(ten.calls).toBeLessThanOrEqual(10 * 12);
    expect(forty.calls).toBeLessThanOrEqual(40 * 12);
    expect(forty.values / 40).toBeLessThan(1.5 * (ten.values / 10));
  });

  it("does not hold up requests: a store whose tally hangs or fails delays no message and hardly changes conversion", async () => {
    for (const fate of ["silent", "refused", "lost", "held", "deaf"] as const) {
      const made = world(4, ["a"]);
      await traffic(made, { seconds: 6, each: 4, converts: () => 1 });
      made.store.fate = (method) => (method === "tally" ? fate : "done");
      await traffic(made, { seconds: 8, each: 4, converts: () => 1 });
      made.store.fate = () => "done";
      await made.store.release();
      await settle(made);
      const { a } = told(made);
      expect(made.messages).toHaveLength(4 * 4 * 7 + 12);
      // The counts of a call without a response may be lost or count twice; shares stay as they are.
      expect(a?.conversion, fate).toBeGreaterThan(0.9);
      expect(a?.conversion, fate).toBeLessThanOrEqual(1);
      expect(a?.all, fate).toBeGreaterThanOrEqual(48);
      for (const { log } of made.all) expect(log.filter(({ message }) => message.includes("503"))).toEqual([]);
    }
  });

  it("does not stop messages when the store returns invalid counts", async () => {
    for (const answer of [[], [Number.NaN], ["1"], null, undefined, {}, [-5], [1e308]]) {
      const made = world(1, ["a", "b"]);
      made.store.tally = (async () => answer) as never;
      await traffic(made, { seconds: 10, each: 3, converts: () => 1 });
      await settle(made);
      expect(made.messages).toHaveLength(18);
      expect(await ending((made.all[0] as Service).create(99_000))).toBe("pending");
    }
  });

  it("counts a message once, however often its code is checked and its receipt posted", async () => {
    const made = world(3, ["a"]);
    for (let i = 0; i < 30; i++) {
      const one = made.all[i % 3] as Service;
      const { authentication_uuid: id } = await one.create(i);
      const message = made.messages.at(-1) as CodeMessage;
      for (const other of made.all) for (let n = 0; n < 3; n++) await ending(other.check(id, message.code, { idempotencyKey: "c" }));
      for (const other of made.all) for (let n = 0; n < 2; n++) await postReceipt(other.verifier, message, "delivered");
    }
    await settle(made);
    for (const { router: own } of made.all) {
      const [row] = own.health();
      expect(row).toMatchObject({ conversion: { good: 30, all: 30 }, receipts: { good: 30, all: 30 } });
      expect(row?.handOver.all).toBeLessThanOrEqual(30 + 9);
    }
  });

  it("counts no more than one message per retried authentication for conversion", async () => {
    const made = world(2, ["a"]);
    for (let i = 0; i < 20; i++) {
      const one = made.all[i % 2] as Service;
      const { authentication_uuid: id } = await one.create(i);
      made.clock.advance(31_000);
      await one.retry(id);
      expect(await ending(one.check(id, (made.messages.at(-1) as CodeMessage).code))).toBe("valid");
    }
    await settle(made);
    const { a } = told(made);
    expect(a?.most).toBeLessThanOrEqual(20);
  });

  it("updates an idle process at its next message, and costs idle processes at most one store call every two seconds", async () => {
    const made = world(2, ["good", "bad"]);
    const [busy, idle] = made.all as [Service & { router: Router }, Service & { router: Router }];
    await traffic({ ...made, all: [busy] }, { seconds: 60, each: 6, converts: (route) => (route === "good" ? 1 : 0.2) });
    await pass(made.clock, 120_000, 1_000);
    // Its first message asks the store, and then it knows.
    await idle.create(90_000);
    await pass(made.clock, 10_000, 1_000);
    expect(idle.router.health().find(({ route }) => route === "bad")?.conversion.all).toBeGreaterThan(40);
    await pass(made.clock, 8 * 3_600_000, 60_000);
    const calls = made.store.count("tally");
    await pass(made.clock, 3_600_000, 30_000);
    // An hour in which nothing happens.
    expect(made.store.count("tally") - calls).toBeLessThanOrEqual(2 * 1_800);
  });

  it("counts all messages of processes whose clocks are some seconds apart", async () => {
    const clock = fixedClock(start);
    const store = new PlainStore();
    const messages: CodeMessage[] = [];
    const quiet = { info() {}, warn() {}, error() {} };
    const at = (skew: number, customer?: string) => {
      const own = { ...clock, now: () => clock.now() + skew };
      const out = sender();
      out.answer = async (message) => {
        messages.push(message);
        return { outcome: "accepted" };
      };
      const routed = router({ routes: [{ name: "a", sender: out }], clock: own, store, logger: quiet });
      return {
        ...service({ clock: own as never, store, sender: routed as never, policy: { limits: wide }, clockSkew: 5, ...(customer && { customer }) }),
        router: routed,
      };
    };
    const first = at(-4_000);
    const second = at(4_000, first.customer);
    for (let i = 0; i < 60; i++) {
      const { authentication_uuid: id } = await (i % 2 ? first : second).create(i);
      await (i % 2 ? second : first).check(id, (messages.at(-1) as CodeMessage).code);
      clock.advance(1_000);
      await turns(3);
    }
    await settle({ clock, all: [first, second] });
    for (const { router: own } of [first, second]) expect(own.health()[0]).toMatchObject({ conversion: { good: 60, all: 60 } });
  });
});

describe("without a store", () => {
  it("each process knows only the messages that it sent itself", async () => {
    const made = world(2, ["a"], { shared: false });
    for (let i = 0; i < 30; i++) {
      const one = made.all[0] as Service;
      const { authentication_uuid: id } = await one.create(i);
      await one.check(id, (made.messages.at(-1) as CodeMessage).code);
    }
    await pass(made.clock, 100_000, 1_000);
    expect(made.all[0]?.router.health()[0]).toMatchObject({ conversion: { good: 30, all: 30 } });
    expect(made.all[1]?.router.health()).toEqual([]);
    expect(made.store.count("tally")).toBe(0);
  });
});
