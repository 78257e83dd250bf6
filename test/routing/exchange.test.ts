import { randomUUID } from "node:crypto";
import { createClient } from "redis";
import { describe, expect, it } from "vitest";
import { redisStore } from "../../adapters/store/redis/index.js";
import type { Store } from "../../src/ports/store.js";
import { type Router, router } from "../../src/routing/router.js";
import type { RouterOptions } from "../../src/routing/router-options.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { redisIsInstalled, startRedis } from "../support/redis.js";
import { logger } from "../support/verifier.js";
import { runFleet } from "./fleet.js";
import { tallyStore } from "./tally-store.js";

/** Time until the slice of a message and the time for its code are over, and all processes have reported and read. */
const settled = 84_000;
const minute = 60_000;

/** The routers of `count` processes on one store. */
function processes(count: number, behind?: Pick<Store, "tally">, options: Partial<RouterOptions> = {}) {
  const clock = fixedClock();
  const log = logger();
  const store = tallyStore(behind);
  const sender = { send: async () => ({ outcome: "accepted" as const }) };
  const routes = [
    { name: "a", sender },
    { name: "b", sender, priority: 2 },
  ];
  const make = () => router({ routes, clock, store, logger: log, ...options });
  const all = Array.from({ length: count }, make) as [Router, Router, ...Router[]];
  /** Waits until the store has answered everything, or hangs. */
  const rest = async () => {
    for (let turn = 0, idle = 0; idle < 5 && turn < 10_000; turn++) {
      await new Promise(setImmediate);
      idle = store.traffic.open === 0 ? idle + 1 : 0;
    }
  };
  const destination = (authentication_uuid = randomUUID(), country = "FR") => ({
    to: "+33612345678",
    authentication_uuid,
    customer_uuid: "c",
    attempt: 1,
    country,
  });
  /** Sends a first message; the returned `typed` reports to a process that its code was entered. */
  const send = async (by: Router, country?: string) => {
    const to = destination(undefined, country);
    const sent_at = clock.now();
    const planned_route = by.plan(to)!.route;
    const message = { ...to, planned_route, text: "1234", code: "1234", idempotency_key: to.authentication_uuid, expires_at: sent_at + 600_000 };
    const { route = "" } = await by.send(message, { signal: new AbortController().signal, deadline: sent_at + 5000, timeLeft: 5000 });
    const typed = (at: Router) => at.feedback?.({ ...to, route, event: "validated", sent_at, chosen: true });
    return { route, typed };
  };
  /** Lets time pass, and requests a plan from each process every two seconds. */
  const pass = async (ms: number, those: readonly Router[] = all) => {
    for (let passed = 0; passed < ms; passed += 2000) {
      clock.advance(2000);
      for (const one of those) one.plan(destination());
      await rest();
    }
  };
  const of = (by: Router, name = "a") => by.health().find(({ route, country }) => route === name && country === "FR");
  const conversion = (by: Router) => of(by)?.conversion;
  const handOvers = (by: Router) => of(by)?.handOver.all;
  return { all, make, clock, log, store, destination, send, pass, rest, of, conversion, handOvers };
}

async function sharesHealth(store?: Pick<Store, "tally">) {
  const { all, send, pass, conversion, handOvers } = processes(3, store);
  const sent = [];
  for (let n = 0; n < 9; n++) sent.push(await send(all[n % 3]!));
  // Each code is entered at another process than the one that sent it.
  for (const [n, { typed }] of sent.slice(0, 6).entries()) typed(all[(n + 1) % 3]!);
  await pass(4000);
  expect(all.map(handOvers)).toEqual([9, 9, 9]);
  expect(all.map(conversion), "not yet").toEqual(Array(3).fill({ good: 0, all: 0 }));
  await pass(settled);
  expect(all.map(conversion)).toEqual(Array(3).fill({ good: 6, all: 9 }));
}

