import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { createVerifier, type LookupProvider, type LookupResult, type VerifierOptions } from "../../src/index.js";
import { rigged } from "../hostile/kit.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { errorCode, logger, numberOf, secret, setUp } from "../support/verifier.js";

const soon = () => new Promise((resolve) => setImmediate(resolve));
const minute = 60_000;
const day = 24 * 60 * minute;

/** A provider that records its calls and gives the current answer. */
function provider(answer: () => LookupResult | undefined | Promise<LookupResult | undefined> = () => ({ carrier: "SFR" }), price?: number) {
  const asked: string[] = [];
  const lookup: LookupProvider = {
    price,
    async lookup({ phone_number }) {
      asked.push(phone_number);
      return answer();
    },
  };
  return { lookup, asked, answer: (next: typeof answer) => void (answer = next) };
}

function setUpLookup(source: ReturnType<typeof provider>, options: Partial<VerifierOptions> = {}) {
  const set = setUp({ lookup: source.lookup, ...options });
  const look = async (index = 1, customer_uuid: string = set.customer) => {
    const answer = await set.verifier.lookup({ customer_uuid, phone_number: numberOf(index) });
    await soon();
    return answer;
  };
  return { ...set, look };
}

const plan = (index = 1) => ({ phone_number: numberOf(index), country_code: "FR", line_type: "Mobile" });

describe("the cache in the store: 24 h, also for misses, one request at a time", () => {
  it("a result is stored for 24 h, and then requested again", async () => {
    const source = provider();
    const { look, clock } = setUpLookup(source);
    for (let times = 0; times < 3; times++) expect(await look()).toEqual({ ...plan(), carrier: "SFR" });
    clock.advance(day - 1);
    await look();
    expect(source.asked).toHaveLength(1);
    clock.advance(1);
    await look();
    expect(source.asked).toHaveLength(2);
  });

  it("a result without facts is stored too", async () => {
    const source = provider(() => undefined);
    const { look, clock } = setUpLookup(source);
    for (let times = 0; times < 3; times++) expect(await look()).toEqual(plan());
    clock.advance(day - 1);
    await look();
    expect(source.asked).toHaveLength(1);
  });

  it.each<[string, () => LookupResult]>([
    [
      "a failure",
      () => {
        throw new Error("down");
      },
    ],
    ["an answer that lacks what a source that failed may know", () => ({ carrier: "SFR", incomplete: true, failed: ["other: HTTP 500"] })],
  ])("%s is stored for ten minutes only: an outage must not last for a day, nor be paid for with each request", async (_, answer) => {
    const source = provider(answer);
    const { look, clock, log } = setUpLookup(source);
    await look();
    clock.advance(10 * minute - 1);
    await look();
    expect(source.asked).toHaveLength(1);
    clock.advance(1);
    await look();
    expect(source.asked).toHaveLength(2);
    expect(log.lines.map(({ message }) => message).filter((message) => /lookup provider (still )?fail/.test(message))).toHaveLength(2);
  });

  it("fifty concurrent lookups of one number make one request to the provider", async () => {
    let answer: (facts: LookupResult) => void = () => {};
    const source = provider(() => new Promise((resolve) => (answer = resolve)));
    const { look } = setUpLookup(source);
    const looking = Array.from({ length: 50 }, () => look());
    while (source.asked.length === 0) await soon();
    await soon();
    answer({ carrier: "SFR" });
    expect(new Set((await Promise.all(looking)).map(({ carrier }) => carrier))).toEqual(new Set(["SFR"]));
    await look();
    expect(source.asked).toHaveLength(1);
  });

  it("a lookup while the result is being stored finds it", async () => {
    const store = rigged(memoryStore({ name: randomUUID() }));
    store.fate = (method) => (method === "put" ? "held" : "done");
    const source = provider();
    const { look } = setUpLookup(source, { store });
    await look();
    await look();
    expect(source.asked).toHaveLength(1);
    await store.release();
  });

  it("keys and values contain no number in plain text, and the key depends on the pepper", async () => {
    const store = rigged(memoryStore({ name: randomUUID() }));
    const { look } = setUpLookup(provider(), { store });
    await look();
    const kept = JSON.stringify(store.calls.filter(({ method }) => method === "get" || method === "put").map(({ args }) => args));
    expect(kept).toContain(":lookup:");
    expect(kept).not.toContain(numberOf(1).slice(1));
    expect(kept).not.toContain(numberOf(1).slice(-6));
    const other = setUpLookup(provider(), { store, pepper: "another pepper of the tests, long enough" });
    await other.look();
    const keys = store.calls.filter(({ method }) => method === "put").map(({ args }) => String(args[0]).split(":").at(-1));
    expect(new Set(keys).size).toBe(2);
  });
});

