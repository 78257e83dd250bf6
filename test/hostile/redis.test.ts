import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { Cluster } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { redisStore } from "../../adapters/store/redis/index.js";
import { bundle } from "../store/processes.js";
import { type Receiver, receiver } from "../support/receiver.js";
import { type RedisCluster, type RedisServer, redisIsInstalled, startCluster, startRedis } from "../support/redis.js";
import { type Connected, clients, clusterClients, hurried as hurriedClient } from "../support/redis-clients.js";
import { secret } from "../support/verifier.js";
import { brief, type End, type Setup } from "./dying-process.js";
import { callbackUrl, ending, eventually, hook, numberAt, type Service, sender, service, tallied, wide } from "./kit.js";
import { twoDaysAhead } from "./two-days-ahead.js";

const installed = redisIsInstalled("the hostile tests on Redis");
const quick = { retryCooldowns: [1, 1, 1, 1] };
const seconds = (count: number) => new Promise((done) => setTimeout(done, count * 1_000));

type Options = NonNullable<Parameters<typeof service>[0]>;

/** One service in two processes: `one` waits 30 s for its store, `hurried` 0.3 s, so that hanging calls end soon. */
function inTwo(calm: Connected, quickly: Connected, prefix: string, options: Options): { one: Service; hurried: Service } {
  const one = service({ ...options, store: redisStore({ client: calm.client, prefix }), clock: undefined, storeTimeout: 30 });
  const hurried = service({
    ...options,
    store: redisStore({ client: quickly.client, prefix }),
    clock: undefined,
    storeTimeout: 0.3,
    customer: one.customer,
    sender: one.sender,
    callbacks: { sender: one.hook },
  });
  return { one, hurried };
}

describe.runIf(installed)("on a cluster with one stopped master", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  describe.each([0, 1, 2])("master %i", (which) => {
    let connected: Connected;
    let calm: Connected;
    beforeAll(async () => {
      const connect = clusterClients["ioredis 6"] as (typeof clusterClients)[string];
      connected = await connect(cluster, hurriedClient);
      calm = await connect(cluster);
    });
    afterAll(() => Promise.all([connected?.close(), calm?.close()]));

    it("retries that got 503 cost no retry, no live code and no event once it continues", async () => {
      const { one, hurried } = inTwo(calm, connected, `d1-${which}`, {
        policy: { ...quick, limits: { ...wide, perCustomer: [{ limit: 1_000, window: 3600 }], spend: [{ amount: 1_000, per: "day" }] } },
        price: 1,
      });
      // A quarter of the shards may be on this master: of so many records, some are.
      const created = await Promise.all(Array.from({ length: 48 }, (_, i) => one.create(100 * which + i, { callback_url: callbackUrl })));
      const ids = created.map(({ authentication_uuid: id }) => id);
      const first = new Map(ids.map((id) => [id, one.sender.codeOf(id)]));
      await seconds(1.1);
      const master = cluster.masters[which] as RedisServer;
      await master.signal("SIGSTOP");
      const failed = new Map<string, number>();
      const approved = new Set<string>();
      try {
        // Longer than any request waits.
        for (let round = 0; round < 4; round++) {
          if (round > 0) await seconds(0.7);
          await Promise.all(
            ids.map(async (id) => {
              const how = await ending(hurried.retry(id));
              if (how === "unavailable") failed.set(id, (failed.get(id) ?? 0) + 1);
              else if (how === "approved") approved.add(id);
            }),
          );
        }
      } finally {
        await master.signal("SIGCONT");
      }
      expect(failed.size).toBeGreaterThan(0);
      // Authentications without an approved retry still have all four retries.
      const hurt = [...failed.keys()].filter((id) => !approved.has(id));
      expect(hurt.length).toBeGreaterThan(0);
      await eventually("the retries are there again", async () =>
        (
          await Promise.all(
            hurt.map(async (id) => [await ending(one.retry(id)), one.sender.messages.filter((message) => message.authentication_uuid === id).length]),
          )
        ).every(([, sent]) => sent === 2),
      );
      await seconds(1.1);
      for (const id of hurt) expect(await one.retry(id)).toMatchObject({ status: "approved", remaining_retry: 2 });
      expect(one.sender.messages.filter(({ authentication_uuid }) => hurt.includes(authentication_uuid))).toHaveLength(3 * hurt.length);
      for (let i = 0; i < 4; i++) await one.verifier.flush();
      for (const id of hurt) expect(one.hook.story(id)).toEqual(["1:submitted", "2:submitted", "3:submitted"]);
      for (const id of hurt) expect(await ending(one.check(id, one.sender.codeOf(id, 2)))).toBe("valid");
      expect(first.size).toBe(48);
    });

    it("creates that got 503 are not counted once it continues", async () => {
      const { one, hurried } = inTwo(calm, connected, `d1c-${which}`, {
        policy: { ...quick, limits: { ...wide, perCustomer: [{ limit: 40, window: 86_400 }], spend: [{ amount: 40, per: "day" }] } },
        price: 1,
      });
      const master = cluster.masters[which] as RedisServer;
      await one.create(0);
      await master.signal("SIGSTOP");
      let endings: Record<string, number>;
      try {
        endings = tallied(await Promise.all(Array.from({ length: 20 }, (_, i) => ending(hurried.create(1 + i, {}, i % 2 ? { idempotencyKey: `k${i}` } : {})))));
      } finally {
        await master.signal("SIGCONT");
      }
      await seconds(3);
      const sent = one.sender.messages.length;
      expect((endings["pending"] ?? 0) + 1).toBe(sent);
      const rest = tallied(await sequence(45, (i) => ending(one.create(1_000 + i))));
      expect((rest["pending"] ?? 0) + sent).toBe(40);
    });
  });

  it.each([0, 1, 2])("callbacks of the other shards are delivered, and the rest once master %i continues", async (which) => {
    // As users create it: nothing times out.
    const client = new Cluster(cluster.nodes.map(({ port }) => ({ host: "127.0.0.1", port }))).on("error", () => {});
    const store = redisStore({ client, prefix: `d3e-${which}` });
    const maker = service({ store, clock: undefined, policy: { limits: wide } });
    for (let i = 0; i < 48; i++) await maker.create(i, { callback_url: callbackUrl });
    const master = cluster.masters[which] as RedisServer;
    await master.signal("SIGSTOP");
    const told = hook();
    const worker = service({
      store,
      clock: undefined,
      customer: maker.customer,
      policy: { limits: wide },
      callbacks: { worker: true, pollInterval: 0.5, sender: told },
    });
    try {
      await eventually("16 of 48 at least", () => told.posted.length >= 16);
    } finally {
      await master.signal("SIGCONT");
    }
    await eventually("all 48", () => new Set(told.posted.map(({ id }) => id)).size === 48);
    await worker.verifier.close();
    client.disconnect();
  });
});

