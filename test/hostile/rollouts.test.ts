import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import { verifyWebhook } from "../../clients/webhooks.js";
import { generateApiKey, type Store, type VerifierOptions } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/index.js";
import { PlainStore } from "../store/plain-store.js";
import { newStore, postgresServer } from "../support/postgres.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { newFolder, openSqlite } from "../support/sqlite.js";
import { start } from "../support/verifier.js";
import { after, exhaust, world } from "./fallback-kit.js";
import { a, b, c, codeOf, day, each, far, hour, minute, outcome, type Process, pepper, second, site, source, wrongFor } from "./rollouts-kit.js";

type Options = Partial<VerifierOptions>;
type Cap = { readonly limit: number; readonly window: number; readonly perVerified?: number };

const builtIn = "00000000-0000-0000-0000-000000000000";
const callback = { callback_url: "https://receiver.example/hook" };
const customer = (more: object = {}) => ({ customer_uuid: randomUUID(), keys: [generateApiKey().key], ...more });
const ofCustomer = (perCustomer: readonly Cap[], more: Options = {}): Options => ({ ...more, policy: { ...more.policy, limits: { perCustomer } } });
const cap = (kind: string, limit: number, window: number): Options => ({ policy: { limits: { [kind]: [{ limit, window }] } } });

const hasRedis = redisIsInstalled("the hostile tests of roll-outs");
const postgres = await postgresServer("the hostile tests of roll-outs");
let redis: RedisServer | undefined;
let client: Redis;
beforeAll(async () => {
  if (!hasRedis) return;
  redis = await startRedis();
  client = new Redis(redis.port, "127.0.0.1");
});
afterAll(async () => {
  client?.disconnect();
  await redis?.stop();
  await postgres?.stop();
});

/** Each opens one store for the processes of a test. */
const stores: readonly (readonly [string, () => Promise<Store>])[] = [
  ["memory", async () => memoryStore()],
  [
    "SQLite",
    async () => {
      const { file, remove } = newFolder();
      const store = sqliteStore({ file });
      onTestFinished(async () => {
        await store.close?.();
        remove();
      });
      return store;
    },
  ],
  ...(hasRedis ? ([["Redis", async () => redisStore({ client, prefix: randomUUID() })]] as const) : []),
  ...(postgres
    ? ([
        [
          "PostgreSQL",
          async () => {
            const { store, close } = await newStore(postgres);
            onTestFinished(close);
            return store;
          },
        ],
      ] as const)
    : []),
];

/** The steps of docs/operations.md#rotate, in both alphabetical orders of the two secrets. */
const rotations = (
  [
    ["the next secret sorts last", a, b],
    ["the next secret sorts first", b, a],
  ] as const
).flatMap(([name, old, next]) =>
  (
    [
      ["step 1", old, [old, next]],
      ["step 2", [old, next], [next, old]],
      ["step 3", [next, old], next],
    ] as const
  ).flatMap(([step, before, now]) => [
    [`${step}, ${name}, begun by the old process`, before, now] as const,
    [`${step}, ${name}, begun by the new process`, now, before] as const,
  ]),
);

