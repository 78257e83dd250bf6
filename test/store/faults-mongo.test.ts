import { randomUUID } from "node:crypto";
import type { MongoClientOptions } from "mongodb";
import { afterAll, describe, expect, it } from "vitest";
import { type MongoCollection, type MongoDb, mongoStore } from "../../adapters/store/mongo/index.js";
import type { Clock } from "../../src/ports/clock.js";
import type { Store } from "../../src/ports/store.js";
import { type Connected, drivers, newDatabase, type OwnMongoServer, ownMongoServer } from "../support/mongo.js";
import { until } from "../support/redis.js";
import { startProxy } from "../support/redis-proxy.js";
import { type Answer, newNumber, serviceOn } from "../support/redis-service.js";
import { deadline, expectInTime, type Figures, refused, slowest, throughCuts, throughOutage } from "./faults.js";

/**
 * The options that docs/stores.md recommends: with them, a call to a server that is gone ends by itself and its
 * connection is dropped.
 */
const limits: MongoClientOptions = { serverSelectionTimeoutMS: 2_000, connectTimeoutMS: 2_000, socketTimeoutMS: 2_000 };

const clients: Record<string, (url: string) => Promise<Connected>> = {
  "mongodb 7": (url) => drivers["mongodb 7"](url, newDatabase(), limits),
  "mongodb 6": (url) => drivers["mongodb 6"](url, newDatabase(), limits),
  "mongodb 7 with its defaults": (url) => drivers["mongodb 7"](url, newDatabase()),
};

const figures: Record<string, Figures> = {};
const server = await ownMongoServer("faults of MongoDB");
afterAll(() => server?.stop());

