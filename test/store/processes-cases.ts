import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Processes, startProcesses } from "./processes.js";
import type { Ask, Outcome } from "./processes-worker.js";

const minute = 60_000;
const start = Date.UTC(2026, 0, 1);

let lastNumber = 0;
const newNumber = () => `+337${String(50_000_000 + (lastNumber += 1))}`;
const repeat = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const count = ({ answers }: Outcome, status: string) => answers.filter(({ body }) => body.status === status).length;
const wrongFor = (code: string) => (code === "000000" ? "111111" : "000000");

/**
 * Races and clock differences of four processes on one store. Registers its tests with vitest; calls `serverUrl` once
 * they start.
 *
 * @param each Racers in each process. Large numbers need to be tested with one store only.
 * @param inTwoSteps Claims come before the record, so racers may reject more than necessary
 * (docs/contract.md#two-steps).
 */
export function processCases(entry: URL, serverUrl: () => Promise<string>, rounds: number, each: number, inTwoSteps = false): void {
  const all = 4 * each;

  describe("four processes in parallel", () => {
    let processes: Processes;
    const now = start;

    beforeAll(async () => {
      processes = await startProcesses(entry, await serverUrl(), [0, 0, 0, 0]);
    });
    afterAll(() => processes?.stop());

    /** A new authentication, made by the first process. */
    async function created(at = now): Promise<{ id: string; code: string; number: string }> {
      const number = newNumber();
      const { sent } = await processes.run(at, [[{ operation: "create", number }]]);
      return { id: sent[0]?.id as string, code: sent[0]?.code as string, number };
    }
    const everywhere = (make: (at: number) => Ask) => repeat(4, () => repeat(each, make));

    it(`4 × ${each} parallel checks on one authentication give at most 5 wrong verdicts and one valid, ${rounds} rounds`, async () => {
      const judged: string[] = [];
      for (let round = 0; round < rounds; round++) {
        const { id, code } = await created();
        // The right code comes at a different position in each round.
        const outcome = await processes.run(
          now,
          everywhere((at) => ({ operation: "check", id, code: at % 50 === (round * 7) % 50 ? code : wrongFor(code) })),
        );
        const [valid, invalid] = [count(outcome, "valid"), count(outcome, "invalid")];
        judged.push(`${invalid}+${valid}`);
        expect(outcome.answers).toHaveLength(all);
        expect(outcome.answers.every(({ status }) => status === 200)).toBe(true);
        expect(valid + invalid).toBeGreaterThan(0);
        expect(invalid).toBeLessThanOrEqual(5);
        expect(valid).toBe(invalid === 5 ? 0 : 1);
        // More than fifty parallel wrong codes claim all guesses of the number, until those that lost their race give
        // theirs back.
        const [already, refused] = [count(outcome, "already_validated"), count(outcome, "rate_limited")];
        expect(valid === 0 ? refused : already + (inTwoSteps ? refused : 0)).toBe(all - valid - invalid);
      }
      console.log(`4 × ${each} checks, wrong codes judged + valid, round by round: ${judged.join(" ")}`);
    }, 300_000);

    it(`4 × ${each} parallel checks with the right code give exactly one valid, ${rounds} rounds`, async () => {
      for (let round = 0; round < rounds; round++) {
        const { id, code } = await created();
        const outcome = await processes.run(
          now,
          everywhere(() => ({ operation: "check", id, code })),
        );
        expect([count(outcome, "valid"), count(outcome, "already_validated")]).toEqual([1, all - 1]);
      }
    }, 300_000);

    it(`racing creates and retries exceed no cap and send one message per approved retry and per idempotency key, ${rounds} rounds`, async () => {
      for (let round = 0; round < rounds; round++) {
        const again = await created();
        const crowded = newNumber();
        const keyed = newNumber();
        const batch: Ask[] = repeat(20, (at) => {
          if (at % 3 === 0) return { operation: "create", number: crowded };
          return at % 3 === 1 ? { operation: "create", number: keyed, key: `key ${keyed}` } : { operation: "retry", id: again.id };
        });
        const outcome = await processes.run(
          now + 31_000,
          repeat(4, () => batch),
        );
        expect(outcome.answers.every(({ status }) => status === 200)).toBe(true);
        const to = (number: string) => outcome.sent.filter((message) => message.to === number).length;
        const answersTo = (at: number) => outcome.answers.filter((_, place) => (place % 20) % 3 === at);
        expect(to(crowded)).toBe(5);
        expect(answersTo(0).filter(({ body }) => body.status === "pending")).toHaveLength(5);
        expect(to(keyed)).toBe(1);
        expect(new Set(answersTo(1).map(({ body }) => `${body.authentication_uuid} ${body.status}`)).size).toBe(1);
        expect(to(again.number)).toBe(1);
        expect([count(outcome, "approved"), count(outcome, "denied")]).toEqual([1, 23]);
      }
    }, 300_000);

    it(`by number, 4 × ${each} starts give one verification with one message per cool-down, and 4 × ${each} right codes one success; then the next can start`, async () => {
      const number = newNumber();
      const ids = new Set<string>();
      for (let round = 0; round < 2; round++) {
        // The number's cap is five in ten minutes.
        const now = start + round * 11 * minute;
        const started = await processes.run(
          now,
          everywhere(() => ({ operation: "start", number })),
        );
        expect([count(started, "pending"), count(started, "denied"), started.sent.length]).toEqual([1, all - 1, 1]);
        expect(new Set(started.answers.map(({ body }) => body.authentication_uuid)).size).toBe(1);
        const [{ id, code } = { id: "", code: "" }] = started.sent;
        ids.add(id);
        const again = await processes.run(
          now + 31_000,
          everywhere(() => ({ operation: "start", number })),
        );
        expect([count(again, "pending"), count(again, "denied"), again.sent.length]).toEqual([1, all - 1, 1]);
        const checked = await processes.run(
          now + 31_000,
          everywhere(() => ({ operation: "checkNumber", number, code })),
        );
        expect([count(checked, "valid"), count(checked, "not_found")]).toEqual([1, all - 1]);
      }
      expect(ids.size).toBe(2);
    }, 300_000);
  });

  describe("four processes under one spend ceiling of 40 messages", () => {
    let processes: Processes;

    beforeAll(async () => {
      processes = await startProcesses(entry, await serverUrl(), [0, 0, 0, 0], { limits: { spend: [{ amount: 40, per: "day" }] } });
    });
    afterAll(() => processes?.stop());

    it("4 × 30 parallel creates send exactly 40 messages and return `rate_limited` for the rest; the day after again", async () => {
      for (const now of [start, start + 37 * 60 * minute]) {
        const batches = repeat(4, () => repeat(30, (): Ask => ({ operation: "create", number: newNumber() })));
        const outcome = await processes.run(now, batches);
        expect([count(outcome, "pending"), count(outcome, "rate_limited"), outcome.sent.length]).toEqual([40, 80, 40]);
      }
    });

    it("creates one at a time, on each process in turn, share the ceiling", async () => {
      let sent = 0;
      for (let turn = 0; turn < 60; turn++) {
        const batches = repeat(4, (at) => (at === turn % 4 ? [{ operation: "create", number: newNumber() } as const] : []));
        sent += (await processes.run(start + 74 * 60 * minute, batches)).sent.length;
      }
      expect(sent).toBe(40);
    });
  });

  describe("four processes under the spam rules", () => {
    let processes: Processes;

    beforeAll(async () => {
      const off = { mode: "off" as const };
      const spam = { crowd: off, country: off, newCountries: off, address: off, strangeNetwork: off, signals: off, range: { mode: "enforce" as const } };
      processes = await startProcesses(entry, await serverUrl(), [0, 0, 0, 0], { spam });
    });
    afterAll(() => processes?.stop());

    /** A number of one range of 10,000. */
    const inRange = (range: number, at: number) => `+33612${String(range).padStart(2, "0")}${String(at).padStart(4, "0")}`;

    it("a parallel burst of 4 × 20 into one range sends at most its seed; later again, since rejected creates do not count", async () => {
      for (const [round, now] of [start, start + 37 * 60 * minute].entries()) {
        const batches = repeat(4, (process) => repeat(20, (at): Ask => ({ operation: "create", number: inRange(7, round * 1_000 + process * 20 + at) })));
        const outcome = await processes.run(now, batches);
        expect(outcome.answers.every(({ status }) => status === 200)).toBe(true);
        expect([count(outcome, "pending") + count(outcome, "spam_detected"), outcome.sent.length]).toEqual([80, count(outcome, "pending")]);
        expect(outcome.sent.length).toBeLessThanOrEqual(5);
        // The rest of the seed can still be used, and no more.
        let sent = outcome.sent.length;
        for (let turn = 0; turn < 8; turn++) {
          const one = await processes.run(
            now,
            repeat(4, (at) => (at === turn % 4 ? [{ operation: "create", number: inRange(7, 5_000 + round * 100 + turn) } as const] : [])),
          );
          sent += one.sent.length;
        }
        expect(sent).toBe(5);
      }
    });
  });

  describe("four processes whose clocks are ±5 s off", () => {
    const skews = [5_000, -5_000, 5_000, -5_000];
    let processes: Processes;

    beforeAll(async () => {
      processes = await startProcesses(entry, await serverUrl(), skews);
    });
    afterAll(() => processes?.stop());

    /** Sends one request to one of the processes at a true time. */
    const one = (now: number, process: number, ask: Ask) =>
      processes.run(
        now,
        repeat(4, (at) => (at === process ? [ask] : [])),
      );

    it("no cap is exceeded in any true window of its length", async () => {
      const number = newNumber();
      const times: number[] = [];
      for (let turn = 0; turn < 75; turn++) {
        const now = start + turn * 20_000 + (turn % 7) * 1_000;
        const { sent } = await processes.run(
          now,
          repeat(4, () => [{ operation: "create", number }]),
        );
        times.push(...sent.map(() => now));
      }
      const most = (length: number) => Math.max(...times.map((end) => times.filter((time) => time <= end && time > end - length).length));
      console.log(`clocks ±5 s off: at most ${most(10 * minute)} messages in 10 min, ${most(24 * 60 * minute)} in 24 h`);
      expect([most(10 * minute), most(24 * 60 * minute)]).toEqual([5, 10]);
    });

    it("the guess budget is not exceeded, and expiry moves by at most 10 s", async () => {
      for (const creator of [0, 1]) {
        const { sent } = await one(start, creator, { operation: "create", number: newNumber() });
        const { id, code } = sent[0] as Outcome["sent"][number];
        const check = { operation: "check", id, code: wrongFor(code) } as const;
        const early = await processes.run(
          start + 10 * minute - 10_001,
          repeat(4, () => [check]),
        );
        expect(count(early, "expired_auth")).toBe(0);
        const middle = await processes.run(
          start + 10 * minute - 1,
          repeat(4, () => [check, check]),
        );
        expect(count(early, "invalid") + count(middle, "invalid")).toBeLessThanOrEqual(5);
        expect(count(middle, "valid")).toBe(0);
        const late = await processes.run(
          start + 10 * minute + 10_000,
          repeat(4, () => [{ ...check, code }]),
        );
        expect(count(late, "expired_auth")).toBe(4);
      }
    });

    it("the cool-down moves by at most 10 s", async () => {
      for (const creator of [0, 1]) {
        const { sent } = await one(start, creator, { operation: "create", number: newNumber() });
        const retry = { operation: "retry", id: sent[0]?.id as string } as const;
        const early = await processes.run(
          start + 30_000 - 10_001,
          repeat(4, () => [retry]),
        );
        expect([count(early, "denied"), early.sent.length]).toEqual([4, 0]);
        const late = await processes.run(
          start + 30_000 + 10_000,
          repeat(4, () => [retry]),
        );
        expect([count(late, "approved"), late.sent.length]).toEqual([1, 1]);
      }
    });
  });
}
