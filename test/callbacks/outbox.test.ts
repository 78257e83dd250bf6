import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { mapStore } from "../../examples/map-store.js";
import { guardedSender } from "../../src/callbacks/guarded-sender.js";
import { nameResolver } from "../../src/callbacks/names.js";
import { leaseTime } from "../../src/domain/delivery.js";
import type { CallbackRequest, CallbackResponse, Change, DeliveryStatusEvent, Receipt, Store, VerifierOptions } from "../../src/index.js";
import { type Receiver, receiver } from "../support/receiver.js";
import { numberOf, setUp, start } from "../support/verifier.js";
import { nameServer } from "./name-server.js";
import { unlimited as policy } from "./unlimited.js";

let hook: Receiver;
beforeEach(async () => {
  hook = await receiver();
});
afterEach(() => hook.close());

type Setup = ReturnType<typeof setUp>;
type Callbacks = NonNullable<VerifierOptions["callbacks"]>;

/** A verifier whose callbacks go to the receiver on loopback. */
const withHook = (options: Partial<VerifierOptions> = {}) => {
  const set = setUp({ ...options, callbacks: { allowOrigins: [hook.origin], ...options.callbacks } });
  return { ...set, create: (fields: object = {}) => set.create({ callback_url: `${hook.origin}/hook`, ...fields }) };
};

const eventOf = ({ body }: { readonly body: string }) => (JSON.parse(body) as DeliveryStatusEvent).data;
const statuses = () => hook.received.map((one) => eventOf(one).status);

/** Receivers within the process: a host whose name begins with `dead` does not respond until it is released. */
const inProcess = () => {
  const posts: CallbackRequest[] = [];
  const held: { readonly host: string; readonly answer: (answer: CallbackResponse) => void }[] = [];
  const origins = Array.from({ length: 80 }, (_, index) => [`http://dead${index}.test`, `http://well${index}.test`]).flat();
  const options = (worker: boolean): Callbacks => ({
    worker,
    allowOrigins: origins,
    sender: {
      post(request) {
        posts.push(request);
        const { host } = new URL(request.url);
        return host.startsWith("dead") ? new Promise((answer) => held.push({ host, answer })) : Promise.resolve({ status: 204 });
      },
    },
  });
  return {
    posts,
    held,
    options,
    to: (kind: "dead" | "well") => posts.filter(({ url }) => new URL(url).host.startsWith(kind)),
    release: (answer: CallbackResponse = { status: 204 }) => {
      for (const one of held.splice(0)) one.answer(answer);
    },
  };
};

const newCustomer = () => ({ customer_uuid: randomUUID(), keys: ["k".repeat(20) + randomUUID()] });

const createMany = async ({ verifier }: Setup, customer_uuid: string, count: number, urlOf: (index: number) => string, first = 0) => {
  for (let index = 0; index < count; index++) {
    await verifier.createAuthentication({ customer_uuid, phone_number: numberOf(first + index), callback_url: urlOf(index) });
  }
};

/** A store whose calls are passed to `told` first, which may return a result instead. */
const watched = (store: Store, told: Partial<Record<keyof Store, (...input: never[]) => unknown>>): Store =>
  new Proxy(store, {
    get(target, name: keyof Store) {
      const method = target[name] as ((...input: never[]) => unknown) | undefined;
      const watch = told[name];
      if (method === undefined || watch === undefined) return method?.bind(target);
      return (...input: never[]) => {
        const instead = watch(...input);
        return instead === undefined ? method.apply(target, input) : instead;
      };
    },
  });

