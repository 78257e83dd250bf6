import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Bounds, createSchedule, type Job } from "../../src/callbacks/schedule.js";

interface Numbered extends Job {
  readonly number: number;
}

const usual = { total: 128, perHost: 16, waiting: 10_000 };

/** A schedule, and a way to start everything that may run now. */
function setUp(bounds: Partial<Bounds> = {}) {
  const schedule = createSchedule<Numbered>({ ...usual, ...bounds });
  let numbers = 0;
  return {
    ...schedule,
    put: (customer: string, host: string, count = 1) =>
      Array.from({ length: count }, () => schedule.add({ customer, host, number: numbers++ })).filter((taken) => taken).length,
    startAll: () => {
      const started: Numbered[] = [];
      for (let job = schedule.next(); job !== undefined; job = schedule.next()) started.push(job);
      return started;
    },
  };
}

const hostOf = (index: number) => `h${index}`;

describe("a scheduler that is fair by customer, then by host (docs/contract.md#callback-fairness)", () => {
  it("1,500 jobs for 40 hosts of one customer leave half of the slots free, and another customer's start at once", () => {
    const line = setUp();
    const start = (count: number) => {
      for (let index = 0; index < count; index++) line.put("greedy", hostOf(index % 40));
      return line.startAll();
    };
    for (const job of start(40)) {
      line.end(job, true);
      for (const next of line.startAll()) line.end(next, true);
    }
    expect(start(1_500)).toHaveLength(64);
    line.put("modest", "other", 3);
    expect(line.startAll().map(({ customer }) => customer)).toEqual(["modest", "modest", "modest"]);
  });

  it("2,500 jobs for one dead host take up half of the slots of one host, and leave room for others", () => {
    const line = setUp();
    expect(line.put("a", "dead", 2_500)).toBe(2_500);
    expect(line.startAll()).toHaveLength(8);
    expect(line.put("a", "well", 20)).toBe(20);
    expect(line.startAll().filter(({ host }) => host === "well")).toHaveLength(8);
  });

  it.each([8, 200])("while the receivers of %i customers hang, those that responded to their last callback are never delayed", (hanging) => {
    const line = setUp();
    line.put("modest", "well");
    for (const job of line.startAll()) line.end(job, true);
    const hang = () => {
      for (let index = 0; index < hanging; index++) line.put(`c${index}`, hostOf(index), 60);
      return line.startAll();
    };
    for (const job of hang()) line.end(job, false);
    hang();
    line.put("modest", "well", 3);
    expect(line.startAll().map(({ host }) => host)).toEqual(["well", "well", "well"]);
  });

  it.each(["new hosts", "hosts that hung"])("customers with any number of %s share half of the slots", (which) => {
    const line = setUp();
    for (let index = 0; index < 4_000; index++) line.put(`c${index % 20}`, hostOf(index));
    const first = line.startAll();
    for (const job of first) line.end(job, which === "new hosts");
    const second = line.startAll();
    // The customers' turns may leave a few of the 64 unused.
    for (const started of [first, second]) expect([60, 61, 62, 63, 64]).toContain(started.length);
  });

  it("while one customer's receiver hangs, another customer's callback to the same host starts at once", () => {
    const line = setUp();
    line.put("a", "shared", 40);
    line.startAll();
    line.put("b", "shared");
    expect(line.startAll()).toMatchObject([{ customer: "b" }]);
  });

  it("a receiver that responds uses all slots of its host, until it does not respond", () => {
    const line = setUp();
    line.put("a", "x", 100);
    const started = line.startAll();
    for (const job of started) line.end(job, true);
    const all = line.startAll();
    expect(all).toHaveLength(16);
    for (const job of all) line.end(job, false);
    expect(line.startAll()).toHaveLength(8);
  });

  it("one customer may hold half of the free waiting places, and so may one host", () => {
    const crowded = setUp({ waiting: 100 });
    for (let index = 0; index < 200; index++) crowded.put("greedy", hostOf(index));
    expect(crowded.waiting()).toBe(50);
    expect(crowded.put("modest", "other", 100)).toBe(25);
    const hosted = setUp({ waiting: 100 });
    for (let index = 0; index < 200; index++) hosted.put(`c${index}`, "one");
    expect(hosted.waiting()).toBe(50);
  });

  it("customers take turns, however many hosts and jobs they have", () => {
    const line = setUp({ total: 1 });
    for (let index = 0; index < 9; index++) line.put("a", hostOf(index), 3);
    line.put("b", "hb", 3);
    const order: string[] = [];
    for (let job = line.next(); job !== undefined && order.length < 6; job = line.next()) {
      order.push(job.customer);
      line.end(job);
    }
    expect(order).toEqual(["a", "b", "a", "b", "a", "b"]);
  });

  it("a customer's hosts take turns, and the jobs for one host run in order", () => {
    const line = setUp({ total: 1 });
    line.put("a", "x", 3);
    line.put("a", "y", 2);
    const order: string[] = [];
    for (let job = line.next(); job !== undefined; job = line.next()) {
      order.push(`${job.host}${job.number}`);
      line.end(job);
    }
    expect(order).toEqual(["x0", "y3", "x1", "y4", "x2"]);
  });

  it("a single slot can be used", () => {
    const line = setUp({ total: 1, perHost: 1 });
    line.put("a", "x", 2);
    const [first] = line.startAll() as [Numbered];
    line.end(first);
    expect(line.startAll()).toHaveLength(1);
  });

  it("in any sequence, limits hold, nothing that may run waits, and nothing is lost or runs twice", () => {
    const name = fc.integer({ min: 0, max: 5 });
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ do: fc.constant("add" as const), customer: name, host: name }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant("end" as const), which: fc.nat(), answered: fc.constantFrom(true, false, undefined) }) },
    );
    const bounds = fc.record({ total: fc.integer({ min: 1, max: 12 }), perHost: fc.integer({ min: 1, max: 4 }), waiting: fc.integer({ min: 1, max: 20 }) });
    fc.assert(
      fc.property(bounds, fc.array(step, { maxLength: 200 }), ({ total, perHost, waiting: room }, steps) => {
        const schedule = createSchedule<Numbered>({ total, perHost, waiting: room });
        let waiting: Numbered[] = [];
        const running: Numbered[] = [];
        let probing: Numbered[] = [];
        let answering: string[] = [];
        let numbers = 0;
        const receiverOf = ({ customer, host }: Job) => `${customer}${host}`;
        const count = (jobs: readonly Job[], key: keyof Job, name: string) => jobs.filter((job) => job[key] === name).length;
        const mayRun = (job: Job) => {
          const left = perHost - count(running, "host", job.host);
          if (left <= 0 || count(running, "customer", job.customer) >= total - running.length) return false;
          const its = probing.filter((other) => receiverOf(other) === receiverOf(job));
          const mayProbe = count(probing, "customer", job.customer) < Math.ceil(total / 2) - probing.length && its.length < left;
          return answering.includes(receiverOf(job)) || mayProbe;
        };
        const end = (which: number, answered?: boolean) => {
          const [job] = running.splice(which, 1) as [Numbered];
          schedule.end(job, answered);
          probing = probing.filter((other) => other !== job);
          if (answered === undefined) return;
          answering = answering.filter((other) => other !== receiverOf(job));
          if (answered) answering = [...answering, receiverOf(job)].slice(-room);
        };
        const startAll = () => {
          for (let job = schedule.next(); job !== undefined; job = schedule.next()) {
            const one = job;
            expect(mayRun(one)).toBe(true);
            expect(
              waiting.find(({ customer, host }) => customer === one.customer && host === one.host),
              "the first of its line",
            ).toBe(one);
            waiting = waiting.filter((other) => other !== one);
            running.push(one);
            if (!answering.includes(receiverOf(one))) probing.push(one);
          }
          expect(waiting.filter(mayRun), "jobs that wait though they may run").toEqual([]);
          expect(schedule.waiting()).toBe(waiting.length);
        };
        for (const one of steps) {
          if (one.do === "add") {
            const job = { customer: `c${one.customer}`, host: `h${one.host}`, number: numbers++ };
            const left = room - waiting.length;
            expect(schedule.add(job)).toBe(count(waiting, "customer", job.customer) < left && count(waiting, "host", job.host) < left);
            if (schedule.waiting() > waiting.length) waiting.push(job);
          } else if (running.length > 0) {
            end(one.which % running.length, one.answered);
          }
          startAll();
        }
        while (running.length > 0) {
          end(0);
          startAll();
        }
        expect(waiting).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});
