import { randomUUID } from "node:crypto";
import { type CommandStartedEvent, MongoClient } from "mongodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type MongoCollection, type MongoDb, type MongoStore, mongoStore } from "../../adapters/store/mongo/index.js";
import type { Change, Claim, MemberClaim, RecordWrite, SumClaim } from "../../src/ports/store.js";
import { type Connected, drivers, dropDatabase, mongoServer, newDatabase } from "../support/mongo.js";

const length = 600_000;
const day = 24 * 60 * 60 * 1000;

/** A document as it is stored. The driver's types take no object for a key, so that of a record passes for a text. */
type Stored = Record<string, unknown> & { _id: string };

function key(fields: Record<string, string>): string {
  return fields as unknown as string;
}

function recordKey({ customer, id }: { customer: string; id: string }): string {
  return key({ customer, id });
}

/** A name of a customer of its own. */
const name = () => `${randomUUID()}:w`;

function member(window: string, fields: Partial<MemberClaim> = {}): MemberClaim {
  const now = fields.now ?? Date.now();
  return { window, member: randomUUID(), since: now - length, now, keepUntil: now + length, ...fields };
}

function weight(sum: string, weight: number, fields: Partial<SumClaim> = {}): SumClaim {
  const now = fields.now ?? Date.now();
  return { sum, weight, since: now - length, now, keepUntil: now + 2 * length, ...fields };
}

function record(fields: Partial<RecordWrite> = {}): RecordWrite {
  const now = fields.now ?? Date.now();
  return { customer: randomUUID(), id: randomUUID(), tokens: [randomUUID()], data: "data", now, keepUntil: now + length, ...fields };
}

/** The write that follows `before`, and what it expects. */
function following(before: RecordWrite, fields: Partial<RecordWrite> = {}): Pick<Change, "record" | "expected"> & { record: RecordWrite } {
  const { wakeAt, ...rest } = before;
  return { record: record({ ...rest, tokens: [randomUUID(), ...before.tokens], ...fields }), expected: before.tokens[0] as string };
}