describe("a scheduler that is fair by customer, then by host, decides what this process delivers (docs/contract.md#leases)", () => {
  it("1,500 events of one customer for 40 hosts that never respond: another customer's events go out at once", async () => {
    const [greedy, modest] = [newCustomer(), newCustomer()];
    const hosts = inProcess();
    const options = { store: memoryStore({ name: randomUUID() }), customers: [greedy, modest], policy };
    const api = setUp({ ...options, callbacks: hosts.options(false) });
    await createMany(api, greedy.customer_uuid, 1_500, (index) => `http://dead${index % 40}.test/`);
    await createMany(api, modest.customer_uuid, 20, () => "http://well1.test/", 2_000);
    const worker = setUp({ ...options, clock: api.clock, callbacks: hosts.options(true) });
    worker.clock.advance(5_000);
    await expect.poll(() => hosts.to("well").length).toBe(20);
    expect(hosts.to("dead"), "a quarter of the slots: no host has answered yet").toHaveLength(32);
    // Nor are events delayed that come later.
    await createMany(worker, modest.customer_uuid, 1, () => "http://well2.test/", 3_000);
    await expect.poll(() => hosts.to("well").length).toBe(21);
  });

  it("a dead receiver with 2,500 due events takes up half of the slots of one host, and delays no other", async () => {
    const one = newCustomer();
    const hosts = inProcess();
    const options = { store: memoryStore({ name: randomUUID() }), customers: [one], policy };
    const api = setUp({ ...options, callbacks: hosts.options(false) });
    await createMany(api, one.customer_uuid, 2_500, () => "http://dead1.test/");
    await createMany(api, one.customer_uuid, 50, (index) => `http://well${index}.test/`, 3_000);
    const worker = setUp({ ...options, clock: api.clock, callbacks: hosts.options(true) });
    worker.clock.advance(5_000);
    await expect.poll(() => hosts.to("well").length).toBe(50);
    expect(hosts.to("dead")).toHaveLength(8);
  });

  it("`callbacks.concurrency` limits parallel deliveries, in total and per host", async () => {
    const hosts = inProcess();
    const set = setUp({ policy, callbacks: { ...hosts.options(false), concurrency: { total: 12, perHost: 4 } } });
    await createMany(set, set.customer, 20, () => "http://dead1.test/");
    await createMany(set, set.customer, 20, () => "http://dead2.test/", 100);
    const flush = set.verifier.flush();
    await expect.poll(() => hosts.held.length).toBe(3);
    hosts.release();
    await expect.poll(() => hosts.held.length).toBe(6);
    for (const name of ["dead1.test", "dead2.test"]) expect(hosts.held.filter(({ host }) => host === name).length).toBeLessThanOrEqual(4);
    while (hosts.to("dead").length < 40 || hosts.held.length > 0) {
      hosts.release();
      await new Promise(setImmediate);
    }
    expect((await flush).delivered).toBe(40);
  });

  it("400 creates, one healthy receiver with 100 ms latency: 16 posts at a time, none postponed, and connections are reused", async () => {
    let most = 0;
    let running = 0;
    hook.answer = (_request, response) => {
      most = Math.max(most, ++running);
      setTimeout(() => {
        running--;
        response.writeHead(204).end();
      }, 100);
    };
    const set = withHook({ policy });
    await Promise.all(Array.from({ length: 400 }, (_, index) => set.create({ phone_number: numberOf(index) })));
    // The clock stands still, so a postponed delivery would never come. bench/outbox.ts measures the time it takes.
    await expect.poll(() => hook.received.length, { interval: 20 }).toBe(400);
    await set.verifier.close();
    expect(new Set(hook.received.map(({ headers }) => headers["webhook-id"])).size).toBe(400);
    expect([most, hook.connections()]).toEqual([16, 16]);
  });

  it("800 events of one customer on 50 hosts whose names never resolve: another customer's event goes out at once", async () => {
    const [greedy, modest] = [newCustomer(), newCustomer()];
    const names = await nameServer(() => undefined);
    const sender = guardedSender({ resolve: nameResolver({ servers: [names.address], timeout: 500 }) });
    const set = setUp({ customers: [greedy, modest], policy, callbacks: { allowOrigins: [hook.origin], sender } });
    await createMany(set, greedy.customer_uuid, 800, (index) => `https://host${index % 50}.example.com/`);
    const asked = performance.now();
    await createMany(set, modest.customer_uuid, 1, () => `${hook.origin}/hook`, 1_000);
    await expect.poll(() => hook.received.length, { interval: 5 }).toBe(1);
    // The lookups for the first customer take 25 s, 16 at a time.
    expect(performance.now() - asked).toBeLessThan(10_000);
    // This ends soon, since a name that did not resolve is remembered.
    await set.verifier.close();
    names.close();
  });
});

