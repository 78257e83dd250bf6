import type { Db, MongoClient, MongoClientOptions } from "mongodb";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type MongoDb, mongoStore } from "../../adapters/store/mongo/index.js";
import { drivers, mongoServer, newDatabase } from "../support/mongo.js";
import { aboutStore, counted, flow, newNumber, outcome, processOn, rightFlow } from "./store-users-kit.js";

const server = await mongoServer("mongo-users");
const collections = ["phoneproof_state", "phoneproof_counters", "phoneproof_values"];

describe.skipIf(!server)("MongoDB as self-hosters run it", () => {
  const url = server?.url as string;
  let client: MongoClient;
  beforeAll(async () => {
    ({ client } = await drivers["mongodb 7"](url, newDatabase()));
  });
  afterAll(async () => {
    await client.close();
    await server?.stop();
  });

  /** A database for one test. */
  function database(name = newDatabase()): Db {
    const db = client.db(name);
    onTestFinished(() => db.dropDatabase().then(() => {}));
    return db;
  }
  const errorOf = (work: () => unknown): unknown => {
    try {
      work();
      return undefined;
    } catch (error) {
      return error;
    }
  };

  const careless: MongoClientOptions[] = [
    { writeConcern: { w: 0 }, readPreference: "secondary", retryWrites: false },
    { ignoreUndefined: true, promoteValues: false, promoteLongs: false },
    { useBigInt64: true, bsonRegExp: true, serializeFunctions: true, checkKeys: true },
    { raw: true, monitorCommands: true, fieldsAsRaw: { data: true } },
    { serverApi: { version: "1", strict: true, deprecationErrors: true } },
    { maxPoolSize: 1, retryReads: false, readConcern: { level: "local" } },
  ];

  it.each(Object.entries(drivers))("decides the same whatever the client's defaults are: %s (docs/stores.md#mongodb)", async (_, connect) => {
    for (const options of careless) {
      const name = newDatabase();
      const { db, close } = await connect(url, name, options);
      const store = mongoStore({ db });
      const one = processOn(store);
      const phone_number = newNumber();
      const sends = await Promise.all(Array.from({ length: 12 }, () => outcome(one.verifier.createAuthentication({ phone_number }))));
      expect(counted(sends), JSON.stringify(options)).toEqual({ pending: 5, rate_limited: 7 });
      expect(await flow(one), JSON.stringify(options)).toBe(rightFlow);
      await store.ensureIndexes();
      await store.ensureIndexes();
      expect(await one.verifier.ping(), JSON.stringify(options)).toMatchObject({ ok: true, store: { missing: [] } });
      await close();
      expect(await outcome(one.verifier.createAuthentication({ phone_number: newNumber() })), JSON.stringify(options)).toBe("unavailable");
      database(name);
    }
  });

  it("throws a TypeError about `db` if it is a client, a collection, a promise, an address or nothing (the types of phoneproof/mongo)", () => {
    const db = database();
    for (const wrong of [client, db.collection("x"), Promise.resolve(db), "mongodb://127.0.0.1", {}, null, undefined, () => db]) {
      const error = errorOf(() => mongoStore({ db: wrong as unknown as MongoDb }));
      expect(error).toBeInstanceOf(TypeError);
      expect((error as Error).message).toContain("`db`");
    }
  });

  it("accepts every prefix that a collection name can begin with, and throws for every other (the types of phoneproof/mongo)", async () => {
    for (const prefix of ["a", "a.", "a.b_", "_", "A-", "p".repeat(64)]) {
      const store = mongoStore({ db: database(), prefix });
      await store.ensureIndexes();
      expect(await flow(processOn(store)), prefix).toBe(rightFlow);
    }
    for (const prefix of ["", "p".repeat(65), "$a", "a b", "é", "system.", ".", ".a", ".."]) {
      expect(
        errorOf(() => mongoStore({ db: database(), prefix })),
        prefix,
      ).toBeInstanceOf(TypeError);
    }
  });

  it("doctor and ping report missing indexes before the first request (docs/stores.md#the-client-is-yours, MongoDB's indexes)", async () => {
    const store = mongoStore({ db: database() });
    const { verifier } = processOn(store);
    expect((await verifier.ping()).store.missing).not.toEqual([]);
    expect((await aboutStore(verifier)).some(({ fix }) => fix.includes("ensureIndexes"))).toBe(true);
  });

  it("doctor names a missing index once data is stored, and none after ensureIndexes (docs/stores.md#the-client-is-yours)", async () => {
    const db = database();
    const store = mongoStore({ db });
    const one = processOn(store, { statistics: { keep: 86_400 } });
    expect(await flow(one)).toBe(rightFlow);
    const found = await aboutStore(one.verifier);
    expect(found.find(({ fix }) => fix.includes("ensureIndexes"))).toMatchObject({
      level: "fault",
      message: expect.stringContaining("phoneproof_state.expireAt"),
    });
    await Promise.all(Array.from({ length: 5 }, () => mongoStore({ db }).ensureIndexes()));
    expect((await one.verifier.ping()).store.missing).toEqual([]);
    expect((await aboutStore(one.verifier)).filter(({ fix }) => fix.includes("ensureIndexes"))).toEqual([]);
  });

  it("sends no message if a collection rejects its documents (docs/contract.md#fail-closed)", async () => {
    const spoiled: Record<string, (db: Db) => Promise<unknown>> = {
      "a validator": (db) => db.createCollection(collections[0] as string, { validator: { $jsonSchema: { bsonType: "object", required: ["owner"] } } }),
      "a view": async (db) => {
        await db.createCollection("base");
        await db.createCollection(collections[0] as string, { viewOn: "base", pipeline: [] });
      },
      "a unique index that every document violates": async (db) => {
        const state = db.collection(collections[0] as string);
        await state.createIndex({ owner: 1 }, { unique: true });
        await state.insertOne({ other: true });
      },
    };
    for (const [name, spoil] of Object.entries(spoiled)) {
      const db = database();
      await spoil(db);
      const one = processOn(mongoStore({ db }));
      expect(await outcome(one.verifier.createAuthentication({ phone_number: newNumber() })), name).toBe("unavailable");
      expect(one.sent, name).toEqual([]);
    }
  });

  it("works with foreign documents in its collections", async () => {
    const db = database();
    for (const name of collections) await db.collection(name).insertMany([{ a: 1 }, { expireAt: new Date(0) }]);
    const store = mongoStore({ db });
    await store.ensureIndexes();
    expect(await flow(processOn(store))).toBe(rightFlow);
  });

  it("returns invalid_auth_uuid after the database was dropped, and works again by itself (docs/operations.md#when-something-is-down)", async () => {
    const db = database();
    const one = processOn(mongoStore({ db }));
    const { authentication_uuid } = await one.verifier.createAuthentication({ phone_number: newNumber() });
    await db.dropDatabase();
    expect(await outcome(one.verifier.check({ authentication_uuid, check_code: one.codeOf(authentication_uuid) }))).toBe("invalid_auth_uuid");
    expect(await flow(one)).toBe(rightFlow);
  });

  it("gives a customer at most two keys, however many processes issue them (docs/contract.md#key-rotation)", async () => {
    const db = database();
    const processes = Array.from({ length: 4 }, () => processOn(mongoStore({ db }), { customers: "store", storeTimeout: 60 }));
    const customers = processes.map(({ verifier }) => verifier.customers);
    const { customer_uuid } = await processOn(mongoStore({ db }), { customers: "store" }).verifier.customers.create();
    const issued = await Promise.all(customers.flatMap(({ keys }) => [1, 2].map(() => outcome(keys.issue({ customer_uuid })))));
    expect(counted(issued)).toEqual({ active: 2, bad_request: 6 });
  });
});
