import { type ChildProcess, execFileSync, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { redisStore } from "../../adapters/store/redis/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { bundle } from "../store/processes.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { secret, start } from "../support/verifier.js";
import { ending, eventually, noSpamRules, type Service, sender, service, tallied, wide } from "./kit.js";
import { creates, french, only, pending, roomy, seeds, sentTo, settled } from "./one-commit-kit.js";
import type { Task, Told } from "./one-commit-process.js";

const installed = redisIsInstalled("the hostile tests of the anti-spam rules on Redis");
const other = "b7Wq3ZrX9cTn5LvK2hJd8MfS4gYp6AeU";

/** What happens to one script: done, done but its response is lost, or not done. */
type Loss = "done" | "lost" | "refused";

describe.runIf(installed)("on a Redis server", () => {
  let server: RedisServer;
  const connections: Redis[] = [];
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(async () => {
    for (const one of connections) one.disconnect();
    await server?.stop();
  });

  const connect = (): Redis => {
    const client = new Redis({ port: server.port, host: "127.0.0.1" }).on("error", () => {});
    connections.push(client);
    return client;
  };

  /** Processes of one customer, each with its own connection. */
  const processes = (count: number, options: Parameters<typeof service>[0] = {}, cluster = false): Service[] => {
    const shared = { clock: fixedClock(start), sender: sender(options?.price), customer: randomUUID(), storeTimeout: 30, ...options };
    const prefix = randomUUID();
    return Array.from({ length: count }, () => service({ ...shared, store: redisStore({ client: connect(), prefix, cluster }) }));
  };
  const at = (set: readonly Service[], i: number): Service => set[i % set.length] as Service;

  it("unlimited guesses: while one process repeats a keyed create that a rule rejects, no guess of three others is evaluated (docs/contract.md#guesses-claimed)", async () => {
    const set = processes(4, { policy: { limits: wide, spam: only("range") } });
    const [one, ...others] = set as [Service, ...Service[]];
    await creates(one, 5, (i) => french(i));
    const target = french(77);
    // From here on, no rejection is stored.
    for (let i = 0; i < 520; i++) await one.create(french(100 + i), {}, { idempotencyKey: `first ${i}` });
    const { authentication_uuid: id } = await one.create(target, {}, { idempotencyKey: "again" });
    let over = false;
    let judged = 0;
    const guess = async (process: Service) => {
      for (let i = 0; !over; i++) if (["valid", "invalid"].includes(await ending(process.check(id, String(100_000 + i))))) judged++;
    };
    const guessing = others.map(guess);
    for (let i = 0; i < 300; i++) await one.create(target, {}, { idempotencyKey: "again" });
    over = true;
    await Promise.all(guessing);
    expect([sentTo(one.sender, target), judged]).toEqual([0, 0]);
  });

  it.each([
    ["a spam rule", "unkeyed"],
    ["a spam rule", "keyed"],
    ["a cap", "unkeyed"],
    ["a cap", "keyed"],
  ])(
    "of 600 creates of one number that %s rejects, %s, twenty are stored, or 500 under keys, until their end (docs/contract.md#refused-records)",
    async (by, how) => {
      await server.cli("FLUSHALL");
      const [one] = processes(1, { policy: { limits: wide, spam: by === "a cap" ? noSpamRules : only("range") } }) as [Service];
      await creates(one, 5, (i) => (by === "a cap" ? french(77) : french(i)));
      const admin = connect();
      const size = async () => {
        const keys = await admin.keys("*");
        const bytes = await Promise.all(keys.map((key) => admin.memory("USAGE", key, "SAMPLES", 0)));
        const ends = await Promise.all(keys.map(async (key) => [key, await admin.pttl(key)] as const));
        return { keys: keys.length, bytes: bytes.reduce<number>((sum, one) => sum + (one ?? 0), 0), ends: new Map(ends) };
      };
      const before = await size();
      for (let i = 0; i < 600; i++) {
        const refused = await ending(one.create(french(77), {}, how === "keyed" ? { idempotencyKey: `k${i}` } : {}));
        expect(refused).toBe(by === "a cap" ? "rate_limited" : "spam_detected");
      }
      await settled();
      const after = await size();
      // The records, and the few windows that name and count them.
      const kept = how === "keyed" ? 500 : 20;
      expect(after.keys - before.keys).toBeLessThanOrEqual(kept + 10);
      expect(after.bytes - before.bytes).toBeLessThanOrEqual(kept * 1_200 + 16_000);
      // Ten minutes of lifetime, and stores may delete up to twenty minutes after an end.
      const long = [...after.ends].filter(([key, ms]) => !before.ends.has(key) && ms > 30 * 60_000);
      expect(long.length, "records that stay for longer").toBeLessThan(15);
    },
  );

  it("a server that stops for 6 s during 2,500 creates has counted none of them once it continues (docs/contract.md#lost-write)", async () => {
    const own = await startRedis();
    const client = new Redis({ port: own.port, host: "127.0.0.1" }).on("error", () => {});
    const customer = randomUUID();
    const store = redisStore({ client });
    const narrow = { ...only("range"), range: { mode: "enforce" as const, seeds: [5, 1_000_000, 1_000_000] as const } };
    const policy = { limits: { ...wide, perCustomer: [{ limit: 3_000, window: 86_400 }] }, spam: narrow };
    const out = sender();
    const hurried = service({ store, customer, policy, sender: out, clock: undefined, storeTimeout: 1 });
    const calm = service({ store, customer, policy, sender: out, clock: undefined, storeTimeout: 30 });
    const inRange = (range: number, i: number) => french(i, range % 100, 20 + Math.floor(range / 100));
    try {
      await client.ping();
      await own.signal("SIGSTOP");
      const stopped = performance.now();
      const answers = await Promise.all(Array.from({ length: 2_500 }, (_, i) => ending(hurried.create(inRange(Math.floor(i / 5), i % 5)))));
      await eventually("six seconds are over", () => performance.now() - stopped > 6_000);
      await own.signal("SIGCONT");
      expect(tallied(answers)).toEqual({ unavailable: 2_500 });
      expect(out.messages).toEqual([]);
      // One honest user for each range: some find room at once, the others once everything is undone.
      let waiting = Array.from({ length: 500 }, (_, range) => range);
      await eventually(
        "each range has room",
        async () => {
          const refused: number[] = [];
          for (const range of waiting) if ((await ending(calm.create(inRange(range, 5_000)))) !== "pending") refused.push(range);
          waiting = refused;
          return refused.length === 0;
        },
        90_000,
      );
      for (let batch = 0; batch < 10; batch++) {
        const more = Array.from({ length: 250 }, (_, i) => ending(calm.create(french(1, i % 100, 60 + 3 * batch + Math.floor(i / 100)))));
        expect(tallied(await Promise.all(more)), "the customer's cap has counted none of them either").toEqual({ pending: 250 });
      }
      expect(await ending(calm.create(french(1, 0, 95)))).toBe("rate_limited");
    } finally {
      await own.signal("SIGCONT");
      client.disconnect();
      await own.stop();
    }
  });

  it.each([
    ["one step", false],
    ["two steps", true],
  ])("scripts that fail, or whose responses are lost, leave no member and no sum without a message: %s (docs/contract.md#two-steps)", async (_, cluster) => {
    const clock = fixedClock(start);
    const redis = connect();
    const limits = {
      ...wide,
      perNumber: [{ limit: 3, window: 86_400 }],
      perDevice: [{ limit: 3, window: 86_400 }],
      numbersPerDevice: [{ limit: 3, window: 86_400 }],
      perCustomer: [{ limit: 3, window: 86_400 }],
      spend: [{ amount: 3, per: "day" as const }],
    };
    let seed = 1;
    const random = () => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    /** A customer whose next scripts meet these fates. */
    const unlucky = (losses: Loss[]) => {
      let armed = false;
      const client = async (script: string, keys: string[], args: string[]) => {
        const loss = armed ? (losses.shift() ?? "done") : "done";
        if (loss === "refused") throw new Error("connection refused");
        const answer = await redis.eval(script, keys.length, ...keys, ...args);
        if (loss === "lost") throw new Error("connection reset");
        return answer;
      };
      const store = redisStore({ client: client as never, cluster, prefix: randomUUID() });
      const spam = { ...only("range"), range: { mode: "enforce" as const, seeds: [3, 3, 3] as const } };
      const one = service({ store, clock, price: 1, customer: randomUUID(), policy: { limits, spam, retryCooldowns: [0, 0, 0, 0] }, storeTimeout: 30 });
      return { ...one, losses: [...losses], arm: (on: boolean) => (armed = on) };
    };
    // Up to five losses: undoing is tried for 45 s, about that often.
    const fates = (): Loss[] => {
      const losses = Array.from({ length: 1 + Math.floor(random() * 5) }, (): Loss => (random() < 0.6 ? "lost" : "refused"));
      return losses.flatMap((loss): Loss[] => (random() < 0.4 ? ["done", loss] : [loss]));
    };
    const all = Array.from({ length: 150 }, () => unlucky(fates()));
    const outcomes = await Promise.all(
      all.map(async (one, i) => {
        const fields = { device_id: "device" };
        const first = i % 2 === 0 ? undefined : await one.create(french(1), fields);
        one.arm(true);
        const how = await ending(first === undefined ? one.create(french(1), fields) : one.retry(first.authentication_uuid));
        return { how, first };
      }),
    );
    // A minute, enough to undo everything that has to be undone.
    for (let passed = 0; passed < 60_000; passed += 200) {
      clock.advance(200);
      await settled(3);
      if (passed % 5_000 === 0) await redis.ping();
    }
    await redis.ping();
    await settled(50);
    for (const one of all) one.arm(false);
    const wrong: string[] = [];
    for (const [i, one] of all.entries()) {
      const sent = one.sender.messages.length;
      const { how, first } = outcomes[i] as (typeof outcomes)[number];
      if (how === "unavailable" && sent !== (first ? 1 : 0)) wrong.push(`${one.losses}: a message under a 503`);
      const rest = tallied(
        await creates(
          one,
          5,
          (n) => french(n % 2 ? 1 : 2),
          () => ({ device_id: "device" }),
        ),
      );
      if (rest["pending"] !== 3 - sent) wrong.push(`${first ? "retry" : "create"} ${how}, ${one.losses}: sent ${sent}, then ${JSON.stringify(rest)}`);
    }
    expect(wrong).toEqual([]);
    expect(tallied(outcomes.map(({ how }) => how))["unavailable"]).toBeGreaterThan(30);
  });

  it.each(seeds)(
    "%s: 300 concurrent creates in four processes, and later ones, send exactly the seed, in one step and in two (docs/contract.md#cells-may-lag)",
    async (_, rule, seed, number, fields) => {
      for (const cluster of [false, true]) {
        const set = processes(4, { policy: { ...roomy, spam: only(rule) } }, cluster);
        const race = (from: number) =>
          Promise.all(
            Array.from({ length: 300 }, (_, i) =>
              ending(at(set, i).create(number(from + i), fields(from + i), i % 3 ? {} : { idempotencyKey: `k${from + i}` })),
            ),
          );
        // With two steps, concurrent creates may be rejected more than necessary; later ones use the rest.
        const racers = pending(await race(0));
        if (cluster) expect(racers).toBeLessThanOrEqual(seed);
        else expect(racers).toBe(seed);
        const after = pending(
          await creates(
            at(set, 1),
            seed + 5,
            (i) => number(1_000 + i),
            (i) => fields(1_000 + i),
          ),
        );
        expect(racers + after).toBe(seed);
        expect(pending(await race(2_000)), "refusals have filled and freed nothing").toBe(0);
        expect(at(set, 0).sender.messages).toHaveLength(seed);
      }
    },
  );

  it("concurrent creates under one key in two processes get the same result, rejected or sent, in twenty of twenty rounds (docs/contract.md#idempotency)", async () => {
    const set = processes(2, { policy: { limits: wide, spam: only("range") } });
    await creates(at(set, 0), 5, (i) => french(i));
    for (let round = 0; round < 20; round++) {
      const twins = await Promise.all(Array.from({ length: 6 }, (_, i) => at(set, i).create(french(50 + round), {}, { idempotencyKey: `k${round}` })));
      expect(new Set(twins.map(({ status, authentication_uuid: id }) => `${status} ${id}`)).size, `round ${round}: ${twins.map(({ status }) => status)}`).toBe(
        1,
      );
      expect(twins[0]?.status).toBe("spam_detected");
      const sent = await Promise.all(Array.from({ length: 6 }, (_, i) => at(set, i).create(french(1, 10 + round), {}, { idempotencyKey: `s${round}` })));
      expect(new Set(sent.map(({ status, authentication_uuid: id }) => `${status} ${id}`)).size).toBe(1);
      expect(sentTo(at(set, 0).sender, french(1, 10 + round))).toBe(sent[0]?.status === "pending" ? 1 : 0);
    }
  });

  it("two processes with two secrets in different order: concurrent creates under one key send once (docs/contract.md#keyed-id)", async () => {
    const shared = { clock: fixedClock(start), sender: sender(), customer: randomUUID(), storeTimeout: 30, policy: { spam: noSpamRules } };
    const prefix = randomUUID();
    const orders: readonly (readonly [string, string])[] = [
      [secret, other],
      [other, secret],
    ];
    const set = orders.map((secrets) => service({ ...shared, secret: secrets, store: redisStore({ client: connect(), prefix }) }));
    for (let i = 0; i < 20; i++) {
      const twins = await Promise.all(Array.from({ length: 4 }, (_, n) => at(set, n).create(i, {}, { idempotencyKey: `k${i}` })));
      expect(new Set(twins.map(({ authentication_uuid: id, status }) => `${id} ${status}`)).size).toBe(1);
      expect(shared.sender.messages).toHaveLength(i + 1);
    }
  });

  describe("a stopped process", () => {
    let built: Awaited<ReturnType<typeof bundle>>;
    beforeAll(async () => {
      built = await bundle(new URL("./one-commit-process.ts", import.meta.url));
    });
    const stopped: ChildProcess[] = [];
    afterAll(() => {
      for (const child of stopped) child.kill("SIGKILL");
      if (built) rmSync(built.outDir, { recursive: true });
    });

    it("decides again if it stopped between commit and hand-over for longer than storeTimeout: a cap of two in 5 s holds (docs/contract.md#late-hand-over)", async () => {
      const customer = randomUUID();
      const task: Task = { do: "stand still", url: server.url, customer, secret, numbers: [french(1), french(2)], cap: 2 };
      const child = fork(built.script, [JSON.stringify(task)], { execArgv: [] });
      stopped.push(child);
      const told: Told[] = [];
      child.on("message", (message: Told) => void told.push(message));
      await eventually(
        "the process stands still",
        () =>
          execFileSync("ps", ["-o", "state=", "-p", String(child.pid)])
            .toString()
            .trim() === "T",
      );
      const stood = performance.now();
      const awake = service({
        store: redisStore({ client: connect() }),
        customer,
        clock: undefined,
        policy: { limits: { perCustomer: [{ limit: 2, window: 5 }] }, spam: noSpamRules },
      });
      expect(await ending(awake.create(french(3))), "both places are taken").toBe("rate_limited");
      await eventually("the cap has room again", async () => (await ending(awake.create(french(4)))) === "pending");
      expect(performance.now() - stood).toBeGreaterThan(2_000);
      await eventually("and once more", async () => (await ending(awake.create(french(5)))) === "pending");
      child.kill("SIGCONT");
      await eventually("it has told what came of it", () => told.length === 2);
      child.disconnect();
      await once(child, "exit");
      const [, outcome] = told as [Told, Extract<Told, { statuses: unknown }>];
      expect(outcome.sent, "with the two that went meanwhile").toEqual([]);
      expect(outcome.statuses, "it decided again").toEqual(["rate_limited", "rate_limited"]);
    });
  });
});
