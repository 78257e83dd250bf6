import { AsyncLocalStorage } from "node:async_hooks";
import type { CodeMessage, StartRequest, StartResult, VerificationCheckResult, VerificationOptions } from "../../src/index.js";
import type { Clock } from "../../src/ports/clock.js";
import type { Store } from "../../src/ports/store.js";
import { type FixedClock, fixedClock } from "../../src/testing/index.js";
import { start as noon } from "../support/verifier.js";
import { hook, numberAt, type RiggedStore, rigged, type Sender, type Service, sender, service } from "./kit.js";

/** One of several processes on one store, each with its own access to it. */
export interface Process extends Omit<Service, "check"> {
  readonly store: RiggedStore;
  start(fields?: Partial<StartRequest>, call?: VerificationOptions): Promise<StartResult>;
  check(code: string, call?: VerificationOptions): Promise<VerificationCheckResult>;
  cancel(scope?: string): ReturnType<Service["verifier"]["verifications"]["cancel"]>;
  get(scope?: string): ReturnType<Service["verifier"]["verifications"]["get"]>;
}

type Options = NonNullable<Parameters<typeof service>[0]>;

/** `own`: the options that differ between the processes. */
export function processes(count: number, inner: Store, options: Options = {}, own: (i: number) => Options = () => ({})): Process[] {
  const shared = {
    clock: fixedClock(noon),
    sender: sender(options.price),
    customer: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f",
    ...options,
    callbacks: { sender: hook(), ...options.callbacks },
  };
  return Array.from({ length: count }, (_, i) => {
    const store = rigged(inner);
    const one = service({ ...shared, ...own(i), store } as Options);
    const { verifications } = one.verifier;
    const customer_uuid = one.customer;
    const phone_number = numberAt(1);
    return {
      ...one,
      store,
      start: (fields = {}, call) => verifications.start({ customer_uuid, phone_number, ...fields }, call),
      check: (check_code: string, call?: VerificationOptions) => verifications.check({ customer_uuid, phone_number, check_code }, call),
      cancel: (scope?: string) => verifications.cancel({ customer_uuid, phone_number }, scope === undefined ? {} : { scope }),
      get: (scope?: string) => verifications.get({ customer_uuid, phone_number }, scope === undefined ? {} : { scope }),
    } as Process;
  });
}

/** A clock that is `ms` milliseconds ahead of another. */
export const ahead = (clock: FixedClock, ms: number): Clock => ({ now: () => clock.now() + ms, after: (wait, run) => clock.after(wait, run) });

/** The clock of a process that can be suspended: timers that come due in the meantime run when it resumes. */
export function pausable(clock: FixedClock): Clock & { pause(): void; resume(): void } {
  let waiting: (() => void)[] | undefined;
  return {
    now: () => clock.now(),
    after(ms, run) {
      let isOff = false;
      const fire = () => {
        if (!isOff) run();
      };
      const off = clock.after(ms, () => void (waiting ? waiting.push(fire) : fire()));
      return () => {
        isOff = true;
        off();
      };
    },
    pause() {
      waiting = [];
    },
    resume() {
      const due = waiting ?? [];
      waiting = undefined;
      for (const run of due) run();
    },
  };
}

/** Pseudo-random numbers, the same for the same seed (mulberry32). */
export function chance(seed: number): { next(): number; below(n: number): number; one<T>(of: readonly T[]): T } {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (n: number) => Math.floor(next() * n);
  return { next, below, one: (of) => of[below(of.length)] as never };
}

/** The call of the test that sends a message. */
export const caller = new AsyncLocalStorage<Call>();

/** A call: when it began and ended (in steps of the test, and by the clock), and its result. */
export interface Call {
  readonly kind: "start" | "check" | "cancel";
  readonly code?: string;
  readonly began: number;
  readonly beganAt: number;
  ended?: number;
  result?: { readonly status: string; readonly authentication_uuid?: string; readonly attempt?: number };
  fault?: string;
}

export interface Sent {
  readonly message: CodeMessage;
  readonly order: number;
  readonly at: number;
  readonly by: Call | undefined;
  outcome?: string;
}

/** All calls and messages, in one order. */
export class Story {
  readonly calls: Call[] = [];
  readonly sent: Sent[] = [];
  private order = 0;

  constructor(
    private readonly clock: FixedClock,
    out: Sender,
    outcome: () => "accepted" | "rejected" | "unknown",
  ) {
    out.answer = async (message) => {
      const sent: Sent = { message, order: this.order++, at: clock.now(), by: caller.getStore() };
      this.sent.push(sent);
      sent.outcome = outcome();
      return { outcome: sent.outcome as "accepted" };
    };
  }

  async call(kind: Call["kind"], run: () => Promise<unknown>, code?: string): Promise<Call> {
    const call: Call = { kind, began: this.order++, beganAt: this.clock.now(), ...(code !== undefined && { code }) };
    this.calls.push(call);
    try {
      call.result = ((await caller.run(call, run)) ?? { status: "none" }) as NonNullable<Call["result"]>;
    } catch (error) {
      call.fault = (error as { code?: string }).code ?? String(error);
    }
    call.ended = this.order++;
    return call;
  }

