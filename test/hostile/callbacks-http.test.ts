import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { createVerifier, type DeliveryStatusEvent, type Verifier, type VerifierOptions } from "../../src/index.js";
import { PlainStore } from "../store/plain-store.js";
import { type Receiver, receiver } from "../support/receiver.js";
import { logger, secret } from "../support/verifier.js";
import { answersAfter, eventually, keyOf, neverAnswers, noSpamRules, numberAt, postReceipt, receipts, rigged, type Sender, sender, wide } from "./kit.js";

/** Closes what a test opened. */
const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  // Concurrently, verifiers first: the posts that they wait for end when the receivers close.
  await Promise.all(
    open
      .splice(0)
      .reverse()
      .map((close) => close()),
  );
});

async function receivers(count: number, answer?: Receiver["answer"]): Promise<Receiver[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const one = await receiver();
      if (answer) one.answer = answer;
      open.push(() => one.close());
      return one;
    }),
  );
}

const mallory = randomUUID();
const alice = randomUUID();
let numbers = 0;

interface Process {
  readonly verifier: Verifier;
  readonly sender: Sender;
  readonly log: ReturnType<typeof logger>["lines"];
  create(customer: string, url: string): Promise<string>;
}

/** One process of a service with two customers, on the system clock, that posts real callbacks. */
function aProcess(origins: readonly Receiver[], options: Partial<VerifierOptions> = {}): Process {
  const out = sender();
  const log = logger();
  const verifier = createVerifier({
    store: new PlainStore(),
    secret,
    countries: "all",
    customers: [mallory, alice].map((customer_uuid) => ({ customer_uuid, keys: [keyOf(customer_uuid)] })),
    policy: { spam: noSpamRules, limits: wide },
    logger: log,
    ...options,
    sender: out,
    callbacks: { allowOrigins: origins.map(({ origin }) => origin), ...options.callbacks },
  });
  open.push(() => verifier.close());
  return {
    verifier,
    sender: out,
    log: log.lines,
    async create(customer, url) {
      const { authentication_uuid, status } = await verifier.createAuthentication({
        customer_uuid: customer,
        phone_number: numberAt(numbers++),
        callback_url: url,
      });
      expect(status).toBe("pending");
      return authentication_uuid;
    },
  };
}

const eventOf = (body: string) => (JSON.parse(body) as DeliveryStatusEvent).data;

