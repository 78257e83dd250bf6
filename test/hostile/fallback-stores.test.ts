import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { MongoClient } from "mongodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { type CodeMessage, createVerifier, type Verifier } from "../../src/index.js";
import { type FixedClock, fixedClock } from "../../src/testing/index.js";
import { bundle } from "../store/processes.js";
import { mongoServer } from "../support/mongo.js";
import { newStore, postgresServer } from "../support/postgres.js";
import { type RedisCluster, type RedisServer, redisIsInstalled, startCluster, startRedis } from "../support/redis.js";
import { newFolder } from "../support/sqlite.js";
import { secret } from "../support/verifier.js";
import { brief, type End, openStore, type Place, receipts, type Setup, silentFirst, type Told } from "./fallback-process.js";
import { callbackUrl, type Hook, hook, numberAt } from "./kit.js";

type Sent = Extract<Told, { readonly sent: unknown }>;

let built: Awaited<ReturnType<typeof bundle>>;
beforeAll(async () => {
  built = await bundle(new URL("./fallback-process.ts", import.meta.url));
});
afterAll(() => built && rmSync(built.outDir, { recursive: true }));

/** Runs a process until it is killed, by itself or by the test, and returns what it sent. */
async function runKilled(setup: Setup): Promise<readonly Sent[]> {
  const child = fork(built.script, [JSON.stringify(setup)], { execArgv: [], stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const sent: Sent[] = [];
  child.on("message", (told: Told) => {
    if ("sent" in told) sent.push(told);
    else if (told.lived === 10_000) child.kill("SIGKILL");
  });
  expect((await once(child, "exit"))[1]).toBe("SIGKILL");
  return sent;
}

/** A process that survives. */
interface Survivor {
  readonly verifier: Verifier;
  readonly clock: FixedClock;
  readonly sent: { readonly route: string; readonly message: CodeMessage }[];
  readonly hook: Hook;
  close(): Promise<void>;
}

async function survive(place: Place, customer: string, now: number): Promise<Survivor> {
  const { store, close } = await openStore(place);
  const clock = fixedClock(now);
  const sent: Survivor["sent"] = [];
  const hooked = hook();
  const sender = silentFirst(async (route, message) => {
    sent.push({ route, message });
    return { outcome: "accepted" };
  }, clock);
  const verifier = createVerifier({
    store,
    secret,
    countries: "all",
    customers: [{ customer_uuid: customer, keys: ["k".repeat(40)] }],
    ...brief,
    clock,
    receipts,
    callbacks: { worker: false, sender: hooked },
    sender,
  });
  return {
    verifier,
    clock,
    sent,
    hook: hooked,
    async close() {
      await verifier.close();
      await close();
    },
  };
}

/** Runs all workers until everything that can still be sent is sent. */
async function exhaust(set: readonly Survivor[]): Promise<void> {
  for (let i = 0; i < 8; i++) {
    for (const { clock } of set) clock.advance(60_000);
    await Promise.all(set.map(({ verifier }) => verifier.flush()));
  }
}

const everyEnd: readonly End[] = ["written", "sent", "unsettled", "settled"];

const storyOf = (sent: readonly { readonly route: string; readonly id: string; readonly attempt: number }[], id: string) =>
  sent.filter((one) => one.id === id).map(({ route, attempt }) => `${attempt} ${route}`);
const inThis = ({ sent }: Survivor) => sent.map(({ route, message }) => ({ route, id: message.authentication_uuid, attempt: message.attempt }));
const inThat = (sent: readonly Sent[]) => sent.map(({ route, sent: { authentication_uuid: id, attempt } }) => ({ route, id, attempt }));

/**
 * Registers the tests of killed processes for one kind of store. `ends`: where the process is killed; all of them with
 * a store that commits at once and with one that commits in two steps.
 */
function deaths(open: () => Promise<Place>, ends: readonly End[] = ["sent"]): void {
  /** The present, because stores delete what is past by their own clocks. */
  const now = () => Math.floor(Date.now() / 1000) * 1000;
  const begin = async (count = 1, callbacks = true) => {
    const [place, customer, from] = [await open(), randomUUID(), now()];
    const setup = { place, customer, secret, callbackUrl };
    const numbers = Array.from({ length: count }, (_, i) => numberAt(i));
    const first = await runKilled({ ...setup, now: from, task: { create: numbers, callbacks } });
    expect(first.map(({ route, sent: { attempt, to } }) => [route, attempt, to])).toEqual(numbers.map((number) => ["wa", 1, number]));
    return { place, customer, from, setup, first };
  };

  it("after the process is killed at 10 s, two others send the SMS at 20 s exactly once, and both codes are live (docs/contract.md#fallback-worker)", async () => {
    const { place, customer, from, first } = await begin(20, false);
    const set = await Promise.all([survive(place, customer, from + 19_000), survive(place, customer, from + 19_000)]);
    await Promise.all(set.map(({ verifier }) => verifier.flush()));
    expect(set.flatMap(inThis)).toEqual([]);
    for (const { clock } of set) clock.set(from + 20_000);
    // On a busy store a worker takes only some of the records, and the rest with the next poll.
    for (let i = 0; i < 5; i++) {
      await Promise.all(set.map(({ verifier }) => verifier.flush()));
      for (const { clock } of set) clock.advance(1_000);
    }
    const told = set.flatMap(inThis);
    expect(told).toHaveLength(20);
    for (const [i, { sent }] of first.entries()) {
      const { authentication_uuid: id, code: firstCode, to } = sent;
      expect(storyOf(told, id)).toEqual(["2 sms"]);
      const { message } = set.flatMap((one) => one.sent).find(({ message: { authentication_uuid } }) => authentication_uuid === id)!;
      expect(message.to).toBe(to);
      const { left } = await set[0].verifier.explain({ customer_uuid: customer, authentication_uuid: id });
      expect(left).toMatchObject({ retries: 4, checks: 5 });
      const check = (check_code: string) => set[i % 2 ? 1 : 0]!.verifier.check({ customer_uuid: customer, authentication_uuid: id, check_code });
      const [one, other] = i % 4 < 2 ? [firstCode, message.code] : [message.code, firstCode];
      expect((await check(one)).status).toBe("valid");
      expect((await check(other)).status).toBe("already_validated");
    }
    await exhaust(set);
    expect(set.flatMap(inThis)).toHaveLength(20);
    await Promise.all(set.map((one) => one.close()));
  });

  it.each(ends)(
    "after the process is killed once its fallback is %s, nothing is sent again and nothing is lost (docs/contract.md#fallback-worker)",
    async (end) => {
      const { place, customer, from, setup, first } = await begin();
      const { authentication_uuid: id, code: firstCode } = first[0]!.sent;
      const second = await runKilled({ ...setup, now: from + 20_000, task: { flush: end } });
      expect(storyOf(inThat(second), id)).toEqual(end === "written" ? [] : ["2 sms"]);
      const set = await Promise.all([survive(place, customer, from + 90_000), survive(place, customer, from + 90_000)]);
      const [one, two] = set as [Survivor, Survivor];
      const target = { customer_uuid: customer, authentication_uuid: id };
      for (let i = 0; i < 30; i++) {
        for (const { clock } of set) clock.advance(5_000);
        await Promise.all(set.map(({ verifier }) => verifier.flush()));
      }
      // A fallback that was written may have been sent: it counts as sent, and is not sent again.
      expect(set.flatMap(inThis)).toEqual([]);
      const firsts = set.flatMap(({ hook: hooked }) => hooked.story(id)).filter((event) => event.startsWith("2:"));
      expect([...new Set(firsts)]).toEqual([end === "settled" ? "2:submitted" : "2:unknown"]);
      // No retry and no check is used up.
      expect((await two.verifier.explain(target)).left).toMatchObject({ retries: 4, checks: 5 });
      expect(await one.verifier.check({ ...target, check_code: second[0]?.sent.code ?? firstCode })).toMatchObject({ status: "valid" });
      await exhaust(set);
      expect(set.flatMap(inThis)).toEqual([]);
      await Promise.all(set.map((each) => each.close()));
    },
  );

  it("after the process is killed before the carrier had the fallback, a retry sends attempt 3, and only its code is valid", async () => {
    const { place, customer, from, setup, first } = await begin();
    const { authentication_uuid: id, code } = first[0]!.sent;
    await runKilled({ ...setup, now: from + 20_000, task: { flush: "written" } });
    const one = await survive(place, customer, from + 180_000);
    const target = { customer_uuid: customer, authentication_uuid: id };
    await one.verifier.flush();
    expect((await one.verifier.retry(target)).status).toBe("approved");
    expect(inThis(one)).toMatchObject([{ attempt: 3 }]);
    // The first code is not one of the newest two that may have been sent.
    expect((await one.verifier.check({ ...target, check_code: code })).status).toBe("invalid");
    expect((await one.verifier.check({ ...target, check_code: one.sent[0]!.message.code })).status).toBe("valid");
    await one.close();
  });
}

describe.runIf(redisIsInstalled("fallbacks on Redis"))("on Redis", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.stop());
  deaths(async () => {
    await server.cli("FLUSHALL");
    return { kind: "redis", url: server.url };
  }, everyEnd);
});