describe.runIf(server)("MongoDB failures", () => {
  const mongo = server as OwnMongoServer;

  afterAll(() => {
    console.log("MongoDB under faults:");
    console.table(figures);
  });

  describe.each(Object.entries(clients))("through %s", (name, connect) => {
    const ends = name in drivers ? it : undefined;
    ends?.(
      "gone: every call rejects within the time the client's options set",
      async () => {
        const proxy = await startProxy(mongo.port);
        const { db, close } = await connect(`mongodb://127.0.0.1:${proxy.port}`);
        const store = mongoStore({ db });
        const now = Date.now();
        const expiry = { now, keepUntil: now + 1_800_000 };
        const kept = { customer: randomUUID(), id: randomUUID(), tokens: ["t"], data: "d", ...expiry };
        const fresh = () => `${randomUUID()}:w`;
        const since = now - 1_000;
        const calls: Record<string, (of: Store) => Promise<unknown>> = {
          find: (of) => of.find(kept.customer, kept.id),
          create: (of) => of.commit({ record: { ...kept, id: randomUUID() } }),
          write: (of) => of.commit({ record: { ...kept, tokens: ["u", "t"] }, expected: "t" }),
          "claim in a window": (of) => of.commit({ claims: [{ window: fresh(), member: "m", limit: 5, since, ...expiry }] }),
          "claim in a list": (of) => of.commit({ claims: [{ window: fresh(), member: "m", since, ...expiry }] }),
          "claim in a sum": (of) => of.commit({ claims: [{ sum: fresh(), weight: 1, part: 1, parts: 3, ...expiry }] }),
          "take out": (of) => of.commit({ claims: [{ window: fresh(), member: "m", out: true, since, ...expiry }] }),
          ask: (of) => of.commit({ asks: [{ sum: fresh(), part: 1, parts: 3 }] }),
          members: (of) => of.members(fresh(), 1),
          tally: (of) => of.tally([{ counter: fresh(), by: 1, ...expiry }], []),
          lease: (of) => of.lease(0, 1, 1),
          get: (of) => of.get("key"),
          put: (of) => of.put("key", "value", expiry),
          delete: (of) => of.delete({ windows: [fresh()] }),
          ensureIndexes: () => store.ensureIndexes(),
        };
        await store.commit({ record: kept });
        for (const call of Object.values(calls)) await call(store);
        await proxy.close();
        const rejections = await Promise.all(
          Object.entries(calls).map(async ([what, call]) => {
            const started = performance.now();
            const message = await call(store).then(
              () => `${what} answered`,
              (error: Error) => error.message,
            );
            return { message, ms: performance.now() - started };
          }),
        );
        for (const { message, ms } of rejections) {
          expect(message).toMatch(/^mongoStore: Mongo/);
          expect(ms).toBeLessThan(deadline);
        }
        figures[`gone, ${name}`] = { "slowest answer ms": Math.round(Math.max(...rejections.map(({ ms }) => ms))) };
        await close();
      },
      40_000,
    );

    it("a server stopped during a burst loses nothing acknowledged", async () => {
      const { db, close } = await connect(mongo.url);
      const service = serviceOn(mongoStore({ db }));
      await service.create(newNumber());
      figures[`stopped, ${name}`] = await throughOutage(
        service,
        () => mongo.signal("SIGSTOP"),
        () => mongo.signal("SIGCONT"),
      );
      await close();
    });

    it("a server killed and restarted serves again, and what it has stored is intact", async () => {
      // For the mark only: the store itself asks a standalone server to write its journal first.
      const { db, client, close } = await connect(`${mongo.url}?journal=true`);
      const service = serviceOn(mongoStore({ db }));
      await client.db(db.databaseName).collection("mark").insertOne({});
      const hasKept = async () => (await client.db(db.databaseName).collection("mark").findOne({})) !== null;
      figures[`killed, ${name}`] = await throughOutage(service, mongo.kill, mongo.restart, hasKept);
      await close();
    });

    it("a slow server gives correct results within the deadline, and 503 beyond it", async () => {
      const proxy = await startProxy(mongo.port);
      const { db, close } = await connect(`mongodb://127.0.0.1:${proxy.port}`);
      const service = serviceOn(mongoStore({ db }));
      await service.create(newNumber());
      proxy.delay(50);
      const created = await service.create(newNumber());
      const { authentication_uuid: id } = created.body;
      const checked = await service.check(id, service.codeOf(id));
      expect([created.body.status, checked.body.status]).toEqual(["pending", "valid"]);
      const sentBefore = service.sent.length;
      proxy.delay(5_000);
      const late = await Promise.all([service.create(newNumber()), service.check(id, "000000")]);
      expectInTime(late);
      expect(refused(late)).toBe(2);
      expect(service.sent).toHaveLength(sentBefore);
      figures[`slow, ${name}`] = { "slowest answer ms": slowest(late) };
      proxy.delay(0);
      await close();
      await proxy.close();
    });

    it("a retry whose write hits a stopped server is lost, and costs no attempt, no cool-down and no code", async () => {
      const { db, close } = await connect(mongo.url);
      let stopping = false;
      // The server stops just before the retry's claims reach it, and does the work once it resumes: the response is
      // late.
      const hanging: MongoDb = {
        databaseName: db.databaseName,
        command: (command) => db.command(command),
        collection: (...args) =>
          new Proxy(db.collection(...args), {
            get(target, method: keyof MongoCollection) {
              if (stopping && method === "bulkWrite") {
                stopping = false;
                mongo.signal("SIGSTOP");
              }
              return target[method].bind(target);
            },
          }),
      };
      let ahead = 0;
      const clock: Clock = {
        now: () => Date.now() + ahead,
        after(ms, run) {
          const timer = setTimeout(run, ms);
          return () => clearTimeout(timer);
        },
      };
      const service = serviceOn(mongoStore({ db: hanging }), { clock });
      const { authentication_uuid: id } = (await service.create(newNumber())).body;
      const first = service.codeOf(id);
      ahead += 31_000;
      stopping = true;
      const late = await service.retry(id);
      mongo.signal("SIGCONT");
      expect([late.status, service.sent.length]).toEqual([503, 1]);
      expectInTime([late]);
      await until("the retry is taken back", async () => (await service.retry(id)).body.status === "approved");
      expect(service.sent).toHaveLength(2);
      const { status, remaining_retry } = (await service.retry(id)).body as Answer["body"] & { remaining_retry: number };
      expect([status, remaining_retry]).toEqual(["denied", 3]);
      expect((await service.check(id, first)).body.status).toBe("valid");
      await close();
    });

    it("responses cut off after the write: nothing is sent, wrong codes stay limited, and a check repeated with its Idempotency-Key gets its result", async () => {
      const proxy = await startProxy(mongo.port);
      const { db, close } = await connect(`mongodb://127.0.0.1:${proxy.port}`);
      const service = serviceOn(mongoStore({ db }));
      figures[`answers cut, ${name}`] = await throughCuts(service, proxy.cutAnswers);
      await close();
      await proxy.close();
    });
  });
});
