import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, it } from "vitest";
import { numberOf, setUp } from "../support/verifier.js";

/**
 * A simple model of one authentication: lists of what happened, and the rules of docs/contract.md over them,
 * without a record, a digest or a swap.
 */
class Model {
  readonly created: number;
  now: number;
  /** Every attempted send: its time, its code, and whether it may have arrived. */
  readonly sends: { at: number; code: string; arrived: boolean }[] = [];
  retries = 0;
  wrong = 0;
  validated = false;

  constructor(now: number) {
    this.created = now;
    this.now = now;
  }

  get expired() {
    return this.now >= this.created + 600_000;
  }
  get arrived() {
    return this.sends.filter((send) => send.arrived);
  }

  check(code: string): string {
    if (this.expired) return "expired_auth";
    if (this.validated) return "already_validated";
    if (this.wrong === 5) return "rate_limited";
    if (this.arrived.length === 0) return "without_attempt";
    const live = this.arrived.slice(-2).map((send) => send.code);
    if (live.includes(code)) {
      this.validated = true;
      return "valid";
    }
    this.wrong++;
    return "invalid";
  }

  get cooldownEnd() {
    const last = this.sends.at(-1)?.at ?? this.created;
    return last + ([30, 60, 90, 120][this.retries] ?? 0) * 1000;
  }

  /** What a retry returns, given the carrier's outcome. */
  retry(outcome: "accepted" | "rejected" | "unknown"): string {
    if (this.expired) return "expired_auth";
    if (this.validated) return "already_validated";
    if (this.wrong === 5 || (this.retries === 4 && this.arrived.length > 0)) return "rate_limited";
    if (this.arrived.length === 0) return "no_attempt";
    if (this.now < this.cooldownEnd) return "denied";
    const inWindow = (seconds: number) => this.sends.filter((send) => send.at > this.now - seconds * 1000).length;
    if (inWindow(600) >= 5 || inWindow(86_400) >= 10) return "rate_limited";
    if (outcome === "rejected") return "denied";
    return "approved";
  }

  /** When the caps have room again, if they have none. */
  get roomAt(): number | undefined {
    const times = this.sends.map(({ at }) => at);
    for (const [limit, ms] of [
      [5, 600_000],
      [10, 86_400_000],
    ] as const) {
      const oldest = times.at(-limit);
      if (oldest !== undefined && oldest > this.now - ms) return oldest + ms;
    }
    return undefined;
  }

  /** The fields beyond the wire. */
  standing(status: string) {
    const over = this.expired || this.validated || this.arrived.length === 0;
    const remaining_retry = over || this.wrong === 5 ? 0 : 4 - this.retries;
    return {
      ...(status !== "expired_auth" && status !== "already_validated" && { phone_number: numberOf(1) }),
      remaining_checks: over ? 0 : 5 - this.wrong,
      remaining_retry,
      ...(remaining_retry > 0 && { next_retry_at: new Date(Math.min(this.cooldownEnd, this.created + 600_000)).toISOString() }),
    };
  }

  remaining(status: string): number {
    return ["expired_auth", "already_validated", "rate_limited", "no_attempt"].includes(status) ? 0 : 4 - this.retries;
  }
}

type System = ReturnType<typeof setUp> & { id: string };
type Step = fc.AsyncCommand<Model, System>;

const outcomes = ["accepted", "rejected", "unknown"] as const;

class Wait implements Step {
  constructor(readonly seconds: number) {}
  check = () => true;
  async run(model: Model, { clock }: System) {
    model.now += this.seconds * 1000;
    clock.advance(this.seconds * 1000);
  }
  toString = () => `wait ${this.seconds} s`;
}

class CheckCode implements Step {
  /** How many sends back the code is from; -1: a wrong one. */
  constructor(readonly back: number) {}
  check = () => true;
  async run(model: Model, system: System) {
    const code = this.back < 0 ? system.wrong() : (model.sends.at(-1 - this.back)?.code ?? system.wrong());
    const expected = model.check(code);
    same(await system.check(system.id, code), { authentication_uuid: system.id, status: expected, ...model.standing(expected) }, "check");
  }
  toString = () => `check ${this.back < 0 ? "a wrong code" : `the code ${this.back} sends back`}`;
}

class Retry implements Step {
  constructor(readonly outcome: (typeof outcomes)[number]) {}
  check = () => true;
  async run(model: Model, system: System) {
    const sent = system.box.messages.length;
    system.box.answer = async () => ({ outcome: this.outcome });
    const expected = model.retry(this.outcome);
    const before = model.cooldownEnd;
    const byCap = expected === "rate_limited" && model.wrong < 5 && model.retries < 4 ? model.roomAt : undefined;
    const result = await system.retry(system.id);
    const tried = system.box.messages.length > sent;
    same(tried, expected === "approved" || (expected === "denied" && model.now >= before), "whether a message went out");
    if (tried) model.sends.push({ at: model.now, code: system.box.code(), arrived: this.outcome !== "rejected" });
    if (expected === "approved") model.retries++;
    const remaining = model.remaining(expected);
    const end = model.created + 600_000;
    same(
      result,
      {
        ...model.standing(expected),
        authentication_uuid: system.id,
        created_at: new Date(model.now).toISOString(),
        next_retry_at: new Date(remaining === 0 ? end : Math.min(model.cooldownEnd, end)).toISOString(),
        remaining_retry: remaining,
        status: expected,
        ...(byCap !== undefined && { retry_after: Math.ceil((byCap - model.now) / 1000) }),
        ...(tried && this.outcome === "rejected" && { carrier_refused: true }),
      },
      "retry",
    );
  }
  toString = () => `retry, the carrier ${this.outcome}`;
}

function same(actual: unknown, expected: unknown, what: string) {
  if (!isDeepStrictEqual(actual, expected)) throw new Error(`${what}: got ${JSON.stringify(actual)}, the model says ${JSON.stringify(expected)}`);
}

describe("the state machine against its model", () => {
  it("any sequence of waits, checks and retries returns what the model predicts", async () => {
    const steps = [
      fc.integer({ min: 1, max: 130 }).map((seconds) => new Wait(seconds)),
      fc.integer({ min: -2, max: 3 }).map((back) => new CheckCode(back)),
      fc.constantFrom(...outcomes).map((outcome) => new Retry(outcome)),
      fc.constantFrom(30, 60, 90, 120, 600, 601).map((seconds) => new Wait(seconds)),
    ];
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...outcomes), fc.commands(steps, { maxCommands: 40 }), async (first, commands) => {
        await fc.asyncModelRun(async () => {
          const set = setUp();
          set.box.answer = async () => ({ outcome: first });
          const { authentication_uuid } = await set.create({ phone_number: numberOf(1) });
          const model = new Model(set.clock.now());
          model.sends.push({ at: model.now, code: set.box.code(), arrived: first !== "rejected" });
          return { model, real: { ...set, id: authentication_uuid } };
        }, commands);
      }),
      { numRuns: 120 },
    );
  });
});