describe("secrets in rotation, used in parallel (docs/operations.md#rotate)", () => {
  it.each(rotations)("%s: a create repeated under its key sends once, with a pepper (docs/contract.md#idempotency)", async (_, first, other) => {
    const s = site({ pepper });
    const [one, two] = [s.run({ secret: first }), s.run({ secret: other })];
    const id = await one.begin(far(1), {}, "key");
    expect(await two.begin(far(1), {}, "key")).toBe(id);
    expect(s.messages).toHaveLength(1);
  });

  it.each(rotations)(
    "%s: everything else that one process begins, the other continues, with a pepper (docs/contract.md#secret-rotation)",
    async (_, first, other) => {
      const s = site({ pepper, conversion: "reported", receipts: { baseUrl: "https://otp.example", sources: [source()] } });
      const [one, two] = [s.run({ secret: first }), s.run({ secret: other })];
      const id = await one.begin(far(1), callback);
      expect(await two.receipt(s.messages[0], "delivered")).toBe(200);
      s.clock.advance(31 * second);
      expect(await two.retry(id)).toBe("approved");
      expect(s.messages.map(({ to }) => to)).toEqual([far(1), far(1)]);
      expect(await one.check(id, codeOf(s, id, 2), "check")).toBe("valid");
      expect(await two.check(id, codeOf(s, id, 2), "check")).toBe("valid");
      await two.verifier.flush();
      await one.verifier.flush();
      expect(s.posts.map(({ data }) => `${data["attempt"]} ${data["status"]}`).sort()).toEqual(["1 delivered", "1 submitted", "2 submitted"]);

      const of = { phone_number: far(2) };
      const { authentication_uuid } = await one.verifier.verifications.start(of);
      s.clock.advance(31 * second);
      expect(await two.verifier.verifications.start(of)).toMatchObject({ status: "pending", attempt: 2, authentication_uuid });
      expect(await outcome(two.verifier.verifications.check({ ...of, check_code: codeOf(s, authentication_uuid, 1) }))).toBe("valid");

      const delivery = { phone_number: far(3), code: "111111", idempotency_key: "once" };
      expect([(await one.verifier.deliver(delivery)).status, (await two.verifier.deliver(delivery)).status]).toEqual(["sent", "repeated"]);
      expect(await outcome(two.verifier.confirm({ phone_number: far(3) }))).toBe("confirmed");

      const created = await Promise.all(Array.from({ length: 8 }, (_, i) => (i % 2 ? one : two).create(far(4))));
      expect(created.filter((status) => status === "pending")).toHaveLength(5);
      expect(await two.verifier.history({ phone_number: far(4) })).toHaveLength(8);
      expect([(await two.verifier.unlock({ phone_number: far(4) })).unlocked, (await one.verifier.unlock({ phone_number: far(4) })).unlocked]).toEqual([
        true,
        false,
      ]);
      expect((await one.verifier.erase({ phone_number: far(4) })).erased).toBeGreaterThanOrEqual(5);
      expect(await two.verifier.history({ phone_number: far(4) })).toEqual([]);
    },
  );

  it("a receiver with either the old or the new secret accepts callbacks while both are set (docs/contract.md#callback-signature)", async () => {
    const s = site();
    const derived = async (secret: string) => (await s.run({ secret }).verifier.webhookSecrets(builtIn))[0] as string;
    const [old, next] = [await derived(b), await derived(a)];
    for (const secret of [
      [b, a],
      [a, b],
    ] as const) {
      s.posts.length = 0;
      const process = s.run({ secret });
      await process.begin(far(secret.indexOf(a)), callback);
      await process.verifier.flush();
      const [{ headers, body }] = s.posts as [(typeof s.posts)[0]];
      for (const held of [old, next]) expect(verifyWebhook({ secret: held, headers, body, now: s.clock.now() }).data.status).toBe("submitted");
    }
  });

  it("after two rotations with a pepper, a number is still found and erased, and a dead letter is redelivered with the number masked (docs/operations.md#rotate)", async () => {
    const s = site({ pepper, policy: { tombstone: 10 * 86_400 } });
    const first = s.run({ secret: a });
    const id = await first.begin(far(1), callback);
    s.receive = () => ({ status: 500 });
    const process = s.run({ secret: [b, a] });
    for (let hours = 0, dead = 0; hours < 130 && dead === 0; hours++) {
      s.clock.advance(hour);
      ({ dead } = await (hours % 2 ? first : process).verifier.flush());
    }
    s.receive = () => ({ status: 204 });
    const last = s.run({ secret: c });
    const [letter] = await last.verifier.deadLetters();
    expect(letter).toMatchObject({ authentication_uuid: id, sequence: 1 });
    await last.verifier.redeliver(letter as NonNullable<typeof letter>);
    await last.verifier.flush();
    expect(s.posts.at(-1)?.data["phone_number"]).toBe(`${far(1).slice(0, 6)}****${far(1).slice(-2)}`);
    expect(await last.verifier.history({ phone_number: far(1) })).toHaveLength(1);
    expect((await last.verifier.erase({ phone_number: far(1) })).erased).toBe(1);
    expect(await outcome(first.verifier.explain({ authentication_uuid: id }))).toBe("invalid_auth_uuid");
  });
});