  /** Violations of the contract. `late`: how many milliseconds after a decision its message may go out. */
  faults({ late = 2_000, life = 600_000 } = {}): string[] {
    const found: string[] = [];
    const { calls, sent } = this;
    const idOf = (call: Call) => call.result?.authentication_uuid ?? "";
    const valid = calls.filter(({ kind, result }) => kind === "check" && result?.status === "valid");
    const canceled = calls.filter(({ kind, result }) => kind === "cancel" && result?.status === "canceled");
    const firstOf = new Map<string, Sent>();
    for (const one of sent) if (!firstOf.has(one.message.authentication_uuid)) firstOf.set(one.message.authentication_uuid, one);

    for (const call of calls) {
      if (call.fault !== undefined && call.fault !== "unavailable") found.push(`${call.kind} rejects with ${call.fault}`);
      if (call.ended === undefined) found.push(`${call.kind} was never answered`);
      if (call.kind !== "start") continue;
      const its = sent.filter(({ by }) => by === call);
      if (call.result?.status === "pending") {
        // A message that every route rejected does not count: the start may then begin the next verification.
        const out = its.filter((one) => one.outcome !== "rejected" || one === its.at(-1));
        if (out.length !== 1)
          found.push(`a pending start sent ${out.map(({ message, outcome }) => `${message.authentication_uuid}:${message.attempt} ${outcome}`)}`);
        const one = its.at(-1);
        if (one && (one.message.authentication_uuid !== idOf(call) || one.message.attempt !== call.result.attempt)) {
          found.push(`a start returned ${idOf(call)}:${call.result.attempt} and sent ${one.message.authentication_uuid}:${one.message.attempt}`);
        }
      } else if (its.some(({ outcome }) => outcome !== "rejected")) found.push(`a start that ended ${call.result?.status ?? call.fault} sent a message`);
    }
    const names = sent.map(({ message: { authentication_uuid: id, attempt } }) => `${id}:${attempt}`);
    if (new Set(names).size !== names.length) found.push("two messages have one attempt");
    for (const [limit, window] of [
      [5, 600_000],
      [10, 86_400_000],
    ] as const) {
      for (const { at } of sent) {
        const within = sent.filter((one) => one.at > at - window && one.at <= at).length;
        if (within > limit) found.push(`${within} messages in ${window} ms`);
      }
    }
    for (const call of valid) {
      const id = idOf(call);
      const its = sent.filter(({ message, outcome }) => message.authentication_uuid === id && outcome !== "rejected");
      const typed = its.filter(({ message }) => message.code === call.code);
      if (typed.length === 0) found.push(`a code that was not sent in ${id} is valid`);
      // A concurrent message may go out before its write is superseded: two newer ones must precede the call.
      const newer = its.filter(({ order, at }) => order > Math.max(...typed.map((one) => one.order)) && order < call.began && at < call.beganAt - late);
      if (newer.length > 1) found.push(`a code with ${newer.length} newer ones is valid`);
      if (valid.some((other) => other !== call && idOf(other) === id)) found.push("two are valid");
      if (canceled.some((other) => idOf(other) === id && (other.ended as number) < call.began)) found.push("valid after it was canceled");
      const began = firstOf.get(id);
      if (began && call.beganAt >= began.at + life) found.push("valid after its end");
      for (const [other, first] of firstOf)
        if (other !== id && began && first.order > began.order && first.order < call.began) found.push("valid in the one before");
    }
    for (const call of canceled) {
      if (valid.some((other) => idOf(other) === idOf(call) && (other.ended as number) < call.began)) found.push("canceled after it was valid");
    }
    for (const ended of [...valid, ...canceled]) {
      for (const { message, order, at } of sent) {
        if (message.authentication_uuid === idOf(ended) && order > (ended.ended as number) && at > ended.beganAt + late + 120_000)
          found.push("sent in one that had ended");
      }
      for (const call of calls) {
        if (call.kind === "start" && call.began > (ended.ended as number) && call.result?.status === "pending" && idOf(call) === idOf(ended)) {
          found.push("a start sent in one that had ended");
        }
      }
    }
    for (const { message, at, order } of sent) {
      const first = firstOf.get(message.authentication_uuid) as Sent;
      if (at >= first.at + life + late) found.push("sent after its end");
      for (const other of firstOf.values()) if (other.order > first.order && other.order < order && at > other.at + late) found.push("sent in the one before");
    }
    const wrong = calls.filter(({ kind, result }) => kind === "check" && result?.status === "invalid");
    for (const id of new Set(wrong.map(idOf))) {
      const count = wrong.filter((call) => idOf(call) === id).length;
      if (count > 5) found.push(`${count} wrong codes in one`);
    }
    for (const { beganAt } of wrong) {
      const count = wrong.filter((call) => call.beganAt > beganAt - 86_400_000 && call.beganAt <= beganAt).length;
      if (count > 50) found.push(`${count} wrong codes in a day`);
    }
    return [...new Set(found)];
  }
}