describe("processes that share a store know the route health of all", () => {
  it("in memory", () => sharesHealth());

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

  it("a code that is entered last, and reported after others have read, still counts in all", async () => {
    const { all, clock, destination, send, pass, rest, conversion } = processes(2);
    const to = async (second: number, ...those: Router[]) => {
      clock.advance(Math.max(0, Date.UTC(2026, 0, 1) + second * 1000 - clock.now()));
      for (const one of those) one.plan(destination());
      await rest();
    };
    for (let second = 0; second < 14; second++) await to(second, all[(second + 1) % 2]!);
    await to(14.5);
    const { typed } = await send(all[0]);
    for (let second = 15; second <= 75; second++) {
      if (second === 75) {
        // Its slice ended at 15 s. One process reads at 75 s, the other reports at 76 s.
        await to(74.4);
        typed(all[1]);
      }
      await to(second, all[(second + 1) % 2]!);
    }
    await pass(10_000);
    expect(all.map(conversion)).toEqual(Array(2).fill({ good: 1, all: 1 }));
  });

  it("a router that is closed shares what is left, and then leaves the store alone", async () => {
    const { all, clock, store, send, pass, rest, handOvers } = processes(2);
    for (let sent = 0; sent < 3; sent++) await send(all[0]);
    await all[0].close?.();
    const { calls } = store.traffic;
    clock.advance(minute);
    await rest();
    expect(store.traffic.calls).toBe(calls);
    await pass(4000, [all[1]]);
    expect(handOvers(all[1])).toBe(3);
  });

  it("without a store each process knows only its own counts, and a code of another's message counts nowhere", async () => {
    const { all, clock, send, conversion } = processes(2, undefined, { store: undefined });
    const { typed } = await send(all[0]);
    await send(all[0]);
    typed(all[0]);
    typed(all[1]);
    clock.advance(settled);
    expect(conversion(all[0])).toEqual({ good: 1, all: 2 });
    expect(all[1].health()).toEqual([]);
  });

  it("routers with different routes or time slices do not share counts", async () => {
    const { all, clock, store, send, pass, rest, handOvers } = processes(1);
    const sender = { send: async () => ({ outcome: "accepted" as const }) };
    const others = [
      router({ routes: [{ name: "a", sender }], clock, store }),
      router({
        routes: [
          { name: "a", sender },
          { name: "b", sender },
        ],
        clock,
        store,
        health: { settle: 120 },
      }),
    ];
    await send(all[0]);
    await pass(4000);
    for (const other of others) other.plan({ to: "+33612345678", authentication_uuid: "x", customer_uuid: "c", attempt: 1, country: "FR" });
    await rest();
    expect(handOvers(all[0])).toBe(1);
    expect(others.map(handOvers)).toEqual([0, 0]);
  });

  it("a process that starts reads what the others counted in the last hour", async () => {
    const { all, make, send, pass, conversion, handOvers } = processes(1);
    for (let n = 0; n < 50; n++) {
      const { typed } = await send(all[0]);
      typed(all[0]);
      await pass(minute);
    }
    await pass(settled);
    const late = make();
    await pass(2000, [all[0], late]);
    expect(handOvers(late)).toBe(50);
    expect(conversion(late)).toEqual({ good: 50, all: 50 });
  });

  for (const minutes of [4, 7, 13, 31]) {
    it(`a process without a message for a country for ${minutes} minutes catches up`, async () => {
      const { all, clock, rest, send, pass, conversion, handOvers } = processes(2);
      for (const one of all) (await send(one)).typed(all[0]);
      for (let n = 0; n < minutes * 2; n++) {
        (await send(all[0])).typed(all[0]);
        clock.advance(minute / 2);
        await rest();
      }
      await pass(settled, [all[0]]);
      await pass(2000);
      expect(all.map(handOvers)).toEqual(Array(2).fill(2 + minutes * 2));
      expect(all.map(conversion)).toEqual(Array(2).fill({ good: 2 + minutes * 2, all: 2 + minutes * 2 }));
    });
  }

  it("a breaker that opens by one process's counts opens in all", async () => {
    const { all, send, pass, of } = processes(2);
    for (let round = 0; round < 6; round++) {
      for (let n = 0; n < 20; n++) {
        const { typed } = await send(all[0]);
        if (round === 0) typed(all[1]);
      }
      await pass(settled);
    }
    expect(all.map((one) => of(one)?.breaker)).not.toContain("closed");
  });

  it("ten processes send one round of probes, not ten", async () => {
    const broken = { is: true };
    const sender = { send: async () => ({ outcome: broken.is ? ("unknown" as const) : ("accepted" as const) }) };
    const good = { send: async () => ({ outcome: "accepted" as const }) };
    const routes = [
      { name: "a", sender },
      { name: "b", sender: good },
    ];
    const { all, clock, send, pass, rest, of } = processes(10, undefined, { routes, random: () => 0, health: { probeShare: 0.5 } });
    for (let n = 0; n < 60; n++) await send(all[n % 10]!);
    await pass(4000);
    expect(all.map((one) => of(one)?.breaker)).toEqual(Array(10).fill("open"));
    broken.is = false;
    await pass(76_000);
    expect(all.map((one) => of(one)?.breaker)).toEqual(Array(10).fill("half-open"));
    let probes = 0;
    for (let n = 0; n < 300; n++) {
      if ((await send(all[n % 10]!)).route === "a") probes += 1;
      clock.advance(200);
      await rest();
    }
    // A round is 20, plus what the ten sent in the two seconds before they read each other's counts.
    expect(probes).toBeGreaterThanOrEqual(20);
    expect(probes).toBeLessThanOrEqual(30);
    await pass(settled);
    expect(all.map((one) => of(one)?.breaker)).toEqual(Array(10).fill("closed"));
  });

  it("what another process counted before the breaker was half-open does not count against the route", async () => {
    const sender = { send: async () => ({ outcome: "accepted" as const }) };
    const dead = { send: async () => Promise.reject(new Error("cut")) };
    const first = { routes: [{ name: "a", sender: dead }] };
    const { all, store, clock, send, pass, of } = processes(1, undefined, first);
    for (let n = 0; n < 30; n++) await send(all[0]);
    const healed = router({ routes: [{ name: "a", sender }], clock, store });
    await pass(2000, [all[0], healed]);
    expect([of(all[0])?.breaker, of(healed)?.breaker]).toEqual(["open", "open"]);
    await pass(76_000, [healed]);
    expect(of(healed)).toMatchObject({ breaker: "half-open", handOver: { good: 0, all: 0 } });
    await pass(settled, [healed]);
    expect(of(healed)).toMatchObject({ breaker: "half-open", handOver: { good: 0, all: 0 } });
  });
});