describe("caps that change while they count (docs/contract.md#caps)", () => {
  describe.each(stores)("on %s", (_, open) => {
    it("a customer's daily cap that is raised without perVerified blocks no further create or retry (docs/contract.md#growing-cap)", async () => {
      const s = site({ store: await open(), storeTimeout: 30 });
      const old = s.run(ofCustomer([{ limit: 10_000, window: 86_400, perVerified: 3 }])); // the default
      const id = await old.begin(far(1));
      const next = s.run(ofCustomer([{ limit: 20_000, window: 86_400 }]));
      expect.soft(await next.create(far(2))).toBe("pending");
      s.clock.advance(31 * second);
      expect.soft(await next.retry(id)).toBe("approved");
    });
  });

  it("a customer in the store whose cap `update` raises can still create (docs/customers.md)", async () => {
    const s = site({ customers: "store" });
    const { verifier, create } = s.run(ofCustomer([{ limit: 10_000, window: 86_400, perVerified: 3 }]));
    const { customer_uuid } = await verifier.customers.create({ name: "ACME" });
    expect(await create(far(1), { customer_uuid })).toBe("pending");
    await verifier.customers.update({ customer_uuid, policy: { limits: { perCustomer: [{ limit: 20_000, window: 86_400 }] } } });
    s.clock.advance(2 * second);
    expect(await create(far(2), { customer_uuid })).toBe("pending");
  });

  it("two processes of a roll-out, one with perVerified and one without, both send (docs/contract.md#growing-cap)", async () => {
    const s = site();
    const old = s.run(ofCustomer([{ limit: 1_000, window: 86_400, perVerified: 3 }]));
    const next = s.run(ofCustomer([{ limit: 1_000, window: 86_400 }]));
    expect(new Set(await each(20, (i) => (i % 2 ? old : next).create(far(i))))).toEqual(new Set(["pending"]));
  });

  it.each<[string, Cap, readonly Cap[], number]>([
    ["lowered from 150 to 50 counts from zero", { limit: 150, window: 3_600 }, [{ limit: 50, window: 3_600 }], 50],
    ["raised from 60 to 110 counts from zero", { limit: 60, window: 3_600 }, [{ limit: 110, window: 3_600 }], 110],
    ["that gets perVerified counts from zero", { limit: 110, window: 3_600 }, [{ limit: 110, window: 3_600, perVerified: 3 }], 110],
    ["that loses perVerified counts from zero", { limit: 110, window: 3_600, perVerified: 3 }, [{ limit: 110, window: 3_600 }], 110],
    ["over 100 whose window changes counts from zero", { limit: 110, window: 3_600 }, [{ limit: 110, window: 7_200 }], 110],
    [
      "that is kept goes on beside an added one",
      { limit: 110, window: 3_600 },
      [
        { limit: 110, window: 3_600 },
        { limit: 90, window: 1_800 },
      ],
      50,
    ],
    ["whose limit changes over 100 goes on", { limit: 150, window: 3_600 }, [{ limit: 110, window: 3_600 }], 50],
    ["whose limit changes up to 100 goes on", { limit: 60, window: 3_600 }, [{ limit: 100, window: 3_600 }], 40],
    ["whose perVerified changes goes on", { limit: 150, window: 3_600, perVerified: 3 }, [{ limit: 100, window: 3_600, perVerified: 1 }], 40],
  ])("a cap %s (docs/contract.md#every-window)", async (_, before, now, more) => {
    const s = site();
    const old = s.run(ofCustomer([before]));
    const next = s.run(ofCustomer(now));
    for (let i = 0; i < 60; i++) await old.begin(far(i));
    s.clock.advance(minute);
    expect((await each(120, (i) => next.create(far(100 + i)))).filter((status) => status === "pending")).toHaveLength(more);
  });

  it.each<[string, Options, Options, (i: number) => string, number, number]>([
    ["per number", cap("perNumber", 10, 3_600), cap("perNumber", 2, 3_600), () => far(1), 8, minute],
    ["per device", cap("perDevice", 10, 3_600), cap("perDevice", 2, 3_600), far, 8, minute],
    ["of numbers of a device", cap("numbersPerDevice", 10, 3_600), cap("numbersPerDevice", 2, 3_600), far, 8, minute],
    ["of a customer, in sums", cap("perCustomer", 300, 3_600), cap("perCustomer", 120, 3_600), far, 200, 15 * second],
  ])("a cap %s lowered below its count: retry_after is when it has room (docs/contract.md#facts)", async (_, before, now, number, count, step) => {
    const s = site({ policy: { maxGuessOdds: 1 } });
    const [old, next] = [s.run(before), s.run(now)];
    const device = { device_id: "tablet" };
    for (let i = 0; i < count; i++) {
      await old.begin(number(i), device);
      s.clock.advance(step);
    }
    const { status, retry_after = 0 } = (await next.verifier.createAuthentication({ phone_number: number(count), ...device })) as {
      status: string;
      retry_after?: number;
    };
    expect(status).toBe("rate_limited");
    s.clock.advance((retry_after - 1) * second);
    expect(await next.create(number(count + 1), device)).toBe("rate_limited");
    s.clock.advance(second);
    expect(await next.create(number(count + 2), device)).toBe("pending");
  });

  it("a spend ceiling that is added, or whose span changes, counts from then on, and processes without one keep sending (docs/routing.md#spend-ceiling)", async () => {
    for (const [before, now] of [
      [[], [{ amount: 10, per: "hour" }]],
      [[{ amount: 10, per: "hour" }], [{ amount: 10, per: "day" }]],
    ] as const) {
      const s = site();
      const sender = () => router({ clock: s.clock, routes: [{ name: "only", price: 1, sender: { send: async () => ({ outcome: "accepted" }) as const } }] });
      const [old, next] = [before, now].map((spend) => s.run({ sender: sender(), policy: { limits: { spend } } })) as [Process, Process];
      for (let i = 0; i < 6; i++) await old.begin(far(i));
      expect((await each(15, (i) => next.create(far(50 + i)))).filter((status) => status === "pending")).toHaveLength(10);
      if (before.length === 0) expect(await old.create(far(90))).toBe("pending");
    }
  });

  it("history and erase find authentications that were created under other windows of the cap (docs/privacy.md#one-number-history-erasure-unlock)", async () => {
    const sets: readonly (readonly Cap[])[] = [
      [
        { limit: 5, window: 600 },
        { limit: 10, window: 86_400 },
      ],
      [{ limit: 500, window: 86_400 }],
      [{ limit: 3, window: 600 }],
      [
        { limit: 5, window: 600 },
        { limit: 500, window: 86_400 },
      ],
      [{ limit: 10, window: 604_800 }],
    ];
    for (const before of sets)
      for (const now of sets)
        for (const [wait, tombstone] of [
          [12 * minute, 86_400],
          [20 * hour, 86_400],
          [3 * day, 6 * 86_400],
        ] as const) {
          const s = site({ policy: { maxGuessOdds: 1 } });
          const [old, next] = [before, now].map((perNumber) => s.run({ policy: { tombstone, limits: { perNumber } } })) as [Process, Process];
          const ids = [await old.begin(far(1)), await old.begin(far(1))];
          s.clock.advance(wait);
          const found = [(await next.verifier.history({ phone_number: far(1) })).length, (await next.verifier.erase({ phone_number: far(1) })).erased];
          expect(found, JSON.stringify([before, now, wait])).toEqual([2, 2]);
          for (const authentication_uuid of ids) expect(await outcome(old.verifier.explain({ authentication_uuid }))).toBe("invalid_auth_uuid");
        }
  });
});