describe("hostile: poisoned caches, many customers, failing stores", () => {
  it.each<[string, string]>([
    ["no JSON", "<html>"],
    ["JSON of another form", "[1, 2]"],
    ["null", "null"],
    ["no facts", JSON.stringify({ until: 4e12 })],
    ["no end", JSON.stringify({ facts: { carrier: "Evil" } })],
    ["an end that is no number", JSON.stringify({ facts: { carrier: "Evil" }, until: "soon" })],
    ["an end in a hundred years", JSON.stringify({ facts: { carrier: "Evil" }, until: 4e12 })],
  ])("an invalid cache entry is ignored: %s", async (_, value) => {
    const memory = memoryStore({ name: randomUUID() });
    const source = provider();
    const { look } = setUpLookup(source, { store: { ...bound(memory), get: async () => value } });
    expect(await look()).toEqual({ ...plan(), carrier: "SFR" });
    expect(source.asked).toHaveLength(1);
  });

  it("malformed facts in the cache are left out, like those from the provider itself", async () => {
    const facts = { carrier: "x".repeat(1000), line_type: "Toaster", mcc: "<b>", mnc: "01", number_ported: "yes", phone_number: "+1", admin: true };
    const { look, clock } = setUpLookup(provider(), {
      store: { ...bound(memoryStore({ name: randomUUID() })), get: async () => JSON.stringify({ facts, until: clock.now() + 1000 }) },
    });
    expect(await look()).toEqual(plan());
  });

  it("each customer has its own cache, requests and limit, and does not use up another's", async () => {
    const tenants = Array.from({ length: 40 }, () => randomUUID());
    const source = provider();
    const customers = tenants.map((customer_uuid) => ({
      customer_uuid,
      keys: [`k${customer_uuid}${customer_uuid}`],
      policy: { limits: { lookups: [{ limit: 2, window: 3600 }] } },
    }));
    const { look } = setUpLookup(source, { customers });
    await Promise.all(tenants.flatMap((tenant) => Array.from({ length: 5 }, () => look(7, tenant))));
    expect(source.asked).toHaveLength(tenants.length);
    const [greedy, modest] = tenants as [string, string];
    for (let index = 0; index < 10; index++) await look(100 + index, greedy);
    expect(source.asked, "one more of its two").toHaveLength(tenants.length + 1);
    expect(await look(200, modest)).toMatchObject({ carrier: "SFR" });
  });

  it.each([2, 101])("a lookup that states a price of 0 does not count towards a limit of %i (docs/lookup.md#price)", async (limit) => {
    const caps = [limit, limit + 1].map((most, at) => ({ limit: most, window: 3600 + at }));
    const source = provider(() => {
      throw Object.assign(new Error("HTTP 503"), { price: 0 });
    });
    const { look } = setUpLookup(source, { policy: { limits: { lookups: caps } } });
    for (let index = 0; index < limit + 5; index++) await look(index);
    expect(source.asked).toHaveLength(limit + 5);
    source.answer(() => ({ price: 0 }));
    await look(1000);
    source.answer(() => undefined);
    for (let index = 0; index < limit + 5; index++) await look(2000 + index);
    expect(source.asked).toHaveLength(limit + 6 + limit);
  });

  it.each(["get", "commit", "put"] as const)("a store that fails at %s does not fail a lookup", async (failing) => {
    const store = rigged(memoryStore({ name: randomUUID() }));
    store.fate = (method) => (method === failing ? "refused" : "done");
    const source = provider();
    const { look } = setUpLookup(source, { store });
    expect(await look()).toMatchObject(plan());
    expect(source.asked, "uncounted, nobody is asked").toHaveLength(failing === "put" ? 1 : 0);
  });

  it("a country other than the number's is ignored, also from the cache", async () => {
    const source = provider(() => ({ country_code: "DE", carrier: "SFR" }));
    const { look } = setUpLookup(source);
    for (let times = 0; times < 2; times++) expect(await look()).toEqual({ ...plan(), carrier: "SFR" });
    expect(source.asked).toHaveLength(1);
  });

  it("the text of a failure is logged without the number in it", async () => {
    const source = provider(() => {
      throw new Error(`no such number ${numberOf(1)}, nor 06 12 00 00 01 44`);
    });
    const { look, log } = setUpLookup(source);
    await look();
    expect(JSON.stringify(log.lines)).toContain("no such number");
    expect(JSON.stringify(log.lines)).not.toMatch(/612000001|06 12 00/);
  });

  const installed = redisIsInstalled("lookups of two processes on one Redis");
  describe.runIf(installed)("two processes on one Redis", () => {
    let server: RedisServer;
    beforeAll(async () => {
      server = await startRedis();
    });
    afterAll(() => server?.stop());

    it("they share results and the limit, and make up to one request each at the same time", async () => {
      const source = provider();
      const customer = randomUUID();
      const connections = [new Redis(server.url), new Redis(server.url)];
      const verifiers = connections.map((client) =>
        createVerifier({
          store: redisStore({ client }),
          sender: { send: async () => ({ outcome: "accepted" }) },
          secret,
          countries: "all",
          customers: [{ customer_uuid: customer, keys: [`k${customer}${customer}`], policy: { limits: { lookups: [{ limit: 10, window: 3600 }] } } }],
          logger: logger(),
          lookup: source.lookup,
          callbacks: { worker: false },
        }),
      );
      const lookAt = (at: 0 | 1) => (index: number) => verifiers[at]!.lookup({ customer_uuid: customer, phone_number: numberOf(index) });
      const [one, two] = [lookAt(0), lookAt(1)];
      try {
        await one(1);
        await connections[0]?.ping();
        expect((await two(1)).carrier).toBe("SFR");
        expect(source.asked).toHaveLength(1);
        await Promise.all(Array.from({ length: 50 }, (_, at) => (at % 2 === 0 ? one(2) : two(2))));
        expect(source.asked.length).toBeLessThanOrEqual(3);
        await Promise.all(Array.from({ length: 60 }, (_, at) => (at % 2 === 0 ? one(100 + at) : two(100 + at))));
        expect(source.asked).toHaveLength(10);
        const keys = await server.cli("KEYS", "*");
        expect(keys).toContain("lookup");
        expect(keys).not.toContain(numberOf(1).slice(1));
      } finally {
        await Promise.all(verifiers.map((verifier) => verifier.close()));
        for (const client of connections) client.disconnect();
      }
    });
  });
});

