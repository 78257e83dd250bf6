import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recognise } from "../../adapters/store/redis/clients.js";
import { type RunScript, redisStore } from "../../adapters/store/redis/index.js";
import type { RecordWrite, Store } from "../../src/ports/store.js";
import { type RedisServer, redisIsInstalled, startCluster, startRedis } from "../support/redis.js";
import { type Connected, clients, clusterClients } from "../support/redis-clients.js";

const minute = 60_000;
const life = { now: 0, keepUntil: minute };

function aRecord(change: Partial<RecordWrite> = {}): RecordWrite {
  const now = Date.now();
  return { customer: randomUUID(), id: randomUUID(), tokens: ["one"], data: "data", now, keepUntil: now + minute, ...change };
}

function aMember(window: string) {
  const now = Date.now();
  return { window, member: randomUUID(), limit: 5, since: now - minute, now, keepUntil: now + minute };
}

/** What each came to: its answer, or the message of its fault. */
async function endsOf(calls: readonly Promise<unknown>[]): Promise<unknown[]> {
  return (await Promise.allSettled(calls)).map((end) => (end.status === "fulfilled" ? end.value : String(end.reason)));
}

/** Ends with a turn in which several calls came; the next are gathered. */
async function crowd(store: Store): Promise<void> {
  const asked = [store.get("a"), store.get("b")];
  await new Promise(setImmediate);
  void Promise.allSettled(asked);
}

const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const taken = { done: true, counts: [], asked: [] };

