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
    for (let index = 0; index < 1_500; index++) line.put("greedy", hostOf(index % 40));
    expect(line.startAll()).toHaveLength(64);
    line.put("modest", "other", 3);
    expect(line.startAll().map(({ customer }) => customer)).toEqual(["modest", "modest", "modest"]);
  });

  it("2,500 jobs for one dead host take up the slots of one host, and leave room for others", () => {
    const line = setUp();
    expect(line.put("a", "dead", 2_500)).toBe(2_500);
    expect(line.startAll()).toHaveLength(16);
    expect(line.put("a", "well", 20)).toBe(20);
    expect(line.startAll().filter(({ host }) => host === "well")).toHaveLength(16);
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
      { weight: 2, arbitrary: fc.record({ do: fc.constant("end" as const), which: fc.nat() }) },
    );
    const bounds = fc.record({ total: fc.integer({ min: 1, max: 12 }), perHost: fc.integer({ min: 1, max: 4 }), waiting: fc.integer({ min: 1, max: 20 }) });
    fc.assert(
      fc.property(bounds, fc.array(step, { maxLength: 200 }), ({ total, perHost, waiting: room }, steps) => {
        const schedule = createSchedule<Numbered>({ total, perHost, waiting: room });
        let waiting: Numbered[] = [];
        const running: Numbered[] = [];
        let numbers = 0;
        const count = (jobs: readonly Job[], key: keyof Job, name: string) => jobs.filter((job) => job[key] === name).length;
        const mayRun = ({ customer, host }: Job) =>
          running.length < total && count(running, "host", host) < perHost && count(running, "customer", customer) < total - running.length;
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
            schedule.end(running.splice(one.which % running.length, 1)[0] as Numbered);
          }
          startAll();
        }
        while (running.length > 0) {
          schedule.end(running.pop() as Numbered);
          startAll();
        }
        expect(waiting).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});
