import { randomInt, randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { leaseTime } from "../../src/domain/delivery.js";
import type { DeliveryStatusEvent } from "../../src/index.js";
import { type Received, type Receiver, receiver } from "../support/receiver.js";
import { until } from "../support/redis.js";
import { numberOf } from "../support/verifier.js";
import { bundleWorkers, type Worker, type Workers } from "./crash-processes.js";
import type { WorkerSetup } from "./crash-worker.js";

/** Creates in progress in one process. */
const parallel = 16;
const processes = 2;
/** Milliseconds. Longer than a lease, and than a send's deadline (15 s with this store's time limit). */
const longEnough = leaseTime + 1_000;

/** Pseudorandom numbers from 0 up to 1 (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const webhookId = ({ headers }: Received) => headers["webhook-id"] as string;
const dataOf = ({ body }: Received) => (JSON.parse(body) as DeliveryStatusEvent).data;

/** The received deliveries by webhook-id. */
function byId(received: readonly Received[]): Map<string, Received[]> {
  const found = new Map<string, Received[]>();
  for (const one of received) found.set(webhookId(one), [...(found.get(webhookId(one)) ?? []), one]);
  return found;
}

/**
 * Kills and stops processes on one store. Registers its tests with vitest; `emptyStore` gives each the URL of one. In
 * the environment, `CRASH_SEED` repeats when and which processes are killed, and `CRASH_EVENTS` replaces `usualEvents`.
 */
export function crashCases(store: string, usualEvents: number, kills: number, entry: URL, emptyStore: () => Promise<string>): void {
  const events = Number(process.env["CRASH_EVENTS"] ?? usualEvents);
  let workers: Workers;
  let receivers: Receiver[];
  let setup: WorkerSetup;

  beforeAll(async () => {
    workers = await bundleWorkers(entry);
  });
  afterAll(() => workers?.remove());

  beforeEach(async () => {
    receivers = await Promise.all(Array.from({ length: 4 }, receiver));
    setup = { url: await emptyStore(), customer: randomUUID(), origins: receivers.map(({ origin }) => origin), worker: true };
  });
  afterEach(async () => {
    await workers.killAll();
    await Promise.all(receivers.map((one) => one.close()));
  });

  const hookFor = (index: number) => `${setup.origins[index % setup.origins.length]}/hook`;
  const received = () => receivers.flatMap((one) => one.received);

  it(`${events} events with ${kills} kills at random points: no event is lost, and duplicates have the same id and body`, async () => {
    const seed = Number(process.env["CRASH_SEED"] ?? randomInt(2 ** 31));
    console.log(`${store}: CRASH_SEED=${seed}`);
    const random = randomNumbers(seed);
    const started = Date.now();

    const pending: string[] = [];
    const faults: string[] = [];
    const all: Worker[] = [];
    const alive: Worker[] = [];
    const starting: Promise<void>[] = [];
    const creating: Promise<void>[] = [];
    let numbers = 0;

    const create = async (worker: Worker) => {
      while (pending.length < events) {
        const index = numbers++;
        const answer = await worker.ask({ do: "create", number: numberOf(index), callbackUrl: hookFor(index) });
        if (answer === undefined) return;
        if (answer.status === "pending") pending.push(answer.id as string);
        else faults.push(answer.status as string);
      }
    };
    const launch = async () => {
      const worker = await workers.start(setup);
      all.push(worker);
      alive.push(worker);
      for (let at = 0; at < parallel; at++) creating.push(create(worker));
    };

    for (let at = 0; at < processes; at++) starting.push(launch());
    const points = Array.from({ length: kills }, () => Math.floor(random() * events)).sort((a, b) => a - b);
    for (const point of points) {
      await until(`${point} creates are answered, and a process is there to kill`, async () => pending.length >= point && alive.length > 0, 200_000);
      const [victim] = alive.splice(Math.floor(random() * alive.length), 1) as [Worker];
      await victim.kill();
      starting.push(launch());
    }
    await Promise.all(starting);
    await Promise.all(creating);

    // The survivors finish what is in progress; then time passes, and they deliver what the killed processes left
    // behind.
    await Promise.all(alive.map((worker) => worker.ask({ do: "rest" })));
    for (let offset = longEnough, waiting = true; waiting; offset += longEnough) {
      expect(offset / longEnough, "rounds until nothing waits").toBeLessThan(100);
      await Promise.all(alive.map((worker) => worker.ask({ do: "advance", offset })));
      await Promise.all(alive.map((worker) => worker.ask({ do: "flush" })));
      waiting = (await alive[0]?.ask({ do: "look" }))?.waiting !== false;
    }

    const told = byId(received());
    const ids = new Map<string, number>();
    for (const [one] of told.values()) {
      const { authentication_uuid: id } = dataOf(one as Received);
      ids.set(id, (ids.get(id) ?? 0) + 1);
    }
    // Each authentication whose message the carrier received must be reported, even if its create got no response.
    const handedOver = all.flatMap((worker) => worker.handedOver);
    const lost = [...new Set([...pending, ...handedOver])].filter((id) => !ids.has(id));
    const unknown = [...told.values()].filter(([one]) => dataOf(one as Received).status === "unknown").length;
    const duplicates = received().length - told.size;
    const seconds = ((Date.now() - started) / 1000).toFixed(1);
    console.log(
      `| ${store} | events ${told.size}, ${pending.length} of them of answered creates, ${unknown} of unknown outcome | kills ${kills} | delivered ${received().length} | lost ${lost.length} | duplicates ${duplicates} | ${seconds} s |`,
    );

    expect(faults).toEqual([]);
    expect(handedOver.length).toBeGreaterThanOrEqual(pending.length);
    expect(lost).toEqual([]);
    expect(
      [...ids].filter(([, count]) => count > 1),
      "authentications with more than one event",
    ).toEqual([]);
    for (const [id, [first, ...again]] of told) {
      const { authentication_uuid, status } = dataOf(first as Received);
      expect(id).toMatch(new RegExp(`^msg_${authentication_uuid}_[0-9a-z]+_1$`));
      expect(status).toMatch(/^(submitted|unknown)$/);
      for (const other of again) expect(other.body).toBe(first?.body);
    }
    // Proves that the kills had an effect: unknown outcomes, or deliveries that were not settled and came twice.
    expect(unknown + duplicates).toBeGreaterThan(0);
  }, 600_000);

  it("two workers, one stopped beyond its lease: every event is delivered, and the stopped worker's late results are discarded", async () => {
    const count = 60;
    const taken = 40;
    const [slow, other] = (await Promise.all(Array.from({ length: 2 }, () => workers.start({ ...setup, worker: false })))) as [Worker, Worker];
    const create = async (index: number) =>
      expect((await other.ask({ do: "create", number: numberOf(index), callbackUrl: hookFor(index) }))?.status).toBe("pending");
    for (let index = 0; index < taken; index++) await create(index);

    // The receivers do not respond to the first worker yet.
    const held = new Map<string, ServerResponse>();
    for (const one of receivers) one.answer = (request, response) => void held.set(webhookId(request), response);
    const lateFlush = slow.ask({ do: "flush" });
    await until("the receivers hold all it took", async () => held.size === taken);
    slow.signal("SIGSTOP");

    // The stopped worker's lease is still valid.
    const refused = new Set([...held.keys()].filter((_, index) => index % 2 === 0));
    for (const one of receivers) {
      one.answer = (request, response) => {
        if (refused.has(webhookId(request))) response.writeHead(503, { "retry-after": "600" });
        else response.writeHead(204);
        response.end();
      };
    }
    for (let index = taken; index < count; index++) await create(index);
    expect(await other.ask({ do: "flush" })).toEqual({ delivered: count - taken, errors: [] });
    expect(received()).toHaveLength(count);

    // The lease ends: the other worker takes over what the stopped one held, and half of it fails.
    await other.ask({ do: "advance", offset: leaseTime + 1_000 });
    expect(await other.ask({ do: "flush" })).toEqual({ delivered: taken / 2, errors: [] });

    // The stopped worker resumes and gets a success for all its posts, but may no longer settle any of them.
    slow.signal("SIGCONT");
    await slow.ask({ do: "advance", offset: leaseTime + 1_000 });
    for (const response of held.values()) response.writeHead(204).end();
    expect(await lateFlush).toEqual({ delivered: 0, errors: [] });

    for (const one of receivers) one.answer = (_request, response) => void response.writeHead(204).end();
    await other.ask({ do: "advance", offset: leaseTime + 601_000 });
    expect(await other.ask({ do: "flush" })).toEqual({ delivered: refused.size, errors: [] });
    expect((await other.ask({ do: "look" }))?.waiting).toBe(false);

    const told = byId(received());
    expect(told.size).toBe(count);
    for (const [id, deliveries] of told) {
      expect(deliveries).toHaveLength(refused.has(id) ? 3 : held.has(id) ? 2 : 1);
      expect(new Set(deliveries.map(({ body }) => body)).size).toBe(1);
    }
  });
}