describe("callbacks of different customers and hosts", () => {
  it.each([
    ["D3a: 1,500 events on 40 hosts", 1_500, 40],
    ["D3b: 2,500 events on one host", 2_500, 1],
    ["200 events on 50 hosts", 200, 50],
    ["800 events on 200 hosts", 800, 200],
  ])("%s that never respond delay another customer's event by less than two seconds", async (_, events, hosts) => {
    const dead = await receivers(hosts, neverAnswers);
    const [well] = (await receivers(1)) as [Receiver];
    const one = aProcess([...dead, well]);
    await Promise.all(Array.from({ length: events }, (_, i) => one.create(mallory, `${dead[i % hosts]?.origin}/hook`)));
    await eventually("the dead hosts are tried", () => dead.some(({ connections }) => connections() > 0));
    await one.create(alice, `${well.origin}/hook`);
    expect(await eventually("the other's event", () => well.received.length > 0)).toBeLessThan(2_000);
    expect(well.received).toHaveLength(1);
  });

  it("a backlog of 1,500 for dead hosts, due when a process starts, does not delay another customer's event", async () => {
    const dead = await receivers(40, neverAnswers);
    const [well] = (await receivers(1)) as [Receiver];
    const store = new PlainStore();
    const before = aProcess([...dead, well], { store, callbacks: { worker: false } });
    for (let i = 0; i < 1_500; i++) await before.create(mallory, `${dead[i % 40]?.origin}/hook`);
    await before.create(alice, `${well.origin}/hook`);
    aProcess([...dead, well], { store, callbacks: { pollInterval: 1 } });
    expect(await eventually("the other's event", () => well.received.length > 0)).toBeLessThan(4_000);
  });

  it("a backlog of 4,000 for one dead host, due when a process starts, delays another customer's event by up to two polls", async () => {
    const [dead] = (await receivers(1, neverAnswers)) as [Receiver];
    const [well] = (await receivers(1)) as [Receiver];
    const store = new PlainStore();
    const before = aProcess([dead, well], { store, callbacks: { worker: false } });
    for (let i = 0; i < 4_000; i++) await before.create(mallory, `${dead.origin}/hook`);
    await before.create(alice, `${well.origin}/hook`);
    aProcess([dead, well], { store });
    expect(await eventually("the other's event", () => well.received.length > 0)).toBeLessThan(11_000);
  });

  it("a dead host of a customer does not delay events for the same customer's healthy host", async () => {
    const [dead] = (await receivers(1, neverAnswers)) as [Receiver];
    const [well] = (await receivers(1)) as [Receiver];
    const one = aProcess([dead, well]);
    await Promise.all(Array.from({ length: 2_500 }, () => one.create(mallory, `${dead.origin}/hook`)));
    await Promise.all(Array.from({ length: 50 }, () => one.create(mallory, `${well.origin}/hook`)));
    await eventually("50 events", () => well.received.length >= 50);
  });

  it("slow hosts of one customer do not slow down another customer's 200 events", async () => {
    const slow = await receivers(40, answersAfter(3_000));
    const [well] = (await receivers(1, answersAfter(20))) as [Receiver];
    const one = aProcess([...slow, well]);
    await Promise.all(Array.from({ length: 1_000 }, (_, i) => one.create(mallory, `${slow[i % 40]?.origin}/hook`)));
    const started = performance.now();
    await Promise.all(Array.from({ length: 200 }, () => one.create(alice, `${well.origin}/hook`)));
    await eventually("200 events", () => well.received.length >= 200);
    // 16 at a time, 20 ms each, would take 250 ms; queued behind the others, three minutes.
    expect(performance.now() - started).toBeLessThan(30_000);
  });

  it("two customers with the same host share it: 1,000 events of one do not all go before the other's", async () => {
    const [shared] = (await receivers(1, answersAfter(100))) as [Receiver];
    const one = aProcess([shared]);
    await Promise.all(Array.from({ length: 1_000 }, () => one.create(mallory, `${shared.origin}/m`)));
    await one.create(alice, `${shared.origin}/a`);
    await eventually("the other's event", () => shared.received.some(({ path }) => path === "/a"));
    expect(shared.received.length).toBeLessThan(500);
  });
});