describe.runIf(redisIsInstalled("calls that go to Redis together"))("calls of one turn of the event loop", () => {
  let server: RedisServer;
  let connected: Connected;

  beforeAll(async () => {
    server = await startRedis();
    connected = await (clients["ioredis 6"] as (typeof clients)[string])(server);
  });

  afterAll(async () => {
    await connected?.close();
    await server?.stop();
  });

  /** A store that has been asked twice in its last turn, and of each script that it sends from now on how many keys it names. `around`: what is done with each of these. */
  async function crowded(around: (run: () => Promise<unknown>) => Promise<unknown> = (run) => run()) {
    const { run } = recognise(connected.client);
    let scripts: number[] | undefined;
    const client: RunScript = (script, keys, args) => {
      scripts?.push(keys.length);
      return scripts === undefined ? run(script, keys, args) : around(() => run(script, keys, args));
    };
    const store = redisStore({ client });
    await crowd(store);
    scripts = [];
    return { store, scripts };
  }

  it("are one script for each method, and each has its own answer", async () => {
    const { store, scripts } = await crowded();
    const keys = many(10, () => randomUUID());
    await Promise.all(keys.map((key, at) => store.put(key, `value ${at} ~ü"\\\n`, life)));
    expect(scripts).toEqual([10]);
    const records = keys.map((id) => aRecord({ id, data: `data of ${id} ~ü"\\\n` }));
    const [values, commits] = await Promise.all([
      Promise.all(keys.map((key) => store.get(key))),
      Promise.all(records.map((record) => store.commit({ record }))),
    ]);
    expect(values).toEqual(keys.map((_, at) => `value ${at} ~ü"\\\n`));
    expect(commits).toEqual(keys.map(() => taken));
    expect(scripts).toEqual([10, 10, 20]);
    const found = await Promise.all(records.map(({ customer, id }) => store.find(customer, id)));
    expect(found.map((record) => record?.data)).toEqual(records.map(({ data }) => data));
  });

  it("are done in the order in which they came", async () => {
    const { store, scripts } = await crowded();
    const record = aRecord();
    const [first, second, third] = await Promise.all([
      store.commit({ record }),
      store.commit({ record: { ...record, tokens: ["two"] } }),
      store.commit({ record: { ...record, tokens: ["three", "one"] }, expected: "one" }),
    ]);
    expect([first, third]).toEqual([taken, taken]);
    expect(second).toMatchObject({ done: false, current: { tokens: ["one"] } });
    expect(scripts).toHaveLength(1);
  });

  it("do not wait for those of another turn", async () => {
    const { store, scripts } = await crowded();
    const all = [store.get("a"), store.get("b")];
    await new Promise(setImmediate);
    all.push(store.get("c"), store.get("d"), store.get("e"));
    await Promise.all(all);
    expect(scripts).toEqual([2, 3]);
  });

  it("wait for no others after a turn in which one came alone", async () => {
    const { store, scripts } = await crowded();
    await store.get("a");
    await Promise.all([store.get("b"), store.get("c")]);
    await Promise.all([store.get("d"), store.get("e")]);
    expect(scripts).toEqual([1, 1, 1, 2]);
  });

  it("one that fails fails alone", async () => {
    const { store } = await crowded();
    const customer = randomUUID();
    const [broken, sound] = [`${customer}:broken`, `${customer}:sound`];
    await server.cli("SET", `phoneproof{${Buffer.from(customer.replaceAll("-", ""), "hex").toString("base64url")}}:broken`, "not a window");
    const before = aRecord({ customer });
    const ends = await endsOf([
      store.commit({ claims: [aMember(sound)], record: before }),
      store.commit({ claims: [aMember(broken)], record: aRecord({ customer }) }),
      store.commit({ claims: [aMember(sound)] }),
    ]);
    expect(ends).toEqual([{ ...taken, counts: [1] }, expect.stringMatching(/^Error: redisStore: .*WRONGTYPE/), { ...taken, counts: [2] }]);
    expect(await store.find(customer, before.id)).toMatchObject({ data: "data" });
  });

  it("a full memory refuses each as a whole, and takes all once there is room", async () => {
    const own = await startRedis();
    const { client, close } = await (clients["redis 6"] as (typeof clients)[string])(own);
    const store = redisStore({ client });
    const windows = many(8, () => `${randomUUID()}:w`);
    const changes = windows.map((window) => ({ claims: [aMember(window)], record: aRecord() }));
    await crowd(store);
    await own.cli("CONFIG", "SET", "maxmemory", "1");
    await crowd(store);
    expect(await endsOf(changes.map((change) => store.commit(change)))).toEqual(changes.map(() => expect.stringContaining("OOM")));
    expect(await own.cli("DBSIZE")).toBe("0");
    await own.cli("CONFIG", "SET", "maxmemory", "0");
    expect(await endsOf(changes.map((change) => store.commit(change)))).toEqual(changes.map(() => ({ ...taken, counts: [1] })));
    await close();
    await own.stop();
  });

  it("a client that looks for the primary when a replica refuses is told so", async () => {
    const [own, primary] = await Promise.all([startRedis(), startRedis()]);
    await own.cli("REPLICAOF", "127.0.0.1", String(primary.port));
    const told: string[] = [];
    const reconnectOnError = ({ message }: Error) => {
      told.push(message);
      return false;
    };
    const client = new Redis({ port: own.port, reconnectOnError }).on("error", () => {});
    const store = redisStore({ client });
    await crowd(store);
    const ends = await endsOf(many(3, (at) => store.put(String(at), "value", life)));
    expect(ends).toEqual(many(3, () => expect.stringContaining("READONLY")));
    expect(told).toContainEqual(expect.stringContaining("READONLY"));
    client.disconnect();
    await Promise.all([own.stop(), primary.stop()]);
  });

  it("a thousand are no script that others have to wait for long, and neither are a few large ones", async () => {
    const { store, scripts } = await crowded();
    await Promise.all(many(1_000, () => store.get(randomUUID())));
    expect(Math.max(...scripts)).toBe(32);
    expect(scripts).toHaveLength(Math.ceil(1_000 / 32));
    scripts.length = 0;
    const large = many(6, () => aRecord({ data: "x".repeat(30_000) }));
    expect(await Promise.all(large.map((record) => store.commit({ record })))).toEqual(large.map(() => taken));
    expect(scripts).toEqual([4, 4, 4]);
    scripts.length = 0;
    const largest = aRecord({ data: "x".repeat(64 * 1024) });
    expect(await Promise.all([store.commit({ record: aRecord() }), store.commit({ record: largest })])).toEqual([taken, taken]);
    expect(scripts).toEqual([2, 2]);
    expect(await store.find(largest.customer, largest.id)).toMatchObject({ data: largest.data });
  });

  it("more keys than Lua unpacks at once are forgotten all the same, beside others", async () => {
    const { store } = await crowded();
    const windows = many(2, () => randomUUID()).map((customer) => many(9_000, (at) => `${customer}:${at}`));
    const kept = `${randomUUID()}:kept`;
    const first = windows.map(([name]) => name as string);
    await store.commit({ claims: [...first, kept].map(aMember) });
    await Promise.all(windows.map((names) => store.forget({ windows: names })));
    expect(await Promise.all([...first, kept].map((name) => store.members(name, 9)))).toEqual([[], [], [expect.any(String)]]);
  });

  it("a reply that is lost is lost for all, and each is done once however often it is asked", async () => {
    let lost = 1;
    const { store, scripts } = await crowded(async (run) => {
      const reply = await run();
      if (lost-- > 0) throw new Error("the connection broke");
      return reply;
    });
    const changes = many(5, () => ({ claims: [aMember(`${randomUUID()}:w`)], record: aRecord() }));
    expect(await endsOf(changes.map((change) => store.commit(change)))).toEqual(changes.map(() => "Error: redisStore: the connection broke"));
    expect(await endsOf(changes.map((change) => store.commit(change)))).toEqual(changes.map(() => ({ ...taken, counts: [1] })));
    expect(scripts).toEqual([15, 15]);
  });

  it.each([
    ["an array", (reply: unknown) => JSON.parse(String(reply).slice(1))],
    ["nothing", () => null],
    ["other text", () => "=OK"],
    ["fewer answers", () => '=["-"]'],
  ])("a client that gives %s for a reply keeps none of them waiting", async (_, change) => {
    const { store } = await crowded(async (run) => change(await run()));
    const ends = await endsOf(many(3, () => store.get(randomUUID())));
    expect(ends).toEqual(many(3, () => "TypeError: redisStore: option `client` does not give a script's reply as it came"));
  });

  it("each goes by itself on a cluster, where they share no slot", async () => {
    const cluster = await startCluster();
    const { client, close } = await (clusterClients["ioredis 6"] as (typeof clusterClients)[string])(cluster);
    const { run } = recognise(client);
    let scripts = 0;
    const store = redisStore({
      client: (script, keys, args) => {
        scripts++;
        return run(script, keys, args);
      },
      cluster: true,
    });
    const keys = many(5, () => randomUUID());
    await Promise.all(keys.map((key) => store.put(key, key, life)));
    expect(await Promise.all(keys.map((key) => store.get(key)))).toEqual(keys);
    expect(scripts).toBe(10);
    await close();
    await cluster.stop();
  });
});
