import { randomUUID } from "node:crypto";
import type { MongoClientOptions } from "mongodb";
import { afterAll, describe, expect, it } from "vitest";
import { type MongoCollection, type MongoDb, mongoStore } from "../../adapters/store/mongo/index.js";
import type { Clock } from "../../src/ports/clock.js";
import type { Store } from "../../src/ports/store.js";
import { type Connected, drivers, newDatabase, type OwnMongoServer, ownMongoServer } from "../support/mongo.js";
import { until } from "../support/redis.js";
import { startProxy } from "../support/redis-proxy.js";
import { type Answer, newNumber, type Service, serviceOn } from "../support/redis-service.js";

/** "Every request ends within its one deadline for all store calls (2 s)"; what is above it is the test machine's. */
const deadline = 2_000 + 8_000;
/** "service is back within 2 s of the client being able to reach the server"; what is above it is the test machine's. */
const back = 2_000 + 8_000;

/** The options that docs/stores.md names: with them a call to a server that is gone ends by itself, and its connection is given up. */
const limits: MongoClientOptions = { serverSelectionTimeoutMS: 2_000, connectTimeoutMS: 2_000, socketTimeoutMS: 2_000 };

const clients: Record<string, (url: string) => Promise<Connected>> = {
  "mongodb 7": (url) => drivers["mongodb 7"](url, newDatabase(), limits),
  "mongodb 6": (url) => drivers["mongodb 6"](url, newDatabase(), limits),
  "mongodb 7 with its defaults": (url) => drivers["mongodb 7"](url, newDatabase()),
};

const figures: Record<string, Record<string, string | number>> = {};
const server = await ownMongoServer("faults of MongoDB");
afterAll(() => server?.stop());

/** 200, or 503 with `Retry-After`, and never later than the deadline. */
function expectInTime(answers: readonly Answer[]): void {
  for (const { status, retryAfter, body, ms } of answers) {
    expect([200, 503]).toContain(status);
    if (status === 503) expect({ retryAfter, code: body.code }).toEqual({ retryAfter: "2", code: "unavailable" });
    expect(ms).toBeLessThan(deadline);
  }
}

const refused = (answers: readonly Answer[]) => answers.filter(({ status }) => status === 503).length;
const slowest = (answers: readonly Answer[]) => Math.round(Math.max(...answers.map(({ ms }) => ms)));

/** How long it takes, in milliseconds, until a request is served. */
async function timeUntilServed(service: Service): Promise<number> {
  const started = performance.now();
  await until("the service is back", async () => (await service.create(newNumber())).status === 200);
  return Math.round(performance.now() - started);
}

/** Creates and checks go on while the server goes down; then it is asked some more, and comes back. */
async function throughOutage(service: Service, down: () => Promise<void>, up: () => Promise<void>) {
  const acknowledged = await Promise.all(Array.from({ length: 10 }, () => service.create(newNumber())));
  expect(acknowledged.map(({ status }) => status)).toEqual(acknowledged.map(() => 200));
  const guessed = (await service.create(newNumber())).body.authentication_uuid;
  const crowded = newNumber();
  const wrong = service.wrongCodeFor(guessed);

  const burst: Promise<Answer>[] = [];
  const guesses: Promise<Answer>[] = [];
  for (let turn = 0; turn < 20; turn++) {
    burst.push(service.create(crowded), service.create(newNumber()));
    guesses.push(service.check(guessed, wrong));
    if (turn === 10) {
      await burst[4];
      await down();
    }
  }
  const during = await Promise.all([...burst, ...guesses]);
  expectInTime(during);

  const sentBefore = service.sent.length;
  const closed = await Promise.all([service.create(newNumber()), service.check(guessed, service.codeOf(guessed)), service.retry(guessed)]);
  expectInTime(closed);
  expect(refused(closed)).toBe(closed.length);
  expect(service.sent).toHaveLength(sentBefore);

  await up();
  const served = await timeUntilServed(service);
  expect(served).toBeLessThan(back);
  return {
    acknowledged: acknowledged.map(({ body }) => body.authentication_uuid),
    /** What was acknowledged is judged by, and no budget is exceeded. */
    async expectKept(): Promise<number> {
      for (const { body } of acknowledged) {
        expect((await service.check(body.authentication_uuid, service.codeOf(body.authentication_uuid))).body.status).toBe("valid");
      }
      const later = await Promise.all(Array.from({ length: 10 }, () => service.check(guessed, wrong)));
      const judged = [...(await Promise.all(guesses)), ...later].filter(({ body }) => body.status === "invalid").length;
      expect(judged).toBeLessThanOrEqual(5);
      await Promise.all(Array.from({ length: 10 }, () => service.create(crowded)));
      expect(service.sent.filter(({ to }) => to === crowded).length).toBeLessThanOrEqual(5);
      return judged;
    },
    figures: { "requests refused": refused(during), "slowest answer ms": slowest([...during, ...closed]), "served again after ms": served },
  };
}