/** The database, and how many round trips were made: what is asked before an answer can have come belongs to one. */
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
  const collection = (...args: Parameters<MongoDb["collection"]>): MongoCollection => {
    const real = db.collection(...args);
    return new Proxy(real, {
      get(target, method: keyof MongoCollection) {
        const own = target[method].bind(target) as (...args: never[]) => unknown;
        return method === "find" || method === "aggregate" ? cursor(own) : call(own);
      },
    });
  };
  return {
    db: { databaseName: db.databaseName, collection, command: (command) => db.command(command) },
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

  it.each(Object.keys(wrong))("%s for `db` is a TypeError that names the option and the mend", (name) => {
    const build = () => mongoStore({ db: wrong[name] as MongoDb });
    expect(build).toThrow(TypeError);
    expect(build).toThrow(/option `db`.*client\.db\(\)/);
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
  const database = newDatabase();
  const commands: CommandStartedEvent[] = [];
  let connected: Connected;
  let store: MongoStore;

  const collection = (of: string) => connected.client.db(database).collection<Stored>(`phoneproof_${of}`);
  const sentBy = async (run: () => Promise<unknown>) => {
    commands.length = 0;
    await run();
    return commands.map(({ commandName }) => commandName).sort();
  };
  /** Commits, and tells the counts. */
  const counts = async (...claims: Claim[]) => {
    const result = await store.commit({ claims });
    return result.done ? result.counts : expect.unreachable(`refused by ${result.refusedBy}`);
  };
  /** What is held since `since`, told by taking out a member that is not there, and by asking. */
  const members = async (window: string, since = 0, limit?: number) =>
    (await counts(member(window, { since, out: true, ...(limit === undefined ? {} : { limit }) })))[0] as number;
  const total = async (sum: string, since = 0) => {
    const result = await store.commit({ asks: [{ sum, since }] });
    return result.done ? result.asked[0] : expect.unreachable();
  };

  beforeAll(async () => {
    connected = await drivers["mongodb 7"](url, database, {
      monitorCommands: true,
      retryWrites: true,
      writeConcern: { w: 1, journal: true, wtimeoutMS: 1_500 },
    });
    connected.client.on("commandStarted", (event) => commands.push(event));
    store = mongoStore({ db: connected.db });
    await store.ensureIndexes();
  });

  afterAll(async () => {
    await connected?.close();
    await dropDatabase(url, database);
  });

  describe("round trips", () => {
    let counting: ReturnType<typeof counted>;
    let own: MongoStore;
    const trips = (change: Change) => counting.roundTrips(() => own.commit(change));

    beforeAll(async () => {
      counting = counted(connected.db);
      own = mongoStore({ db: counting.db });
      await own.get("known");
    });

    /** A create as it is: a number under two limits, its history, a cap and a ceiling of the customer, and the sums that rules ask for. */
    function create(): Change & { readonly record: RecordWrite; readonly claims: Claim[] } {
      const to = record();
      const number = { member: to.id, now: to.now };
      const window = `${to.customer}:n`;
      return {
        record: to,
        claims: [
          member(window, { ...number, limit: 5 }),
          member(window, { ...number, limit: 10, since: to.now - day }),
          member(`${to.customer}:h`, number),
          weight(`${to.customer}:c`, 1, { limit: 10_000 }),
          weight(`${to.customer}:$`, 50_000, { limit: 1_000_000 }),
        ],
        asks: ["a", "b", "c", "c"].map((cell) => ({ sum: `${to.customer}:${cell}`, since: 0 })),
      };
    }

    it("a create with its claims and asks is two: all that adds and the asks, then the record", async () => {
      const change = create();
      expect(await trips(change)).toBe(2);
      expect(await counts(...change.claims.map((claim) => ("sum" in claim ? { ...claim, weight: 1 } : claim)))).toEqual([1, 1, 1, 2, 50_001]);
      const commands = await sentBy(() => store.commit(create()));
      expect(commands).toEqual(["aggregate", "find", "findAndModify", "findAndModify", "findAndModify", "update", "update"]);
    });

    it("a settling write that gives back is two: the record, then what is given back and taken out", async () => {
      const { claims, ...change } = create();
      await store.commit({ ...change, claims });
      const back = claims.map((claim): Claim => ("sum" in claim ? { ...claim, weight: -claim.weight } : { ...claim, out: true }));
      expect(await trips({ ...following(change.record), claims: back })).toBe(2);
      expect(
        await Promise.all([members(`${change.record.customer}:n`, 0, 1), members(`${change.record.customer}:h`), total(`${change.record.customer}:c`)]),
      ).toEqual([0, 0, 0]);
    });

    it("claims alone, asks alone and a record alone are one; a lost race is one more, which does not ask what the majority has heard of", async () => {
      const { claims = [], asks = [], record: first } = create();
      expect(await trips({ claims, asks })).toBe(1);
      expect(await trips({ asks })).toBe(1);
      expect(await trips({})).toBe(0);
      expect(await trips({ record: first })).toBe(1);
      for (const lost of [{ record: record({ ...first, tokens: ["x"] }) }, { ...following(first), expected: "x" }]) {
        expect(await trips(lost)).toBe(2);
        expect(await sentBy(() => store.commit(lost))).toEqual(["find", "update"]);
        expect(commands.at(-1)?.command.readConcern).toEqual({ level: "local" });
      }
      expect(await trips(following(first))).toBe(1);
    });

    it("a refusal costs one more, which undoes, and nothing where nothing was added", async () => {
      const { claims, record: first, ...change } = create();
      const full = weight(name(), 2, { limit: 1 });
      expect(await trips({ ...change, claims: [full], record: first })).toBe(1);
      expect(await trips({ ...change, claims: [...claims, full], record: first })).toBe(2);
      await store.commit({ record: first });
      expect(await trips({ ...change, claims, record: record({ ...first, tokens: ["x"] }) })).toBe(4);
    });

    it("find, get, put and members are one, tally two, lease three, and less where there is less to do", async () => {
      const waking = record({ wakeAt: 5 });
      const { customer, id } = waking;
      await store.commit({ record: waking });
      const life = { now: 0, keepUntil: length };
      expect(await counting.roundTrips(() => own.find(customer, id))).toBe(1);
      expect(await counting.roundTrips(() => own.put("key", "value", life))).toBe(1);
      expect(await counting.roundTrips(() => own.get("key"))).toBe(1);
      expect(await counting.roundTrips(() => own.members(name(), 10))).toBe(1);
      expect(await counting.roundTrips(() => own.tally([{ counter: name(), by: 1, ...life }], ["a", "b"]))).toBe(2);
      expect(await counting.roundTrips(() => own.tally([], ["a", "b"]))).toBe(1);
      expect(await counting.roundTrips(() => own.tally([{ counter: name(), by: 1, ...life }], []))).toBe(1);
      expect(await counting.roundTrips(() => own.lease(5, 10, 6))).toBe(3);
      expect(await counting.roundTrips(() => own.lease(5, 10, 6))).toBe(1);
      await store.commit(following(waking));
    });
  });

  it("asks for majority writes and majority reads, whatever the defaults of `db`, and keeps its journal and wtimeoutMS", async () => {
    const kept = record({ wakeAt: 5 });
    const life = { now: 0, keepUntil: length };
    commands.length = 0;
    await store.commit({ record: kept, claims: [member(name(), { limit: 1 }), member(name()), weight(name(), 1)] });
    await store.lease(5, 1, 6);
    await store.commit({ ...following(kept), claims: [member(name(), { limit: 1, out: true }), member(name(), { out: true }), weight(name(), -1)] });
    await store.commit({ asks: [{ sum: name(), since: 0 }] });
    await store.put("key", "value", life);
    await store.get("key");
    await store.find(kept.customer, kept.id);
    await store.members(name(), 1);
    await store.tally([{ counter: name(), by: 1, ...life }], ["a"]);
    const isRead = ({ commandName }: CommandStartedEvent) => commandName === "find" || commandName === "aggregate";
    for (const one of commands) {
      if (isRead(one)) expect(one.command.readConcern).toEqual({ level: "majority" });
      else expect(one.command.writeConcern).toEqual({ w: "majority", j: true, wtimeout: 1_500 });
    }
    expect(commands.filter(isRead).length).toBe(10);
  });

  describe("ensureIndexes", () => {
    it("makes an index for lease, one for lists, and one on the end of everything, which comes late and never early", async () => {
      await store.ensureIndexes();
      const indexes = async (of: string) => (await collection(of).indexes()).filter((index) => index.name !== "_id_");
      const end = { key: { expireAt: 1 }, expireAfterSeconds: 600 };
      expect(await indexes("authentications")).toMatchObject([{ key: { wakeAt: 1 }, partialFilterExpression: { wakeAt: { $exists: true } } }, end]);
      expect(await indexes("lists")).toMatchObject([{ key: { "_id.window": 1, at: -1, "_id.member": 1 } }, end]);
      for (const of of ["windows", "counters", "values"]) expect(await indexes(of)).toMatchObject([end]);
    });

    it("surfaces what the server has against an index, with the name of the collection", async () => {
      const other = mongoStore({ db: connected.db, prefix: "other_" });
      await connected.client.db(database).collection("other_windows").createIndex({ expireAt: 1 }, { name: "expireAt", expireAfterSeconds: 1 });
      await expect(other.ensureIndexes()).rejects.toThrow(/^mongoStore: Mongo.*\(creating the indexes of other_windows\)$/);
    });

    it("makes the index that lease uses", async ({ skip }) => {
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
    await store.commit({ record: kept });
    const { customer, id, now, ...fields } = kept;
    expect(await collection("authentications").findOne({ _id: recordKey(kept) })).toEqual({ _id: { customer, id }, ...fields, expireAt: expect.any(Date) });
    await store.commit(following(kept));
  });

  describe("lives", () => {
    /** How much longer each document lives than now, by the server's clock, in milliseconds. */
    async function left(of: string, _id: string): Promise<number> {
      const document = await collection(of).findOne({ _id });
      return Number(document?.expireAt) - Date.now();
    }
    const near = (life: number) => [life - 5_000, life + 5_000] as const;
    const clocks = { "two days ahead": 2 * day, right: 0, "two days behind": -2 * day, "at the beginning of time": 1_000 - Date.now() };

    it.each(Object.entries(clocks))("are measured by the server's clock where a process's is %s", async (_, skew) => {
      const now = Date.now() + skew;
      const life = { now, keepUntil: now + length };
      const [window, list, sum, counter] = [name(), name(), name(), name()];
      const kept = record(life);
      await store.commit({
        record: kept,
        claims: [member(window, { ...life, limit: 1, member: "m" }), member(list, { ...life, member: "m" }), weight(sum, 1, life)],
      });
      await store.tally([{ counter, by: 1, ...life }], []);
      await store.put(counter, "value", life);
      const documents = { authentications: recordKey(kept), windows: window, lists: key({ window: list, member: "m" }), counters: counter, values: counter };
      for (const [of, _id] of [...Object.entries(documents), ["windows", sum] as const]) {
        const [least, most] = near(length);
        expect(await left(of, _id)).toBeGreaterThan(least);
        expect(await left(of, _id)).toBeLessThan(most);
      }
    });

    it("are only lengthened, and end within a hundred years", async () => {
      const window = name();
      const now = Date.now();
      for (const [keepUntil, life] of [
        [now + day, day],
        [now + length, day],
        [now - day, day],
        [Number.MAX_SAFE_INTEGER, 36_500 * day],
      ] as const) {
        await store.commit({ claims: [member(window, { limit: 5, now, keepUntil })] });
        expect(Math.abs((await left("windows", window)) - life)).toBeLessThan(5_000);
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
    /** A document that no write of the store made. */
    async function broke(fields: Record<string, unknown>): Promise<{ customer: string; id: string; _id: string }> {
      const { customer, id, now, ...whole } = record();
      const _id = key({ customer, id });
      await collection("authentications").insertOne({ _id, ...whole, expireAt: new Date(Date.now() + day), ...fields }, { ignoreUndefined: true });
      return { customer, id, _id };
    }

    it.each(Object.keys(broken))("with %s is told with its id, and left as it is; what its write claimed is not counted", async (what) => {
      const { customer, id, _id } = await broke(broken[what] as Record<string, unknown>);
      const before = await collection("authentications").findOne({ _id });
      const told = new RegExp(`authentication ${id} .* is corrupt`);
      const window = name();
      await expect(store.find(customer, id)).rejects.toThrow(told);
      await expect(store.commit({ record: record({ customer, id }), claims: [member(window, { limit: 1 })] })).rejects.toThrow(told);
      await expect(store.commit({ record: record({ customer, id }), expected: "other" })).rejects.toThrow(told);
      expect(await collection("authentications").findOne({ _id })).toEqual(before);
      expect(await members(window, 0, 1)).toBe(0);
      await collection("authentications").deleteOne({ _id });
    });

    it("D3f: is leased like the others and stops none of them, and is told when it comes alone", async () => {
      const corrupt = await Promise.all(Array.from({ length: 20 }, () => broke({ wakeAt: 1, data: 5 })));
      const good = record({ wakeAt: 2 });
      await store.commit({ record: good });
      const ids = async (limit: number) => (await store.lease(2, limit, 3)).map(({ id }) => id);
      await expect(ids(10)).rejects.toThrow(/ is corrupt/);
      expect(await ids(20)).toEqual([good.id]);
      expect(await ids(20)).toEqual([]);
      await collection("authentications").deleteMany({ _id: { $in: [recordKey(good), ...corrupt.map(({ _id }) => _id)] } });
    });
  });

  describe("a write while a lease is under way", () => {
    /** A store whose lease lets a write through just before, or just after, it moves what is due. */
    function meddledWith(write: () => Promise<unknown>, when: "before" | "after"): MongoStore {
      const collection = (...args: Parameters<MongoDb["collection"]>) =>
        new Proxy(connected.db.collection(...args), {
          get: (target, method: keyof MongoCollection) =>
            method !== "bulkWrite"
              ? target[method].bind(target)
              : async (...args: Parameters<MongoCollection["bulkWrite"]>) => {
                  if (when === "before") await write();
                  const result = await target.bulkWrite(...args);
                  if (when === "after") await write();
                  return result;
                },
        });
      return mongoStore({ db: { databaseName: database, collection, command: (command) => connected.db.command(command) } });
    }

    it.each(["before", "after"] as const)("that takes the record out %s it is moved: it is not handed out", async (when) => {
      const first = record({ wakeAt: 1 });
      await store.commit({ record: first });
      expect(await meddledWith(() => store.commit(following(first)), when).lease(1, 10, 2)).toEqual([]);
      expect(await store.lease(2, 10, 3)).toEqual([]);
    });

    it.each(["before", "after"] as const)("that leaves its wakeAt unchanged %s it is moved: it is handed out as it was written", async (when) => {
      const first = record({ wakeAt: 1 });
      await store.commit({ record: first });
      const next = following(first, { wakeAt: "unchanged" });
      const leased = await meddledWith(() => store.commit(next), when).lease(1, 10, 2);
      expect(leased.map(({ tokens }) => tokens)).toEqual([next.record.tokens]);
      await store.commit(following(next.record, { wakeAt: 1_000_000 + Date.now() }));
    });
  });

  it("a write whose token is stored already is done and writes nothing, whatever it expects", async () => {
    const first = record();
    const second = following(first);
    await store.commit({ record: first });
    await store.commit(second);
    expect(await store.commit({ record: { ...first, data: "again" }, expected: second.record.tokens[0] as string })).toMatchObject({ done: true });
    expect(await store.find(first.customer, first.id)).toMatchObject({ data: "data", tokens: second.record.tokens });
  });

  it("the first claim that is refused is named, also where it stands between two on one window", async () => {
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

  it.each([
    ["answers an old wire version", async () => ({ maxWireVersion: 8 })],
    ["does not know hello", () => Promise.reject(Object.assign(new Error("no such command"), { code: 59 }))],
  ])("a server that %s is too old, and that is said at first use", async (_, command) => {
    const db = { databaseName: database, collection: () => ({}), command } as unknown as MongoDb;
    await expect(mongoStore({ db }).find("c", "i")).rejects.toThrow("the server behind option `db` is too old: use MongoDB 4.4 or newer");
  });

  it("a claim that fails undoes those beside it, and its error holds nothing that is stored", async () => {
    const [broken, window, list, sum] = [`${randomUUID()}:n:+14155550100`, name(), name(), name()];
    await collection("windows").insertOne({ _id: broken, members: "+14155550100", expireAt: new Date(Date.now() + length) });
    const claims = [weight(sum, 5), member(list), member(window, { limit: 1 }), member(broken, { limit: 1, member: "+14155550101" })];
    const kept = record();
    const error: Error = await store.commit({ claims, record: kept }).then(
      () => expect.unreachable(),
      (reason) => reason,
    );
    expect(error.message).toMatch(/^mongoStore: Mongo/);
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain("1415555");
    expect(await collection("windows").findOne({ _id: broken })).toMatchObject({ members: "+14155550100" });
    expect([await total(sum), await members(list), await members(window, 0, 1)]).toEqual([0, 0, 0]);
    expect(await store.find(kept.customer, kept.id)).toBeUndefined();
  });

  it("50 racers that make a window, a sum and a counter at the same time are each told a count of their own", async () => {
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
    const all = Array.from({ length: 50 }, (_, i) => i + 1);
    for (const at of [0, 1]) expect(told.map((pair) => pair[at] as number).sort((a, b) => a - b)).toEqual(all);
    expect(await store.tally([], [counter])).toEqual([50]);
  });

  describe.each([["in a window", 3] as const, ["in a list", undefined] as const])("twins %s", (_, limit) => {
    const limited = limit === undefined ? {} : { limit };

    it("do not take back each other's hold when one of them is refused elsewhere", async () => {
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

    it("leave nothing when all of them are refused elsewhere, and what was there before", async () => {
      const [shared, held, full] = [name(), name(), name()];
      const now = Date.now();
      const twin = member(shared, { ...limited, now });
      const again = member(held, { ...limited, now });
      await counts(member(full, { limit: 1 }));
      await counts({ ...again, now: now - length / 2 });
      const refused = { claims: [twin, again, member(full, { limit: 1, now })] };
      const outcomes = await Promise.all(Array.from({ length: 30 }, () => store.commit(refused)));
      expect(outcomes.filter(({ done }) => done)).toEqual([]);
      expect([await members(shared, 0, limit), await members(held, 0, limit), await members(held, now - length / 4, limit)]).toEqual([0, 1, 0]);
    });
  });

  it("what racers add to a sum and are refused elsewhere is undone to the unit", async () => {
    const [sum, full] = [name(), name()];
    const now = Date.now();
    await counts(member(full, { limit: 1 }), weight(sum, 7, { now }));
    const outcomes = await Promise.all(
      Array.from({ length: 30 }, (_, i) => store.commit({ claims: [weight(sum, i + 1, { now }), ...(i % 3 === 0 ? [] : [member(full, { limit: 1, now })])] })),
    );
    expect(outcomes.filter(({ done }) => done)).toHaveLength(10);
    expect(await total(sum)).toBe(7 + [1, 4, 7, 10, 13, 16, 19, 22, 25, 28].reduce((a, b) => a + b));
  });

  it("an ask for a sum that is claimed beside it is told from the same step, over its own length", async () => {
    const [sum, other] = [name(), name()];
    const now = Date.now();
    const claimed = weight(sum, 5, { now });
    await counts(claimed, weight(other, 3, { now: now - day, since: now - day - length }));
    const asks = [0, now - length, now + day].map((since) => ({ sum, since }));
    const change = { asks: [...asks, { sum: other, since: 0 }] };
    expect(await store.commit({ ...change, claims: [claimed] })).toEqual({ done: true, counts: [10], asked: [10, 10, 0, 3] });
    expect(await store.commit({ ...change, claims: [{ ...claimed, weight: -4 }] })).toEqual({ done: true, counts: [6], asked: [6, 6, 0, 3] });
  });

  describe("stays small", () => {
    const stored = async (_id: string, field: string) => (await collection("windows").findOne({ _id }))?.[field] as unknown[];

    it("a window, however often a member comes again", async () => {
      const window = name();
      const start = Date.now() - length;
      for (let i = 0; i < 60; i++) await counts(member(window, { member: "one", now: start + i * 10_000, limit: 2 }));
      const [one, ...none] = (await stored(window, "members")) as [{ holds: unknown[] }];
      expect(none).toEqual([]);
      expect(one.holds.length).toBeLessThan(10);
      expect(await members(window, 0, 2)).toBe(1);
    });

    it("a window, by the rank of its members, of which its largest limit stays exact", async () => {
      const window = name();
      const start = Date.now();
      for (let i = 0; i < 40; i++) await counts(member(window, { now: start + i, since: start + i - 1, limit: 3 }));
      expect(await stored(window, "members")).toHaveLength(3 + 16);
      expect(await store.commit({ claims: [member(window, { since: start, limit: 3 })] })).toMatchObject({ done: false, refusedBy: 0 });
    });

    it("a sum, by the rank of its slots", async () => {
      const sum = name();
      const start = Date.now();
      for (let i = 0; i < 40; i++) await counts(weight(sum, 1, { now: start + i * (length / 12) }));
      expect(await stored(sum, "slots")).toHaveLength(32);
      expect(await total(sum)).toBe(32);
    });

    it("a list, by the rank of its members: the newest 10,000", async () => {
      const window = name();
      const start = Date.now() - length;
      const documents = Array.from({ length: 10_499 }, (_, i) => ({
        _id: key({ window, member: `${i}` }),
        at: start + i,
        holds: [{ at: start + i, ticket: "" }],
        expireAt: new Date(start + day),
      }));
      await collection("lists").insertMany(documents);
      const own = () => collection("lists").countDocuments({ "_id.window": window });
      expect(await counts(member(window, { since: 0 }))).toEqual([10_500]);
      expect(await own()).toBe(10_500);
      await counts(member(window, { since: 0 }));
      expect(await own()).toBeLessThanOrEqual(10_001);
      expect(await counts(member(window, { since: start + 10_000 }))).toEqual([501]);
    });
  });
});