describe("codes, checks and texts that change while codes are valid", () => {
  it("evaluates no more guesses than the length allows, of codes of six and eight digits from either process (docs/contract.md#guess-budget)", async () => {
    const s = site();
    const six = s.run();
    const eight = s.run({ policy: { codeLength: 8, checks: 100, limits: { perNumber: [{ limit: 100, window: 86_400 }] } } });
    const guesses = async (process: Process, id: string) => {
      let count = 0;
      while (count < 200 && (await process.check(id, "x")) === "invalid") count++;
      return count;
    };
    const mixed = await six.begin(far(1));
    s.clock.advance(31 * second);
    expect(await eight.retry(mixed)).toBe("approved");
    // 1e-4 of a million codes, over 100 sends a day.
    expect(await guesses(eight, mixed)).toBe(1);
    const long = await eight.begin(far(2));
    s.clock.advance(31 * second);
    expect(await six.retry(long)).toBe("approved");
    expect(codeOf(s, long, 2)).toHaveLength(8);
    expect(await guesses(six, long)).toBe(5);
    expect(await eight.check(long, codeOf(s, long))).toBe("rate_limited");
  });

  it("shows nothing below zero when fewer checks and retries are allowed (docs/contract.md#facts)", async () => {
    const s = site();
    const old = s.run();
    const next = s.run({ policy: { checks: 1, retryCooldowns: [5] } });
    const id = await old.begin(far(1));
    for (let i = 0; i < 3; i++) expect(await old.check(id, wrongFor(codeOf(s, id)))).toBe("invalid");
    for (const wait of [31, 61, 91]) {
      s.clock.advance(wait * second);
      expect(await old.retry(id)).toBe("approved");
    }
    s.clock.advance(121 * second);
    expect(await next.verifier.retry({ authentication_uuid: id })).toMatchObject({ status: "rate_limited", remaining_retry: 0, remaining_checks: 0 });
    expect(await next.verifier.explain({ authentication_uuid: id })).toMatchObject({ left: { checks: 0, retries: 0 } });
    expect(await next.check(id, codeOf(s, id))).toBe("rate_limited");
    expect(await old.check(id, codeOf(s, id))).toBe("valid");
  });

  it("sends a text of another language, or the only one, when a language is removed (docs/contract.md#message-text)", async () => {
    const s = site();
    const texts = [{ default: "Code {code}", de: "Ihr Code {code}" }, { default: "New {code}" }, "Only {code}"] as const;
    const [old, next, only] = texts.map((text) => s.run({ message: { text } })) as [Process, Process, Process];
    await old.verifier.verifications.start({ phone_number: far(1), locale: "de" });
    for (const { verifier } of [next, only, old]) {
      s.clock.advance(121 * second);
      await verifier.verifications.start({ phone_number: far(1) });
    }
    expect(s.messages.map(({ text, code = "" }) => text.replace(code, "#"))).toEqual(["Ihr Code #", "New #", "Only #", "Ihr Code #"]);
  });

  it.each<[string, string, Options]>([
    ["a fixed line that was a test number", "+33142685300", { testNumbers: ["+33142685300"] }],
    ["premium rate that was a test number", "+33899123456", { testNumbers: ["+33899123456"] }],
  ])("sends nothing more to %s once the options forbid it: a retry is rate_limited (docs/contract.md#destinations)", async (_, number, options) => {
    const s = site({ countries: ["FR"] });
    const id = await s.run(options).begin(number);
    s.clock.advance(61 * second);
    const next = s.run();
    expect(await next.create(number)).toBe("invalid_line");
    expect(await next.retry(id)).toBe("rate_limited");
    expect(s.messages).toHaveLength(1);
  });

  it("does not check again on retry whether a number is valid (docs/contract.md#destinations)", async () => {
    const s = site({ countries: ["FR"] });
    const id = await s.run({ phoneValidation: "possible" }).begin("+33712345678");
    s.clock.advance(31 * second);
    const next = s.run();
    expect(await next.create("+33712345678")).toBe("invalid_phone_number");
    expect(await next.retry(id)).toBe("approved");
  });
});

