import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { Redis } from "ioredis";
import { MongoClient } from "mongodb";
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import type { Store } from "../../src/ports/store.js";
import { bundle } from "../store/processes.js";
import { type Dump, dumpOfMongo, dumpOfPostgres, dumpOfRedis, dumpOfSqlite, spellingsOf, spellingsOfId, traces } from "../support/dump.js";
import { mongoServer } from "../support/mongo.js";
import { newStore, poolOf, postgresServer } from "../support/postgres.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { newFolder } from "../support/sqlite.js";
import { secret } from "../support/verifier.js";
import { at, codeAt, days, endings, expectOnly, type Party, parties, priced, room, spellingsOfCode, times } from "./deliveries-kit.js";
import { brief, type End, type Setup } from "./deliveries-process.js";
import { callbackUrl, eventually, numberAt, tallied, wide } from "./kit.js";
import { french, only, roomy, settled } from "./one-commit-kit.js";

const code = "837465";
const number = french(9_000);

/** One new store, with a handle for each process and a dump of what it holds. */
interface Opened {
  readonly handles: readonly Store[];
  dump(): Promise<Dump> | Dump;
}

type Options = NonNullable<Parameters<typeof parties>[2]>;

/** Registers the tests for one kind of store. */
function deliveryCases(open: (count: number) => Promise<Opened>): void {
  const start = async (options: Options, count = 4) => {
    const { handles, dump } = await open(count);
    const customer = randomUUID();
    return { set: parties(count, (i) => handles[i] as Store, { customer, storeTimeout: 60, ...options }), dump, customer };
  };

  it("concurrent deliveries under one key, and then of one code, send one message each time (docs/contract.md#deliver-repeats)", async () => {
    const { set } = await start({ policy: roomy });
    for (const fields of [{ idempotency_key: "k" }, { purpose: "mfa" }]) {
      const answers = await Promise.all(times(150, (i) => at(set, i).deliver(number, code, fields)));
      expect(tallied(answers.map(({ status }) => status))).toEqual({ sent: 1, repeated: 149 });
      expect(new Set(answers.map(({ delivery_uuid }) => delivery_uuid)).size).toBe(1);
    }
    expect(at(set, 0).sender.messages.map(({ attempt }) => attempt)).toEqual([1, 2]);
  });

  it("concurrent deliveries of different codes to one number send five messages, attempts 1 to 5 (docs/contract.md#caps)", async () => {
    const { set } = await start({ policy: { limits: wide } });
    expectOnly(await endings(times(60, (i) => at(set, i).deliver(number, codeAt(i)))), ["sent", "rate_limited", "unavailable"]);
    for (let i = 0; i < 6; i++) await at(set, i).deliver(number, codeAt(2_000 + i));
    expect(at(set, 0).sender.messages.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5]);
  });

  it("the customer's cap and the spend ceiling hold exactly (docs/contract.md#spend-ceiling)", async () => {
    const { set } = await start({
      price: 0.07,
      policy: { limits: { ...wide, perCustomer: [{ limit: 60, window: 3_600 }], spend: [{ amount: 2.8, per: "hour" }] } },
    });
    expectOnly(await endings(times(150, (i) => at(set, i).deliver(numberAt(i), codeAt(i)))), ["sent", "rate_limited"]);
    await room(at(set, 0), (i) => numberAt(5_000 + i));
    expect(at(set, 0).sender.messages).toHaveLength(40);
  });

  it("concurrent confirmations count once, and credit is given once (docs/contract.md#confirm)", async () => {
    const { set } = await start({ policy: { ...roomy, spam: only("range") } });
    const { delivery_uuid: id } = await at(set, 0).deliver(number, code);
    const found = await endings(times(150, (i) => at(set, i).confirm(i % 2 ? number : id)));
    expect(tallied(found)).toEqual({ confirmed: 1, already_confirmed: 149 });
    await settled();
    expect(await room(at(set, 3), french)).toBe(7);
  });

  it("growth rules hold exactly in processes that did not see the past days (docs/contract.md#growth-rules)", async () => {
    const { set } = await start({ conversion: "unknown", price: 1, policy: priced({ spam: only("range") }) });
    await days(7, at(set, 0), async () => {
      expect(tallied(await endings(times(7, (i) => at(set, i % 2).deliver(french(i), code))))).toEqual({ sent: 7 });
      await settled();
    });
    const found = await endings(times(100, (i) => at(set, 2 + (i % 2)).deliver(french(2_000 + i), codeAt(i))));
    expectOnly(found, ["sent", "spam_detected"]);
    await room(at(set, 0), (i) => french(5_000 + i));
    expect(at(set, 0).sender.messages).toHaveLength(49 + 26);
  });

  it("the store holds no code and no whole number, and no trace of the number after an erasure (docs/contract.md#erase)", async () => {
    const { set, dump, customer } = await start({ policy: roomy, statistics: {} });
    const [one, two] = set as [Party, Party];
    const ids: string[] = [];
    for (const fields of [{}, { text: `Ihr Zugang: ${code}`, correlation_id: "my-reference" }, { callback_url: callbackUrl }, { idempotency_key: "k" }]) {
      one.clock.advance(31_000);
      ids.push((await one.deliver(number, code, fields)).delivery_uuid as string);
    }
    await settled();
    expect(traces(await dump(), [...spellingsOfCode(code), "Zugang", ...spellingsOf(number, number)])).toEqual([]);
    await two.confirm(number);
    ids.push((await two.deliver(number, "222222")).delivery_uuid as string);
    await settled();
    expect(traces(await dump(), ["222222", ...spellingsOf(number, number)])).toEqual([]);
    await two.verifier.erase({ customer_uuid: customer, phone_number: number });
    await settled();
    expect(await endings(ids.map((id) => one.confirm(id)))).toEqual(ids.map(() => "not_found"));
    const left = traces(await dump(), [...spellingsOf(number, "+33612****00"), "my-reference", ...ids.flatMap(spellingsOfId)]);
    expect(left).toEqual([]);
  });
}

