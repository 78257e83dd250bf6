import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, it } from "vitest";
import type { VerifierError } from "../../src/index.js";
import { numberOf, setUp } from "../support/verifier.js";

type Outcome = "accepted" | "rejected" | "unknown";

interface Sent {
  readonly at: number;
  readonly code: string;
  readonly key: string | undefined;
  readonly arrived: boolean;
}

/** The messages of one delivery, and whether it was confirmed. */
interface Delivery {
  readonly created: number;
  readonly sends: Sent[];
  confirmed: boolean;
}

/** A simple model of the deliveries to one number: lists of what happened, and the rules of docs/contract.md. */
class Model {
  readonly deliveries: Delivery[] = [];
  codes = 100_000;

  constructor(public now: number) {}

  /** The latest delivery, while it is stored: for a day after its code has expired. */
  get latest() {
    const latest = this.deliveries.at(-1);
    return latest === undefined || this.now >= (latest.sends.at(-1)?.at ?? 0) + 300_000 + 86_400_000 ? undefined : latest;
  }

  isOpen({ created, sends, confirmed }: Delivery): boolean {
    const arrived = sends.filter((send) => send.arrived);
    const newest = sends.at(-1)?.at ?? created;
    return !confirmed && arrived.length > 0 && this.now < newest + 300_000 && this.now < created + 600_000 && this.retries(sends) < 4;
  }

  /** Each message after the first uses up one of four, unless it was rejected. */
  retries(sends: readonly Sent[]): number {
    return sends.slice(1).filter((send) => send.arrived).length;
  }

  /** Whether the latest delivery already has this message. */
  repeats(code: string, key: string | undefined): "yes" | "no" | "other body" {
    const arrived = this.latest?.sends.filter((send) => send.arrived) ?? [];
    if (key === undefined) return arrived.some((send) => send.code === code && this.now < send.at + 30_000) ? "yes" : "no";
    const before = arrived.findLast((send) => send.key === key);
    if (before === undefined) return "no";
    return before.code === code ? "yes" : "other body";
  }

  /** When the caps have room again, if they have none. */
  get roomAt(): number | undefined {
    const times = this.deliveries.flatMap(({ sends }) => sends.map(({ at }) => at));
    const ends = [
      [5, 600_000],
      [10, 86_400_000],
    ].flatMap(([limit = 0, ms = 0]) => {
      const oldest = times.at(-limit);
      return oldest !== undefined && oldest > this.now - ms ? [oldest + ms] : [];
    });
    return ends[0];
  }

  confirm(): string {
    const { latest } = this;
    const arrived = latest?.sends.filter((send) => send.arrived) ?? [];
    if (latest === undefined || arrived.length === 0) return "not_found";
    if (latest.confirmed) return "already_confirmed";
    if (this.now >= (latest.sends.at(-1)?.at ?? 0) + 86_400_000) return "not_found";
    latest.confirmed = true;
    return "confirmed";
  }
}

type System = ReturnType<typeof setUp> & { ids: string[] };
type Step = fc.AsyncCommand<Model, System>;

function same(actual: unknown, expected: unknown, what: string) {
  if (!isDeepStrictEqual(actual, expected)) throw new Error(`${what}: got ${JSON.stringify(actual)}, the model says ${JSON.stringify(expected)}`);
}

class Wait implements Step {
  constructor(readonly seconds: number) {}
  check = () => true;
  async run(model: Model, { clock }: System) {
    model.now += this.seconds * 1000;
    clock.advance(this.seconds * 1000);
  }
  toString = () => `wait ${this.seconds} s`;
}

class Deliver implements Step {
  constructor(
    /** 0: a new code; otherwise that of the message so many back. */
    readonly back: number,
    readonly key: string | undefined,
    readonly outcome: Outcome,
  ) {}
  check = () => true;
  async run(model: Model, system: System) {
    const earlier = model.deliveries.flatMap(({ sends }) => sends).at(-this.back);
    const code = this.back > 0 && earlier !== undefined ? earlier.code : String(++model.codes);
    const before = system.box.messages.length;
    system.box.answer = async () => ({ outcome: this.outcome });
    const call = { phone_number: numberOf(1), code, ...(this.key !== undefined && { idempotency_key: this.key }) };
    const answer = await system.verifier
      .deliver(call)
      .catch((fault: VerifierError) => ({ status: fault.code, delivery_uuid: undefined, retry_after: undefined }));
    const tried = system.box.messages.length - before;
    const repeated = model.repeats(code, this.key);
    if (repeated !== "no") {
      same([answer.status, tried], [repeated === "yes" ? "repeated" : "bad_request", 0], "a repeat");
      return;
    }
    const room = model.roomAt;
    if (room !== undefined) {
      same([answer.status, tried, answer.retry_after], ["rate_limited", 0, Math.ceil((room - model.now) / 1000)], "a capped message");
      return;
    }
    const { latest } = model;
    const isNext = latest !== undefined && model.isOpen(latest);
    const delivery = isNext ? latest : { created: model.now, sends: [], confirmed: false };
    if (!isNext) model.deliveries.push(delivery);
    delivery.sends.push({ at: model.now, code, key: this.key, arrived: this.outcome !== "rejected" });
    const status = { accepted: "sent", unknown: "pending", rejected: "no_route" }[this.outcome];
    same([answer.status, tried, system.box.messages.at(-1)?.attempt], [status, 1, delivery.sends.length], "a message");
    if (!isNext) system.ids.push(answer.delivery_uuid as string);
    same(answer.delivery_uuid, system.ids.at(-1), "the delivery");
    same(new Set(system.ids).size, model.deliveries.length, "how many deliveries");
  }
  toString = () => `deliver ${this.back > 0 ? `the code ${this.back} back` : "a new code"}${this.key ? ` under ${this.key}` : ""}, the carrier ${this.outcome}`;
}

class Confirm implements Step {
  check = () => true;
  async run(model: Model, system: System) {
    const expected = model.confirm();
    const answer = await system.verifier.confirm({ phone_number: numberOf(1) });
    same(answer, { status: expected, ...(expected !== "not_found" && { delivery_uuid: system.ids.at(-1) }) }, "confirm");
  }
  toString = () => "confirm";
}

describe("deliveries against their model", () => {
  it("any sequence of waits, messages and confirmations returns what the model predicts", async () => {
    const outcomes = fc.constantFrom<Outcome>("accepted", "accepted", "rejected", "unknown");
    const keys = fc.constantFrom(undefined, undefined, "one", "two");
    const steps = [
      fc.constantFrom(1, 29, 30, 100, 299, 300, 600, 86_399, 86_400).map((seconds) => new Wait(seconds)),
      fc.tuple(fc.constantFrom(0, 0, 1, 2, 4), keys, outcomes).map(([back, key, outcome]) => new Deliver(back, key, outcome)),
      fc.constant(new Confirm()),
    ];
    await fc.assert(
      fc.asyncProperty(fc.commands(steps, { maxCommands: 60 }), async (commands) => {
        await fc.asyncModelRun(async () => {
          const set = setUp({ customers: undefined, conversion: "reported" });
          return { model: new Model(set.clock.now()), real: { ...set, ids: [] } };
        }, commands);
      }),
      { numRuns: 150 },
    );
  });
});