describe("a customer that only the new processes know", () => {
  it.each(["silent", "undeliverable at the old process", "undeliverable at the new process"])(
    "keeps its fallback (%s) when a worker of an old process comes first (docs/contract.md#fallback-worker)",
    async (how) => {
      const store = new PlainStore();
      const [known, added] = [customer(), customer()];
      const next = world({ store, customers: [added, known] });
      const old = world({ store, customers: [known], clock: next.clock });
      const { authentication_uuid: id } = await next.one.create(1);
      if (how !== "silent") expect(await (how.endsWith("old process") ? old : next).one.receipt(next.messageOf(id), "undeliverable")).toBe(200);
      next.clock.advance(after + 1);
      await old.one.flush();
      await exhaust(next, 5);
      expect([...next.story(id), ...old.story(id)]).toEqual(["1 wa", "2 sms"]);
    },
  );

  it("moves from a list to the store with its pending codes, keys and callbacks (docs/customers.md)", async () => {
    const s = site();
    const one = customer({ policy: { codeLength: 8 } });
    const { customer_uuid } = one;
    const [old, next] = [s.run({ customers: [one] }), s.run({ customers: "store" })];
    await next.verifier.customers.create(one);
    const id = await old.begin(far(1), { ...callback, customer_uuid }, "key");
    expect(await next.begin(far(1), { ...callback, customer_uuid }, "key")).toBe(id);
    expect(await next.verifier.webhookSecrets(customer_uuid)).toEqual(await old.verifier.webhookSecrets(customer_uuid));
    await next.verifier.flush();
    expect(s.posts.map(({ data }) => data["status"])).toEqual(["submitted"]);
    expect(await outcome(next.verifier.check({ customer_uuid, authentication_uuid: id, check_code: codeOf(s, id) }))).toBe("valid");
  });
});