describe("the exchange blocks nothing", () => {
  it("with a failing store messages go out as before, each process uses its own counts and logs each outage once", async () => {
    const fails = { now: true };
    const sound = tallyStore();
    const { all, send, pass, log, conversion, handOvers } = processes(2, {
      tally: (adds, reads) => (fails.now ? Promise.reject(new Error("down")) : sound.tally(adds, reads)),
    });
    const told = () => log.lines.filter(({ level, message }) => level === "warn" && message.includes("cannot be exchanged")).length;
    for (let n = 0; n < 3; n++) (await send(all[0])).typed(all[0]);
    await pass(settled);
    expect(all.map(conversion)).toEqual([
      { good: 3, all: 3 },
      { good: 0, all: 0 },
    ]);
    expect(told(), "by each of the two").toBe(2);
    fails.now = false;
    await send(all[0]);
    await pass(4000);
    expect(handOvers(all[1]), "what could not be told is lost to the others").toBe(1);
    fails.now = true;
    await pass(4000);
    expect(told()).toBe(4);
  });

  it("what others counted during a process's outage is read afterwards", async () => {
    const cut = { off: false };
    const whole = tallyStore();
    const { all, send, pass, make, conversion, handOvers } = processes(1, whole);
    const far = processes(1, { tally: (adds, reads) => (cut.off ? Promise.reject(new Error("cut off")) : whole.tally(adds, reads)) });
    const both = async (ms: number) => {
      for (let passed = 0; passed < ms; passed += 2000) {
        await pass(2000);
        await far.pass(2000);
      }
    };
    await both(4000);
    cut.off = true;
    for (let n = 0; n < 8; n++) (await send(all[0])).typed(all[0]);
    await both(settled + 10 * minute);
    expect(far.handOvers(far.all[0]) ?? 0).toBe(0);
    cut.off = false;
    await both(4000);
    expect([handOvers(all[0]), far.handOvers(far.all[0])]).toEqual([8, 8]);
    expect(far.conversion(far.all[0])).toEqual(conversion(all[0]));
    expect(make().health()).toEqual([]);
  });

  it("a store call that hangs is given up, and the store is called again", async () => {
    const hangs = { now: true };
    const sound = tallyStore();
    const { all, send, pass, handOvers } = processes(2, { tally: (adds, reads) => (hangs.now ? new Promise(() => {}) : sound.tally(adds, reads)) });
    await send(all[0]);
    await pass(6000);
    hangs.now = false;
    await send(all[0]);
    await pass(6000);
    expect(handOvers(all[1])).toBe(1);
  });

  it("counts that are too many for one call are read in several, and none is missing", async () => {
    const { all, make, send, pass, rest, clock, store } = processes(1);
    const calls: number[] = [];
    const countries = Array.from({ length: 60 }, (_, n) => `${String.fromCharCode(65 + (n % 26))}${String.fromCharCode(65 + Math.floor(n / 26))}`);
    for (const country of countries) await send(all[0], country);
    await pass(4000);
    const late = make();
    const { tally } = store;
    store.tally = (adds, reads) => {
      calls.push(adds.length + reads.length);
      return tally(adds, reads);
    };
    for (let round = 0; round < 2; round++) {
      for (const country of countries) late.plan({ to: "+33612345678", authentication_uuid: "x", customer_uuid: "c", attempt: 1, country });
      await rest();
      clock.advance(2000);
      await rest();
    }
    expect(calls.length).toBeGreaterThan(10);
    expect(Math.max(...calls)).toBeLessThanOrEqual(2000);
    expect(late.health().reduce((sum, { handOver }) => sum + handOver.all, 0)).toBe(60);
  });

  it("a process with few messages counts conversion only after it has read what the others counted", async () => {
    const { all, clock, send, rest, pass, conversion } = processes(2);
    const { typed } = await send(all[0]);
    await rest();
    clock.advance(10_000);
    typed(all[1]);
    await rest();
    clock.advance(2000);
    await rest();
    clock.advance(120_000);
    expect(conversion(all[0])).toEqual({ good: 0, all: 0 });
    await pass(2000, [all[0]]);
    expect(conversion(all[0])).toEqual({ good: 1, all: 1 });
  });

  it("counts are reported even if nothing more happens in their process", async () => {
    const { all, clock, send, rest, handOvers, pass } = processes(2);
    await send(all[0]);
    await rest();
    await send(all[0]);
    await rest();
    clock.advance(2000);
    await rest();
    await pass(2000, [all[1]]);
    expect(handOvers(all[1])).toBe(2);
  });

  it("reads only the countries that it had messages for lately", async () => {
    const { all, clock, store, send, rest } = processes(1);
    const asked: string[] = [];
    const { tally } = store;
    store.tally = (adds, reads) => {
      asked.push(...reads);
      return tally(adds, reads);
    };
    const look = async () => {
      clock.advance(2000);
      asked.length = 0;
      await send(all[0], "US");
      await rest();
      clock.advance(2000);
      await rest();
      return new Set(asked.map((name) => name.split(":")[2]));
    };
    await send(all[0], "FR");
    expect(await look()).toEqual(new Set(["FR", "US"]));
    clock.advance(10 * minute);
    expect(await look()).toEqual(new Set(["US"]));
  });

  it("writes whole milliseconds, and stores counters until no one reads them any longer", async () => {
    const { all, clock, store, send, rest } = processes(1);
    const { now } = clock;
    clock.now = () => now() + 0.25;
    const adds: Parameters<Store["tally"]>[0][number][] = [];
    const { tally } = store;
    store.tally = (some, reads) => {
      adds.push(...some);
      return tally(some, reads);
    };
    await send(all[0]);
    await rest();
    clock.advance(2000);
    await rest();
    const lives = adds.map((add) => (add.keepUntil - add.now) / minute);
    for (const { now, by, keepUntil } of adds) expect([now, by, keepUntil].every(Number.isSafeInteger)).toBe(true);
    expect(Math.min(...lives)).toBeGreaterThan(11);
    expect(Math.max(...lives)).toBeLessThan(75);
  });

  it("a clock that is set back does not stop the exchange, and a logger that throws does not stop a request", async () => {
    const { all, clock, log, store, destination, send, pass, rest, handOvers } = processes(2);
    await pass(2000);
    const now = clock.now();
    clock.set(now - 1_800_000);
    await send(all[0]);
    await rest();
    clock.advance(2000);
    for (const one of all) {
      one.plan(destination());
      await rest();
    }
    expect(handOvers(all[1])).toBe(1);
    log.warn = () => {
      throw new Error("no disk");
    };
    store.tally = () => Promise.reject(new Error("down"));
    clock.advance(2000);
    await send(all[0]);
    await rest();
    expect(handOvers(all[0])).toBe(2);
  });
});

it("each process knows all messages and their conversion, and reads about as much with 100 processes as with 10 (docs/contract.md#shared-health)", async () => {
  const fleet = { messages: 10, seconds: 60, countries: ["DE"], conversion: 1 };
  const [few, many] = [await runFleet({ ...fleet, processes: 10 }), await runFleet({ ...fleet, processes: 100 })];
  for (const { known, conversion } of [few, many]) {
    expect(known).toBeGreaterThanOrEqual(0.99);
    expect(known).toBeLessThanOrEqual(1);
    expect(conversion).toEqual([1, 1]);
  }
  const each = [few.bytesPerSecond / 10, many.bytesPerSecond / 100];
  console.log(`${many.sent} messages of 100 processes: ${Math.round(each[1]!)} characters a second for each, of 10 processes ${Math.round(each[0]!)}`);
  expect(each[1]).toBeLessThan(each[0]! * 1.2);
  expect(each[1]).toBeLessThan(1500);

  const part = await runFleet({ ...fleet, processes: 20, conversion: 0.7 });
  for (const counted of part.conversion) expect(counted).toBeCloseTo(part.typed, 2);
});