describe("one host", () => {
  it("400 events for a host that takes 100 ms are posted 16 at a time, over reused connections", async () => {
    const [host] = (await receivers(1, answersAfter(100))) as [Receiver];
    const one = aProcess([host]);
    const started = performance.now();
    await Promise.all(Array.from({ length: 400 }, () => one.create(alice, `${host.origin}/hook`)));
    await eventually("400 events", () => host.received.length >= 400);
    // One at a time would be 40 s.
    expect(performance.now() - started).toBeLessThan(20_000);
    expect(host.connections()).toBeLessThanOrEqual(16);
    expect(new Set(host.received.map(({ headers }) => headers["webhook-id"])).size).toBe(400);
  });

  it("events of 1,000 concurrent creates are posted without a gap of two seconds", async () => {
    const [host] = (await receivers(1, answersAfter(50))) as [Receiver];
    const one = aProcess([host], { callbacks: { concurrency: { total: 32, perHost: 32 } } });
    const at: number[] = [];
    const answer = host.answer;
    host.answer = (request, response) => {
      at.push(performance.now());
      answer(request, response);
    };
    await Promise.all(Array.from({ length: 1_000 }, () => one.create(alice, `${host.origin}/hook`)));
    await eventually("1,000 events", () => host.received.length >= 1_000);
    expect(Math.max(...at.slice(1).map((time, i) => time - (at[i] as number)))).toBeLessThan(2_000);
    expect(host.received).toHaveLength(1_000);
  });

  it.each([{ total: 8, perHost: 4 }, { total: 3, perHost: 3 }, { total: 1, perHost: 1 }, { total: 5 }])(
    "gets no more concurrent posts than callbacks.concurrency allows: %o",
    async (concurrency) => {
      let now = 0;
      let most = 0;
      const busy: Receiver["answer"] = (_request, response) => {
        most = Math.max(most, ++now);
        setTimeout(() => {
          now--;
          response.writeHead(204).end();
        }, 5);
      };
      const hosts = await receivers(3, busy);
      const one = aProcess(hosts, { callbacks: { concurrency } });
      await Promise.all(Array.from({ length: 90 }, (_, i) => one.create(alice, `${hosts[i % 3]?.origin}/hook`)));
      await eventually("90 events", () => hosts.reduce((sum, { received }) => sum + received.length, 0) >= 90);
      expect(most).toBeLessThanOrEqual(concurrency.total);
      for (const host of hosts) expect(host.connections()).toBeLessThanOrEqual(concurrency.perHost ?? concurrency.total);
    },
  );

  it("that closes its connection between two posts loses no event", async () => {
    const [host] = (await receivers(1, (_request, response) => {
      response.writeHead(204, { connection: "keep-alive" }).end(() => response.socket?.destroy());
    })) as [Receiver];
    const one = aProcess([host], { callbacks: { pollInterval: 1 } });
    for (let i = 0; i < 30; i++) await one.create(alice, `${host.origin}/hook`);
    await eventually("30 events", () => new Set(host.received.map(({ headers }) => headers["webhook-id"])).size >= 30);
  });
});

describe("several processes on one store", () => {
  it("20 workers post each of 300 events once, with at most two commits an event", async () => {
    const [host] = (await receivers(1, answersAfter(10))) as [Receiver];
    const store = rigged(new PlainStore());
    const maker = aProcess([host], { store, callbacks: { worker: false } });
    for (let i = 0; i < 300; i++) await maker.create(alice, `${host.origin}/hook`);
    const before = store.count("commit");
    for (let i = 0; i < 20; i++) aProcess([host], { store, callbacks: { pollInterval: 0.2 } });
    await eventually("300 events", () => host.received.length >= 300);
    await new Promise((done) => setTimeout(done, 700));
    expect(host.received).toHaveLength(300);
    expect((store.count("commit") - before) / 300).toBeLessThanOrEqual(2);
  });

  it("when a worker dies with leased records, another delivers all of them after the leases end", async () => {
    const [host] = (await receivers(1)) as [Receiver];
    const inner = new PlainStore();
    const maker = aProcess([host], { store: inner, callbacks: { worker: false } });
    for (let i = 0; i < 50; i++) await maker.create(alice, `${host.origin}/hook`);
    // Leases everything that is due, then does nothing.
    const taken = await inner.lease(Date.now() + 10_000, 1_000, Date.now() + 2_000);
    expect(taken.length).toBe(50);
    aProcess([host], { store: inner, callbacks: { pollInterval: 0.5 } });
    await eventually("50 events", () => host.received.length >= 50);
    expect(new Set(host.received.map(({ headers }) => headers["webhook-id"])).size).toBe(50);
  });

  it("a worker leases at most 512 records at a time, however large the backlog", async () => {
    const [dead] = (await receivers(1, neverAnswers)) as [Receiver];
    const store = rigged(new PlainStore());
    const maker = aProcess([dead], { store, callbacks: { worker: false } });
    for (let i = 0; i < 3_000; i++) await maker.create(mallory, `${dead.origin}/hook`);
    aProcess([dead], { store, callbacks: { pollInterval: 0.2 } });
    await new Promise((done) => setTimeout(done, 3_000));
    const limits = store.calls.filter(({ method }) => method === "lease").map(({ args }) => args[1] as number);
    expect(limits.length).toBeGreaterThan(5);
    expect(Math.max(...limits)).toBeLessThanOrEqual(512);
    expect(limits.every((limit) => limit >= 1)).toBe(true);
  });

  it("a process that is closed finishes its posts in progress and begins no more", async () => {
    const [slow] = (await receivers(1, answersAfter(1_000))) as [Receiver];
    const store = new PlainStore();
    const first = aProcess([slow], { store, callbacks: { concurrency: { perHost: 4 } } });
    await Promise.all(Array.from({ length: 20 }, () => first.create(mallory, `${slow.origin}/hook`)));
    await eventually("posts under way", () => slow.received.length > 0);
    const started = performance.now();
    await first.verifier.close();
    expect(performance.now() - started).toBeLessThan(15_000);
    const posted = slow.received.length;
    expect(posted).toBeLessThan(20);
    await new Promise((done) => setTimeout(done, 1_200));
    expect(slow.received).toHaveLength(posted);
  });
});

