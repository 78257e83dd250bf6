import { randomUUID } from "node:crypto";
import { createClient } from "redis";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import type { Store } from "../../src/ports/store.js";
import { healthBook } from "../../src/routing/health-book.js";
import { type Router, router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { redisIsInstalled, startRedis } from "../support/redis.js";
import { logger } from "../support/verifier.js";

const settled = 70_000;

/** Routers as so many processes have them, on one store. */
function processes(count: number, store: Store) {
  const clock = fixedClock();
  const log = logger();
  const sender = { send: async () => ({ outcome: "accepted" as const }) };
  let asked = 0;
  const counted =
    <A extends unknown[], R>(method: (...args: A) => Promise<R>) =>
    (...args: A): Promise<R> => {
      asked += 1;
      return method(...args).finally(() => (asked -= 1));
    };
  const watched = { ...store, find: counted(store.find.bind(store)), compareAndSwap: counted(store.compareAndSwap.bind(store)) };
  const routes = [
    { name: "a", sender },
    { name: "b", sender, priority: 2 },
  ];
  const make = () => router({ routes, clock, store: watched, logger: log });
  const all = Array.from({ length: count }, make) as [Router, Router, ...Router[]];
  /** Until the store has answered everything, or will not. */
  const rest = async () => {
    for (let turn = 0, idle = 0; idle < 5 && turn < 10_000; turn++) {
      await new Promise(setImmediate);
      idle = asked === 0 ? idle + 1 : 0;
    }
  };
  const message = (authentication_uuid: string) => ({ to: "+33612345678", authentication_uuid, customer_uuid: "c", attempt: 1, country: "FR" });
  const send = async (by: Router, id: string) => {
    by.plan(message(id));
    await by.send({ ...message(id), text: "1234", code: "1234" }, { signal: new AbortController().signal, deadline: clock.now() + 5000 });
  };
  const validated = (by: Router, id: string, route = "a") => by.feedback?.({ route, country: "FR", authentication_uuid: id, attempt: 1, event: "validated" });
  /** Lets time pass, with each process asked for a plan every two seconds. */
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 2000) {
      clock.advance(2000);
      for (const one of all) one.plan(message(randomUUID()));
      await rest();
    }
  };
  const conversion = (by: Router) => by.health().find(({ route, country }) => route === "a" && country === "FR")?.conversion;
  return { all, clock, log, send, validated, pass, rest, conversion };
}

const ids = (count: number) => Array.from({ length: count }, () => randomUUID());

async function sharesHealth(store: Store) {
  const { all, send, validated, pass, rest, conversion } = processes(3, store);
  const messages = ids(9);
  for (const [at, id] of messages.entries()) await send(all[at % 3]!, id);
  await rest();
  // Each code is typed where another process sent it.
  for (const [at, id] of messages.slice(0, 6).entries()) validated(all[(at + 1) % 3]!, id);
  await pass(settled);
  for (const one of all) expect(conversion(one)).toEqual({ good: 6, all: 9 });
  expect(all.map((one) => one.health().find(({ route }) => route === "a")?.handOver)).toEqual(Array(3).fill({ good: 9, all: 9 }));
}