describe("the events of one send are reported in their order, and none after a final one", () => {
  /** A verifier that accepts receipts at each message's URL. */
  const withReceipts = (callbacks: Callbacks = {}, store: Store = memoryStore({ name: randomUUID() })) => {
    let receipt: Receipt = { status: "delivered" };
    const source = { provider: "test", signed: true, read: async () => ({ receipts: [receipt] }) };
    const set = withHook({ store, receipts: { baseUrl: "https://otp.example", sources: [source] }, callbacks: { worker: false, ...callbacks } });
    const tell = async (status: Receipt["status"]) => {
      receipt = { status };
      const { pathname, search } = new URL((set.box.messages.at(-1)?.receipt_url ?? "").replace("{provider}", "test"));
      const body = async () => ({ kind: "bytes" as const, bytes: new Uint8Array() });
      expect((await set.verifier.receipts.handle({ method: "POST", path: pathname, query: search, header: () => undefined, body })).status).toBe(200);
    };
    return { ...set, tell };
  };

  it("`delivered` waits until `submitted` is delivered, and `data` has a sequence number", async () => {
    const set = withReceipts();
    hook.answer = (_request, response) => void response.writeHead(500).end();
    await set.create();
    await set.verifier.flush();
    await set.tell("delivered");
    expect(await set.verifier.flush()).toEqual({ delivered: 0, failed: 0, dead: 0 });
    hook.answer = (_request, response) => void response.writeHead(204).end();
    set.clock.advance(6_000);
    expect(await set.verifier.flush()).toEqual({ delivered: 2, failed: 0, dead: 0 });
    expect(hook.received.map((one) => [eventOf(one).sequence, eventOf(one).status])).toEqual([
      [1, "submitted"],
      [1, "submitted"],
      [2, "delivered"],
    ]);
  });

  it("a process that delivers on its own sends the next event at once", async () => {
    const set = withReceipts({ worker: true });
    let release: () => void = () => undefined;
    hook.answer = (_request, response) => {
      release = () => void response.writeHead(204).end();
    };
    await set.create();
    await expect.poll(() => hook.received.length).toBe(1);
    await set.tell("in_transit");
    await set.tell("delivered");
    expect(statuses()).toEqual(["submitted"]);
    hook.answer = (_request, response) => void response.writeHead(204).end();
    release();
    await expect.poll(statuses).toEqual(["submitted", "in_transit", "delivered"]);
  });

  it("an event written before the commit that settles the previous one has returned goes out at once", async () => {
    let gate: Promise<void> | undefined;
    const inner = memoryStore({ name: randomUUID() });
    const commit = async (change: Change) => {
      const wait = gate;
      gate = undefined;
      const result = await inner.commit(change);
      await wait;
      return result;
    };
    const set = withReceipts({ worker: true }, watched(inner, { commit: commit as never }));
    let answer: () => void = () => undefined;
    hook.answer = (_request, response) => (answer = () => void response.writeHead(204).end());
    await set.create();
    await expect.poll(() => hook.received.length).toBe(1);
    hook.answer = (_request, response) => void response.writeHead(204).end();
    let open: () => void = () => undefined;
    gate = new Promise((resolve) => (open = resolve));
    answer();
    await expect.poll(() => gate === undefined, { message: "the settling is written" }).toBe(true);
    await set.tell("delivered");
    open();
    await expect.poll(statuses).toEqual(["submitted", "delivered"]);
  });

  it("a receipt that comes before the carrier's response is not followed by `submitted`", async () => {
    const set = withReceipts();
    let accept: (outcome: { outcome: "accepted" }) => void = () => undefined;
    set.box.answer = () => new Promise((resolve) => (accept = resolve));
    const creating = set.create();
    await expect.poll(() => set.box.messages.length).toBe(1);
    await set.tell("delivered");
    await set.verifier.flush();
    accept({ outcome: "accepted" });
    await creating;
    await set.verifier.flush();
    expect(statuses()).toEqual(["delivered"]);
  });
});