describe("processes with different clocks, versions or prefixes", () => {
  it.each(stores)(
    "on %s, with clocks a minute apart and clockSkew 60, a cap of five holds in every ten minutes (docs/contract.md#every-window)",
    async (_, open) => {
      const clocks = [fixedClock(start), fixedClock(start + minute)] as const;
      const s = site({ clock: clocks[0], clockSkew: 60, store: await open(), storeTimeout: 30 });
      const set = clocks.map((clock) => s.run({ clock }));
      const sent: number[] = [];
      for (let i = 0; i < 120; i++) {
        if ((await (set[i % 2] as Process).create(far(1))) === "pending") sent.push(clocks[0].now());
        for (const clock of clocks) clock.advance(17 * second);
      }
      expect(sent.length).toBeGreaterThanOrEqual(10);
      for (const from of sent) expect(sent.filter((at) => at >= from && at < from + 600 * second).length).toBeLessThanOrEqual(5);
    },
  );

  it("an older phoneproof rejects a newer SQLite file, and logs why (docs/stores.md#sqlite)", async () => {
    const { file, remove } = newFolder();
    const [first, later] = [sqliteStore({ file }), sqliteStore({ file })];
    onTestFinished(async () => {
      for (const store of [first, later]) await store.close?.();
      remove();
    });
    await site({ store: first }).run().begin(far(1));
    const handle = openSqlite(file);
    handle.exec("update phoneproof_schema set version = version + 1");
    handle.close();
    const s = site({ store: later });
    const process = s.run();
    expect(await process.create(far(2))).toBe("unavailable");
    expect(s.messages).toEqual([]);
    expect(JSON.stringify(process.log)).toMatch(/newer phoneproof/);
    expect(await process.verifier.ping()).toMatchObject({ ok: false });
  });

  it.runIf(hasRedis)("services whose prefixes begin alike keep customers and callbacks apart (docs/stores.md#redis)", async () => {
    const base = randomUUID();
    const set = ["", "2", ":1"].map((end) => site({ store: redisStore({ client, prefix: `${base}${end}` }), customers: "store", storeTimeout: 30 }));
    const processes = set.map((one) => one.run());
    for (const [i, { verifier, begin }] of processes.entries()) {
      const { customer_uuid } = await verifier.customers.create({ name: `service ${i}` });
      await begin(far(i), { ...callback, customer_uuid });
    }
    for (const [i, { verifier }] of processes.entries()) {
      expect((await verifier.customers.list()).map(({ name }) => name)).toEqual([`service ${i}`]);
      expect(await verifier.flush()).toEqual({ delivered: 1, failed: 0, dead: 0 });
    }
    expect(set.map(({ posts }) => posts.length)).toEqual([1, 1, 1]);
  });
});