describe.runIf(redisIsInstalled("fallbacks on a Redis cluster"))("on a Redis cluster", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());
  deaths(async () => {
    for (const master of cluster.masters) await master.cli("FLUSHALL");
    return { kind: "cluster", ports: cluster.nodes.map(({ port }) => port) };
  });
});

const postgres = await postgresServer("fallbacks on PostgreSQL");
describe.runIf(postgres)("on PostgreSQL", () => {
  afterAll(() => postgres?.stop());
  deaths(async () => {
    const { url, close } = await newStore(postgres);
    await close();
    return { kind: "postgres", url };
  });
});

describe("on SQLite", () => {
  const folders: ReturnType<typeof newFolder>[] = [];
  afterAll(() => {
    for (const { remove } of folders) remove();
  });
  deaths(async () => {
    const folder = newFolder();
    folders.push(folder);
    return { kind: "sqlite", url: folder.file };
  });
});

const mongo = await mongoServer("fallbacks on MongoDB");
describe.runIf(mongo)("on MongoDB", () => {
  afterAll(() => mongo?.stop());
  deaths(async () => {
    const database = `otp-${randomUUID().slice(0, 8)}`;
    const client = await new MongoClient(mongo?.url as string, { directConnection: true }).connect();
    await mongoStore({ db: client.db(database) }).ensureIndexes();
    await client.close();
    return { kind: "mongo", url: mongo?.url as string, database };
  }, everyEnd);
});