describe("waitUntil, flush and dead letters", () => {
  it("waitUntil waits only for the request's own delivery", async () => {
    const [dead] = (await receivers(1, neverAnswers)) as [Receiver];
    const [well] = (await receivers(1, answersAfter(200))) as [Receiver];
    const work: Promise<unknown>[] = [];
    const one = aProcess([dead, well], { callbacks: { waitUntil: (promise) => void work.push(promise) } });
    await Promise.all(Array.from({ length: 200 }, () => one.create(mallory, `${dead.origin}/hook`)));
    await eventually("posts under way", () => dead.received.length > 0);
    const before = work.length;
    await one.create(alice, `${well.origin}/hook`);
    const started = performance.now();
    await Promise.all(work.slice(before));
    expect(performance.now() - started).toBeLessThan(9_000);
    // The delivery that it waited for is done.
    expect(well.received).toHaveLength(1);
    expect(work.length).toBeGreaterThan(before);
  });

  it.each([
    ["no worker", { worker: false }],
    ["a worker", { worker: true, pollInterval: 3600 }],
  ])("flush() with %s reports what was posted", async (_, callbacks) => {
    const [well] = (await receivers(1)) as [Receiver];
    const [failing] = (await receivers(1, answersAfter(0, 500))) as [Receiver];
    const [gone] = (await receivers(1, answersAfter(0, 410))) as [Receiver];
    const store = new PlainStore();
    const maker = aProcess([well, failing, gone], { store, callbacks: { worker: false } });
    for (let i = 0; i < 10; i++) {
      await maker.create(alice, `${well.origin}/hook`);
      if (i < 4) await maker.create(alice, `${failing.origin}/hook`);
      if (i < 3) await maker.create(mallory, `${gone.origin}/hook`);
    }
    const flusher = callbacks.worker ? aProcess([well, failing, gone], { store, callbacks }) : maker;
    expect(await flusher.verifier.flush()).toEqual({ delivered: 10, failed: 4, dead: 3 });
    expect([well, failing, gone].map(({ received }) => received.length)).toEqual([10, 4, 3]);
    expect(await flusher.verifier.flush()).toEqual({ delivered: 0, failed: 0, dead: 0 });
  });

  it("flush() delivers a whole backlog of 1,500 due events to three hosts", async () => {
    const hosts = await receivers(3, answersAfter(2));
    const one = aProcess(hosts, { callbacks: { worker: false } });
    for (let i = 0; i < 1_500; i++) await one.create(alice, `${hosts[i % 3]?.origin}/hook`);
    expect(await one.verifier.flush()).toEqual({ delivered: 1_500, failed: 0, dead: 0 });
    expect(hosts.map(({ received }) => received.length)).toEqual([500, 500, 500]);
  });

  it("concurrent flushes of two processes post each event once, and their reports add up", async () => {
    const [well] = (await receivers(1, answersAfter(5))) as [Receiver];
    const store = new PlainStore();
    const one = aProcess([well], { store, callbacks: { worker: false } });
    const two = aProcess([well], { store, callbacks: { worker: false } });
    for (let i = 0; i < 400; i++) await one.create(alice, `${well.origin}/hook`);
    const reports = await Promise.all([one.verifier.flush(), two.verifier.flush()]);
    expect(reports.reduce((sum, { delivered }) => sum + delivered, 0)).toBe(400);
    expect(well.received).toHaveLength(400);
  });

  it("300 unreadable records with early wake times neither stop deliveries nor hide a dead letter", async () => {
    const [well] = (await receivers(1)) as [Receiver];
    const [gone] = (await receivers(1, answersAfter(0, 410))) as [Receiver];
    const store = new PlainStore();
    for (let i = 0; i < 300; i++) {
      const now = Date.now();
      await store.commit({
        record: { customer: mallory, id: randomUUID(), tokens: ["t"], data: i % 2 ? "rubbish" : "", now, keepUntil: now + 86_400_000, wakeAt: 1 + i },
      });
    }
    const one = aProcess([well, gone], { store, callbacks: { pollInterval: 0.3, worker: false } });
    for (let i = 0; i < 20; i++) await one.create(alice, `${well.origin}/hook`);
    await one.create(alice, `${gone.origin}/hook`);
    const worker = aProcess([well, gone], { store, callbacks: { pollInterval: 0.3 } });
    await eventually("20 events", () => well.received.length >= 20);
    await eventually("one dead letter", async () => (await worker.verifier.deadLetters()).length === 1);
    expect(worker.log.filter(({ level }) => level !== "info")).not.toEqual([]);
  });

  it("1,500 dead letters are all listed, and each is redelivered once, under its webhook-id", async () => {
    let status = 410;
    const [host] = (await receivers(1, (_request, response) => void response.writeHead(status).end())) as [Receiver];
    const one = aProcess([host], { callbacks: { worker: false } });
    for (let i = 0; i < 1_500; i++) await one.create(alice, `${host.origin}/hook`);
    expect(await one.verifier.flush()).toEqual({ delivered: 0, failed: 0, dead: 1_500 });
    expect((await one.verifier.deadLetters()).length).toBe(1_000);
    expect((await one.verifier.deadLetters({ limit: 10 })).length).toBe(10);
    const letters = await one.verifier.deadLetters({ limit: 5_000 });
    expect(letters).toHaveLength(1_500);
    expect(letters[0]).toMatchObject({
      customer_uuid: alice,
      callback_url: `${host.origin}/hook`,
      status: "submitted",
      reason: expect.any(String),
      sequence: expect.any(Number),
    });
    const ids = new Set(host.received.map(({ headers }) => headers["webhook-id"]));
    expect(ids.size).toBe(1_500);
    status = 204;
    const put = await Promise.all(letters.map((letter) => one.verifier.redeliver(letter)));
    expect(put.every(Boolean)).toBe(true);
    const flushed = await one.verifier.flush();
    expect(flushed.dead).toBe(0);
    await eventually("1,500 again", async () => {
      await one.verifier.flush();
      return host.received.length >= 3_000;
    });
    expect(host.received).toHaveLength(3_000);
    expect(new Set(host.received.map(({ headers }) => headers["webhook-id"]))).toEqual(ids);
    expect(await one.verifier.deadLetters({ limit: 5_000 })).toEqual([]);
    expect(await one.verifier.redeliver(letters[0] as (typeof letters)[0])).toBe(false);
  });

  it("ten concurrent redeliveries of one dead letter post it once", async () => {
    let status = 410;
    const [host] = (await receivers(1, (_request, response) => void response.writeHead(status).end())) as [Receiver];
    const one = aProcess([host], { callbacks: { worker: false } });
    await one.create(alice, `${host.origin}/hook`);
    await one.verifier.flush();
    const [letter] = await one.verifier.deadLetters();
    status = 204;
    const put = await Promise.all(Array.from({ length: 10 }, () => one.verifier.redeliver(letter as NonNullable<typeof letter>)));
    expect(put.filter(Boolean)).toHaveLength(1);
    await one.verifier.flush();
    expect(host.received).toHaveLength(2);
  });
});

