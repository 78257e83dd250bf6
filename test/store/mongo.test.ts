import { randomUUID } from "node:crypto";
import { type CommandStartedEvent, MongoClient } from "mongodb";
import { MongoClient as MongoClient6 } from "mongodb6";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { reconnect } from "../../adapters/store/mongo/driver.js";
import { type MongoCollection, type MongoDb, type MongoStore, mongoStore } from "../../adapters/store/mongo/index.js";
import type { Change, Claim, MemberClaim, RecordWrite, SumClaim, SumParts } from "../../src/ports/store.js";
import { type Connected, drivers, dropDatabase, mongoServer, newDatabase } from "../support/mongo.js";
import { freePort } from "../support/ports.js";
import { startProxy } from "../support/redis-proxy.js";

const length = 600_000;
const day = 24 * 60 * 60 * 1000;

/** A stored document. The driver's types accept no object as a key, so a record's key is cast to a string. */
type Stored = Record<string, unknown> & { _id: string };

function key(fields: Record<string, string>): string {
  return fields as unknown as string;
}

function recordKey({ customer, id }: { customer: string; id: string }): string {
  return key({ customer, id });
}

/** A name that belongs to a new customer. */
const name = () => `${randomUUID()}:w`;

function member(window: string, fields: Partial<MemberClaim> = {}): MemberClaim {
  const now = fields.now ?? Date.now();
  return { window, member: randomUUID(), since: now - length, now, keepUntil: now + length, ...fields };
}

/** The parts of `sum` that count: three, of which 700,000 is the newest. */
function partsOf(sum: string, fields: Partial<SumParts> = {}): SumParts {
  return { sum, part: 700_000, parts: 3, ...fields };
}

function weight(sum: string, weight: number, fields: Partial<SumClaim> = {}): SumClaim {
  const now = fields.now ?? Date.now();
  return { ...partsOf(sum), weight, now, keepUntil: now + 2 * length, ...fields };
}

function record(fields: Partial<RecordWrite> = {}): RecordWrite {
  const now = fields.now ?? Date.now();
  return { customer: randomUUID(), id: randomUUID(), tokens: [randomUUID()], data: "data", now, keepUntil: now + length, ...fields };
}

/** The write that follows `before`, with the token that it expects. */
function following(before: RecordWrite, fields: Partial<RecordWrite> = {}): Pick<Change, "record" | "expected"> & { record: RecordWrite } {
  const { wakeAt, ...rest } = before;
  return { record: record({ ...rest, tokens: [randomUUID(), ...before.tokens], ...fields }), expected: before.tokens[0] as string };
}

/** The database, with `between` replacing methods of its collections. */
function meddled(db: MongoDb, between: (target: MongoCollection, method: keyof MongoCollection) => unknown): MongoDb {
  const collection = (...args: Parameters<MongoDb["collection"]>) =>
    new Proxy(db.collection(...args), { get: (target, method: keyof MongoCollection) => between(target, method) ?? target[method].bind(target) });
  return { databaseName: db.databaseName, collection, command: (command) => db.command(command) };
}

/** The database with a count of round trips: requests sent before a response can have come share one. */
function counted(db: MongoDb): { db: MongoDb; roundTrips(run: () => Promise<unknown>): Promise<number> } {
  let trips = 0;
  let departing: Promise<void> | undefined;
  function depart(): Promise<void> {
    departing ??= new Promise((done) => {
      trips += 1;
      setImmediate(() => {
        departing = undefined;
        done();
      });
    });
    return departing;
  }
  const call =
    (method: (...args: never[]) => unknown) =>
    (...args: never[]) =>
      depart().then(() => method(...args));
  const cursor =
    (method: (...args: never[]) => unknown) =>
    (...args: never[]) => ({ toArray: () => depart().then(() => (method(...args) as { toArray(): Promise<unknown[]> }).toArray()) });
  return {
    db: meddled(db, (target, method) => {
      const own = target[method].bind(target) as (...args: never[]) => unknown;
      return method === "find" || method === "aggregate" ? cursor(own) : call(own);
    }),
    async roundTrips(run) {
      trips = 0;
      await run();
      return trips;
    },
  };
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

  it.each(Object.keys(wrong))("%s as `db` is a TypeError that names the option and the fix", (name) => {
    const build = () => mongoStore({ db: wrong[name] as MongoDb });
    expect(build).toThrow(TypeError);
    expect(build).toThrow(/option `db`.*client\.db\(\)/);
  });

  it.each(["", "a b", "a$", "a{b}", "system.x", "a.system.x", ".", ".a", "..", "x".repeat(65), 5])(
    "%j as `prefix` is a TypeError that names the option",
    (prefix) => {
      expect(() => mongoStore({ db: client.db("x"), prefix: prefix as string })).toThrow(/option `prefix`/);
    },
  );

  it("does not connect or read anything before it is used", () => {
    expect(Object.keys(mongoStore({ db: client.db("x"), prefix: "my.app-2_" }))).toContain("ensureIndexes");
  });
});

const server = await mongoServer("the store on MongoDB");
afterAll(() => server?.stop());