/** A store's methods as its own properties, so that some can be replaced. */
function bound(store: ReturnType<typeof memoryStore>) {
  const { find, commit, members, tally, lease, get, put, delete: forget } = store;
  return Object.fromEntries(
    Object.entries({ find, commit, members, tally, lease, get, put, delete: forget }).map(([name, method]) => [name, method.bind(store)]),
  ) as unknown as typeof store;
}

describe('prices of lookups count towards the spend ceiling: `{ amount, per: "hour" or "day" }`', () => {
  const spend = [{ amount: 0.1, per: "hour" as const }];
  const priced = (price = 0.05) => ({
    sender: { send: async () => ({ outcome: "accepted" as const }), plan: () => ({ route: "r", price }) },
    policy: { limits: { spend } },
  });

  it("above the ceiling only the numbering plan is used, and after the hour the provider is called again", async () => {
    const source = provider(undefined, 0.04);
    const { look, clock, log } = setUpLookup(source, priced());
    for (let index = 0; index < 5; index++) await look(index);
    expect(source.asked).toHaveLength(2);
    expect(log.lines.at(-1)).toMatchObject({ level: "warn", fields: { rule: "spend 0.1/hour" } });
    clock.advance(66 * minute);
    await look(9);
    expect(source.asked).toHaveLength(3);
  });

  it("lookups and messages share the ceiling", async () => {
    const { look, create } = setUpLookup(provider(undefined, 0.06), priced(0.05));
    await look(1);
    expect((await create({ phone_number: numberOf(2) })).status).toBe("rate_limited");
  });

  it("a cache hit costs nothing", async () => {
    const source = provider(undefined, 0.04);
    const { look, create } = setUpLookup(source, priced(0.05));
    for (let times = 0; times < 10; times++) await look(1);
    expect((await create({ phone_number: numberOf(2) })).status).toBe("pending");
  });

  it.each<[string, () => LookupResult, number]>([
    ["what nothing was asked for is given back", () => ({ price: 0 }), 2],
    ["what it did cost is what counts", () => ({ price: 0.05 }), 1],
    ["a price that is none counts as its price", () => ({ price: Number.NaN }), 0],
    [
      "a failure that cost nothing",
      () => {
        throw Object.assign(new Error("HTTP 429"), { price: 0 });
      },
      2,
    ],
    [
      "a failure that may have cost",
      () => {
        throw new Error("cut");
      },
      0,
    ],
  ])("%s", async (_, answer, left) => {
    const { look, create } = setUpLookup(provider(answer, 0.1), priced(0.05));
    await look(1);
    await soon();
    const statuses = [];
    for (let index = 0; index < 3; index++) statuses.push((await create({ phone_number: numberOf(10 + index) })).status);
    expect(statuses.filter((status) => status === "pending")).toHaveLength(left);
  });

  it("a provider that states more than its price counts with its price only", async () => {
    const { look, create } = setUpLookup(
      provider(() => ({ price: 5 }), 0.05),
      priced(0.05),
    );
    await look(1);
    expect((await create({ phone_number: numberOf(2) })).status).toBe("pending");
  });

  it("fifty concurrent lookups never spend more than the ceiling", async () => {
    const source = provider(undefined, 0.01);
    const { look } = setUpLookup(source, priced());
    await Promise.all(Array.from({ length: 50 }, (_, index) => look(index)));
    expect(source.asked).toHaveLength(10);
  });

  it("with a ceiling but no price the verifier throws at construction, and lookups of a customer from a source call no provider", async () => {
    expect(await errorCode((async () => setUpLookup(provider(), priced()))())).toBe("invalid_options");
    expect(() => setUpLookup(provider(), priced())).toThrow("policy.limits.spend needs to know what a lookup costs");
    expect(() => setUpLookup(provider(undefined, 0), priced())).not.toThrow();
    const source = provider();
    const customer_uuid = randomUUID();
    const customers = { findByKeyDigest: async () => undefined, find: async () => ({ customer_uuid, policy: { limits: { spend } } }) };
    const { look, log } = setUpLookup(source, { customers, sender: priced().sender });
    expect(await look(1, customer_uuid)).toEqual(plan());
    expect(source.asked).toEqual([]);
    expect(log.lines.at(-1)?.message).toContain("the provider has no price");
  });
});