describe("unusual values of Retry-After", () => {
  it.each(["banana", "", "-5", "1e3", "99999999999999999999", "Wed, 21 Oct 2015 07:28:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "2, 3", "0x10", "3.5"])(
    "%s: the event is neither lost nor posted again at once",
    async (value) => {
      const [host] = (await receivers(1, (_request, response) => void response.writeHead(503, { "retry-after": value }).end())) as [Receiver];
      const store = rigged(new PlainStore());
      const one = aProcess([host], { store, callbacks: { worker: false } });
      await one.create(alice, `${host.origin}/hook`);
      expect(await one.verifier.flush()).toEqual({ delivered: 0, failed: 1, dead: 0 });
      expect(await one.verifier.flush()).toEqual({ delivered: 0, failed: 0, dead: 0 });
      const written = store.calls
        .flatMap(({ method, args }) => (method === "commit" ? [(args[0] as { record?: { wakeAt?: unknown; keepUntil?: unknown } }).record] : []))
        .at(-1);
      // "never shortens the three days", and the next attempt comes before the record ends.
      expect(Number.isInteger(written?.wakeAt)).toBe(true);
      expect(written?.wakeAt as number).toBeGreaterThan(Date.now() + 2_000);
      expect(written?.wakeAt as number).toBeLessThan(written?.keepUntil as number);
    },
  );
});

describe("events over real HTTP", () => {
  it("of one send arrive in order with rising sequence, even if posts fail and receipts come early", async () => {
    const seen = new Map<string, { sequence: number; status: string; attempt: number }[]>();
    const failed = new Set<string>();
    const [host] = (await receivers(1, (request, response) => {
      const data = eventOf(request.body);
      const ok = failed.has(data.authentication_uuid) || data.authentication_uuid < "8";
      if (ok) seen.set(data.authentication_uuid, [...(seen.get(data.authentication_uuid) ?? []), data]);
      else failed.add(data.authentication_uuid);
      setTimeout(() => response.writeHead(ok ? 204 : 500).end(), 3);
    })) as [Receiver];
    const one = aProcess([host], { receipts, callbacks: { pollInterval: 0.5 } });
    one.sender.answer = async (message) => {
      // The carrier's receipt arrives before its response.
      await postReceipt(one.verifier, message, "in_transit");
      return { outcome: "accepted" };
    };
    const ids = await Promise.all(Array.from({ length: 60 }, () => one.create(alice, `${host.origin}/hook`)));
    for (const status of ["delivered", "in_transit"] as const) {
      expect(new Set(await Promise.all(one.sender.messages.map((message) => postReceipt(one.verifier, message, status))))).toEqual(new Set([200]));
    }
    // The first delay is 5 s.
    await eventually("all are told `delivered`", () => ids.every((id) => seen.get(id)?.some(({ status }) => status === "delivered")));
    const rank = ["submitted", "in_transit", "delivered"];
    for (const id of ids) {
      const story = seen.get(id) ?? [];
      expect(story.map(({ sequence }) => sequence)).toEqual([...story.map(({ sequence }) => sequence)].sort((a, b) => a - b));
      expect(new Set(story.map(({ sequence }) => sequence)).size).toBe(story.length);
      const ranks = story.map(({ status }) => rank.indexOf(status));
      expect(ranks).toEqual([...ranks].sort());
      expect(story.at(-1)?.status).toBe("delivered");
    }
  });
});
