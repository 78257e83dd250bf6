import { randomUUID } from "node:crypto";
import { type CommandStartedEvent, MongoClient } from "mongodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type MongoDb, type MongoStore, mongoStore } from "../../adapters/store/mongo/index.js";
import type { Claim, StoredRecord } from "../../src/ports/store.js";
import { type Connected, drivers, dropDatabase, mongoServer, newDatabase } from "../support/mongo.js";

const length = 600_000;
const keepUntil = Date.now() + 1_800_000;

/** A document as it is stored. The driver's types take no object for a key, so that of a record passes for a text. */
type Stored = Record<string, unknown> & { _id: string };

function recordKey(customer: string, id: string): string {
  return { customer, id } as unknown as string;
}

function claim(window: string, fields: Partial<Claim> = {}): Claim {
  const now = fields.now ?? Date.now();
  return { window, member: randomUUID(), limit: 1, since: now - length, now, keepUntil: now + length, ...fields };
}

function record(fields: Partial<StoredRecord> = {}): StoredRecord {
  return { customer: randomUUID(), id: randomUUID(), tokens: [randomUUID()], data: "data", keepUntil, ...fields };
}

describe("the options of mongoStore", () => {
  const client = new MongoClient("mongodb://127.0.0.1:1");
  const wrong: Record<string, unknown> = {
    nothing: undefined,
    null: null,
    "a URL": "mongodb://127.0.0.1",
    "an object": {},
    "a client": client,
    "a collection": client.db("x").collection("y"),
    "a function": () => client.db("x"),
  };

  it.each(Object.keys(wrong))("%s for `db` is a TypeError that names the option and the mend", (name) => {
    const build = () => mongoStore({ db: wrong[name] as MongoDb });
    expect(build).toThrow(TypeError);
    expect(build).toThrow(/option `db`.*pass `client\.db\(\)`/);
  });

  it.each(["", "a b", "a$", "a{b}", "system.x", "x".repeat(65), 5])("%j for `prefix` is a TypeError that names the option", (prefix) => {
    expect(() => mongoStore({ db: client.db("x"), prefix: prefix as string })).toThrow(/option `prefix`/);
  });

  it("neither connects nor reads anything before it is used", () => {
    expect(Object.keys(mongoStore({ db: client.db("x"), prefix: "my.app-2_" }))).toContain("ensureIndexes");
  });
});

const server = await mongoServer("the store on MongoDB");
afterAll(() => server?.stop());