describe("workers lease (docs/contract.md#leases)", () => {
  it("a poll leases 256 records at a time, in 16 batches at most", async () => {
    const limits: number[] = [];
    const junk = (limit: number) =>
      Array.from({ length: limit }, () => ({ customer: randomUUID(), id: randomUUID(), tokens: ["t"], data: "junk", keepUntil: start + 1e9 }));
    const store = watched(memoryStore({ name: randomUUID() }), {
      lease: (_until: number, limit: number) => {
        limits.push(limit);
        return Promise.resolve(junk(limit));
      },
    });
    const set = setUp({ store, callbacks: { worker: true } });
    set.clock.advance(5_000);
    await expect.poll(() => limits.length).toBe(16);
    await new Promise(setImmediate);
    expect([...new Set(limits), limits.length]).toEqual([256, 16]);
    set.clock.advance(5_000);
    await expect.poll(() => limits.length, { message: "and goes on at the next" }).toBe(32);
  });

  it("with twenty workers, each event is delivered once, with one write", async () => {
    let commits = 0;
    const store = watched(memoryStore({ name: randomUUID() }), { commit: () => void commits++ });
    const api = withHook({ store, policy, callbacks: { worker: false } });
    await Promise.all(Array.from({ length: 300 }, (_, index) => api.create({ phone_number: numberOf(index) })));
    const workers = Array.from({ length: 20 }, () => setUp({ store, clock: api.clock, callbacks: { allowOrigins: [hook.origin], worker: false } }));
    commits = 0;
    const reports = await Promise.all(workers.map(({ verifier }) => verifier.flush()));
    expect(reports.reduce((sum, { delivered }) => sum + delivered, 0)).toBe(300);
    expect(new Set(hook.received.map(({ headers }) => headers["webhook-id"])).size).toBe(300);
    expect([hook.received.length, commits]).toEqual([300, 300]);
    await Promise.all(workers.map(({ verifier }) => verifier.close()));
  });

  it("the write that stores an event also leases it: no other worker takes it until the lease ends", async () => {
    const hosts = inProcess();
    const writer = setUp({ callbacks: hosts.options(true) });
    await writer.create({ callback_url: "http://dead1.test/" });
    await expect.poll(() => hosts.held.length).toBe(1);
    const other = setUp({ store: writer.store, clock: writer.clock, callbacks: hosts.options(false) });
    expect(await other.verifier.flush()).toEqual({ delivered: 0, failed: 0, dead: 0 });
    expect(hosts.posts).toHaveLength(1);
  });

  it("if a worker is paused beyond its lease, another delivers, and the late response is discarded", async () => {
    const paused = inProcess();
    const first = setUp({ callbacks: { ...paused.options(false) } });
    // The paused process: its timers do not run either, so its own timeout does not fire.
    const worker = setUp({ store: first.store, clock: { now: first.clock.now, after: () => () => undefined } as never, callbacks: paused.options(false) });
    const { authentication_uuid } = await first.create({ callback_url: "http://dead1.test/" });
    const late = worker.verifier.flush();
    await expect.poll(() => paused.held.length).toBe(1);
    const posts: CallbackRequest[] = [];
    const post = async (request: CallbackRequest) => ({ status: posts.push(request) > 0 ? 503 : 200 });
    const second = setUp({ store: first.store, clock: first.clock, callbacks: { ...paused.options(false), sender: { post } } });
    first.clock.advance(leaseTime - 1);
    await second.verifier.flush();
    expect(posts, "the lease holds").toEqual([]);
    first.clock.advance(1);
    expect(await second.verifier.flush()).toEqual({ delivered: 0, failed: 1, dead: 0 });
    const before = await first.store.find(first.customer, authentication_uuid);
    paused.release();
    expect(await late).toEqual({ delivered: 0, failed: 0, dead: 0 });
    expect(await first.store.find(first.customer, authentication_uuid), "the late answer changes nothing").toEqual(before);
    expect(posts.map(({ body }) => body)).toEqual(paused.posts.map(({ body }) => body));
  });

  it("an event that waits until its lease is nearly over is not posted, and comes back when the lease ends", async () => {
    const hosts = inProcess();
    const set = setUp({ policy, callbacks: { ...hosts.options(false), concurrency: { total: 4, perHost: 1 } } });
    await createMany(set, set.customer, 3, () => "http://dead1.test/");
    const flush = set.verifier.flush();
    await expect.poll(() => hosts.held.length).toBe(1);
    set.clock.advance(leaseTime - 19_999);
    expect(await flush, "the first was given up by its own time limit").toEqual({ delivered: 0, failed: 1, dead: 0 });
    hosts.release();
    expect(hosts.posts).toHaveLength(1);
    set.clock.advance(19_999);
    const again = set.verifier.flush();
    await expect
      .poll(async () => {
        hosts.release();
        return hosts.posts.length;
      })
      .toBe(4);
    hosts.release();
    expect((await again).delivered).toBe(3);
  });

  it("a record whose part of the store does not respond does not hold up other deliveries", async () => {
    let stuck = "";
    const commit = ({ record }: { record?: { id: string } }) => (stuck !== "" && record?.id === stuck ? new Promise(() => undefined) : undefined);
    const store = watched(memoryStore({ name: randomUUID() }), { commit: commit as never });
    const set = withHook({ store, policy, callbacks: { worker: false } });
    const ids: string[] = [];
    for (let index = 0; index < 40; index++) ids.push((await set.create({ phone_number: numberOf(index) })).authentication_uuid);
    stuck = ids[0] as string;
    const flush = set.verifier.flush();
    const settled = async (id: string) => (await set.store.find(set.customer, id))?.keepUntil === start + 600_000 + 86_400_000;
    await expect.poll(async () => (await Promise.all(ids.map(settled))).filter((one) => one).length).toBe(39);
    set.clock.advance(2_000);
    expect(await flush).toEqual({ delivered: 39, failed: 0, dead: 0 });
  });

  it("600 corrupt records, due before all others, neither stop deliveries nor hide dead letters", async () => {
    const set = withHook({ policy, callbacks: { worker: false } });
    const now = start - 1_000;
    const corrupt = (id: string, customer: string = randomUUID()) =>
      set.store.commit({ record: { customer, id, tokens: [randomUUID()], data: "junk", keepUntil: start + 1e9, now, wakeAt: now } });
    for (let index = 0; index < 600; index++) await corrupt(randomUUID());
    hook.answer = (_request, response) => void response.writeHead(hook.received.length === 1 ? 204 : 410).end();
    await set.create();
    expect((await set.verifier.flush()).delivered).toBe(1);
    await set.create({ phone_number: numberOf(2) });
    const { authentication_uuid: hidden } = await set.create({ phone_number: numberOf(3) });
    expect((await set.verifier.flush()).dead).toBe(2);
    const record = await set.store.find(set.customer, hidden);
    await set.store.commit({
      record: { ...(record as NonNullable<typeof record>), tokens: ["t"], data: "junk", now: start },
      expected: record?.tokens[0] as string,
    });
    expect((await set.verifier.deadLetters()).length).toBe(1);
  });

  it("`waitUntil` waits for the deliveries of its own record only", async () => {
    const hosts = inProcess();
    const works: Promise<unknown>[] = [];
    const set = setUp({ callbacks: { ...hosts.options(true), waitUntil: (work) => void works.push(work) } });
    await set.create({ callback_url: "http://dead1.test/" });
    await set.create({ phone_number: numberOf(2), callback_url: "http://well1.test/" });
    await works[1];
    expect([works.length, hosts.held.length]).toEqual([2, 1]);
    let first = false;
    void works[0]?.then(() => (first = true));
    await new Promise(setImmediate);
    expect(first).toBe(false);
    hosts.release();
    await works[0];
  });

  it("flush counts deliveries that end while it runs, including those already in progress", async () => {
    const hosts = inProcess();
    const set = setUp({ policy, callbacks: hosts.options(true) });
    await createMany(set, set.customer, 8, () => "http://dead1.test/");
    await expect.poll(() => hosts.held.length).toBe(8);
    const flush = set.verifier.flush();
    await new Promise(setImmediate);
    hosts.release();
    expect(await flush).toEqual({ delivered: 8, failed: 0, dead: 0 });
    expect(await set.verifier.flush(), "and not twice").toEqual({ delivered: 0, failed: 0, dead: 0 });
  });

  it("flush waits for what a parallel flush of the same process is leasing", async () => {
    const hosts = inProcess();
    const store = memoryStore({ name: randomUUID() });
    const answers: (() => void)[] = [];
    const lease = async (...input: Parameters<Store["lease"]>) => {
      const leased = await store.lease(...input);
      if (leased.length > 0) await new Promise<void>((answer) => answers.push(answer));
      return leased;
    };
    const set = setUp({ policy, store: watched(store, { lease }), callbacks: hosts.options(false) });
    await createMany(set, set.customer, 1, () => "http://well1.test/");
    const reports = [set.verifier.flush(), set.verifier.flush()];
    await expect.poll(() => answers.length).toBe(1);
    await new Promise(setImmediate);
    answers[0]?.();
    expect(await reports[1]).toEqual({ delivered: 1, failed: 0, dead: 0 });
    expect(hosts.posts).toHaveLength(1);
    await reports[0];
  });

  it("dead letters are a separate list, read with one call and one find each, the newest first", async () => {
    const calls: string[] = [];
    let most = 0;
    let running = 0;
    const inner = memoryStore({ name: randomUUID() });
    const store = watched(inner, {
      lease: () => void calls.push("lease"),
      members: (_window: string, limit: number) => void calls.push(`members ${limit}`),
      find: (async (customer: string, id: string) => {
        most = Math.max(most, ++running);
        await new Promise(setImmediate);
        running--;
        calls.push("find");
        return inner.find(customer, id);
      }) as never,
    });
    hook.answer = (_request, response) => void response.writeHead(410).end();
    const set = withHook({ store, policy, callbacks: { worker: false } });
    const ids: string[] = [];
    for (let index = 0; index < 100; index++) {
      ids.push((await set.create({ phone_number: numberOf(index) })).authentication_uuid);
      await set.verifier.flush();
      set.clock.advance(1_000);
    }
    calls.length = 0;
    expect((await set.verifier.deadLetters({ limit: 50 })).map((letter) => letter.authentication_uuid)).toEqual(ids.slice(50).reverse());
    expect([calls.filter((call) => call === "find").length, calls.filter((call) => call !== "find"), most <= 32]).toEqual([50, ["members 50"], true]);
    const [letter] = await set.verifier.deadLetters({ limit: 1 });
    hook.answer = (_request, response) => void response.writeHead(204).end();
    expect(await set.verifier.redeliver(letter as NonNullable<typeof letter>)).toBe(true);
    expect((await set.verifier.deadLetters()).map(({ authentication_uuid }) => authentication_uuid)).not.toContain(letter?.authentication_uuid);
    expect((await store.members("dead:letters", 1_000)).length, "taken out of the list").toBe(99);
    expect(await set.verifier.flush()).toEqual({ delivered: 1, failed: 0, dead: 0 });
  });

  it("events given up long ago block nothing, even if the store still has them", async () => {
    const set = withHook({ store: mapStore(), policy, callbacks: { worker: false } });
    hook.answer = (_request, response) => void response.writeHead(410).end();
    for (let index = 0; index < 30; index++) await set.create({ phone_number: numberOf(index) });
    expect(await set.verifier.flush()).toEqual({ delivered: 0, failed: 0, dead: 30 });
    hook.answer = (_request, response) => void response.writeHead(204).end();
    set.clock.advance(8 * 86_400_000);
    await set.create({ phone_number: numberOf(300) });
    expect(await set.verifier.flush()).toEqual({ delivered: 1, failed: 0, dead: 0 });
    expect(await set.verifier.deadLetters()).toEqual([]);
  });
});