/** Runs calls one after another. */
async function sequence<T>(count: number, run: (i: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (let i = 0; i < count; i++) results.push(await run(i));
  return results;
}

describe.runIf(installed)("on one server", () => {
  let server: RedisServer;
  const connect = clients["ioredis 6"] as (typeof clients)[string];
  let connected: Connected;
  beforeAll(async () => {
    server = await startRedis();
    connected = await connect(server);
  });
  afterAll(async () => {
    await connected?.close();
    await server?.stop();
  });

  it("after a stopped server continues, retries, caps, spend and codes are as if the 503s had not happened", async () => {
    const quickly = await connect(server, hurriedClient);
    const { one, hurried } = inTwo(connected, quickly, "d1s", {
      price: 1,
      policy: { ...quick, limits: { ...wide, spend: [{ amount: 20, per: "day" }] } },
    });
    const created = await Promise.all(Array.from({ length: 5 }, (_, i) => one.create(i, { callback_url: callbackUrl })));
    await seconds(1.1);
    await server.signal("SIGSTOP");
    try {
      for (let round = 0; round < 3; round++) {
        const calls = [
          ...created.map(({ authentication_uuid: id }) => ending(hurried.retry(id))),
          ...Array.from({ length: 5 }, (_, i) => ending(hurried.create(100 + i))),
        ];
        expect(tallied(await Promise.all(calls))).toEqual({ unavailable: 10 });
      }
    } finally {
      await server.signal("SIGCONT");
    }
    await seconds(4);
    expect(one.sender.messages).toHaveLength(5);
    for (const { authentication_uuid: id } of created) expect(await one.retry(id)).toMatchObject({ status: "approved", remaining_retry: 3 });
    for (const { authentication_uuid: id } of created) expect(await ending(one.check(id, one.sender.codeOf(id, 1)))).toBe("valid");
    await one.verifier.flush();
    await one.verifier.flush();
    for (const { authentication_uuid: id } of created) expect(one.hook.story(id)).toEqual(["1:submitted", "2:submitted"]);
    expect(tallied(await sequence(12, (i) => ending(one.create(500 + i))))).toEqual({ pending: 10, rate_limited: 2 });
    await quickly.close();
  });

  it("a process whose clock is two days ahead erases nothing that the others need", async () => {
    await twoDaysAhead(redisStore({ client: connected.client, prefix: "ahead" }));
  });

  it("the counters of a customer's caps stay small, however much is sent", async () => {
    const prefix = "small";
    const one = service({
      store: redisStore({ client: connected.client, prefix }),
      clock: undefined,
      storeTimeout: 30,
      price: 1,
      policy: { limits: { spend: [{ amount: 1e6, per: "day" }] } },
    });
    for (let i = 0; i < 1_500; i += 100)
      expect(tallied(await Promise.all(Array.from({ length: 100 }, (_, n) => ending(one.create(i + n)))))).toEqual({ pending: 100 });
    const script = "local sizes = {} for i, key in ipairs(redis.call('KEYS', ARGV[1])) do sizes[i] = redis.call('MEMORY', 'USAGE', key) end return sizes";
    const sizes = (await server.cli("EVAL", script, "0", `${prefix}*`)).split("\n").map(Number);
    expect(sizes.length).toBeGreaterThan(1_500);
    expect(Math.max(...sizes)).toBeLessThan(4_096);
    // The data of all keys, per message.
    const total = /used_memory_dataset:(\d+)/.exec(await server.cli("INFO", "memory"))?.[1];
    expect(Number(total) / 1_500).toBeLessThan(4_000);
  });

  it("20,000 due records and 300 dead letters never block Redis for 50 ms", async () => {
    const store = redisStore({ client: connected.client, prefix: "many" });
    const told = hook();
    const one = service({ store, clock: undefined, storeTimeout: 30, policy: { limits: wide }, callbacks: { sender: told } });
    told.answer = async () => ({ status: 410 });
    for (let i = 0; i < 300; i += 50) await Promise.all(Array.from({ length: 50 }, (_, n) => one.create(i + n, { callback_url: callbackUrl })));
    await one.verifier.flush();
    const now = Date.now();
    for (let i = 0; i < 20_000; i += 1_000) {
      await Promise.all(
        Array.from({ length: 1_000 }, (_, n) =>
          store.commit({
            record: {
              customer: one.customer,
              id: randomUUID(),
              tokens: [`t${i + n}`],
              data: "x".repeat(300),
              now,
              keepUntil: now + 3_600_000,
              wakeAt: now - 1_000,
            },
          }),
        ),
      );
    }
    await server.cli("CONFIG", "SET", "slowlog-log-slower-than", "50000");
    const slow: string[] = [];
    // A stalling machine is slow once, a slow script every time.
    for (let turn = 0; turn < 3 && !slow.includes("0"); turn++) {
      await server.cli("SLOWLOG", "RESET");
      expect((await one.verifier.deadLetters({ limit: 1_000 })).length).toBe(300);
      const leased = await store.lease(now, 256, now + 60_000);
      expect(leased).toHaveLength(256);
      const worker = service({
        store,
        clock: undefined,
        storeTimeout: 30,
        customer: one.customer,
        callbacks: { worker: true, pollInterval: 0.5, sender: told },
      });
      await seconds(3);
      await worker.verifier.close();
      slow.push(await server.cli("SLOWLOG", "LEN"));
    }
    expect(slow).toContain("0");
  });

  describe("a process that dies", () => {
    let script: string;
    let outDir: string;
    let host: Receiver;
    beforeAll(async () => {
      ({ script, outDir } = await bundle(new URL("dying-process.ts", import.meta.url)));
      host = await receiver();
    });
    afterAll(async () => {
      rmSync(outDir, { recursive: true });
      await host.close();
    });

    async function die(end: End) {
      const told = hook();
      const survivor = service({ store: redisStore({ client: connected.client }), clock: undefined, storeTimeout: 30, callbacks: { sender: told }, ...brief });
      const setup: Setup = { url: server.url, customer: survivor.customer, secret, number: numberAt(1), callbackUrl, idempotencyKey: "k", end };
      const child = fork(script, [JSON.stringify(setup)], { execArgv: [], stdio: ["ignore", "ignore", "inherit", "ipc"] });
      const sent: { id: string; code: string }[] = [];
      child.on("message", (message) => void sent.push(message as { id: string; code: string }));
      const [, signal] = await once(child, "exit");
      expect(signal).toBe("SIGKILL");
      return { survivor, told, sent };
    }

    it.each<End>(["written", "sent", "unsettled", "settled"])(
      "once its message is %s: another process handles the repeat without a second message, accepts a sent code, and posts the event",
      async (end) => {
        const { survivor, told, sent } = await die(end);
        const started = Date.now();
        const repeat = await survivor.create(1, { callback_url: callbackUrl }, { idempotencyKey: "k" });
        expect(repeat.status).toBe("pending");
        expect(survivor.sender.messages).toEqual([]);
        const id = repeat.authentication_uuid;
        expect(sent).toHaveLength(end === "written" ? 0 : 1);
        if (sent[0]) expect(sent[0].id).toBe(id);
        expect(await ending(survivor.check(id, "000000" === sent[0]?.code ? "111111" : "000000"))).toBe("invalid");
        // One of the number's five messages is used.
        const others = tallied(await sequence(5, () => ending(survivor.create(1))));
        expect(others).toEqual({ pending: 4, rate_limited: 1 });
        await eventually("the event", async () => {
          await survivor.verifier.flush();
          return told.story(id).length > 0;
        });
        expect(told.story(id)).toEqual([end === "settled" ? "1:submitted" : "1:unknown"]);
        if (end !== "settled") expect(Date.now() - started).toBeGreaterThan(0);
        if (sent[0]) expect(await ending(survivor.check(id, sent[0].code))).toBe("valid");
      },
    );

    it.each<End>(["written", "sent"])("once its message is %s: a retry counts once, and its code works", async (end) => {
      const { survivor } = await die(end);
      const { authentication_uuid: id } = await survivor.create(1, { callback_url: callbackUrl }, { idempotencyKey: "k" });
      await seconds(1.1);
      expect(await survivor.retry(id)).toMatchObject({ status: "approved", remaining_retry: 3 });
      expect(await ending(survivor.check(id, survivor.sender.codeOf(id)))).toBe("valid");
    });
  });
});

describe.runIf(installed)("a full Redis with noeviction", () => {
  it("rejects creates completely: memory does not grow, and no number or device is counted", async () => {
    const server = await startRedis(["--maxmemory", "4mb", "--maxmemory-policy", "noeviction"]);
    const connected = await (clients["ioredis 6"] as (of: RedisServer) => Promise<Connected>)(server);
    try {
      const one = service({
        store: redisStore({ client: connected.client }),
        clock: undefined,
        sender: sender(1),
        policy: {
          limits: {
            ...wide,
            perDevice: [{ limit: 5, window: 3600 }],
            perCustomer: [{ limit: 100_000, window: 86_400 }],
            spend: [{ amount: 100_000, per: "day" }],
          },
        },
      });
      const created: string[] = [];
      let refusals = 0;
      for (let i = 0; refusals < 50 && i < 60_000; i += 50) {
        const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => one.create(i + n, { device_id: `device-${i + n}` }).catch(() => undefined)));
        for (const answer of answers) answer ? created.push(answer.authentication_uuid) : refusals++;
      }
      expect(refusals).toBeGreaterThanOrEqual(50);
      // Leaves no room, even when client buffers shrink.
      await server.cli("CONFIG", "SET", "maxmemory", "3mb");
      const used = async () => Number(/used_memory:(\d+)/.exec(await server.cli("INFO", "memory"))?.[1]);
      const before = await used();
      const late = Array.from({ length: 1_000 }, (_, i) => 100_000 + (i % 500));
      const endings: string[] = [];
      for (let i = 0; i < late.length; i += 50)
        endings.push(...(await Promise.all(late.slice(i, i + 50).map((number) => ending(one.create(number, { device_id: `late-${number}` }))))));
      expect(tallied(endings)).toEqual({ unavailable: 1_000 });
      expect((await used()) - before).toBeLessThan(100_000);
      const sent = one.sender.messages.length;
      expect(sent).toBe(created.length);
      await server.cli("CONFIG", "SET", "maxmemory", "64mb");
      // Counts are taken back for some seconds more.
      await seconds(3);
      for (let number = 100_000; number < 100_020; number++) {
        expect(tallied(await sequence(6, () => ending(one.create(number, { device_id: `late-${number}` }))))).toEqual({ pending: 5, rate_limited: 1 });
      }
      for (const id of created.slice(0, 50)) expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
    } finally {
      await connected.close();
      await server.stop();
    }
  });
});