describe.runIf(server)("faults of MongoDB", () => {
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
          expect(ms).toBeLessThan(2_000 + 8_000);
        }
        figures[`gone, ${name}`] = { "slowest answer ms": Math.round(Math.max(...rejections.map(({ ms }) => ms))) };
        await close();
      },
      40_000,
    );

    it("stopped in the middle of a burst: nothing acknowledged is lost", async () => {
      const { db, close } = await connect(mongo.url);
      const service = serviceOn(mongoStore({ db }));
      await service.create(newNumber());
      const outage = await throughOutage(
        service,
        async () => mongo.signal("SIGSTOP"),
        async () => mongo.signal("SIGCONT"),
      );
      figures[`stopped, ${name}`] = { ...outage.figures, "wrong codes judged": await outage.expectKept() };
      await close();
    });

    it("killed and started again: it serves, and what the server has kept stands", async () => {
      // For the mark alone: the store itself asks a standalone server to write its journal first.
      const { db, client, close } = await connect(`${mongo.url}?journal=true`);
      const service = serviceOn(mongoStore({ db }));
      await client.db(db.databaseName).collection("mark").insertOne({});
      const outage = await throughOutage(
        service,
        () => mongo.kill(),
        () => mongo.restart(),
      );
      const kept = (await client.db(db.databaseName).collection("mark").findOne({})) !== null;
      if (kept) await outage.expectKept();
      else {
        const checks = await Promise.all(outage.acknowledged.map((id) => service.check(id, service.codeOf(id))));
        expect(checks.map(({ body }) => body.code)).toEqual(checks.map(() => "invalid_auth_uuid"));
      }
      figures[`killed, ${name}`] = { ...outage.figures, "authentications lost": kept ? 0 : `${outage.acknowledged.length}: this server keeps nothing on disk` };
      await close();
    });

    it("slow: right while it is in time, 503 when it is not", async () => {
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

    it("stopped in the middle of a retry's write, it loses the retry, and neither a rung, the cool-down nor a code", async () => {
      const { db, close } = await connect(mongo.url);
      let stopping = false;
      // The server stops just before what the retry claims reaches it, and does the work when it goes on: the answer is late.
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

    it("answers cut off after the write: nothing is sent, no guess is free, a check with an Idempotency-Key is answered as it was judged", async () => {
      const proxy = await startProxy(mongo.port);
      const { db, close } = await connect(`mongodb://127.0.0.1:${proxy.port}`);
      const service = serviceOn(mongoStore({ db }));
      const { authentication_uuid: guessed } = (await service.create(newNumber())).body;
      const { authentication_uuid: validated } = (await service.create(newNumber())).body;
      const sentBefore = service.sent.length;
      proxy.cutAnswers(true);
      const during = [await service.create(newNumber())];
      for (let turn = 0; turn < 3; turn++) during.push(await service.check(guessed, service.wrongCodeFor(guessed)));
      during.push(await service.check(validated, service.codeOf(validated), "key"));
      expectInTime(during);
      expect(refused(during)).toBe(during.length);
      expect(service.sent).toHaveLength(sentBefore);
      proxy.cutAnswers(false);
      const served = await timeUntilServed(service);
      expect(served).toBeLessThan(back);
      expect((await service.check(validated, service.codeOf(validated), "key")).body.status).toBe("valid");
      expect((await service.check(validated, service.codeOf(validated))).body.status).toBe("already_validated");
      let judged = 0;
      while ((await service.check(guessed, service.wrongCodeFor(guessed))).body.status === "invalid") judged += 1;
      expect(judged).toBeLessThanOrEqual(5);
      figures[`answers cut, ${name}`] = {
        "requests refused": refused(during),
        "slowest answer ms": slowest(during),
        "served again after ms": served,
        "wrong codes judged": judged,
      };
      await close();
      await proxy.close();
    });
  });
});