describe("crashes", () => {
  it("a send whose process died is reported as `unknown` by another process", async () => {
    const dead = withHook({ callbacks: { worker: false } });
    dead.box.answer = () => new Promise(() => undefined);
    void dead.create();
    await expect.poll(() => dead.box.messages.length).toBe(1);
    const other = setUp({ store: dead.store, clock: dead.clock, callbacks: { allowOrigins: [hook.origin] } });
    await other.verifier.flush();
    expect(hook.received).toEqual([]);
    dead.clock.advance(7_000 - 1);
    await other.verifier.flush();
    expect(hook.received).toEqual([]);
    dead.clock.set(start + 7_000);
    await other.verifier.flush();
    expect(statuses()).toEqual(["unknown"]);
    expect((await dead.check(dead.box.messages[0]?.authentication_uuid as string, dead.box.code())).status, "unknown counts as sent").toBe("valid");
  });

  it("no event is lost if a process dies between the outcome and the delivery", async () => {
    const dead = withHook({ callbacks: { worker: false } });
    await dead.create();
    expect(hook.received).toEqual([]);
    const other = setUp({ store: dead.store, clock: dead.clock, callbacks: { allowOrigins: [hook.origin] } });
    expect(await other.verifier.flush()).toEqual({ delivered: 1, failed: 0, dead: 0 });
    expect(statuses()).toEqual(["submitted"]);
  });

  it("a retry before any worker ran leaves the crashed send's `unknown` event in place", async () => {
    const dead = withHook({ callbacks: { worker: false } });
    dead.box.answer = () => new Promise(() => undefined);
    void dead.create();
    await expect.poll(() => dead.box.messages.length).toBe(1);
    const authentication_uuid = dead.box.messages[0]?.authentication_uuid as string;
    // Another process with a separate clock: the dead one's stands still.
    const other = withHook({
      store: dead.store,
      customers: [{ customer_uuid: dead.customer, keys: [dead.apiKey] }],
      callbacks: { worker: false },
    });
    other.clock.set(start + 30_000);
    expect((await other.verifier.retry({ customer_uuid: dead.customer, authentication_uuid })).status).toBe("approved");
    await other.verifier.flush();
    expect(statuses()).toEqual(["unknown", "submitted"]);
  });

  it("the outcome of a slow send is still reported after a worker has reported it as lost", async () => {
    const slow = withHook({ callbacks: { worker: false } });
    let finish: (outcome: { outcome: "rejected" }) => void = () => undefined;
    slow.box.answer = () => new Promise((resolve) => (finish = resolve));
    const creating = slow.create();
    await expect.poll(() => slow.box.messages.length).toBe(1);
    const ahead = withHook({ store: slow.store, callbacks: { worker: false } });
    ahead.clock.set(start + 60_000);
    await ahead.verifier.flush();
    finish({ outcome: "rejected" });
    const { authentication_uuid } = await creating;
    ahead.clock.set(start + 120_000);
    await ahead.verifier.flush();
    expect(statuses()).toEqual(["unknown", "undeliverable"]);
    expect((await slow.check(authentication_uuid, slow.box.code())).status).toBe("without_attempt");
  });
});