describe("processes that share a store know the routes' health of all", () => {
  it("in memory", () => sharesHealth(memoryStore({ name: randomUUID() })));

  it.runIf(redisIsInstalled("health over Redis"))("on Redis", async () => {
    const server = await startRedis();
    const client = createClient({ url: server.url });
    await client.connect();
    try {
      await sharesHealth(redisStore({ client }));
    } finally {
      await client.close();
      await server.stop();
    }
  });

  it("without a store each knows its own alone", async () => {
    const clock = fixedClock();
    const sender = { send: async () => ({ outcome: "accepted" as const }) };
    const [one, two] = [0, 1].map(() => router({ routes: [{ name: "a", sender }], clock })) as [Router, Router];
    const message = { to: "+33612345678", authentication_uuid: randomUUID(), customer_uuid: "c", attempt: 1, country: "FR", text: "1234", code: "1234" };
    await one.send(message, { signal: new AbortController().signal, deadline: clock.now() + 5000 });
    two.feedback?.({ route: "a", country: "FR", authentication_uuid: message.authentication_uuid, attempt: 1, event: "validated" });
    clock.advance(settled);
    expect(one.health()[0]?.conversion).toEqual({ good: 0, all: 1 });
    expect(two.health()).toEqual([]);
  });

  it("a code that another route sent is not credited to the one that gave the message on", async () => {
    const { all, send, validated, pass, rest, conversion } = processes(2, memoryStore({ name: randomUUID() }));
    const [id] = ids(1);
    await send(all[0], id!);
    await rest();
    validated(all[1], id!, "b");
    await pass(settled);
    expect(conversion(all[0])).toEqual({ good: 0, all: 1 });
  });

  it("a process that starts learns what the others know", async () => {
    const store = memoryStore({ name: randomUUID() });
    const first = processes(1, store);
    for (const id of ids(5)) {
      await first.send(first.all[0], id);
      first.validated(first.all[0], id);
    }
    await first.pass(settled);
    const second = processes(1, store);
    second.clock.advance(first.clock.now() - second.clock.now());
    await second.pass(2000);
    expect(second.conversion(second.all[0])).toEqual({ good: 5, all: 5 });
  });

  it("a breaker that opens by what one process saw opens in all", async () => {
    const { all, send, validated, pass, rest } = processes(2, memoryStore({ name: randomUUID() }));
    for (let round = 0; round < 6; round++) {
      for (const id of ids(20)) {
        await send(all[0], id);
        if (round === 0) validated(all[1], id);
      }
      await rest();
      await pass(settled);
    }
    const breakers = all.map((one) => one.health().find(({ route }) => route === "a")?.breaker);
    expect(breakers[0]).not.toBe("closed");
    expect(breakers[1]).not.toBe("closed");
  });
});

it("what another process counted before the route was put to the test again does not speak against it", () => {
  const settings = {
    window: 3_600_000,
    settle: 60_000,
    slowAfter: 2000,
    minSample: 20,
    tolerance: { conversion: 0.05, handOver: 0.3, receipts: 0.3, latency: 0.5 },
    probeAfter: 60_000,
    probeShare: 0.05,
    probes: 20,
  };
  const book = healthBook(settings, true);
  const good = { good: 50, all: 50 };
  const counted = (route: string, at: number, handOver = good) => ({
    country: "FR",
    route,
    at,
    tallies: { conversion: { good: 0, all: 0 }, handOver, receipts: { good: 0, all: 0 }, latency: good },
  });
  const bad = { good: 0, all: 50 };
  const stateOf = (now: number) => book.report(now).find(({ route }) => route === "a");
  book.learn(counted("b", 1000), 1000);
  book.learn(counted("a", 1000, bad), 1000);
  expect(stateOf(3000)?.breaker).toBe("open");
  expect(stateOf(64_000)).toMatchObject({ breaker: "half-open", handOver: { good: 0, all: 0 } });
  book.learn(counted("a", 2000, bad), 65_000);
  expect(stateOf(65_000)?.handOver, "counted before").toEqual({ good: 0, all: 0 });
  book.learn(counted("a", 65_000), 66_000);
  expect(stateOf(66_000)?.handOver, "counted since").toEqual(good);
  book.learn(counted("a", 900_000), 67_000);
  expect(stateOf(67_000)?.handOver, "of a clock that is ahead").toEqual({ good: 100, all: 100 });
  expect(stateOf(67_000 + settings.window)?.handOver, "and past when its time is over").toEqual({ good: 0, all: 0 });
  expect(book.news(9), "what was learnt is not told on").toEqual([]);
});