describe.runIf(redisIsInstalled("deliveries on Redis"))("on Redis", () => {
  let server: RedisServer;
  const connections: Redis[] = [];
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(async () => {
    for (const one of connections) one.disconnect();
    await server?.stop();
  });
  const connect = () => {
    const client = new Redis(server.url).on("error", () => {});
    connections.push(client);
    return client;
  };

  deliveryCases(async (count) => {
    // A dump reads every key.
    await server.cli("FLUSHALL");
    return { handles: times(count, () => redisStore({ client: connect() })), dump: () => dumpOfRedis(server) };
  });

  describe("a process that dies", () => {
    let built: Awaited<ReturnType<typeof bundle>>;
    beforeAll(async () => {
      built = await bundle(new URL("./deliveries-process.ts", import.meta.url));
    });
    afterAll(() => built && rmSync(built.outDir, { recursive: true }));

    it.each<End>(["written", "sent", "unsettled", "settled"])(
      "once its message is %s: another process returns `repeated` without a second message, reports the event and goes on (docs/contract.md#deliver-repeats)",
      async (end) => {
        const customer = randomUUID();
        const [one] = parties(1, redisStore({ client: connect() }), { customer, clock: undefined, storeTimeout: 30, ...brief }) as [Party];
        const setup: Setup = { url: server.url, customer, secret, number, code, callbackUrl, end };
        const child = fork(built.script, [JSON.stringify(setup)], { execArgv: [], stdio: ["ignore", "ignore", "inherit", "ipc"] });
        const sent: { id: string; attempt: number }[] = [];
        child.on("message", (message) => void sent.push(message as { id: string; attempt: number }));
        expect((await once(child, "exit"))[1]).toBe("SIGKILL");
        const answers = await Promise.all(times(10, () => one.deliver(number, code, { callback_url: callbackUrl, idempotency_key: "k" })));
        expect(tallied(answers.map(({ status }) => status))).toEqual({ repeated: 10 });
        expect(one.sender.messages).toEqual([]);
        expect(sent).toHaveLength(end === "written" ? 0 : 1);
        const id = answers[0]?.delivery_uuid as string;
        if (sent[0]) expect(sent[0].id).toBe(id);
        const firsts = () => one.hook.story(id).filter((event) => event.startsWith("1:"));
        await eventually("the event", async () => {
          await one.verifier.flush();
          return firsts().length > 0;
        });
        expect(firsts()).toEqual([end === "settled" ? "1:submitted" : "1:unknown"]);
        // One of the number's five is used, and the next message is the next attempt.
        expect(await room(one, () => number)).toBe(4);
        expect(one.sender.messages.map(({ authentication_uuid, attempt }) => [authentication_uuid, attempt])).toEqual(
          [2, 3, 4, 5].map((attempt) => [id, attempt]),
        );
        expect(await endings([one.confirm(id)])).toEqual(["confirmed"]);
      },
    );
  });
});

const postgres = await postgresServer("deliveries on PostgreSQL");
describe.runIf(postgres)("on PostgreSQL", () => {
  const pools: Pool[] = [];
  afterAll(async () => {
    await Promise.all(pools.map((one) => one.end()));
    await postgres?.stop();
  });
  deliveryCases(async (count) => {
    const { url, close } = await newStore(postgres);
    await close();
    const own = times(count, () => poolOf(url, { max: 4 }));
    pools.push(...own);
    return { handles: own.map((pool) => postgresStore({ pool })), dump: () => dumpOfPostgres(own[0] as Pool) };
  });
});

describe("on SQLite", () => {
  const folders: ReturnType<typeof newFolder>[] = [];
  afterAll(() => {
    for (const { remove } of folders) remove();
  });
  deliveryCases(async (count) => {
    const folder = newFolder();
    folders.push(folder);
    return { handles: times(count, () => sqliteStore({ file: folder.file, busyTimeout: 30_000 })), dump: () => dumpOfSqlite(folder.file) };
  });
});

const mongo = await mongoServer("deliveries on MongoDB");
describe.runIf(mongo)("on MongoDB", () => {
  const clients: MongoClient[] = [];
  afterAll(async () => {
    await Promise.all(clients.map((one) => one.close()));
    await mongo?.stop();
  });
  deliveryCases(async (count) => {
    const name = `otp-${randomUUID().slice(0, 8)}`;
    const own = await Promise.all(times(count, () => new MongoClient(mongo?.url as string, { directConnection: true }).connect()));
    clients.push(...own);
    const handles = own.map((client) => mongoStore({ db: client.db(name) }));
    await handles[0]?.ensureIndexes();
    return { handles, dump: () => dumpOfMongo(own[0] as MongoClient, name) };
  });
});