describe("work after responses", () => {
  it("is passed to `waitUntil`", async () => {
    const works: Promise<unknown>[] = [];
    const set = withHook({ callbacks: { waitUntil: (work) => void works.push(work) } });
    await set.create();
    expect(works).toHaveLength(1);
    await works[0];
    expect(hook.received).toHaveLength(1);
  });

  it("if waitUntil throws, that is logged, and the delivery continues", async () => {
    const set = withHook({
      callbacks: {
        waitUntil: () => {
          throw new Error("outside a request");
        },
      },
    });
    expect((await set.create()).status).toBe("pending");
    await expect.poll(() => hook.received.length).toBe(1);
    expect(set.log.lines.map(({ message }) => message)).toEqual([expect.stringContaining("waitUntil failed")]);
  });

  it("close waits for deliveries in progress, and starts no others", async () => {
    const set = withHook({ callbacks: { concurrency: { total: 2, perHost: 1 } } });
    let release: () => void = () => undefined;
    hook.answer = (_request, response) => {
      release = () => void response.writeHead(200).end();
    };
    await set.create();
    await set.create({ phone_number: numberOf(2) });
    await expect.poll(() => hook.received.length).toBe(1);
    let closed = false;
    const closing = set.verifier.close().then(() => (closed = true));
    await new Promise(setImmediate);
    expect(closed).toBe(false);
    release();
    await closing;
    expect(hook.received).toHaveLength(1);
    expect(set.log.lines.filter(({ level }) => level === "error")).toEqual([]);
  });

  it("close waits 5 s for a receiver that hangs; the callback is repeated when the lease ends, as the same attempt", async () => {
    const hosts = inProcess();
    const one = newCustomer();
    const options = { store: memoryStore({ name: randomUUID() }), customers: [one], policy };
    const first = setUp({ ...options, callbacks: hosts.options(true) });
    await createMany(first, one.customer_uuid, 1, () => "http://dead1.test/");
    await expect.poll(() => hosts.held.length).toBe(1);
    const closing = first.verifier.close();
    first.clock.advance(5_000);
    await closing;
    const second = setUp({ ...options, clock: first.clock, callbacks: hosts.options(false) });
    second.clock.advance(leaseTime);
    const flush = second.verifier.flush();
    await expect.poll(() => hosts.posts.length).toBe(2);
    hosts.release();
    expect((await flush).delivered).toBe(1);
    expect(first.log.lines.filter(({ level }) => level === "error")).toEqual([]);
  });

  it("close closes the callback sender", async () => {
    let closed = 0;
    const set = withHook({ callbacks: { sender: { post: async () => ({ status: 204 }), close: () => void closed++ } } });
    await set.verifier.close();
    expect(closed).toBe(1);
  });
});