describe("nothing is gated on the exchange", () => {
  const broken = (how: (whole: Store) => Partial<Store>) => {
    const whole = memoryStore({ name: randomUUID() });
    return { whole, store: { ...whole, find: whole.find.bind(whole), compareAndSwap: whole.compareAndSwap.bind(whole), ...how(whole) } as Store };
  };

  for (const method of ["find", "compareAndSwap"] as const) {
    it(`${method} rejects: messages go out as ever, and it is told once each time that it begins`, async () => {
      const { store } = broken(() => ({ [method]: async () => Promise.reject(new Error("down")) }));
      const { all, send, pass, log, conversion } = processes(2, store);
      for (const id of ids(3)) await send(all[0], id);
      await pass(settled);
      expect(conversion(all[0])).toEqual({ good: 0, all: 3 });
      const told = log.lines.filter(({ level, message }) => level === "warn" && message.includes("cannot be exchanged"));
      // To read works in between where only writing fails.
      expect(told).toHaveLength(2);
    });
  }

  it("a store that hangs is given up, and asked again; what is known then is exchanged", async () => {
    let hang = true;
    const { store } = broken((whole) => ({ find: (customer, id) => (hang ? new Promise(() => {}) : whole.find(customer, id)) }));
    const { all, send, pass, conversion } = processes(2, store);
    await send(all[0], randomUUID());
    await pass(20_000);
    hang = false;
    await send(all[0], randomUUID());
    await pass(settled + 20_000);
    expect(conversion(all[1])?.all).toBeGreaterThanOrEqual(1);
  });

  it("more than a post may hold is told in several", async () => {
    const { all, send, validated, pass, rest, conversion } = processes(2, memoryStore({ name: randomUUID() }));
    const messages = ids(450);
    for (const id of messages) await send(all[0], id);
    await rest();
    for (const id of messages) validated(all[1], id);
    await rest();
    await pass(settled);
    expect(conversion(all[0])).toEqual({ good: 450, all: 450 });
    expect(conversion(all[1])).toEqual({ good: 450, all: 450 });
  });

  it("a process with few messages waits for what the others have heard before it counts", async () => {
    const { all, clock, send, validated, rest, conversion } = processes(2, memoryStore({ name: randomUUID() }));
    const [first, second] = ids(2);
    await send(all[0], first!);
    await rest();
    clock.advance(10_000);
    validated(all[1], first!);
    await rest();
    clock.advance(120_000);
    await send(all[0], second!);
    await rest();
    expect(conversion(all[0])).toEqual({ good: 1, all: 1 });
  });

  it("what was heard is told, though nothing more happens in the process that heard it", async () => {
    const { all, clock, send, validated, rest, conversion } = processes(2, memoryStore({ name: randomUUID() }));
    const [first, second] = ids(2);
    for (const id of [first!, second!]) await send(all[0], id);
    await rest();
    for (const id of [first!, second!]) validated(all[1], id);
    await rest();
    clock.advance(2000);
    await rest();
    clock.advance(settled);
    all[0].plan({ to: "+33612345678", authentication_uuid: randomUUID(), customer_uuid: "c", attempt: 1, country: "FR" });
    await rest();
    expect(conversion(all[0])).toEqual({ good: 2, all: 2 });
  });

  it("a clock that is set back holds up no exchange, a logger that throws no request", async () => {
    const store = memoryStore({ name: randomUUID() });
    const { all, clock, log, send, pass, rest } = processes(2, store);
    await pass(2000);
    const now = clock.now();
    clock.now = () => now - 1_800_000;
    await send(all[0], randomUUID());
    await rest();
    all[1].plan({ to: "+33612345678", authentication_uuid: randomUUID(), customer_uuid: "c", attempt: 1, country: "FR" });
    await rest();
    const handOvers = (by: Router) => by.health().find(({ route, country }) => route === "a" && country === "FR")?.handOver.all;
    clock.now = () => now - 1_800_000 + 2000;
    for (const one of all) {
      one.plan({ to: "+33612345678", authentication_uuid: randomUUID(), customer_uuid: "c", attempt: 1, country: "FR" });
      await rest();
    }
    expect(handOvers(all[1])).toBe(1);
    clock.now = () => now;
    log.warn = () => {
      throw new Error("no disk");
    };
    store.find = () => Promise.reject(new Error("down"));
    await send(all[0], randomUUID());
    await rest();
    expect(handOvers(all[0])).toBe(2);
  });

  it("racers lose no post: each swaps on what the others wrote", async () => {
    const { all, send, pass, conversion } = processes(20, memoryStore({ name: randomUUID() }));
    for (const one of all) await send(one, randomUUID());
    await pass(settled);
    for (const one of all) expect(conversion(one)).toEqual({ good: 0, all: 20 });
  });
});