describe.runIf(server)("mongoStore", () => {
  it("does not connect a client that its owner closed while a call was in progress", async () => {
    let connected = 0;
    const client = { topology: undefined, connect: async () => void connected++ };
    const closed = Object.assign(new Error("Topology is closed"), { name: "MongoTopologyClosedError" });
    await expect(reconnect({ client } as unknown as MongoDb, closed)).rejects.toBe(closed);
    expect(connected).toBe(0);
  });

  it.each([
    ["mongodb 7", MongoClient],
    ["mongodb 6", MongoClient6],
  ])("%s, first used while the server is down, connects once it responds, unless its owner closed it", async (_, Client) => {
    const { port: target } = new URL(server?.url as string);
    const port = await freePort();
    const client = new Client(`mongodb://127.0.0.1:${port}/unused`, { serverSelectionTimeoutMS: 100 });
    const store = mongoStore({ db: client.db() as MongoDb });
    for (let tries = 1; tries <= 2; tries++) await expect(store.get("key")).rejects.toThrow("ECONNREFUSED");
    const proxy = await startProxy(Number(target), port);
    try {
      expect(await store.get("key")).toBeUndefined();
      await client.close();
      await expect(store.get("key")).rejects.toThrow("Client must be connected");
    } finally {
      await client.close();
      await proxy.close();
    }
  });

  const url = server?.url ?? "";
  const database = newDatabase();
  const commands: CommandStartedEvent[] = [];
  let connected: Connected;
  let store: MongoStore;

  const collection = (of: string) => connected.client.db(database).collection<Stored>(`phoneproof_${of}`);
  const document = (_id: Record<string, string>) => collection("state").findOne({ _id: key(_id) });
  const sentBy = async (run: () => Promise<unknown>) => {
    commands.length = 0;
    await run();
    return commands.map(({ commandName }) => commandName).sort();
  };
  /** Commits, and returns the counts. */
  const counts = async (...claims: Claim[]) => {
    const result = await store.commit({ claims });
    return result.done ? result.counts : expect.unreachable(`refused by ${result.refusedBy}`);
  };
  /** How many members a window holds since `since`: taking out an unknown member returns that. */
  const members = async (window: string, since = 0, limit?: number) =>
    (await counts(member(window, { since, out: true, ...(limit === undefined ? {} : { limit }) })))[0] as number;
  const total = async (sum: string, fields: Partial<SumParts> = {}) => {
    const result = await store.commit({ asks: [partsOf(sum, fields)] });
    return result.done ? result.asked[0] : expect.unreachable();
  };
  /**
   * A store whose first bulk write with more than one statement is cut off after `most` statements, as if the server
   * died. `late` sends the remaining statements.
   */
  const cut = (most: number) => {
    const held: (() => Promise<unknown>)[] = [];
    let isCut = false;
    const db = meddled(connected.db, (target, method) =>
      method !== "bulkWrite"
        ? undefined
        : async (statements: readonly unknown[], options: object) => {
            if (isCut || statements.length < 2) return target.bulkWrite(statements as never, options);
            isCut = true;
            if (most > 0) await target.bulkWrite(statements.slice(0, most) as never, options);
            held.push(() => target.bulkWrite(statements.slice(most) as never, options));
            throw new Error("the server is gone");
          },
    );
    const late = () => Promise.allSettled(held.map((send) => send()));
    return { store: mongoStore({ db }), late };
  };

  beforeAll(async () => {
    connected = await drivers["mongodb 7"](url, database, { monitorCommands: true, retryWrites: true, writeConcern: { w: 1, wtimeoutMS: 1_200 } });
    connected.client.on("commandStarted", (event) => commands.push(event));
    store = mongoStore({ db: connected.db });
    await store.ensureIndexes();
  });

  afterAll(async () => {
    await connected?.close();
    await dropDatabase(url, database);
  });

  /** A create with an address and a device: three windows, one of them under two limits, seven sums, and a record. */
  function create(customer: string = randomUUID(), at: Partial<SumParts> = {}): Change & { readonly record: RecordWrite; readonly claims: Claim[] } {
    const to = record({ customer });
    const own = { member: to.id, now: to.now };
    const cells = ["b:1", "b:2", "b:3", "m:1", "b:c:FR", "b:a:1"].map((cell) => weight(`${customer}:${cell}`, 1_000_000, { limit: 1e13, ...at }));
    return {
      record: to,
      counts: [],
      claims: [
        member(`${customer}:n:1`, { ...own, limit: 500 }),
        member(`${customer}:n:1`, { ...own, limit: 900, since: to.now - day }),
        member(`${customer}:d:1`, { ...own, limit: 500 }),
        member(`${customer}:dn:1`, { ...own, limit: 500 }),
        weight(`${customer}:c`, 1_000_000, { limit: 1e13, parts: 13, ...at }),
        ...cells,
      ],
    };
  }

  /**
   * The check of the right code after it: the cells get back their message and two more, the number is recorded as
   * verified, and wrong codes are limited.
   */
  function check(before: RecordWrite, at: Partial<SumParts> = {}): Change & { readonly record: RecordWrite; readonly claims: Claim[] } {
    const { customer } = before;
    const cells = ["b:1", "b:2", "b:3", "b:c:FR", "b:a:1"].map((cell) => weight(`${customer}:${cell}`, 1 - 3_000_000, at));
    const growth = weight(`${customer}:c`, 1 - 3_000_000, { parts: 13, ...at });
    const guesses = weight(`${customer}:g:1`, 0, { limit: 49, ...at });
    return { ...following(before), counts: [], claims: [guesses, member(`${customer}:v:1`, { member: before.id, limit: 1_000 }), ...cells, growth] };
  }

  describe("round trips and commands", () => {
    let counting: ReturnType<typeof counted>;
    let own: MongoStore;
    const trips = (change: Change) => counting.roundTrips(() => own.commit(change));

    beforeAll(async () => {
      counting = counted(connected.db);
      own = mongoStore({ db: counting.db });
      await own.get("known");
    });

    it("a create and a check of the right code each take one command, on new and on existing sums", async () => {
      const customer = randomUUID();
      for (let i = 0; i < 3; i++) {
        const change = create(customer);
        expect(await sentBy(() => store.commit(change))).toEqual(["update"]);
        expect(await sentBy(() => store.commit(check(change.record)))).toEqual(["update"]);
      }
      const change = create(customer);
      expect([await trips(change), await trips(check(change.record))]).toEqual([1, 1]);
      expect(await total(`${customer}:b:1`)).toBe(4 * (1 - 2_000_000));
      expect(await total(`${customer}:g:1`)).toBe(0);
    });

    it("returning counts or sums takes one more round trip", async () => {
      const { counts: _, ...change } = create();
      const asks = [partsOf(`${change.record.customer}:b:1`)];
      expect(await sentBy(() => store.commit({ ...change, asks }))).toEqual(["find", "update"]);
      const again = create(change.record.customer);
      expect(await trips({ ...again, counts: [4] })).toBe(2);
      const last = await store.commit({ ...create(change.record.customer), counts: [4], asks });
      const unread = Array.from({ length: 11 }, () => undefined);
      expect(last).toEqual({ done: true, counts: unread.with(4, 3_000_000 as never), asked: [3_000_000] });
      expect(await trips({ asks })).toBe(1);
      expect(await trips({ claims: [member(name())] })).toBe(2);
    });

    it("the first create in a new part takes three round trips and the first check two; later ones take one", async () => {
      const { record: first, ...change } = create();
      await store.commit({ ...change, record: first });
      const next = create(first.customer, { part: 700_001 });
      expect(await trips(next)).toBe(3);
      expect(await trips(create(first.customer, { part: 700_001 }))).toBe(1);
      expect(await trips(check(next.record, { part: 700_002 }))).toBe(2);
      expect(await trips(check(first, { part: 700_002 }))).toBe(1);
      expect(await total(`${first.customer}:b:1`, { part: 700_002 })).toBe(3_000_000 + 2 * (1 - 3_000_000));
      expect(await total(`${first.customer}:b:1`, { part: 700_003 })).toBe(2_000_000 + 2 * (1 - 3_000_000));
    });

    it("a lost race takes one more round trip, a read with read concern `local`", async () => {
      const { record: first } = create();
      expect(await trips({})).toBe(0);
      expect(await trips({ record: first })).toBe(1);
      for (const lost of [{ record: record({ ...first, tokens: ["x"] }) }, { ...following(first), expected: "x" }, following(record())]) {
        expect(await trips(lost)).toBe(2);
        expect(await sentBy(() => store.commit(lost))).toEqual(["find", "update"]);
        expect(commands.find(({ commandName }) => commandName === "find")?.command.readConcern).toEqual({ level: "local" });
      }
      expect(await trips(following(first))).toBe(1);
      expect(await collection("state").countDocuments({ _id: { $type: "null" as never } })).toBe(0);
    });

    it("a rejection that undoes claims takes three round trips; a claim that no sum can ever grant is rejected in one and adds nothing", async () => {
      const { claims, record: first } = create();
      const full = weight(`~${name()}`, 2, { limit: 1 });
      expect(await trips({ claims: [full], record: first })).toBe(1);
      expect(await trips({ claims: [...claims, full], record: first })).toBe(1);
      const taken = weight(`${first.customer}:taken`, 1, { limit: 1 });
      await store.commit({ claims: [taken] });
      expect(await trips({ claims: [...claims, taken], record: first })).toBe(3);
      await store.commit({ record: first });
      expect(await trips({ claims, record: record({ ...first, tokens: ["x"] }) })).toBe(3);
      expect([await total(`${first.customer}:b:1`), await members(`${first.customer}:d:1`, 0, 1)]).toEqual([0, 0]);
    });

    it("revoking another write's claims takes one more round trip", async () => {
      const { record: first, claims } = create();
      await store.commit({ record: first, claims });
      expect(await trips({ ...following(first), revoke: { token: first.tokens[0] as string, claims } })).toBe(2);
      expect([await total(`${first.customer}:b:1`), await members(`${first.customer}:d:1`, 0, 1)]).toEqual([0, 0]);
    });

    it("find, get, put and members take one round trip, tally two, lease three, and fewer if there is less to do", async () => {
      const waking = record({ wakeAt: 5 });
      const { customer, id } = waking;
      await store.commit({ record: waking });
      const expiry = { now: 0, keepUntil: length };
      expect(await counting.roundTrips(() => own.find(customer, id))).toBe(1);
      expect(await counting.roundTrips(() => own.put("key", "value", expiry))).toBe(1);
      expect(await counting.roundTrips(() => own.get("key"))).toBe(1);
      expect(await counting.roundTrips(() => own.members(name(), 10))).toBe(1);
      expect(await counting.roundTrips(() => own.tally([{ counter: name(), by: 1, ...expiry }], ["a", "b"]))).toBe(2);
      expect(await counting.roundTrips(() => own.tally([], ["a", "b"]))).toBe(1);
      expect(await counting.roundTrips(() => own.tally([{ counter: name(), by: 1, ...expiry }], []))).toBe(1);
      expect(await counting.roundTrips(() => own.lease(5, 10, 6))).toBe(3);
      expect(await counting.roundTrips(() => own.lease(5, 10, 6))).toBe(1);
      await store.commit(following(waking));
    });

    it("results longer than the default first batch of 101 need no second batch", async () => {
      const window = name();
      const now = Date.now();
      await store.commit({ claims: Array.from({ length: 150 }, (_, i) => member(window, { now, member: `${i}` })), counts: [] });
      const counters = Array.from({ length: 150 }, (_, i) => `${window}:${i}`);
      expect(await sentBy(() => store.members(window, 10_000))).toEqual(["find", "find"]);
      expect(await sentBy(() => store.tally([], counters))).toEqual(["find"]);
    });
  });

  describe("a write that the driver repeats gives the same result as the first time", () => {
    /** mongod's response to a repeated write. */
    const answers: Record<string, (answer: Record<string, unknown>) => unknown> = {
      "an update": (answer) => ({ ...answer, matchedCount: 1, modifiedCount: 0, upsertedCount: 0 }),
      "an insert": (answer) => ({ ...answer, matchedCount: 0, upsertedCount: 1, upsertedIds: {} }),
      "an upsert that answers null": () => null,
    };
    it.each(Object.keys(answers))("%s: limits, counts and records are correct", async (what) => {
      const repeating = mongoStore({
        db: meddled(connected.db, (target, method) =>
          method === "bulkWrite"
            ? async (statements: never, options: object) => answers[what]?.((await target.bulkWrite(statements, options)) as Record<string, unknown>)
            : undefined,
        ),
      });
      const [sum, window] = [name(), name()];
      for (let i = 1; i <= 8; i++) {
        expect(await repeating.commit({ claims: [weight(sum, 1)] })).toMatchObject({ counts: [i] });
        expect(await repeating.commit({ claims: [member(window, { limit: 8 })], record: record() })).toMatchObject({ counts: [i] });
      }
      expect(await repeating.commit({ claims: [weight(sum, 1, { limit: 8 })] })).toEqual({ done: false, refusedBy: 0, count: 8, roomPart: 700_003 });
      const kept = record();
      expect(await repeating.commit({ record: kept })).toMatchObject({ done: true });
      expect(await repeating.commit({ record: { ...kept, tokens: ["x"] } })).toMatchObject({ done: false, current: { tokens: kept.tokens } });
    });

    it("eight additions return 1 to 8 if a replica set's fail point failCommand makes the driver repeat the sixth", async ({ skip }) => {
      const admin = connected.client.db("admin");
      const writeConcernError = { code: 91, errmsg: "Replication is being shut down", errorLabels: ["RetryableWriteError"] };
      const failOnce = () => admin.command({ configureFailPoint: "failCommand", mode: { times: 1 }, data: { failCommands: ["update"], writeConcernError } });
      if ((await admin.command({ hello: 1 }))["setName"] === undefined) skip("this server is no replica set");
      const can = await failOnce().then(
        () => true,
        () => false,
      );
      if (!can) skip("this server was started without enableTestCommands");
      await admin.command({ configureFailPoint: "failCommand", mode: "off" });
      const sum = name();
      const told: unknown[] = [];
      for (let i = 1; i <= 8; i++) {
        if (i === 6) await failOnce();
        told.push(await store.commit({ claims: [weight(sum, 1)] }));
      }
      expect(told).toMatchObject([1, 2, 3, 4, 5, 6, 7, 8].map((count) => ({ counts: [count] })));
      expect(await store.commit({ claims: [weight(sum, 1, { limit: 8 })] })).toMatchObject({ done: false, count: 8 });
    });

    it("commits do not use findAndModify, which would ignore the projection in a repeat", async () => {
      const { record: first, claims } = create();
      const sent = await sentBy(async () => {
        for (const change of [{ claims, record: first }, check(first), { claims: [weight(`${first.customer}:c`, 1, { limit: 0 })] }])
          await store.commit(change);
      });
      expect(new Set(sent)).toEqual(new Set(["find", "update"]));
    });
  });

  describe("acknowledgement", () => {
    const servers = {
      "a replica set": { hello: { setName: "rs0" }, concern: { w: "majority", wtimeout: 1_200 } },
      "a sharded cluster": { hello: { msg: "isdbgrid" }, concern: { w: "majority", wtimeout: 1_200 } },
      "a standalone server": { hello: {}, concern: { w: 1, j: true } },
    };
    /** The database as seen on a server of that kind. */
    const seenAs = (hello: object, writeConcern?: object): MongoDb => {
      const db = writeConcern === undefined ? connected.client.db(database) : connected.client.db(database, { writeConcern });
      const command = async () => ({ maxWireVersion: 21, localTime: new Date(), ...hello });
      return Object.assign(
        meddled(db, () => undefined),
        { command, writeConcern: db.writeConcern },
      );
    };

    it.each(Object.entries(servers))(
      "%s gets the write concern that makes each write durable, and each read has read concern `majority`",
      async (_, { hello, concern }) => {
        const own = mongoStore({ db: seenAs(hello) });
        const { record: first, claims } = create();
        const expiry = { now: 0, keepUntil: length };
        commands.length = 0;
        await own.commit({ record: { ...first, wakeAt: 5 }, claims: [...claims, member(name())] });
        await own.lease(5, 1, 6);
        await own.commit({ ...following(first), claims: [member(name(), { limit: 1, out: true }), member(name(), { out: true }), weight(name(), -1)] });
        await own.commit({ asks: [partsOf(name())] });
        await own.put("key", "value", expiry);
        await own.get("key");
        await own.find(first.customer, first.id);
        await own.members(name(), 1);
        await own.tally([{ counter: name(), by: 1, ...expiry }], ["a"]);
        const isRead = ({ commandName }: CommandStartedEvent) => commandName === "find" || commandName === "aggregate";
        for (const one of commands) {
          if (isRead(one)) expect(one.command.readConcern).toEqual({ level: "majority" });
          else expect(one.command.writeConcern).toEqual(concern);
        }
        expect(commands.filter(isRead).length).toBe(12);
      },
    );

    it.each([
      ["1.5 s where none is set", {}, { w: "majority", wtimeout: 1_500 }],
      ["what is set, and the journal", { w: 1, journal: true, wtimeoutMS: 700 }, { w: "majority", j: true, wtimeout: 700 }],
    ])("the write concern asks for %s", async (_, own, concern) => {
      commands.length = 0;
      await mongoStore({ db: seenAs({ setName: "rs0" }, own) }).commit({ record: record() });
      expect(commands.map(({ command }) => command.writeConcern)).toEqual([concern]);
    });

    it.each([
      ["answers an old wire version", async () => ({ maxWireVersion: 8 })],
      ["does not know hello", () => Promise.reject(Object.assign(new Error("no such command"), { code: 59 }))],
    ])("a server that %s is rejected as too old at first use", async (_, command) => {
      const db = { databaseName: database, collection: () => ({}), command } as unknown as MongoDb;
      await expect(mongoStore({ db }).find("c", "i")).rejects.toThrow("the server behind option `db` is too old: use MongoDB 4.4.2 or newer");
    });

    it("if the first hello fails, the next call repeats it", async () => {
      let asked = 0;
      const command = async () => {
        if (asked++ === 0) throw new Error("gone");
        return { maxWireVersion: 21, setName: "rs0" };
      };
      const own = mongoStore({ db: Object.assign(seenAs({}), { command }) });
      await expect(own.get("key")).rejects.toThrow("gone");
      await own.get("key");
      await own.get("key");
      expect(asked).toBe(2);
    });
  });

  describe("ensureIndexes", () => {
    it("creates an index for lease, one for lists, and TTL indexes that delete ten minutes after the end", async () => {
      await store.ensureIndexes();
      const indexes = async (of: string) => (await collection(of).indexes()).filter((index) => index.name !== "_id_");
      const end = { key: { expireAt: 1 }, expireAfterSeconds: 600 };
      const listed = { key: { "_id.window": 1, at: -1, "_id.member": 1 }, partialFilterExpression: { at: { $exists: true } } };
      expect(await indexes("state")).toMatchObject([{ key: { wakeAt: 1 }, partialFilterExpression: { wakeAt: { $exists: true } } }, listed, end]);
      for (const of of ["counters", "values"]) expect(await indexes(of)).toMatchObject([end]);
    });

    it("creates the other indexes if one is in the way, and reports which one to drop, as inspect does", async () => {
      const other = mongoStore({ db: connected.db, prefix: "other_" });
      const collectionOf = (of: string) => connected.client.db(database).collection(`other_${of}`);
      const names = async (of: string) => (await collectionOf(of).indexes()).map(({ name }) => name);
      await collectionOf("state").createIndex({ expireAt: 1 }, { name: "expireAt_1", expireAfterSeconds: 600 });
      await collectionOf("counters").createIndex({ expireAt: 1 }, { name: "expireAt", expireAfterSeconds: 1 });
      const drop = (of: string, name: string) => `db.getCollection("other_${of}").dropIndex("${name}"), then call await store.ensureIndexes()`;
      const problems = [
        `the index expireAt_1 of other_state has another name or other options than expireAt needs: drop it with ${drop("state", "expireAt_1")}`,
        `the index expireAt of other_counters has another name or other options than expireAt needs: drop it with ${drop("counters", "expireAt")}`,
      ];
      await expect(other.ensureIndexes()).rejects.toThrow(new Error(problems.map((problem) => `mongoStore: ${problem}`).join("; ")));
      expect(await Promise.all(["state", "counters", "values"].map(names))).toEqual([
        ["_id_", "expireAt_1", "wakeAt", "listed"],
        ["_id_", "expireAt"],
        ["_id_", "expireAt"],
      ]);
      expect((await other.inspect?.(0))?.missing).toEqual(problems);
      // This drops their indexes too.
      for (const of of ["state", "counters"]) await collectionOf(of).drop();
      await other.ensureIndexes();
      expect((await other.inspect?.(0))?.missing).toBeUndefined();
    });

    it("reports the server's error with the name of the collection", async () => {
      const refuse = async () => Promise.reject(new Error("no"));
      const other = mongoStore({ db: meddled(connected.db, (_, method) => (method === "createIndexes" ? refuse : undefined)), prefix: "refused_" });
      await expect(other.ensureIndexes()).rejects.toThrow("mongoStore: Error: no (creating the indexes of refused_counters)");
    });

    it("creates the index that lease uses", async ({ skip }) => {
      const plan = await collection("state")
        .find({ wakeAt: { $lte: 5 } })
        .sort({ wakeAt: 1 })
        .limit(5)
        .explain("queryPlanner")
        .catch((error: { code?: number }) => (error.code === 59 ? undefined : Promise.reject(error)));
      if (plan === undefined) skip("this server has no explain");
      expect(JSON.stringify(plan)).toContain('"indexName":"wakeAt"');
      expect(JSON.stringify(plan)).not.toContain('"SORT"');
    });

    it("an index that is still being built is distinguished from a missing one", async () => {
      const expireAt = { v: 2, key: { expireAt: 1 }, name: "expireAt", expireAfterSeconds: 600 };
      const ready = [{ v: 2, key: { _id: 1 }, name: "_id_" }, expireAt];
      const building = [
        { v: 2, key: { _id: 1 }, name: "_id_" },
        { spec: expireAt, buildUUID: "x" },
      ];
      const batches: Record<string, readonly object[]> = { phoneproof_state: ready, phoneproof_counters: building, phoneproof_values: ready };
      const command = async (command: Record<string, unknown>) =>
        "hello" in command ? { maxWireVersion: 21 } : { cursor: { firstBatch: batches[command["listIndexes"] as string] } };
      const own = mongoStore({
        db: Object.assign(
          meddled(connected.db, () => undefined),
          { command },
        ),
      });
      const { missing = [] } = (await own.inspect?.(0)) ?? {};
      expect(missing).toHaveLength(1);
      expect(missing[0]).toContain("phoneproof_state.wakeAt, phoneproof_state.listed, phoneproof_counters.expireAt (still being built) are missing");
    });
  });

  it("stores a record in a form that an operator can read", async () => {
    const kept = record({ wakeAt: 7 });
    await store.commit({ record: kept });
    const { customer, id, now, ...fields } = kept;
    expect(await collection("state").findOne({ _id: recordKey(kept) })).toEqual({ _id: { customer, id }, ...fields, expireAt: expect.any(Date) });
    await store.commit(following(kept));
  });

  describe("lifetimes", () => {
    /** Milliseconds until the document expires. */
    async function left(of: string, _id: string): Promise<number> {
      const found = await collection(of).findOne({ _id });
      return Number(found?.expireAt) - Date.now();
    }
    /** Ends are rounded up to the minute. */
    const near = (length: number) => [length - 5_000, length + 65_000] as const;
    const clocks = { "on time": 0, "two days ahead": 2 * day, "two days behind": -2 * day, "at the beginning of time": 1_000 - Date.now() };

    it.each(Object.entries(clocks))("follow the server's clock if a process's clock is %s", async (_, skew) => {
      const now = Date.now() + skew;
      const expiry = { now, keepUntil: now + length };
      const [window, list, sum, counter] = [name(), name(), name(), name()];
      const kept = record(expiry);
      await store.commit({
        record: kept,
        claims: [member(window, { ...expiry, limit: 1, member: "m" }), member(list, { ...expiry, member: "m" }), weight(sum, 1, expiry)],
      });
      await store.tally([{ counter, by: 1, ...expiry }], []);
      await store.put(counter, "value", expiry);
      for (const _id of [recordKey(kept), key({ window }), key({ window: list, member: "m" }), key({ sum })]) {
        const [least, most] = near(length);
        expect(await left("state", _id)).toBeGreaterThan(least);
        expect(await left("state", _id)).toBeLessThan(most);
      }
      for (const of of ["counters", "values"]) expect(await left(of, counter)).toBeGreaterThan(near(length)[0]);
    });

    it("follow the server's clock if this machine's clock is wrong", async () => {
      const localTime = new Date(Date.now() + 3 * day);
      const command = async () => ({ maxWireVersion: 21, localTime });
      const own = mongoStore({
        db: Object.assign(
          meddled(connected.db, () => undefined),
          { command },
        ),
      });
      const kept = record();
      await own.commit({ record: kept });
      const [least, most] = near(3 * day + length);
      expect(await left("state", recordKey(kept))).toBeGreaterThan(least);
      expect(await left("state", recordKey(kept))).toBeLessThan(most);
    });

    it("of a record follow its end, also to an earlier time, whatever the caller's clock", async () => {
      let before = record({ keepUntil: Date.now() + 7 * day });
      await store.commit({ record: before });
      for (const [now, days] of [
        [Date.now(), 1],
        [Date.now() + 2 * day, 1],
        [Date.now(), 3],
      ] as const) {
        const next = following(before, { now, keepUntil: Date.now() + days * day });
        await store.commit(next);
        before = next.record;
        const [least, most] = near(days * day);
        expect(await left("state", recordKey(before))).toBeGreaterThan(least);
        expect(await left("state", recordKey(before))).toBeLessThan(most);
      }
    });

    it("of windows are only ever extended, to a hundred years at most", async () => {
      const window = name();
      const now = Date.now();
      for (const [keepUntil, life] of [
        [now + day, day],
        [now + length, day],
        [now - day, day],
        [Number.MAX_SAFE_INTEGER, 36_500 * day],
      ] as const) {
        await store.commit({ claims: [member(window, { limit: 5, now, keepUntil })] });
        const [least, most] = near(life);
        expect(await left("state", key({ window }))).toBeGreaterThan(least);
        expect(await left("state", key({ window }))).toBeLessThan(most);
      }
    });
  });

  describe("a corrupt record", () => {
    const broken: Record<string, Record<string, unknown>> = {
      "no tokens": { tokens: [] },
      "a token that is no text": { tokens: [1] },
      "tokens that are no list": { tokens: "t" },
      "data that is no text": { data: { $ne: 1 } },
      "no data": { data: undefined },
      "a keepUntil that is no number": { keepUntil: "soon" },
    };
    /** Inserts a document that no write of the store made. */
    async function broke(fields: Record<string, unknown>): Promise<{ customer: string; id: string; _id: string }> {
      const { customer, id, now, ...whole } = record();
      const _id = key({ customer, id });
      await collection("state").insertOne({ _id, ...whole, expireAt: new Date(Date.now() + day), ...fields }, { ignoreUndefined: true });
      return { customer, id, _id };
    }

    it.each(Object.keys(broken))("with %s is reported with its id and left unchanged, and the claims of a write to it do not count", async (what) => {
      const { customer, id, _id } = await broke(broken[what] as Record<string, unknown>);
      const before = await collection("state").findOne({ _id });
      const told = new RegExp(`authentication ${id} .* is corrupt`);
      const [window, sum] = [name(), name()];
      await expect(store.find(customer, id)).rejects.toThrow(told);
      const claims = [member(window, { limit: 1 }), weight(sum, 1)];
      await expect(store.commit({ record: record({ customer, id }), claims })).rejects.toThrow(told);
      await expect(store.commit({ record: record({ customer, id }), expected: "other" })).rejects.toThrow(told);
      expect(await collection("state").findOne({ _id })).toEqual(before);
      expect([await members(window, 0, 1), await total(sum)]).toEqual([0, 0]);
      await collection("state").deleteOne({ _id });
    });

    it("does not block the leases of other records, and is reported if a lease finds nothing else", async () => {
      const corrupt = await Promise.all(Array.from({ length: 20 }, () => broke({ wakeAt: 1, data: 5 })));
      const good = record({ wakeAt: 2 });
      await store.commit({ record: good });
      const ids = async (limit: number) => (await store.lease(2, limit, 3)).map(({ id }) => id);
      await expect(ids(10)).rejects.toThrow(/ is corrupt/);
      expect(await ids(20)).toEqual([good.id]);
      expect(await ids(20)).toEqual([]);
      await collection("state").deleteMany({ _id: { $in: [recordKey(good), ...corrupt.map(({ _id }) => _id)] } });
    });
  });

  describe("a write during a lease", () => {
    /** A store that runs `write` just before or after its lease moves the due records. */
    function meddledWith(write: () => Promise<unknown>, when: "before" | "after"): MongoStore {
      const db = meddled(connected.db, (target, method) =>
        method !== "bulkWrite"
          ? undefined
          : async (...args: Parameters<MongoCollection["bulkWrite"]>) => {
              if (when === "before") await write();
              const result = await target.bulkWrite(...args);
              if (when === "after") await write();
              return result;
            },
      );
      return mongoStore({ db });
    }

    it.each(["before", "after"] as const)("that clears wakeAt %s it is moved: the record is not handed out", async (when) => {
      const first = record({ wakeAt: 1 });
      await store.commit({ record: first });
      expect(await meddledWith(() => store.commit(following(first)), when).lease(1, 10, 2)).toEqual([]);
      expect(await store.lease(2, 10, 3)).toEqual([]);
    });

    it.each(["before", "after"] as const)("that leaves wakeAt unchanged %s it is moved: the record is handed out as written", async (when) => {
      const first = record({ wakeAt: 1 });
      await store.commit({ record: first });
      const next = following(first, { wakeAt: "unchanged" });
      const leased = await meddledWith(() => store.commit(next), when).lease(1, 10, 2);
      expect(leased.map(({ tokens }) => tokens)).toEqual([next.record.tokens]);
      await store.commit(following(next.record, { wakeAt: 1_000_000 + Date.now() }));
    });
  });

  it("a write whose token is already stored returns success and writes nothing, whatever it expects", async () => {
    const first = record();
    const second = following(first);
    await store.commit({ record: first });
    await store.commit(second);
    expect(await store.commit({ record: { ...first, data: "again" }, expected: second.record.tokens[0] as string })).toMatchObject({ done: true });
    expect(await store.find(first.customer, first.id)).toMatchObject({ data: "data", tokens: second.record.tokens });
  });

  it("the first rejected claim is reported, even between two claims on one window", async () => {
    const [window, sum] = [name(), name()];
    const now = Date.now();
    await counts(member(window, { now, limit: 5 }));
    const one = member(window, { now, limit: 5 });
    expect(await store.commit({ claims: [one, weight(sum, 2, { limit: 1 }), { ...one, limit: 1 }] })).toEqual({ done: false, refusedBy: 1, count: 0 });
    expect(await store.commit({ claims: [one, weight(sum, 1, { limit: 1 }), { ...one, limit: 1 }] })).toEqual({
      done: false,
      refusedBy: 2,
      count: 1,
      roomSince: now,
    });
    expect([await members(window, 0, 5), await total(sum)]).toEqual([1, 0]);
  });

  it("several members of one window in one change are counted one by one, all or none", async () => {
    const window = name();
    const now = Date.now();
    const claims = ["a", "b", "c"].map((member) => ({ window, member, limit: 3, now, since: 0, keepUntil: now + length }));
    expect(await counts(...claims)).toEqual([3, 3, 3]);
    const more = ["c", "d"].map((member) => ({ window, member, limit: 3, now: now + 1, since: 0, keepUntil: now + length }));
    expect(await store.commit({ claims: more })).toMatchObject({ done: false, refusedBy: 1, count: 3 });
    expect(await store.members(window, 9)).toHaveLength(3);
    await counts(...claims.map((claim) => ({ ...claim, now: claim.member === "c" ? now + 1 : now, out: true as const })));
    expect((await store.members(window, 9)).length).toBeLessThanOrEqual(1);
  });

  it("a claim that fails undoes those alongside it, and its error contains no stored data", async () => {
    const [broken, window, list, sum] = [`${randomUUID()}:n:+14155550100`, name(), name(), name()];
    await collection("state").insertOne({ _id: key({ window: broken }), m: "+14155550100", expireAt: new Date(Date.now() + length) });
    const claims = [weight(sum, 5), member(list), member(window, { limit: 1 }), member(broken, { limit: 1, member: "+14155550101" })];
    const kept = record();
    const error: Error = await store.commit({ claims, record: kept }).then(
      () => expect.unreachable(),
      (reason) => reason,
    );
    expect(error.message).toMatch(/^mongoStore: /);
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain("1415555");
    expect(await document({ window: broken })).toMatchObject({ m: "+14155550100" });
    expect([await total(sum), await members(list), await members(window, 0, 1)]).toEqual([0, 0, 0]);
    expect(await store.find(kept.customer, kept.id)).toBeUndefined();
  });

  it("50 racers that create a window, a sum and a counter each get a count that includes themselves and all before them", async () => {
    const [window, sum, counter] = [name(), name(), name()];
    const now = Date.now();
    const one = async () => {
      const [[held, weighed]] = (await Promise.all([
        counts(member(window, { now, limit: 50 }), weight(sum, 1, { now, limit: 50 })),
        store.tally([{ counter, by: 1, now, keepUntil: now + length }], []),
      ])) as [number[], number[]];
      return [held, weighed];
    };
    const told = await Promise.all(Array.from({ length: 50 }, one));
    for (const at of [0, 1]) {
      const sorted = told.map((pair) => pair[at] as number).sort((a, b) => a - b);
      for (const [before, count] of sorted.entries()) expect(count).toBeGreaterThan(before);
      expect(sorted.at(-1)).toBe(50);
    }
    expect(await store.tally([], [counter])).toEqual([50]);
  });

  describe.each([["in a window", 3] as const, ["in a list", undefined] as const])("identical claims %s", (_, limit) => {
    const limited = limit === undefined ? {} : { limit };

    it("keep their member if some of them are rejected because of another claim", async () => {
      for (let round = 0; round < 10; round++) {
        const [shared, full] = [name(), name()];
        const twin = member(shared, limited);
        await counts(member(full, { limit: 1 }));
        const outcomes = await Promise.all(
          Array.from({ length: 30 }, (_, i) => store.commit({ claims: i % 3 === 0 ? [twin] : [twin, member(full, { limit: 1 })] })),
        );
        expect(outcomes.filter(({ done }) => done)).toHaveLength(10);
        expect(await members(shared, 0, limit)).toBe(1);
      }
    });

    it("restore the earlier state if all of them are rejected because of another claim, except for at most one member of a window", async () => {
      const customer = randomUUID();
      const [shared, held, full] = [`${customer}:a`, `${customer}:b`, `${customer}:c`];
      const now = Date.now();
      const twin = member(shared, { ...limited, now });
      const again = member(held, { ...limited, now });
      await counts(member(full, { limit: 1 }));
      await counts({ ...again, now: now - length / 2 });
      const refused = { claims: [twin, again, member(full, { limit: 1, now })] };
      const outcomes = await Promise.all(Array.from({ length: 30 }, () => store.commit(refused)));
      expect(outcomes.filter(({ done }) => done)).toEqual([]);
      expect(await members(shared, 0, limit)).toBeLessThanOrEqual(limit === undefined ? 0 : 1);
      expect([await members(held, 0, limit), await members(held, now - length / 4, limit)]).toEqual([1, 0]);
    });
  });

  it("what rejected racers added to a sum is undone exactly", async () => {
    const [sum, full] = [name(), name()];
    const now = Date.now();
    await counts(member(full, { limit: 1 }), weight(sum, 7, { now }));
    const outcomes = await Promise.all(
      Array.from({ length: 30 }, (_, i) => store.commit({ claims: [weight(sum, i + 1, { now }), ...(i % 3 === 0 ? [] : [member(full, { limit: 1, now })])] })),
    );
    expect(outcomes.filter(({ done }) => done)).toHaveLength(10);
    expect(await total(sum)).toBe(7 + [1, 4, 7, 10, 13, 16, 19, 22, 25, 28].reduce((a, b) => a + b));
  });

  describe("a commit cut off by the server", () => {
    /** A change, and what each of its documents holds. */
    function scene() {
      const first = record();
      const { customer, now } = first;
      const [window, list, sum, other] = ["w", "l", "s", "t"].map((one) => `${customer}:${one}`) as [string, string, string, string];
      const claims = [member(window, { now, limit: 1 }), member(list, { now }), weight(sum, 5, { now, limit: 5 }), weight(other, 3, { now })];
      const held = async () => [await members(window, 0, 1), await members(list), await total(sum), await total(other)];
      return { change: { claims, record: first } satisfies Change, claims, first, held };
    }
    const cuts = [0, 1, 2, 3, 4];

    it.each(cuts)("after %s statements adds nothing twice when sent again", async (most) => {
      const { change, held } = scene();
      await expect(cut(most).store.commit(change)).rejects.toThrow("the server is gone");
      for (let i = 0; i < 2; i++) {
        expect(await store.commit(change)).toMatchObject({ done: true, counts: [1, 1, 5, 3] });
        expect(await held()).toEqual([1, 1, 5, 3]);
      }
    });

    it.each(cuts)("after %s statements is revoked completely and once, and its late statements do not count", async (most) => {
      const { change, claims, first, held } = scene();
      const { store: cutting, late } = cut(most);
      await expect(cutting.commit(change)).rejects.toThrow("the server is gone");
      const { customer, id } = first;
      const back: Change = { record: record({ customer, id }), expected: null, revoke: { token: first.tokens[0] as string, claims } };
      for (let i = 0; i < 2; i++) {
        expect(await store.commit(back)).toMatchObject({ done: true });
        expect(await held()).toEqual([0, 0, 0, 0]);
      }
      await late();
      expect(await held()).toEqual([0, 0, 0, 0]);
      expect(await store.commit(change)).toMatchObject({ done: false, current: { tokens: back.record?.tokens } });
      expect(await held()).toEqual([0, 0, 0, 0]);
      expect(await store.commit({ ...change, record: record({ customer }) })).toMatchObject({ done: true, counts: [1, 1, 5, 3] });
    });

    it("before it reduced all its sums reduces each once when sent again, even if its remaining statements arrive late", async () => {
      const first = record();
      const sums = ["a", "b", "c"].map((one) => `${first.customer}:${one}`);
      await counts(...sums.map((sum) => weight(sum, 10)));
      await store.commit({ record: first });
      const settled: Change = { ...following(first), claims: sums.map((sum) => weight(sum, -4)) };
      const { store: cutting, late } = cut(2);
      await expect(cutting.commit(settled)).rejects.toThrow("the server is gone");
      for (let i = 0; i < 2; i++) expect(await store.commit(settled)).toMatchObject({ done: true, counts: [6, 6, 6] });
      await late();
      expect(await Promise.all(sums.map((sum) => total(sum)))).toEqual([6, 6, 6]);
    });

    it("still counts in a sum that others have changed 40 times since, even after it is revoked", async () => {
      const { change, claims, first } = scene();
      const [, , , other] = claims as [Claim, Claim, Claim, SumClaim];
      await expect(cut(4).store.commit(change)).rejects.toThrow("the server is gone");
      for (let i = 0; i < 40; i++) await counts(weight(other.sum, 1));
      const { customer, id } = first;
      await store.commit({ record: record({ customer, id }), revoke: { token: first.tokens[0] as string, claims } });
      expect(await total(other.sum)).toBe(43);
    });

    it("is revoked if it landed completely, however often the sum has changed since", async () => {
      const { change, claims, first } = scene();
      const [, , , other] = claims as [Claim, Claim, Claim, SumClaim];
      await store.commit(change);
      for (let i = 0; i < 40; i++) await counts(weight(other.sum, 1, { part: 700_000 + Math.floor(i / 20) }));
      const back = { ...following(first), revoke: { token: first.tokens[0] as string, claims } };
      for (let i = 0; i < 3; i++) {
        await store.commit(back);
        expect(await total(other.sum, { part: 700_001 })).toBe(40);
        for (let more = 0; more < 20; more++) await counts(weight(other.sum, 0, { part: 700_001, floor: -1 }));
      }
    });
  });

  describe("the size of documents", () => {
    it("a window does not grow if the same member claims again", async () => {
      const window = name();
      const start = Date.now() - length;
      for (let i = 0; i < 60; i++) await counts(member(window, { member: "one", now: start + i * 10_000, limit: 2 }));
      expect((await document({ window }))?.["m"]).toEqual([{ member: "one", at: start + 590_000, t: expect.any(String), moved: true }]);
      expect(await members(window, 0, 2)).toBe(1);
    });

    it("a window stores 16 members more than its largest limit, which stays exact", async () => {
      const window = name();
      const start = Date.now();
      for (let i = 0; i < 40; i++) await counts(member(window, { now: start + i, since: start + i - 1, limit: 3 }));
      expect((await document({ window }))?.["m"]).toHaveLength(3 + 16);
      expect(await store.commit({ claims: [member(window, { since: start, limit: 3 })] })).toMatchObject({ done: false, refusedBy: 0 });
    });

    it("a sum stores ten parts and sixteen tokens", async () => {
      const sum = name();
      for (let i = 0; i < 40; i++) for (let more = 0; more < 20; more++) await counts(weight(sum, 1, { part: i }));
      const { p, t, s, head } = (await document({ sum })) as Stored & { p: object; t: string[] };
      expect([Object.keys(p).length, t.length, s, head]).toEqual([10, 16, 60, 39]);
      expect(await total(sum, { part: 39 })).toBe(60);
    });

    it("a sum used by callers whose clocks are many parts ahead keeps the parts that the others count", async () => {
      const sum = name();
      for (let i = 0; i < 20; i++) await counts(weight(sum, 1, { part: 100 + i, parts: 13 }), weight(`${sum}+`, 1), weight(`${sum}-`, 1, { part: 100 + i }));
      for (let i = 0; i < 20; i++) {
        await counts(weight(sum, 1, { part: 200 + i, parts: 13 }));
        await counts(weight(sum, 1, { part: 120 + i, parts: 13 }));
      }
      expect(await total(sum, { part: 139, parts: 13 })).toBe(13);
      expect(await total(sum, { part: 219, parts: 13 })).toBe(13);
    });
  });

  it("delete only removes single documents by their `_id`", async () => {
    const [window, sum, value] = [name(), name(), name()];
    const { record: first, claims } = create();
    await store.commit({ record: first, claims: [...claims, member(window), member(window), weight(sum, 1)] });
    await store.put(value, "value", { now: 0, keepUntil: length });
    commands.length = 0;
    await store.delete({ records: [first], windows: [window, `${first.customer}:n:1`], sums: [partsOf(sum)], values: [value] });
    const deletes = commands.flatMap(({ command }) => (command["deletes"] ?? []) as { q: object; limit: number }[]);
    expect(deletes).toHaveLength(7);
    for (const { q, limit } of deletes) expect([Object.keys(q), limit]).toEqual([["_id"], 1]);
    expect([await members(window), await total(sum), await store.get(value)]).toEqual([0, 0, undefined]);
    expect(await collection("state").countDocuments({ "_id.window": window })).toBe(0);
  });
});