describe.runIf(server)("mongoStore", () => {
  const url = server?.url ?? "";
  const name = newDatabase();
  const commands: CommandStartedEvent[] = [];
  let connected: Connected;
  let store: MongoStore;

  const collection = (of: string) => connected.client.db(name).collection<Stored>(`phoneproof_${of}`);
  const sentBy = async (run: () => Promise<unknown>) => {
    commands.length = 0;
    await run();
    return commands.map(({ commandName }) => commandName);
  };

  beforeAll(async () => {
    connected = await drivers["mongodb 7"](url, name, { monitorCommands: true, retryWrites: true, writeConcern: { w: 1, journal: true, wtimeoutMS: 1_500 } });
    connected.client.on("commandStarted", (event) => commands.push(event));
    store = mongoStore({ db: connected.db });
    await store.ensureIndexes();
  });

  afterAll(async () => {
    await connected?.close();
    await dropDatabase(url, name);
  });

  describe("round trips", () => {
    const window = () => `${randomUUID()}:w`;

    it("find, get, put, count and due are one each; a swap is one, and two when it is lost", async () => {
      const first = record({ wakeAt: 1 });
      const next = { ...first, tokens: [randomUUID(), ...first.tokens] };
      const { wakeAt, ...last } = { ...next, tokens: [randomUUID(), ...next.tokens] };
      expect(await sentBy(() => store.find(first.customer, first.id))).toEqual(["find"]);
      expect(await sentBy(() => store.compareAndSwap(first, null))).toEqual(["insert"]);
      expect(await sentBy(() => store.compareAndSwap(record({ ...first, tokens: ["x"] }), null))).toEqual(["insert", "find"]);
      expect(await sentBy(() => store.compareAndSwap(next, first.tokens[0] as string))).toEqual(["findAndModify"]);
      expect(await sentBy(() => store.compareAndSwap(record({ ...first, tokens: ["x"] }), first.tokens[0] as string))).toEqual(["findAndModify", "find"]);
      expect(await sentBy(() => store.due(2, 10))).toEqual(["find"]);
      expect(await sentBy(() => store.compareAndSwap(last, next.tokens[0] as string))).toEqual(["findAndModify"]);
      expect(await sentBy(() => store.put("key", "value", keepUntil))).toEqual(["update"]);
      expect(await sentBy(() => store.get("key"))).toEqual(["find"]);
      expect(await sentBy(() => store.count([window(), window()].map((window) => ({ window, since: 0 }))))).toEqual(["aggregate"]);
    });

    it("reserve is one for any number of windows, two with a limit above 1,000, two when the first window refuses, three when a later one does", async () => {
      const [a, b, c, large] = ["z", "y", "x", "a"].map((last) => `${randomUUID()}:${last}`) as [string, string, string, string];
      const windows = (last: string) => ["z", "y", "x"].map((first) => `00000000-0000-4000-8000-${last}:${first}`) as [string, string, string];
      const [first, second, third] = windows("000000000001");
      expect(await sentBy(() => store.reserve([claim(first), claim(second, { limit: 5 }), claim(second, { limit: 9 }), claim(third, { limit: 5 })]))).toEqual([
        "update",
      ]);
      expect(await sentBy(() => store.reserve([claim(first), claim(second)]))).toEqual(["update", "aggregate"]);
      expect(await sentBy(() => store.reserve([claim(a), claim(b), claim(c)]))).toEqual(["update"]);
      expect(await sentBy(() => store.reserve([claim(large, { limit: 5_000 })]))).toEqual(["update", "insert"]);
      const [above, , full] = windows("000000000002");
      expect(await sentBy(() => store.reserve([claim(full)]))).toEqual(["update"]);
      expect(await sentBy(() => store.reserve([claim(above), claim(full)]))).toEqual(["update", "aggregate", "update"]);
    });
  });

  it("asks for majority writes and majority reads, whatever the defaults of `db`, and keeps its journal and wtimeoutMS", async () => {
    const kept = record();
    commands.length = 0;
    await store.compareAndSwap(kept, null);
    await store.compareAndSwap({ ...kept, tokens: ["t"] }, kept.tokens[0] as string);
    await store.reserve([claim(`${kept.customer}:w`)]);
    await store.put("key", "value", keepUntil);
    expect(commands.map(({ command }) => command.writeConcern)).toEqual(commands.map(() => ({ w: "majority", j: true, wtimeout: 1_500 })));
    commands.length = 0;
    await store.find(kept.customer, kept.id);
    await store.count([{ window: "w", since: 0 }]);
    await store.due(0, 1);
    await store.get("key");
    expect(commands.map(({ command }) => command.readConcern)).toEqual(commands.map(() => ({ level: "majority" })));
  });

  describe("ensureIndexes", () => {
    it("makes an index for due, and one on the end of everything, which comes late and never early", async () => {
      await store.ensureIndexes();
      const indexes = async (of: string) => (await collection(of).indexes()).filter((index) => index.name !== "_id_");
      expect(await indexes("authentications")).toMatchObject([
        { key: { wakeAt: 1 }, partialFilterExpression: { wakeAt: { $exists: true } } },
        { key: { expireAt: 1 }, expireAfterSeconds: 600 },
      ]);
      for (const of of ["windows", "members", "values"]) expect(await indexes(of)).toMatchObject([{ key: { expireAt: 1 }, expireAfterSeconds: 600 }]);
    });

    it("surfaces what the server has against an index, with the name of the collection", async () => {
      const other = mongoStore({ db: connected.db, prefix: "other_" });
      await connected.client.db(name).collection("other_windows").createIndex({ expireAt: 1 }, { name: "expireAt", expireAfterSeconds: 1 });
      await expect(other.ensureIndexes()).rejects.toThrow(/^mongoStore: Mongo.*\(creating the indexes of other_windows\)$/);
    });

    it("makes the index that due uses", async ({ skip }) => {
      const plan = await collection("authentications")
        .find({ wakeAt: { $lte: 5 } })
        .sort({ wakeAt: 1 })
        .limit(5)
        .explain("queryPlanner")
        .catch((error: { code?: number }) => (error.code === 59 ? undefined : Promise.reject(error)));
      if (plan === undefined) skip("this server has no explain");
      expect(JSON.stringify(plan)).toContain('"indexName":"wakeAt"');
      expect(JSON.stringify(plan)).not.toContain('"SORT"');
    });
  });

  it("keeps a record so that an operator can read it", async () => {
    const kept = record({ wakeAt: 7 });
    await store.compareAndSwap(kept, null);
    const { customer, id, ...fields } = kept;
    expect(await collection("authentications").findOne({ _id: recordKey(customer, id) })).toEqual({
      _id: { customer, id },
      ...fields,
      expireAt: new Date(keepUntil),
    });
    const { wakeAt, ...quiet } = { ...kept, tokens: ["t"] };
    await store.compareAndSwap(quiet, kept.tokens[0] as string);
  });

  describe("a corrupt record", () => {
    const broken: Record<string, Record<string, unknown>> = {
      "no tokens": { tokens: [] },
      "a token that is no text": { tokens: [1] },
      "data that is no text": { data: { $ne: 1 } },
      "no data": { data: undefined },
      "a keepUntil that is no number": { keepUntil: "soon" },
      "a wakeAt that is no number": { wakeAt: "now" },
    };

    it.each(Object.keys(broken))("with %s is told with its id, and left as it is", async (name) => {
      const { customer, id, ...fields } = record();
      const _id = recordKey(customer, id);
      await collection("authentications").insertOne({ _id, ...fields, ...broken[name] }, { ignoreUndefined: true });
      const before = await collection("authentications").findOne({ _id });
      const told = new RegExp(`authentication ${id} .* is corrupt`);
      await expect(store.find(customer, id)).rejects.toThrow(told);
      await expect(store.compareAndSwap(record({ customer, id }), null)).rejects.toThrow(told);
      await expect(store.compareAndSwap(record({ customer, id }), "other")).rejects.toThrow(told);
      expect(await collection("authentications").findOne({ _id })).toEqual(before);
      await collection("authentications").deleteOne({ _id });
    });

    it("does not hold up the work on others, and is told when nothing else is due", async () => {
      const { customer, id, ...fields } = record({ wakeAt: 1 });
      const _id = recordKey(customer, id);
      await collection("authentications").insertOne({ _id, ...fields, data: 5 });
      const good = record({ wakeAt: 2 });
      await store.compareAndSwap(good, null);
      expect(await store.due(2, 10)).toEqual([good]);
      await expect(store.due(1, 10)).rejects.toThrow(new RegExp(`authentication ${id} `));
      await collection("authentications").deleteMany({ _id: { $in: [_id, recordKey(good.customer, good.id)] } });
    });
  });

  it.each([
    ["answers an old wire version", async () => ({ maxWireVersion: 8 })],
    ["does not know hello", () => Promise.reject(Object.assign(new Error("no such command"), { code: 59 }))],
  ])("a server that %s is too old, and that is said at first use", async (_, command) => {
    const db = { databaseName: name, collection: () => ({}), command } as unknown as MongoDb;
    await expect(mongoStore({ db }).find("c", "i")).rejects.toThrow("the server behind option `db` is too old: use MongoDB 4.4 or newer");
  });

  it("puts nothing that is stored into an error", async () => {
    const window = `${randomUUID()}:n:+14155550100`;
    await collection("windows").insertOne({ _id: window, members: "+14155550100", keepUntil, expireAt: new Date(keepUntil) });
    const error: Error = await store.reserve([claim(window, { member: "+14155550101" })]).then(
      () => expect.unreachable(),
      (reason) => reason,
    );
    expect(error.message).toMatch(/^mongoStore: Mongo/);
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain("1415555");
    expect(await collection("windows").findOne({ _id: window })).toMatchObject({ members: "+14155550100" });
  });

  describe.each([
    ["3", 3],
    ["2,000", 2_000],
  ])("twins under a limit of %s", (_, limit) => {
    it("do not take back each other's charge when one of them is refused elsewhere", async () => {
      for (let round = 0; round < 10; round++) {
        const customer = randomUUID();
        const [shared, full] = [`${customer}:s`, `${customer}:f`];
        const member = randomUUID();
        await store.reserve([claim(full)]);
        const twins = Array.from({ length: 30 }, (_, i) =>
          store.reserve(i % 3 === 0 ? [claim(shared, { member, limit })] : [claim(shared, { member, limit }), claim(full, { member })]),
        );
        const outcomes = await Promise.all(twins);
        expect(outcomes.filter(({ granted }) => granted)).toHaveLength(10);
        expect(await store.count([{ window: shared, since: 0 }])).toEqual([1]);
      }
    });

    it("leave nothing when all of them are refused elsewhere, and what was there before", async () => {
      const customer = randomUUID();
      // `t` is charged before `s`, the last name first, so that every twin charges `t` before it is refused.
      const [shared, held, full] = [`${customer}:t`, `${customer}:u`, `${customer}:s`];
      const member = randomUUID();
      const now = Date.now();
      await store.reserve([claim(full)]);
      await store.reserve([claim(held, { member, limit, now: now - length / 2 })]);
      const claims = () => [claim(shared, { member, limit, now }), claim(held, { member, limit, now }), claim(full, { member, now })];
      const outcomes = await Promise.all(Array.from({ length: 30 }, () => store.reserve(claims())));
      expect(outcomes.filter(({ granted }) => granted)).toEqual([]);
      expect(
        await store.count([
          { window: shared, since: 0 },
          { window: held, since: 0 },
          { window: held, since: now - length / 4 },
        ]),
      ).toEqual([0, 1, 0]);
    });
  });

  it("keeps a window small however often a member comes again", async () => {
    const [small, large] = [`${randomUUID()}:w`, `${randomUUID()}:w`];
    const member = randomUUID();
    const start = Date.now() - length;
    for (let i = 0; i < 60; i++) {
      const now = start + i * 10_000;
      await store.reserve([claim(small, { member, now, limit: 2 }), claim(large, { member, now, limit: 2_000 })]);
    }
    const kept = async (window: string, field: string) => ((await collection("windows").findOne({ _id: window }))?.[field] as unknown[] | undefined)?.length;
    expect(await kept(small, "members")).toBeLessThan(10);
    expect(await kept(large, "slots")).toBeLessThan(15);
    expect(
      await store.count([
        { window: small, since: 0 },
        { window: large, since: 0 },
      ]),
    ).toEqual([1, 1]);
  });

  it("forgets members and sub-windows that have ended when the window is used again", async () => {
    const window = `${randomUUID()}:w`;
    const now = Date.now();
    const both = (at: number) =>
      [claim(window, { limit: 2, now: at, since: at - 1_000 }), claim(window, { limit: 2_000, now: at })].map((one, _, [first]) => ({
        ...one,
        member: (first as Claim).member,
      }));
    for (let i = 0; i < 3; i++) expect(await store.reserve(both(now + i * 2_000))).toEqual({ granted: true });
    const later = now + 4 * length;
    expect(await store.reserve(both(later))).toEqual({ granted: true });
    expect(await collection("windows").findOne({ _id: window })).toMatchObject({
      members: [{ at: later }],
      slots: [{ count: 1 }],
      expireAt: new Date(later + length),
    });
  });
});
